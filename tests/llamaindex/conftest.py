"""What the tests of the LlamaIndex package share."""

import asyncio

import pytest

import stemma


@pytest.fixture(autouse=True)
def _no_event_loop_is_left_open():
    """Where none is current, LlamaIndex's sync calls would make one, and never close it."""
    asyncio.set_event_loop(None)


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None, tenant="t") as opened:
        yield opened
