"""A fork finds nothing locked and nothing half done, in the parent or the child."""

import gc
import os
import threading
import time
import warnings
from pathlib import Path

import pytest

import stemma
from stemma import forking
from stemma.flight import Flights
from stemma.journal import Journal
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Serving

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    # Later Pythons warn of forking with threads: that is the point.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def in_a_child(work) -> int:
    """The exit status of a child that does this: 0 where it gave something true in time."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 3
        finally:
            os._exit(status)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 99


class Told:
    def __init__(self, name: str, heard: list[str]) -> None:
        self.name, self.heard = name, heard
        forking.follow(self)

    def before_fork(self):
        self.heard.append(f"before {self.name}")

    def after_fork_here(self):
        self.heard.append(f"here {self.name}")

    def after_fork(self):
        self.heard.append(f"there {self.name}")


def test_all_who_follow_are_told_and_those_who_are_gone_are_not():
    """Before in the reverse order of joining."""
    heard = []
    one, other, gone = (Told(name, heard) for name in ("one", "other", "gone"))
    del gone
    gc.collect()
    told = ["before other", "before one", "there one", "there other"]
    assert in_a_child(lambda: heard == told) == 0
    assert heard == ["before other", "before one", "here one", "here other"]
    del one, other


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_lock_is_waited_for_and_free_in_the_child(reentrant: bool):
    """What it guards is whole in the child."""
    lock = forking.Lock(reentrant=reentrant)
    numbers = [1, 1]
    held = threading.Event()

    def change() -> None:
        with lock:
            numbers[0] = 2
            held.set()
            time.sleep(0.1)
            numbers[1] = 2

    thread = threading.Thread(target=change)
    thread.start()
    held.wait()

    def see() -> bool:
        with lock:
            return numbers == [2, 2]

    assert in_a_child(see) == 0
    thread.join()
    assert see()


def test_a_lock_that_does_not_come_free_does_not_stop_a_fork(monkeypatch):
    """The child has a new one; the parent's is as it was."""
    monkeypatch.setattr(forking, "PATIENCE", 0.01)
    lock = forking.Lock()

    def take() -> bool:
        with lock:
            return True

    with lock:
        assert in_a_child(take) == 0
        assert not lock._lock.acquire(blocking=False)
    assert take()


def test_a_child_leads_what_a_thread_of_its_parent_computes():
    """Nobody would ever end that one's wait."""
    flights = Flights()
    assert flights.join("k") == "lead"
    assert in_a_child(lambda: flights.join("k") == "lead") == 0
    flights.leave("k", "stored")


def test_a_child_does_not_write_what_its_parent_gathered(tmp_path: Path):
    """It would be counted twice."""
    store = MemoryStore()
    journal = Journal(store, lambda _: None)
    journal.serve(Serving("e", "t", "exact", 1.0, 0.0), "answer", 1.0, 1)

    def flush() -> bool:
        journal.flush()
        return store.counts() == ()

    assert in_a_child(flush) == 0
    journal.close()
    assert [one.lookups for one in store.counts()] == [1]


def test_forks_while_threads_are_busy():
    """Twenty, with threads that look up, put and recall all the time; each child can do the same.

    In memory; `evals.reliability.forks` does it on files.
    """
    cache = stemma.open(":memory:", tenant="me", embedder="hashing", threshold=0.6)
    cache.answers.get_or_compute("before", lambda: "parent")
    ended = threading.Event()
    wrong = []

    def busy(name: int) -> None:
        number = 0
        while not ended.is_set():
            number += 1
            question = f"the question {name} {number % 20}"
            if cache.answers.get_or_compute(question, lambda q=question: q).value != question:
                wrong.append(question)
            if number % 50 == 0:
                cache.recall(node="hop")

    def child(number: int) -> bool:
        found = cache.answers.get_or_compute("before", lambda: "lost").value == "parent"
        mine = f"of the child {number}"
        found &= cache.answers.get_or_compute(mine, lambda: mine).value == mine
        cache.close()
        return found

    threads = [threading.Thread(target=busy, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        statuses = [in_a_child(lambda n=number: child(n)) for number in range(20)]
    ended.set()
    for thread in threads:
        thread.join()
    assert (statuses, wrong) == ([0] * 20, [])
    assert cache.check() == ()
    cache.close()
