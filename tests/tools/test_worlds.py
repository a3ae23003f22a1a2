"""Private worlds: what is written in one says nothing of another, and is not forgotten in its own."""

import asyncio
import contextvars
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import stemma
from stemma import context
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry, cacheable

READ = ToolPolicy(ttl=600, reads=["booking:{id}"])
WRITE = ToolPolicy(writes=["booking:{id}"])


class Bookings:
    """One world's bookings, and how often they were really read."""

    def __init__(self, tools: ToolCaching) -> None:
        self.tools = tools
        self.seats = {"1": "12A", "2": "7F"}
        self.reads = 0

    def get(self, id="1"):
        def compute():
            self.reads += 1
            return self.seats[id]

        return self.tools.call("get", {"id": id}, compute).value

    def move(self, id="1", seat="14B", *, result="done", **more):
        def compute():
            self.seats[id] = seat
            return result

        return self.tools.call("move", {"id": id, "seat": seat, **more}, compute).value


@pytest.fixture
def tools(cache) -> ToolCaching:
    registry = ToolRegistry(unknown="clear")
    registry.declare("get", READ)
    registry.declare("move", WRITE)
    return ToolCaching(cache, registry)


def test_a_run_that_does_what_another_did_reaches_no_tool_that_reads(cache, tools, world, do):
    runs = []
    for _ in range(2):
        world.seats["1"] = "12A"
        with cache.world():
            before = do(tools, world.get_booking, "1")
            do(tools, world.move, "1", "14B")
            after = do(tools, world.get_booking, "1")
            runs.append((before["seat"], after["seat"], do(tools, world.list_bookings)))
    assert runs == [("12A", "14B", ["1", "12", "2"])] * 2
    read, moved = [("get", "1"), ("list",)], [("move", "1")]
    assert world.calls == [read[0], *moved, *read, *moved]


def test_a_run_that_took_another_turn_reads_for_itself_from_there_on(cache, tools):
    for seat, reads in (("14B", 2), ("9C", 1), ("14B", 0)):
        bookings = Bookings(tools)
        with cache.world():
            assert bookings.get() == "12A"
            bookings.move(seat=seat)
            assert bookings.get() == seat
        assert bookings.reads == reads


def test_a_write_moves_on_what_it_concerns_and_nothing_else(cache, tools):
    bookings = Bookings(tools)
    with cache.world():
        bookings.get("1"), bookings.get("2")
        bookings.move("1")
        assert (bookings.get("2"), bookings.reads) == ("7F", 2)
        assert (bookings.get("1"), bookings.reads) == ("14B", 3)


def test_writes_in_a_world_take_nothing_back_outside_and_are_not_read_there(cache, tools):
    outside, inside = Bookings(tools), Bookings(tools)
    outside.get()
    with cache.world():
        inside.move()
        assert inside.get() == "14B"
    assert (outside.get(), outside.reads) == ("12A", 1)


def test_writes_outside_take_back_what_was_read_in_worlds(cache, tools):
    """Their common beginning may have been written."""
    bookings = Bookings(tools)
    with cache.world():
        bookings.get()
    bookings.move()
    with cache.world():
        assert (bookings.get(), bookings.reads) == ("14B", 2)


def test_worlds_that_begin_otherwise_are_told_apart(cache, tools):
    bookings = Bookings(tools)
    for start in ("monday", "tuesday", "monday"):
        with cache.world(start):
            bookings.get()
    assert bookings.reads == 2


def test_one_can_go_on_in_a_world_that_was_begun_before(cache, tools):
    bookings = Bookings(tools)
    with cache.world("monday") as begun:
        bookings.move()
    with cache.world(begun) as again:
        assert again is begun
        assert bookings.get() == "14B"
    fresh = Bookings(tools)
    with cache.world("monday"):
        assert fresh.get() == "12A"
    assert repr(begun) == "World('monday')"


def test_threads_and_tasks_act_in_the_world_that_they_were_begun_in(cache, tools):
    bookings = Bookings(tools)
    with cache.world() as here:
        around = contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(around.run, bookings.move).result()
            assert pool.submit(lambda: cache.current_world).result() is None
            assert pool.submit(go_on, cache, here, bookings.get).result() == "14B"

        async def task():
            return cache.current_world, bookings.get()

        assert asyncio.run(task()) == (here, "14B")
    assert cache.current_world is None


def go_on(cache, world, ask):
    with cache.world(world):
        return ask()


