"""A store that hangs, fails or is slow costs its caller no more than was agreed."""

import asyncio
import threading

import pytest

import stemma
from stemma.errors import StoreError, StoreUnavailable, UsageError
from stemma.selector import Selector
from stemma.stores.memory import MemoryStore
from stemma.stores.wrappers.calls import Budgets
from stemma.stores.wrappers.guarded import Guarded
from stemma.stores.wrappers.workers import STUCK
from stemma.testing.builders import NOW, entry, put, put_one, vector
from stemma.testing.fakes import Scripted

PATIENT = Budgets(20.0, 20.0, 30.0)


def lost(guarded: Guarded) -> bool:
    """Whether a read fails, as it may."""
    try:
        guarded.get(["a"])
    except StoreUnavailable:
        return True
    return False


def test_a_store_that_hangs_is_waited_for_once(faulty, guard, told):
    """The first call is given up; the others do not even ask."""
    guarded = guard(faulty)
    faulty.hang(guarded)
    with pytest.raises(StoreUnavailable, match=r"no answer to get within 0\.03 s"):
        guarded.get(["a"])
    for use in (lambda: guarded.get(["a"]), guarded.sequence, guarded.check, guarded.find):
        with pytest.raises(StoreUnavailable, match="lately"):
            use()
    assert (guarded.state, faulty.asked, told) == ("open", 1, ["store:open"])


def test_when_it_answers_after_all_it_is_asked_again(faulty, guard, told):
    """As soon as the call that was given up has come back."""
    guarded = guard(faulty)
    faulty.hang(guarded)
    assert lost(guarded)
    closed = threading.Event()
    guarded.listen(lambda event: event.outcome == "store:closed" and closed.set())
    faulty.let_go()
    assert closed.wait(10)
    assert not lost(guarded)
    assert told == ["store:open", "store:closed"]


def test_one_that_never_comes_back_is_tried_now_and_then(faulty, guard, clock):
    """One call each time; the first that is answered ends it."""
    guarded = guard(faulty, open_for=5)
    faulty.hang(guarded)
    for asked in (1, 2, 3):
        assert lost(guarded)
        assert lost(guarded)
        assert faulty.asked == asked
        clock.advance(5)
    faulty.recover()
    assert not lost(guarded)
    assert not lost(guarded)
    assert guarded.state == "closed"


def test_threads_that_hang_are_bounded(faulty, guard, clock):
    """However often a store that never answers is tried."""
    guarded = guard(faulty, workers=2, open_for=5)
    faulty.hang(guarded)
    for _ in range(3 * STUCK):
        assert lost(guarded)
        clock.advance(5)
    assert faulty.asked == len(guarded._calls.workers) == 2 * STUCK


def test_a_store_that_refuses_is_left_alone_after_five_times(faulty, guard, clock, told):
    """What kind of error it raises does not matter; after a while it is tried again."""
    guarded = guard(faulty, failures=5, open_for=5)
    faulty.mode = ConnectionRefusedError(111, "refused")
    for _ in range(5):
        with pytest.raises(StoreUnavailable, match="ConnectionRefusedError"):
            guarded.get(["a"])
    assert lost(guarded)
    assert faulty.asked == 5
    clock.advance(5)
    assert guarded.state == "half-open"
    assert lost(guarded)
    assert faulty.asked == 6
    faulty.mode = "well"
    assert lost(guarded)  # not asked yet
    clock.advance(5)
    assert not lost(guarded)
    assert told == [
        "store:open",
        "store:half-open",
        "store:open",
        "store:half-open",
        "store:closed",
    ]


@pytest.mark.parametrize("error", [UsageError("wrong"), StoreError("that record is damaged")])
def test_a_store_that_says_what_is_wrong_answers(faulty, guard, error):
    """The breaker stays closed, and the error comes through as it is."""
    guarded = guard(faulty, failures=1)
    faulty.mode = error
    for _ in range(3):
        with pytest.raises(type(error)) as met:
            guarded.get(["a"])
        assert met.value is error
    assert guarded.state == "closed"


