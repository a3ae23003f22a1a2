"""One computation per key, whoever leads and however the leader ends."""

import asyncio
import threading
import time

import pytest

import stemma
from stemma.flight import Flights


@pytest.fixture
def cache():
    with stemma.open(":memory:", tenant="me", embedder=None) as opened:
        yield opened


def in_threads(count, work):
    results, errors = [], []

    def run(number):
        try:
            results.append(work(number))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    return results, errors


def waiting(cache, key_count=1):
    """Wait until somebody leads."""
    deadline = time.monotonic() + 10
    while len(cache.engine.flights) < key_count and time.monotonic() < deadline:
        time.sleep(0.001)


def test_those_who_waited_get_copies_of_their_own(cache):
    gate = threading.Event()

    def compute():
        gate.wait(10)
        return {"n": 1}

    threading.Timer(0.2, gate.set).start()
    results, errors = in_threads(8, lambda _: cache.answers.get_or_compute("q", compute).value)
    assert not errors
    assert results == [{"n": 1}] * 8
    assert len({id(value) for value in results}) == 8


async def test_tasks_that_wait_occupy_no_threads(cache):
    started, gate = asyncio.Event(), asyncio.Event()

    async def compute():
        started.set()
        await gate.wait()
        return "value"

    tasks = [asyncio.create_task(cache.answers.aget_or_compute("q", compute)) for _ in range(200)]
    await started.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    assert threading.active_count() < 50
    gate.set()
    assert {one.value for one in await asyncio.gather(*tasks)} == {"value"}


def test_a_leader_that_fails_hands_over_and_its_error_is_its_own(cache):
    calls = []

    def compute():
        calls.append(1)
        time.sleep(0.05)
        if len(calls) == 1:
            raise RuntimeError("first")
        return "second"

    results, errors = in_threads(8, lambda _: cache.answers.get_or_compute("q", compute).value)
    assert [str(error) for error in errors] == ["first"]
    assert results == ["second"] * 7
    assert len(calls) == 2


async def test_a_cancelled_leader_hands_over(cache):
    started, calls = asyncio.Event(), []

    async def compute():
        calls.append(1)
        started.set()
        if len(calls) == 1:
            await asyncio.Event().wait()
        return "done"

    leader = asyncio.create_task(cache.answers.aget_or_compute("q", compute))
    await started.wait()
    others = [asyncio.create_task(cache.answers.aget_or_compute("q", compute)) for _ in range(5)]
    await asyncio.sleep(0.05)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    assert {one.value for one in await asyncio.gather(*others)} == {"done"}
    assert len(calls) == 2
    assert len(cache.engine.flights) == 0


def test_a_value_that_cannot_be_stored_lets_all_compute_for_themselves(cache):
    calls = []
    gate = threading.Event()

    def compute():
        calls.append(1)
        gate.wait(10)
        return object()

    threading.Timer(0.2, gate.set).start()
    results, errors = in_threads(5, lambda _: cache.answers.get_or_compute("q", compute).value)
    assert not errors
    assert len(calls) == 5
    assert len(set(map(id, results))) == 5


def test_a_computation_that_asks_for_itself_does_not_wait_for_itself(cache):
    def inner():
        return "inner"

    def outer():
        return cache.answers.get_or_compute("q", inner).value + "+outer"

    assert cache.answers.get_or_compute("q", outer).value == "inner+outer"


async def test_a_sync_call_on_the_loop_never_waits_for_a_task_of_that_loop(cache):
    release = asyncio.Event()

    async def slow():
        await release.wait()
        return "slow"

    leader = asyncio.create_task(cache.answers.aget_or_compute("q", slow))
    await asyncio.sleep(0.05)
    assert cache.answers.get_or_compute("q", lambda: "quick").value == "quick"
    release.set()
    assert (await leader).value == "slow"


async def test_threads_and_tasks_share_one_computation(cache):
    calls, gate = [], threading.Event()

    def compute():
        calls.append(1)
        gate.wait(10)
        return "shared"

    thread = asyncio.create_task(
        asyncio.to_thread(lambda: cache.answers.get_or_compute("q", compute).value)
    )
    await asyncio.to_thread(waiting, cache)

    async def unused():
        raise AssertionError("the thread leads")

    task = asyncio.create_task(cache.answers.aget_or_compute("q", unused))
    await asyncio.sleep(0.05)
    gate.set()
    assert await thread == "shared"
    assert (await task).value == "shared"
    assert len(calls) == 1


def test_a_recall_during_the_computation_is_not_served_to_those_who_waited(cache):
    calls, inside, gate = [], threading.Event(), threading.Event()

    def compute():
        calls.append(1)
        if len(calls) == 1:
            inside.set()
            gate.wait(10)
            return "stale"
        return "fresh"

    results = []
    first = threading.Thread(
        target=lambda: results.append(cache.answers.get_or_compute("q", compute).value)
    )
    first.start()
    inside.wait(10)
    second = threading.Thread(
        target=lambda: results.append(cache.answers.get_or_compute("q", compute).value)
    )
    second.start()
    time.sleep(0.05)
    cache.recall(tenant="me")
    gate.set()
    first.join(10)
    second.join(10)
    assert results == ["stale", "fresh"]
    assert cache.answers.lookup("q").value == "fresh"


def test_two_computations_that_need_each_other_do_not_wait_in_a_circle(cache):
    both = threading.Barrier(2)

    def ask(own, other, depth=0):
        def compute():
            if depth == 0:
                both.wait(10)
            return own + (ask(other, own, depth + 1) if depth < 2 else "")

        return cache.answers.get_or_compute(own, compute).value

    results, errors = in_threads(2, lambda n: ask("A", "B") if n else ask("B", "A"))
    assert not errors
    assert sorted(one[0] for one in results) == ["A", "B"]
    assert len(cache.engine.flights) == 0


def test_whoever_waits_too_long_computes_for_itself(cache):
    cache.engine.flights = Flights(patience=0.05)
    inside, gate = threading.Event(), threading.Event()

    def slow():
        inside.set()
        gate.wait(10)
        return "slow"

    leader = threading.Thread(target=lambda: cache.answers.get_or_compute("q", slow))
    leader.start()
    inside.wait(10)
    assert cache.answers.get_or_compute("q", lambda: "own").value == "own"
    gate.set()
    leader.join(10)


async def test_callers_that_fill_the_loops_own_threads_do_not_starve_the_leader(tmp_path):
    """The leader's put needs a thread, and all of the loop's wait for the leader."""
    with stemma.open(tmp_path / "c.db", tenant="me", embedder=None) as cache:
        gate = asyncio.Event()

        async def slow():
            await gate.wait()
            return "value"

        leader = asyncio.create_task(cache.answers.aget_or_compute("q", slow))
        await asyncio.sleep(0.05)
        waiters = [
            asyncio.create_task(
                asyncio.to_thread(cache.answers.get_or_compute, "q", lambda: "other")
            )
            for _ in range(40)
        ]
        await asyncio.sleep(0.1)
        gate.set()
        served = await asyncio.wait_for(asyncio.gather(leader, *waiters), 20)
        assert {one.value for one in served} == {"value"}