def test_a_stream_goes_on_in_the_world_in_which_it_was_begun(cache):
    with cache.using(tenant="a"), cache.world() as here:
        before = context.said()
    with context.going_on(before):
        assert cache.current_world is here
    with cache.using(tenant="b"), context.going_on(before):
        assert cache.current_world is here
        assert cache.context(None)[0] == "b"
    with cache.world() as nearer, context.going_on(before):
        assert cache.current_world is nearer
        assert cache.context(None)[0] == "a"


def test_a_world_within_a_world_is_one_of_its_own(cache, tools):
    bookings = Bookings(tools)
    with cache.world() as outer:
        bookings.move()
        with cache.world():
            assert Bookings(tools).get() == "12A"
        assert cache.current_world is outer
        assert bookings.get() == "14B"


def test_tenants_in_worlds_see_nothing_of_each_other(cache, tools):
    bookings = Bookings(tools)
    for tenant in ("a", "b"):
        with cache.using(tenant=tenant), cache.world():
            bookings.get()
    assert bookings.reads == 2


# ------------------------------------------------------- writes of which not all is known


def raised(bookings):
    def broken():
        bookings.seats["1"] = "half"
        raise RuntimeError("the line broke")

    with pytest.raises(RuntimeError):
        bookings.tools.call("move", {"id": "1"}, broken)


def cancelled(bookings):
    async def stuck():
        bookings.seats["1"] = "half"
        await asyncio.sleep(60)

    async def cut_off():
        task = asyncio.create_task(bookings.tools.acall("move", {"id": "1"}, stuck))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cut_off())


def refused(bookings):
    bookings.tools.call("move", {"id": "1"}, lambda: "error", admit=lambda _: "the tool failed")


def changed(bookings):
    bookings.tools.changed("booking:{id}", id="1")


@pytest.mark.parametrize(
    "write",
    [
        raised,
        cancelled,
        refused,
        changed,
        pytest.param(lambda one: one.move(result=object()), id="a result without a stored form"),
        pytest.param(lambda one: one.move(by=lambda: 0), id="an argument without a key"),
    ],
)
def test_after_a_write_of_which_not_all_is_known_nobody_else_comes_there(cache, tools, write):
    for _ in range(2):
        bookings = Bookings(tools)
        with cache.world():
            write(bookings)
            bookings.get(), bookings.get()
            assert bookings.reads == 1  # not served to another world, but in its own
        with cache.world():
            Bookings(tools).get()


def test_the_result_of_a_write_and_the_version_of_its_tool_count(cache):
    reads = []
    for version, result in (("1", "a"), ("1", "b"), ("2", "a"), ("2", "a")):
        registry = ToolRegistry()
        registry.declare("get", READ)
        registry.declare("move", ToolPolicy(writes=["booking:{id}"], version=version))
        bookings = Bookings(ToolCaching(cache, registry))
        with cache.world():
            bookings.move(result=result)
            bookings.get()
        reads.append(bookings.reads)
    assert reads == [1, 1, 1, 0]


def test_an_undeclared_tool_moves_everything_on(cache, tools):
    reads = []
    for _ in range(2):
        bookings = Bookings(tools)
        with cache.world():
            bookings.get()
            tools.call("mystery", {}, lambda: "done")
            bookings.get()
        reads.append(bookings.reads)
    assert reads == [2, 0]


def test_arguments_count_as_they_were_before_the_tool_changed_them(cache, tools):
    """Else two writes with other arguments could come to the same."""
    for seats in (["14B"], ["9C"]):
        bookings, seat = Bookings(tools), seats[0]

        def consumed(seats=seats, bookings=bookings):
            bookings.seats["1"] = seats.pop()
            return "done"

        with cache.world():
            tools.call("move", {"id": "1", "seats": seats}, consumed)
            assert bookings.get() == seat


@pytest.mark.parametrize("compute", ["coroutine function", "gives a coroutine", "function"])
def test_asynchronous_writes_are_known_as_well(cache, tools, compute):
    reads = []

    async def run(bookings):
        async def move():
            bookings.seats["1"] = "14B"
            return "done"

        def at_once():
            bookings.seats["1"] = "14B"
            return "done"

        forms = {"function": at_once, "gives a coroutine": lambda: move()}  # noqa: PLW0108
        bookings.get()
        given = await tools.acall("move", {"id": "1"}, forms.get(compute, move))
        assert given.value == "done"
        assert bookings.get() == "14B"

    for _ in range(2):
        bookings = Bookings(tools)
        with cache.world():
            asyncio.run(run(bookings))
        reads.append(bookings.reads)
    assert reads == [2, 0]