def test_a_put_has_a_budget_of_its_own(faulty, guard):
    """It may take longer than a read."""
    guarded = guard(faulty, budget=0.03)
    faulty.mode = "hang"
    timer = threading.Timer(0.06, faulty.let_go)
    timer.start()
    (stored,) = guarded.put([put(entry(), since=0)], NOW)
    assert stored.entry is not None
    timer.join()


def test_what_an_index_must_catch_up_on_goes_on_in_the_background(faulty, guard):
    """It takes longer than the budget: the next to ask gets it, and the store is asked once."""
    guarded = guard(faulty)
    put_one(guarded, entry(), vector=vector(1, 0))
    faulty.hang(guarded)
    with pytest.raises(StoreUnavailable, match="changes"):
        guarded.changes(0)
    assert guarded.state == "closed"
    running = guarded._calls.background._tasks["changes", 0].future
    with pytest.raises(StoreUnavailable, match="changes"):
        guarded.changes(0)
    faulty.let_go()
    running.result(10)
    faulty.mode = RuntimeError("not to be asked")
    assert list(guarded.changes(0).ids) == ["a"]
    assert faulty.asked == 1
    assert len(guarded._calls.background) == 0


def test_a_slow_recall_is_waited_for_a_dead_store_is_not(faulty, guard):
    """Whether anybody is there is asked first."""
    guarded = guard(faulty, long_budget=30)
    put_one(guarded, entry())
    faulty.hang(guarded)
    with pytest.raises(StoreUnavailable, match="no answer to sequence within"):
        guarded.recall(Selector(entry="a"), now=NOW)
    assert faulty.asked == 1


def test_a_check_that_takes_long_shuts_nobody_out(faulty, guard, monkeypatch):
    """It is given up by who asked; everybody else is served meanwhile."""
    guarded = guard(faulty)
    guarded._calls.budgets = PATIENT._replace(long=0.03)
    gate = threading.Event()
    monkeypatch.setattr(faulty, "check", lambda: gate.wait(60))
    with pytest.raises(StoreUnavailable, match="no answer to check"):
        guarded.check()
    assert not lost(guarded)
    assert guarded.state == "closed"
    gate.set()


def test_calls_that_find_no_free_thread_are_failures(faulty, guard):
    """They never begin, and open the breaker as others do."""
    guarded = guard(faulty, workers=2, failures=2)
    gate, busy = threading.Event(), threading.Barrier(3)

    def work():
        busy.wait(10)
        gate.wait(60)

    for _ in range(2):
        guarded._calls.workers.submit(work)
    busy.wait(10)
    guarded._calls.budgets = Budgets(0.01, 0.01, 0.01)
    assert lost(guarded)
    assert guarded.state == "closed"
    assert lost(guarded)
    assert (guarded.state, faulty.asked) == ("open", 0)
    gate.set()


def test_an_application_pays_once_for_a_store_that_hangs(faulty, guard):
    """Lookup, second look and put of a call: one is given up, the others do not ask."""
    guarded = guard(faulty)
    cache = stemma.open(guarded, tenant="me", embedder=None)
    computed = Scripted()
    faulty.hang(guarded)
    answers = [cache.answers.get_or_compute("q", computed).value for _ in range(20)]
    assert answers == [f"answer {n}" for n in range(1, 21)]
    assert faulty.asked == 1
    faulty.let_go()
    cache.close()


async def test_a_loop_is_never_blocked(faulty, guard):
    """While one task waits for a store that hangs, others run."""
    guarded = guard(faulty)
    faulty.hang(guarded)
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    with pytest.raises(StoreUnavailable, match="no answer"):
        await guarded.aget(["a"])
    ticking.cancel()
    assert ticks > 3
    with pytest.raises(StoreUnavailable, match="lately"):
        await guarded.arecall(Selector(entry="a"), now=NOW)
    assert faulty.asked == 1


