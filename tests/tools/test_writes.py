"""What a write takes back: what was read of the resources it names in its tenant, and only that."""

import asyncio

import pytest

import stemma
from stemma.errors import StoreUnavailable
from stemma.testing.fakes import Faulty, Scripted
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry, cacheable
from stemma.unsettled import Unsettled


def test_a_read_after_a_write_sees_it(do, tools, world):
    assert do(tools, world.get_booking, "1")["seat"] == "12A"
    assert do(tools, world.move, "1", "14B") == "done"
    assert do(tools, world.get_booking, "1")["seat"] == "14B"
    assert world.calls == [("get", "1"), ("move", "1"), ("get", "1")]


def test_a_write_is_called_every_time(do, tools, world):
    for _ in range(3):
        do(tools, world.move, "1", "14B")
    assert world.calls == [("move", "1")] * 3
    served = tools.call("move", {"id": "1"}, lambda: "done", tool=world.move)
    assert (served.value, served.outcome.reason, served.stored) == ("done", "writes", None)


def test_a_write_takes_back_only_what_was_read_of_its_resource(do, tools, world):
    for booking in ("1", "12", "2"):
        do(tools, world.get_booking, booking)
    world.calls.clear()
    do(tools, world.move, "1", "14B")
    for booking in ("1", "12", "2"):
        do(tools, world.get_booking, booking)
    assert world.calls == [("move", "1"), ("get", "1")]


def test_what_was_read_of_the_whole_goes_with_each_part(tools, world):
    each = [tools.wrap(one) for one in (world.list_bookings, world.get_booking, world.move)]
    listed, get, move = each
    listed(), get("1"), listed()
    move("12", "1A")
    listed(), get("1")
    assert world.calls == [("list",), ("get", "1"), ("move", "12"), ("list",)]


def test_a_write_to_the_whole_takes_back_every_part(tools, world):
    @cacheable(writes=["booking"])
    def cancel_all():
        return "done"

    get = tools.wrap(world.get_booking)
    get("1"), get("2")
    tools.wrap(cancel_all)()
    get("1"), get("2")
    assert len(world.calls) == 4


@pytest.mark.parametrize("arguments", [{}, {"id": None}, {"id": []}, {"id": object()}], ids=str)
def test_a_write_that_does_not_say_which_takes_back_all_that_it_could_be(tools, world, arguments):
    get = tools.wrap(world.get_booking)
    get("1"), get("2")
    tools.call("user", {}, lambda: "x", tool=cacheable(reads="user:{name}")(lambda name: 1))
    tools.call("move", arguments, lambda: "done", tool=world.move)
    get("1"), get("2")
    assert world.calls == [("get", "1"), ("get", "2")] * 2


def test_seven_and_the_text_seven_are_one_resource(tools, world):
    world.seats[7] = "1A"
    get, move = tools.wrap(world.get_booking), tools.wrap(world.move)
    get(7)
    move("7", "2B")
    get(7)
    assert world.calls == [("get", 7), ("move", "7"), ("get", 7)]


def test_a_write_of_another_tenant_takes_back_nothing(cache, tools, world):
    get, move = tools.wrap(world.get_booking), tools.wrap(world.move)
    get("1")
    for tenant in ("me2", 'me","below', "ME"):
        with cache.using(tenant=tenant):
            move("1", "x")
    world.calls.clear()
    get("1")
    assert world.calls == []


def test_a_write_of_another_user_of_the_tenant_takes_back(cache, tools, world):
    @cacheable(ttl=60, scope="user", reads=["booking:{id}"])
    def mine(id):
        return world.seats[id]

    move = tools.wrap(world.move)
    with cache.using(user="ada"):
        assert tools.wrap(mine)("1") == "12A"
    with cache.using(user="max"):
        move("1", "9Z")
    with cache.using(user="ada"):
        assert tools.wrap(mine)("1") == "9Z"


