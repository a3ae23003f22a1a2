"""A cache in memory and in a file, with a clock of its own; a small world that tools act on."""

import asyncio
import inspect
from collections.abc import Iterator

import pytest

import stemma
from stemma.testing.clock import ManualClock
from stemma.tools import ToolCaching, cacheable


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "cache.db")


@pytest.fixture
def cache(url, clock) -> Iterator[stemma.Cache]:
    with stemma.open(url, tenant="me", embedder=None, clock=clock) as opened:
        yield opened


@pytest.fixture
def tools(cache) -> ToolCaching:
    return ToolCaching(cache)


@pytest.fixture(params=["sync", "async"])
def do(request):
    """Calls a wrapped tool: as it is, or as a coroutine function of the same name."""

    def call(tools: ToolCaching, tool, *args, **kwargs):
        if request.param == "sync":
            return tools.wrap(tool)(*args, **kwargs)

        @cacheable_as(tool)
        async def twin(*args, **kwargs):
            return tool(*args, **kwargs)

        twin.__name__ = tool.__name__
        twin.__signature__ = inspect.signature(tool)
        return asyncio.run(tools.wrap(twin)(*args, **kwargs))

    return call


def cacheable_as(tool):
    """The decorator that marks a twin as the tool is marked."""
    policy = stemma.tools.policy_of(tool)
    return (lambda twin: twin) if policy is None else cacheable(policy)


class World:
    """Bookings of users, and how often each tool was really called."""

    def __init__(self) -> None:
        self.seats = {"1": "12A", "12": "3C", "2": "7F"}
        self.calls: list[tuple] = []

        @cacheable(ttl=600, reads=["booking:{id}"])
        def get_booking(id):
            self.calls.append(("get", id))
            return {"id": id, "seat": self.seats[id]}

        @cacheable(ttl=600, reads="booking")
        def list_bookings():
            self.calls.append(("list",))
            return sorted(self.seats)

        @cacheable(writes=["booking:{id}"])
        def move(id, seat):
            self.calls.append(("move", id))
            self.seats[id] = seat
            return "done"

        @cacheable(writes=["booking:{id}"])
        def break_down(id, seat):
            self.seats[id] = seat
            raise RuntimeError("the line broke")

        def now():
            self.calls.append(("now",))
            return len(self.calls)

        self.get_booking, self.list_bookings = get_booking, list_bookings
        self.move, self.break_down, self.now = move, break_down, now


@pytest.fixture
def world() -> World:
    return World()