@pytest.mark.parametrize("begun", [False, True], ids=["coroutine", "task"])
async def test_what_a_synchronous_call_gives_writes_when_it_is_awaited(cache, tools, begun):
    """A task writes before that as well: then nobody knows what the resource is."""

    async def later():
        return "done"

    def move():
        return asyncio.ensure_future(later()) if begun else later()

    reads = []
    for _ in range(2):
        bookings = Bookings(tools)
        with cache.world():
            bookings.get()
            writing = tools.call("move", {"id": "1"}, move).value
            bookings.get()
            assert await writing == "done"
            bookings.get()
        reads.append(bookings.reads)
    assert reads == ([3, 2] if begun else [2, 0])


# ------------------------------------------------------------------- at the same time


def test_what_is_being_written_is_neither_served_nor_stored(cache, tools):
    bookings = Bookings(tools)
    with cache.world():
        bookings.get("1"), bookings.get("2")

        def move():
            reason = tools.call("get", {"id": "1"}, lambda: "between").outcome.reason
            assert (reason, bookings.get("2"), bookings.reads) == ("unsettled", "7F", 2)
            bookings.seats["1"] = "14B"
            return "done"

        tools.call("move", {"id": "1"}, move)
        assert bookings.get() == "14B"
    with cache.world():
        assert (Bookings(tools).get(), bookings.reads) == ("12A", 3)


def test_a_write_in_one_world_unsettles_nothing_in_another(cache, tools):
    bookings = Bookings(tools)
    with cache.world():
        bookings.get()

    def elsewhere():
        with cache.world():
            return bookings.get()

    with cache.world():
        tools.call("move", {"id": "1"}, elsewhere)
    assert bookings.reads == 1


def test_a_value_that_was_read_while_its_world_was_written_to_is_not_stored(cache, tools):
    bookings = Bookings(tools)
    with cache.world():
        served = tools.call("get", {"id": "1"}, lambda: (bookings.move(), bookings.seats["1"])[1])
        assert (served.value, served.stored.refused) == ("14B", "not_admitted")
    with cache.world():
        assert Bookings(tools).get() == "12A"


def test_of_writes_that_overlap_nobody_knows_the_order(cache, tools):
    reads = []
    for _ in range(2):
        bookings, both = Bookings(tools), threading.Barrier(2, timeout=30)

        def move(id, bookings=bookings, both=both):
            def compute():
                both.wait()
                bookings.seats[id] = f"{id}Z"
                return "done"

            return tools.call("move", {"id": id}, compute)

        with cache.world(), ThreadPoolExecutor(2) as pool:
            begun = [pool.submit(contextvars.copy_context().run, move, one) for one in ("1", "2")]
            assert [one.result().value for one in begun] == ["done"] * 2
            assert (bookings.get("1"), bookings.get("2")) == ("1Z", "2Z")
            bookings.get("1")
        reads.append(bookings.reads)
    assert reads == [2, 2]


def test_runs_in_worlds_of_their_own_go_on_side_by_side(cache, tools):
    def run(number):
        bookings = Bookings(tools)
        with cache.world():
            for step in range(5):
                bookings.move(seat=f"{number % 3}-{step}")
                assert bookings.get() == f"{number % 3}-{step}"
        return bookings.reads

    with ThreadPoolExecutor(8) as pool:
        reads = list(pool.map(run, range(24)))
    assert sum(reads) < 24 * 5 / 2


# ----------------------------------------------------------- what is built on worlds


def answered(cache, question, compute):
    return cache.answers.get_or_compute(question, compute)


def test_an_answer_is_kept_for_a_whole_world_as_it_is(cache, tools):
    seen = []
    for _ in range(2):
        bookings = Bookings(tools)
        with cache.world():
            for _ in range(2):
                seen.append(answered(cache, "Where do I sit?", bookings.get).value)
                seen.append(answered(cache, "Where do I sit?", bookings.get).outcome.hit)
                bookings.move()
        reads = bookings.reads
    assert seen == ["12A", True, "14B", True] * 2
    assert reads == 0