def test_what_was_built_on_a_read_goes_with_it(cache, tools, world):
    get, move = tools.wrap(world.get_booking), tools.wrap(world.move)
    with cache.trace():
        get("1")
        cache.answers.get_or_compute("Where do I sit?", lambda: "in 12A")
    with cache.trace():
        get("2")
        cache.answers.get_or_compute("Where does he sit?", lambda: "in 7F")
    move("1", "14B")
    assert cache.answers.lookup("Where do I sit?").reason == "cold"
    assert cache.answers.lookup("Where does he sit?").hit


def test_a_write_that_raised_may_have_written(do, tools, world):
    do(tools, world.get_booking, "1")
    with pytest.raises(RuntimeError, match="the line broke"):
        do(tools, world.break_down, "1", "14B")
    assert do(tools, world.get_booking, "1")["seat"] == "14B"


def test_nothing_built_on_a_write_is_stored_so_that_it_is_never_left_out(cache, tools, world):
    move = tools.wrap(world.move)

    def ask():
        with cache.trace():
            move("1", "14B")
            return cache.answers.get_or_compute("Move me to 14B", lambda: "done")

    assert ask().stored.refused == "recalled"
    ask()
    assert world.calls == [("move", "1")] * 2


@pytest.mark.filterwarnings("ignore:the cache is bypassed")
@pytest.mark.parametrize(
    ("declared", "injected"),
    [({"when": lambda _: False}, {}), ({"keep": lambda _: False}, {}), ({}, {"of": object()})],
    ids=["declined", "not kept", "unkeyable"],
)
def test_a_read_that_is_not_stored_is_read_all_the_same(cache, tools, world, declared, injected):
    """What is built on it goes with the resource."""
    tools.registry.declare("peek", ToolPolicy(reads=["booking:{id}"], **declared))
    with cache.trace():
        seen = tools.call("peek", {"id": "1"}, lambda: "12A", injected=injected)
        assert not seen.stored
        assert cache.answers.get_or_compute("Where do I sit?", lambda: "in 12A").stored
    tools.wrap(world.move)("1", "14B")
    assert cache.answers.lookup("Where do I sit?").reason == "cold"


@pytest.mark.parametrize(("unknown", "calls"), [("pass", 2), ("clear", 3)])
def test_a_call_of_an_undeclared_tool_clears_where_that_is_asked_for(cache, world, unknown, calls):
    tools = ToolCaching(cache, ToolRegistry(unknown=unknown))
    get, now = tools.wrap(world.get_booking), tools.wrap(world.now)
    get("1")
    with cache.using(tenant="another"):
        now()
    get("1")
    assert len(world.calls) == 2
    world.calls.clear()
    now(), get("1"), now()
    assert len(world.calls) == calls


def test_resources_that_changed_otherwise(tools, world):
    get = tools.wrap(world.get_booking)
    for booking in ("1", "2"):
        get(booking)
    assert len(tools.changed("booking:{id}", id="1")) == 1
    assert len(asyncio.run(tools.achanged("booking:2"))) == 1
    get("1"), get("2")
    assert len(world.calls) == 4
    assert tools.changed("booking").by_tenant == {"me": 2}


@pytest.mark.parametrize(
    ("resources", "arguments"), [((), {}), (("booking:{id}",), {}), (("booking:",), {}), ((7,), {})]
)
def test_what_changed_must_be_named(tools, resources, arguments):
    with pytest.raises(stemma.UsageError):
        tools.changed(*resources, **arguments)


def test_a_write_without_a_tenant_is_made_with_a_warning(url, world):
    with stemma.open(url, embedder=None) as cache:
        move = ToolCaching(cache).wrap(world.move)
        with pytest.warns(RuntimeWarning, match="takes nothing back"):
            assert move("1", "14B") == "done"
        with pytest.raises(stemma.TenantRequired):
            ToolCaching(cache).changed("booking")


