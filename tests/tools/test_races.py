"""Reads and writes at once: one call for all who ask, and nothing stale is stored or served."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import stemma
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry

READ = ToolPolicy(ttl=600, reads=["booking:{id}"])
WRITE = ToolPolicy(writes=["booking:{id}"])


@pytest.fixture
def tools(cache) -> ToolCaching:
    registry = ToolRegistry()
    registry.declare("get", READ)
    registry.declare("move", WRITE)
    return ToolCaching(cache, registry)


def get(tools, compute, **more):
    return tools.call("get", {"id": "1"}, compute, **more)


def test_agents_of_a_tenant_that_ask_at_once_make_one_call_in_threads(tools):
    began, go, calls = threading.Event(), threading.Event(), []

    def compute():
        calls.append(1)
        began.set()
        assert go.wait(30)
        return ["12A"]

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(get, tools, compute, agent="one")
        assert began.wait(30)
        others = [pool.submit(get, tools, compute, agent=f"agent {n}") for n in range(6)]
        go.set()
        values = [one.result(30).value for one in (first, *others)]
    assert (values, len(calls)) == ([["12A"]] * 7, 1)
    assert len({id(value) for value in values}) == 7


def test_agents_of_a_tenant_that_ask_at_once_make_one_call_in_tasks(tools):
    calls = []

    async def compute():
        calls.append(1)
        await asyncio.sleep(0.05)
        return ["12A"]

    async def all_at_once():
        asked = (tools.acall("get", {"id": "1"}, compute) for _ in range(50))
        return await asyncio.gather(*asked)

    served = asyncio.run(all_at_once())
    assert len(calls) == 1
    assert len({id(one.value) for one in served}) == 50


def test_tenants_that_ask_at_once_make_a_call_each(cache, tools):
    calls = []

    async def compute():
        calls.append(1)
        await asyncio.sleep(0.01)
        return len(calls)

    async def one(tenant):
        with cache.using(tenant=tenant):
            return (await tools.acall("get", {"id": "1"}, compute)).value

    async def all_at_once():
        return await asyncio.gather(*map(one, ("a", "b", "c")))

    asyncio.run(all_at_once())
    assert len(calls) == 3


@pytest.mark.parametrize("when", ["before it", "while it runs"])
def test_a_read_that_ends_after_a_write_began_is_not_stored(cache, tools, when):
    """The read saw the world as it was; the write ends before or after the read does."""
    seat, reading, written = ["12A"], threading.Event(), threading.Event()

    def slow_read():
        old = seat[0]
        reading.set()
        assert written.wait(30)
        return old

    with ThreadPoolExecutor(1) as pool:
        if when == "before it":
            late = pool.submit(get, tools, slow_read)
            assert reading.wait(30)
            tools.call("move", {"id": "1"}, lambda: seat.__setitem__(0, "14B"))
            written.set()
            assert late.result(30).stored.refused == "recalled"
        else:

            def write():
                late = pool.submit(get, tools, slow_read)
                assert reading.wait(30)
                seat[0] = "14B"
                written.set()
                served = late.result(30)
                assert (served.outcome.reason, served.stored) == ("unsettled", None)

            tools.call("move", {"id": "1"}, write)
    assert get(tools, lambda: seat[0]).value == "14B"


@pytest.fixture
def theirs(tools, clock, url):
    """Another cache on the same store, as in another process: it knows of no write under way."""
    if url == ":memory:":
        pytest.skip("memory has no other process")
    with stemma.open(url, tenant="me", embedder=None, clock=clock) as other:
        yield ToolCaching(other, tools.registry)


class Lost(Exception):
    """The answer to a write is lost."""


@pytest.mark.parametrize("style", ["sync", "async", "async, in a thread"])
@pytest.mark.parametrize("ends", ["well", "with an error"])
def test_what_another_process_reads_during_a_write_is_taken_back_after_it(
    tools, theirs, style, ends
):
    assert get(theirs, lambda: "long before").stored

    def write():
        assert get(theirs, lambda: "12A").value == "12A"  # nothing from before the write
        assert get(theirs, lambda: "14B").value == "12A"  # the write has not come to an end
        if ends != "well":
            raise Lost

    async def awrite():
        write()

    try:
        if style == "sync":
            tools.call("move", {"id": "1"}, write)
        else:
            compute = awrite if style == "async" else write
            asyncio.run(tools.acall("move", {"id": "1"}, compute))
    except Lost:
        assert ends != "well"
    assert get(theirs, lambda: "14B").value == "14B"
    assert get(tools, lambda: "never").value == "14B"


@pytest.mark.parametrize("times", [1, 2])
def test_a_write_that_is_cancelled_takes_back_in_other_processes(tools, theirs, times):
    async def run():
        started = asyncio.Event()

        async def write():
            assert get(theirs, lambda: "12A").stored
            started.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(tools.acall("move", {"id": "1"}, write))
        await started.wait()
        for _ in range(times):  # whoever cancels again, while it is taken back, changes nothing
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        while (await theirs.acall("get", {"id": "1"}, fresh)).value == "12A":
            assert times > 1
            await asyncio.sleep(0.001)

    async def fresh():
        return "14B"

    asyncio.run(run())
    assert get(theirs, lambda: "never").value == "14B"


def test_who_waited_for_a_read_that_a_write_overtook_reads_anew(tools):
    seat, reading, go = ["12A"], threading.Event(), threading.Event()

    def slow_read():
        old = seat[0]
        reading.set()
        assert go.wait(30)
        return old

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(get, tools, slow_read)
        assert reading.wait(30)
        tools.call("move", {"id": "1"}, lambda: seat.__setitem__(0, "14B"))
        second = pool.submit(get, tools, lambda: seat[0])
        while not any(tools.cache.engine.flights._waiting.values()):
            time.sleep(0.001)
        go.set()
        assert first.result(30).value == "12A"  # it was asked before the write
        assert second.result(30).value == "14B"
    assert get(tools, lambda: "never").value == "14B"


@pytest.mark.parametrize("native", [True, False], ids=["coroutine", "in a thread"])
def test_a_cancelled_write_may_have_written(tools, native):
    seat, ended = ["12A"], threading.Event()

    async def run():
        started, loop = asyncio.Event(), asyncio.get_running_loop()
        go = threading.Event()

        async def write():
            started.set()
            seat[0] = "14B"
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        def write_in_a_thread():
            loop.call_soon_threadsafe(started.set)
            assert go.wait(30)
            seat[0] = "14B"
            ended.set()

        compute = write if native else write_in_a_thread
        await tools.acall("get", {"id": "1"}, lambda: "12A")
        task = asyncio.create_task(tools.acall("move", {"id": "1"}, compute))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if not native:  # the thread goes on: it has not written yet, and a read is not stored
            during = await tools.acall("get", {"id": "1"}, lambda: seat[0])
            assert (during.value, during.outcome.reason) == ("12A", "unsettled")
        go.set()
        assert await asyncio.to_thread(ended.wait, 30)

    asyncio.run(run())  # waits for the thread
    assert get(tools, lambda: seat[0]).value == "14B"


def test_two_writes_at_once_are_settled_when_both_have_ended(tools):
    first, second = threading.Event(), threading.Event()
    get(tools, lambda: "12A")
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(tools.call, "move", {"id": "1"}, lambda: first.wait(30))
        other = pool.submit(tools.call, "move", {"id": "1"}, lambda: second.wait(30))
        first.set()
        one.result(30)
        assert get(tools, lambda: "?").outcome.reason == "unsettled"
        assert tools.call("get", {"id": "2"}, lambda: "7F").stored
        second.set()
        other.result(30)
    assert get(tools, lambda: "14B").stored