async def test_a_native_twin_is_awaited_within_the_budget(native, guard):
    """One that is given up goes on, and is cancelled when the store is tried again."""
    guarded = guard(native, open_for=0.05)
    await guarded.aput([put(entry(), since=0)], NOW)
    assert list((await guarded.aget(["a"])).entries) == ["a"]
    native.hang(guarded)
    with pytest.raises(StoreUnavailable, match="no answer"):
        await guarded.aget(["a"])
    with pytest.raises(StoreUnavailable, match="lately"):
        await guarded.aget(["a"])
    assert (native.asked, native.cancelled) == (1, 0)
    await native.ended.wait()
    assert native.cancelled == 1
    assert guarded.state == "open"


async def test_a_native_error_is_the_store_s(native, guard):
    """As it is where threads ask."""
    guarded = guard(native, failures=1)
    native.mode = ConnectionResetError("gone")
    with pytest.raises(StoreUnavailable, match="ConnectionResetError"):
        await guarded.aget(["a"])
    assert guarded.state == "open"


@pytest.mark.parametrize("kind", ["faulty", "native"])
async def test_a_cancelled_call_says_nothing_of_the_store(kind, guard, request):
    """The breaker stays as it was; a native call is cancelled with its caller."""
    store = request.getfixturevalue(kind)
    guarded = guard(store, failures=1)
    store.mode = "hang"
    task = asyncio.create_task(guarded.aget(["a"]))
    await asyncio.sleep(0.01)  # it hangs by now; if not, the test is only easier to pass
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert guarded.state == "closed"
    store.let_go()
    await guarded.aget(["a"])
    assert getattr(store, "cancelled", 1) == 1


async def test_many_tasks_of_which_some_are_cancelled(guard):
    """Nobody gets another's reply, and nothing is left over."""
    guarded = guard(MemoryStore())
    for number in range(50):
        put_one(guarded, entry(f"e{number}"))

    async def read(number: int) -> str:
        name = f"e{number % 50}"
        ((found, one),) = (await guarded.aget([name])).entries.items()
        return name if found == one.id == name else "wrong"

    tasks = [asyncio.create_task(read(number)) for number in range(500)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    replies = [one for one in done if not isinstance(one, asyncio.CancelledError)]
    assert replies == [f"e{n % 50}" for n in range(500) if not tasks[n].cancelled()]
    assert guarded.state == "closed"
    assert len(guarded._calls.workers) <= 8
    assert not guarded._calls.workers._running
    assert not guarded._calls.workers._stuck


def test_closing_does_not_wait_for_a_store_that_hangs(clock):
    """It is left to itself."""
    gate = threading.Event()

    class Sticky(MemoryStore):
        def close(self):
            assert gate.wait(60)

    guarded = Guarded(Sticky(), budget=0.02, write_budget=0.02, clock=clock)
    guarded.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        guarded.get(["a"])
    gate.set()


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 0},
        {"budget": -1},
        {"budget": float("nan")},
        {"write_budget": 0},
        {"long_budget": -0.1},
        {"workers": 1},
        {"failures": 0},
        {"open_for": 0},
    ],
)
def test_an_argument_out_of_its_range_is_an_error(wrong):
    """At once."""
    with pytest.raises(UsageError):
        Guarded(MemoryStore(), **wrong)


def test_a_listener_that_is_taken_off_hears_nothing_more(faulty, guard):
    """And one that raises breaks nothing."""
    guarded = guard(faulty, failures=1)
    heard = []
    take_off = guarded.listen(lambda event: heard.append(event.outcome))
    guarded.listen(lambda event: 1 / 0)
    faulty.mode = OSError("gone")
    assert lost(guarded)
    take_off()
    faulty.mode = "well"
    assert heard == ["store:open"]
