"""A cache over each of the two stores that need no server, before an index."""

import pytest

import stemma
from stemma.testing.searches import World


@pytest.fixture(params=["memory", "sqlite"])
def world(request, tmp_path):
    url = ":memory:" if request.param == "memory" else str(tmp_path / "cache.db")
    with stemma.open(url, tenant="me", embedder=None) as cache:
        yield World(cache)