def test_a_write_goes_on_where_the_store_fails_and_what_it_owes_is_paid_before_the_next_read(clock):
    store = Faulty()
    with stemma.open(store, tenant="me", embedder=None, clock=clock) as cache:
        reads, seats = Scripted("12A", "14B", "14B"), ToolRegistry()
        seats.declare("get", ToolPolicy(ttl=600, reads=["booking:{id}"]))
        seats.declare("move", ToolPolicy(writes=["booking:{id}"]))
        tools, others = ToolCaching(cache, seats), ToolCaching(cache, seats)
        tools.call("get", {"id": "1"}, reads)
        tools.call("get", {"id": "2"}, Scripted("7F"))

        store.mode = StoreUnavailable("gone")
        assert tools.call("move", {"id": "1"}, lambda: "done").value == "done"
        out = others.call("get", {"id": "1"}, reads)
        assert (out.value, out.outcome.reason) == ("14B", "unsettled")

        store.mode = "well"
        paid = others.call("get", {"id": "1"}, reads)
        assert (paid.value, paid.outcome.reason, bool(paid.stored)) == ("14B", "cold", True)
        assert others.call("get", {"id": "1"}, reads).outcome.hit
        assert tools.call("get", {"id": "2"}, reads).outcome.hit


def test_what_was_built_on_what_could_not_be_taken_back_is_not_served(clock):
    store, gone = Faulty(), StoreUnavailable("gone")
    with stemma.open(store, tenant="me", embedder=None, clock=clock) as cache:
        seats = ToolRegistry()
        seats.declare("get", ToolPolicy(ttl=600, reads=["booking:{id}"]))
        seats.declare("move", ToolPolicy(writes=["booking:{id}"]))
        tools = ToolCaching(cache, seats)
        for booking in ("1", "2"):
            with cache.trace():
                tools.call("get", {"id": booking}, lambda: "12A")
                cache.answers.get_or_compute(f"Where is booking {booking}?", lambda: "in 12A")
        store.mode = gone
        tools.call("move", {"id": "1"}, lambda: "done")
        store.mode = "well"
        assert cache.answers.lookup("Where is booking 1?").reason == "unsettled"
        assert cache.answers.lookup("Where is booking 2?").hit

        tools.call("get", {"id": "1"}, lambda: "14B")
        assert cache.answers.lookup("Where is booking 1?").reason == "cold"
        assert cache.answers.lookup("Where is booking 2?").hit


def test_a_write_tells_the_listeners_what_it_took_back(cache, tools, world):
    heard = []
    cache.listen(lambda event: heard.append((event.kind, event.detail)))
    tools.wrap(world.get_booking)("1")
    tools.wrap(world.move)("1", "14B")
    told = [detail for kind, detail in heard if kind == "recall"]
    assert len(told) == 2
    assert ["took back 1 entry" in one for one in told] == [True, False]


def test_what_a_later_write_owes_is_not_settled_by_what_was_taken_back_before():
    pending = Unsettled()
    pending.begin(["a"])
    pending.end(["a"])
    owed = pending.owed(["a", "b"])
    pending.begin(["a"])
    assert pending.writing(["b", "a"])
    pending.end(["a"])
    pending.settled(owed)
    assert pending.owed(["a"]) != {}
    pending.settled(pending.owed(["a"]))
    assert (pending.owed(["a"]), pending.writing(["a"])) == ({}, False)


def test_what_a_parents_thread_was_writing_is_owed_in_a_child():
    pending = Unsettled()
    pending.begin(["a"])
    pending.after_fork()
    assert not pending.writing(["a"])
    assert list(pending.owed(["a"])) == ["a"]


async def test_what_a_plain_function_writes_when_it_is_awaited_is_taken_back(tools, world):
    @cacheable(writes=["booking:{id}"])
    def move(id, seat):
        async def later():
            await asyncio.sleep(0)
            assert get(id)["seat"] == "12A"  # not stored: it is being written
            return world.move(id, seat)

        return later()

    get = tools.wrap(world.get_booking)
    get("1")
    assert await tools.wrap(move)("1", "14B") == "done"
    assert get("1")["seat"] == "14B"


async def test_an_awaited_write_of_a_plain_function_that_raises_is_taken_back(tools, world):
    @cacheable(writes=["booking:{id}"])
    def break_down(id, seat):
        async def later():
            get(id)
            world.break_down(id, seat)

        return later()

    get = tools.wrap(world.get_booking)
    with pytest.raises(RuntimeError, match="the line broke"):
        await tools.wrap(break_down)("1", "14B")
    assert get("1")["seat"] == "14B"
