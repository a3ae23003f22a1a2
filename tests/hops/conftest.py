"""A cache in memory with a clock of its own, both call styles, and an agent of three steps."""

import asyncio
from collections.abc import Iterator

import pytest

import stemma
from stemma.testing.clock import ManualClock


class Style:
    """Calls an operation as it is, or its async twin on a fresh event loop."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, operation, *args, **kwargs):
        if self.name == "sync":
            return operation(*args, **kwargs)
        twin = getattr(operation.__self__, f"a{operation.__name__}")

        async def call():
            return await twin(*args, **kwargs)

        return asyncio.run(call())


@pytest.fixture(params=["sync", "async"])
def do(request) -> Style:
    return Style(request.param)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "cache.db")


@pytest.fixture
def cache(url, clock) -> Iterator[stemma.Cache]:
    with stemma.open(url, tenant="me", embedder="hashing", clock=clock) as opened:
        yield opened