def test_an_answer_that_came_with_a_write_is_not_stored(cache, tools):
    bookings = Bookings(tools)
    with cache.world():
        came = answered(cache, "Move me", bookings.move)
        assert came.stored.refused == "not_admitted"
        # What is asked after a write is kept for those who wrote the same before they ask.
        with cache.trace():
            bookings.move("2")
            assert answered(cache, "Where do I sit?", bookings.get).stored
    with cache.world():
        assert not answered(cache, "Move me", bookings.move).outcome.hit


def test_what_is_built_on_a_world_is_stored_in_no_other_and_not_outside(cache, tools):
    def in_a_world():
        with cache.world():
            return Bookings(tools).get()

    def bypassed():
        with cache.world():
            return tools.call("get", {"id": None}, lambda: "all").value

    def written():
        with cache.world():
            return Bookings(tools).move()

    assert answered(cache, "outside", in_a_world).stored.refused == "not_admitted"
    assert answered(cache, "past the cache", bypassed).stored.refused == "not_admitted"
    assert answered(cache, "written", written).stored.refused == "not_admitted"
    with cache.world():
        assert answered(cache, "in another", in_a_world).stored.refused == "not_admitted"
    with cache.trace():
        assert answered(cache, "before it", lambda: "x").stored
        with cache.hop("simulate"):
            in_a_world()
        assert answered(cache, "after it", lambda: "x").stored.refused == "not_admitted"
        assert tools.call("get", {"id": "2"}, lambda: "7F").stored  # is built on nothing before
    assert answered(cache, "apart from it", lambda: "x").stored


@cacheable(ttl=600)
def about(inner):
    return inner()


@cacheable(ttl=600, reads=["booking"])
def overview(inner):
    return inner()


def test_a_tool_that_reads_more_than_it_declares_is_not_stored(cache, tools):
    bookings, number = Bookings(tools), itertools.count()

    def kept(tool, inner):
        served = tools.call(f"tool {next(number)}", {}, lambda: tool(inner), tool=tool)
        assert not served.outcome.hit
        return bool(served.stored)

    with cache.world():
        assert kept(about, lambda: "nothing")
        assert kept(overview, bookings.get)
    with cache.world("another"):
        assert not kept(about, bookings.get)
        assert not kept(overview, lambda: tools.call("user", {}, lambda: 1, tool=user).value)
        assert not kept(overview, lambda: answered(cache, "Where?", lambda: "here").value)
        assert not kept(overview, lambda: tools.call("mystery", {}, lambda: "done").value)


@cacheable(ttl=600, reads=["user"])
def user():
    return 1


@cacheable(ttl=600, path=True, reads=["user"])
def next_step():
    return 1


def test_what_depends_on_the_path_is_kept_for_the_whole_world_as_it_is(cache, tools):
    bookings, calls = Bookings(tools), []

    def step():
        return tools.call("next", {}, lambda: calls.append(1), tool=next_step).outcome.hit

    found = []
    for _ in range(2):
        with cache.world(), cache.trace():
            found += [step(), step()]
            bookings.move()
            found.append(step())
    assert found == [False, True, False, True, True, True]


def test_without_a_tenant_a_write_moves_the_world_on_all_the_same(tools, url):
    with stemma.open(":memory:", embedder=None) as cache:
        bookings = Bookings(ToolCaching(cache, tools.registry))
        with cache.world():
            with cache.using(tenant="me"):
                bookings.get()
            with pytest.warns(RuntimeWarning, match="takes nothing back"):
                bookings.move()
            with cache.using(tenant="me"):
                assert bookings.get() == "14B"


def test_what_is_recalled_is_not_served_in_any_world(cache, tools):
    bookings = Bookings(tools)
    with cache.world():
        bookings.get()
    assert len(tools.changed("booking:{id}", id="1")) == 1
    with cache.world():
        bookings.get()
    cache.recall(tenant="me")
    with cache.world():
        bookings.get()
    assert bookings.reads == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_in_a_forked_child_nothing_is_known_of_what_was_written(cache, tools):
    with cache.world() as here:
        Bookings(tools).move()
        before = here.moment()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, b"same" if here.moment() == before else b"other")
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reading, 10) == b"other"
        assert here.moment() == before
        os.close(reading), os.close(writing)


@pytest.mark.parametrize("wrong", [3, None, b"monday", object])
def test_what_names_no_beginning_is_refused(cache, wrong):
    with pytest.raises(stemma.UsageError, match="a world begins with"):
        cache.world(wrong)
