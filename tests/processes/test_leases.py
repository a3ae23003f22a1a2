"""One computation per question among processes: an optimisation that never stands in the way."""

import asyncio
import stat
import threading
from pathlib import Path

import pytest

from stemma.errors import StoreUnavailable, UsageError
from stemma.lease import Leases

HOLDER = """
import sys
from stemma.lease import Leases
leases = Leases(sys.argv[1], patience=0)
for line in sys.stdin:
    what, key, *ending = line.split()
    if what == "take":
        print(leases.acquire(key), flush=True)
    else:
        leases.release(key, *ending)
        print("released", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db-leases"


def waiting(leases: Leases) -> tuple[threading.Thread, list[bool]]:
    """A thread that waits for the lead."""
    got: list[bool] = []
    thread = threading.Thread(target=lambda: got.append(leases.acquire("k")))
    thread.start()
    return thread, got


def test_one_process_leads(path, start):
    """The others are told to compute when they have waited long enough, and lead when it ended."""
    holder, leases = start(HOLDER, path), Leases(path, patience=0.03)
    assert holder.ask("take k") == "True"
    assert leases.acquire("k") is False
    assert leases.acquire("k", wait=False) is False
    assert leases.acquire("another question")
    assert holder.ask("release k stored") == "released"
    assert leases.acquire("k")
    assert holder.ask("take k") == "False"
    leases.release("k", "stored")
    assert holder.ask("take k") == "True"
    leases.close()


@pytest.mark.parametrize("ending", ["stored", "failed"])
def test_who_waits_leads_next(path, start, ending):
    """After a value was stored, to look and be done; after a failure, to compute."""
    holder, leases = start(HOLDER, path), Leases(path, patience=60)
    assert holder.ask("take k") == "True"
    thread, got = waiting(leases)
    assert holder.ask(f"release k {ending}") == "released"
    thread.join(30)
    assert got == [True]
    leases.close()


def test_when_a_value_could_not_be_stored_nobody_queues(path, start):
    """Those who waited compute side by side; who comes later leads as ever."""
    holder, leases = start(HOLDER, path), Leases(path, patience=60)
    assert holder.ask("take k") == "True"
    tries = leases._tries("k", wait=True)
    assert next(tries) > 0
    assert holder.ask("release k unstorable") == "released"
    assert next(tries) is False
    assert holder.ask("take k") == "True"
    assert holder.ask("release k stored") == "released"
    assert leases.acquire("k")
    leases.close()


def test_a_leader_that_is_killed_is_followed_at_once(path, start):
    """The system frees its lock; nobody waits for a time to run out."""
    holder, leases = start(HOLDER, path), Leases(path, patience=60)
    assert holder.ask("take k") == "True"
    thread, got = waiting(leases)
    holder.popen.kill()
    thread.join(30)
    assert got == [True]
    leases.close()


async def test_tasks_wait_without_blocking_the_loop(path, start):
    """Another task runs meanwhile, and ends the wait."""
    holder, leases = start(HOLDER, path), Leases(path, patience=60)
    assert holder.ask("take k") == "True"
    task = asyncio.create_task(leases.aacquire("k"))
    await asyncio.sleep(0.01)
    assert not task.done()
    assert holder.ask("release k stored") == "released"
    assert await task
    cut_short = Leases(path, patience=0)
    assert await cut_short.aacquire("k")  # the same process: it is counted, not waited for
    cut_short.close()
    leases.close()


def test_threads_of_one_process_hold_together(path, start):
    """The lock goes with the last of them; within a process, flights see to the rest."""
    holder, leases = start(HOLDER, path), Leases(path)
    assert leases.acquire("k")
    assert leases.acquire("k")
    leases.release("k", "stored")
    assert holder.ask("take k") == "False"
    leases.release("k", "stored")
    assert holder.ask("take k") == "True"
    leases.close()


def test_a_lock_file_that_is_closed_or_useless_never_stands_in_the_way(path, tmp_path):
    """Who cannot lead computes; only opening it says what is wrong."""
    leases = Leases(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    leases.close()
    leases.close()
    assert leases.acquire("k") is False
    leases.release("k", "stored")
    with pytest.raises(StoreUnavailable, match="No such file"):
        Leases(tmp_path / "nowhere" / "leases")
    with pytest.raises(UsageError):
        Leases(path, patience=-1)


def test_a_child_holds_nothing_of_its_parent_s(path, start):
    """A lease is a process's own: a fork inherits none, and its end frees none."""
    forking = start(FORKING, path)
    assert forking.hear() == "child waits, parent holds"
    assert forking.end() == 0


FORKING = """
import os, sys, warnings
warnings.simplefilter("ignore")
from stemma.lease import Leases
leases = Leases(sys.argv[1], patience=0)
assert leases.acquire("k")
for _ in range(2):
    child = os.fork()
    if child == 0:
        os._exit(7 if leases.acquire("k") else 0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, code
print("child waits, parent holds", flush=True)
"""
