"""Threads that may be left behind."""

import threading

import pytest

from stemma.errors import StoreUnavailable
from stemma.stores.wrappers.workers import STUCK, Workers


def test_calls_are_made_and_errors_carried():
    """Each future gets what its call gave."""
    workers = Workers(2)
    futures = [workers.submit(lambda n=n: 10 // n) for n in (5, 0, 2)]
    assert (futures[0].result(10), futures[2].result(10)) == (2, 5)
    with pytest.raises(ZeroDivisionError):
        futures[1].result(10)
    assert len(workers) <= 2
    workers.close()


def test_idle_threads_are_used_again():
    """A hundred calls, one after another, need one thread, or two where they overlap."""
    workers = Workers(8)
    for _ in range(100):
        workers.submit(threading.get_ident).result(10)
    assert len(workers) <= 2
    workers.close()


def hang(workers: Workers, gate: threading.Event):
    """A call that hangs, once it has begun."""
    begun = threading.Event()

    def work() -> bool:
        begun.set()
        return gate.wait(60)

    future = workers.submit(work)
    assert begun.wait(10)
    return future


def test_a_thread_that_hangs_is_replaced_up_to_a_bound():
    """Then nothing more is begun, until one comes back."""
    workers, gate = Workers(2), threading.Event()
    hung = []
    for _ in range(2 * STUCK):
        future = hang(workers, gate)
        assert not workers.give_up(future)
        hung.append(future)
    assert len(workers) == 2 * STUCK
    with pytest.raises(StoreUnavailable, match="hang"):
        workers.submit(int)
    assert len(workers) == 2 * STUCK
    gate.set()
    assert all(future.result(10) for future in hung)
    assert workers.submit(lambda: 7).result(10) == 7
    workers.close()


def test_what_has_not_begun_is_taken_back():
    """It never runs; those behind it do."""
    workers, gate, ran = Workers(2), threading.Event(), []
    running = [hang(workers, gate) for _ in range(2)]
    waiting = workers.submit(lambda: ran.append("taken back"))
    behind = workers.submit(lambda: ran.append("behind"))
    assert workers.give_up(waiting)
    gate.set()
    behind.result(10)
    assert [one.result(10) for one in running] == [True, True]
    assert ran == ["behind"]
    workers.close()


def test_closed_workers_take_nothing():
    """They say so."""
    workers = Workers(2)
    workers.close()
    with pytest.raises(StoreUnavailable):
        workers.submit(int)
