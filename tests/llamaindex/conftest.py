"""What the tests of the LlamaIndex package share."""

import pytest

import stemma


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None, tenant="t") as opened:
        yield opened
