"""The experiments bite: what is broken on purpose is counted, each where it is broken."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from evals.reliability import (
    cancelled,
    clock,
    forks,
    killed_writers,
    racing_recalls,
    random_graphs,
    shared_file,
    stampede,
)

import stemma
from stemma.flight import Flights
from stemma.outcome import Stored
from stemma.stores.memory import MemoryStore
from stemma.stores.sqlite import SqliteStore

LOSING = """
import sys
from evals.reliability.killed_writers import write
from stemma.stores.sqlite import SqliteStore

class Losing(SqliteStore):
    def put(self, puts, now):
        stored = super().put(puts, now)
        self.remove([one.entry.id for one in stored if one.entry.id.endswith("-7")])
        return stored

    def recall(self, selector, *, now):
        return super().recall(selector, now=now, dry_run=True)

write(*sys.argv[1:], make=Losing)
"""


def test_writers_that_lose_and_do_not_take_back_are_found_out(tmp_path: Path):
    found = killed_writers.kill(loops=2, seed=0, path=tmp_path / "cache.db", writer=LOSING)
    assert found.violations[killed_writers.LOST] > 0
    assert found.violations[killed_writers.BACK] > 0
    assert found.violations[killed_writers.DAMAGED] == 0


IDLE = """
import sys
import stemma
from evals.reliability.shared_file import work
from stemma.stores.sqlite import SqliteStore

missed, get = set(), SqliteStore.get

def lagging(self, ids):
    fetched = get(self, ids)
    missed.update(set(ids) - fetched.entries.keys())
    seen = {one: entry for one, entry in fetched.entries.items() if one not in missed}
    return fetched._replace(entries=seen)

def failing(self):
    raise OSError

SqliteStore.get = lagging
stemma.Cache.stats = failing
stemma.Cache.recall = stemma.Cache.clear = lambda self, **named: None
work(*sys.argv[1:])
"""


def test_processes_that_do_not_see_each_other_are_found_out(tmp_path: Path):
    found = shared_file.share(operations=80, seed=0, folder=tmp_path, worker=IDLE)
    for promise in (shared_file.STALE, shared_file.UNSEEN, shared_file.ERRORS):
        assert found.violations[promise] > 0, promise
    assert found.violations[shared_file.WRONG] == 0


class Crossing(SqliteStore):
    """Gives every tenth reader the value that was read before."""

    count = 0
    payload = b'"nothing"'

    def get(self, ids):
        fetched = super().get(ids)
        for one, entry in fetched.entries.items():
            self.count += 1
            if self.count % 10 == 0:
                crossed = replace(entry, payload=self.payload)
                return fetched._replace(entries={**fetched.entries, one: crossed})
            self.payload = entry.payload
        return fetched


class Leaking(SqliteStore):
    """Forgets to give back every fiftieth cursor."""

    count = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        give, held = self._connections.give, []

        def forgetful(cursor):
            self.count += 1
            give(cursor) if self.count % 50 else held.append(cursor)

        self._connections.give = forgetful


@pytest.mark.parametrize(
    ("make", "promise"), [(Crossing, cancelled.WRONG), (Leaking, cancelled.LEAKED)]
)
def test_replies_that_cross_and_connections_that_leak_are_found_out(
    tmp_path: Path, monkeypatch, make: Callable[..., SqliteStore], promise: str
):
    monkeypatch.setattr(cancelled, "SETTLING", 0.2)
    found = cancelled.cancel(rounds=1, seed=0, folder=tmp_path, make=make)
    assert found.violations[promise] > 0
    assert found.violations[cancelled.HUNG] == 0


class Heedless(MemoryStore):
    """Stores whatever comes, when it was read does not matter."""

    def put(self, puts, now):
        since = self.sequence()
        return super().put([replace(put, since=since, read_at={}) for put in puts], now)


class Fearful(MemoryStore):
    """Stores nothing after the first recall."""

    def put(self, puts, now):
        if self.recalls(limit=1):
            return tuple(Stored(refused="recalled") for _ in puts)
        return super().put(puts, now)


class Forgiving(MemoryStore):
    """Takes back what is named, but not what was built on it, and lets it be."""

    def recall(self, selector, *, now, dry_run=False, cascade=True):
        before = self.get([]).epoch
        recall = super().recall(selector, now=now, dry_run=dry_run, cascade=False)
        with self._open() as shelves:
            shelves.state.epoch = before
        return recall


@pytest.mark.parametrize(
    ("memory", "promises"),
    [
        (Heedless, [random_graphs.STALE, random_graphs.KEPT]),
        (Fearful, [random_graphs.REFUSED]),
        (Forgiving, [random_graphs.STALE, random_graphs.UNSOUND]),
    ],
)
def test_a_store_that_recalls_too_little_or_refuses_too_much_is_found_out(
    tmp_path: Path, memory: Callable[[], MemoryStore], promises: list[str]
):
    found = racing_recalls.recalled(graphs=20, seed=0, folder=tmp_path, memory=memory)
    for promise in promises:
        assert found.violations[promise] > 0, promise


def test_callers_that_do_not_wait_for_the_one_who_computes_are_found_out():
    with stemma.open(":memory:", tenant="me", embedder=None) as cache:
        cache.engine.flights = Flights(patience=0.0)
        broken = stampede.one_process(cache, 1)
    assert broken[stampede.MORE] > 0
    assert broken[stampede.HUNG] == 0


UNLED = """
import sys
import stemma.cache
from evals.reliability.stampede import ask
stemma.cache.leases_of = lambda url: None
ask(*sys.argv[1:])
"""


def test_processes_that_do_not_wait_for_the_one_that_computes_are_found_out(tmp_path: Path):
    broken, _ = stampede.several_processes(tmp_path, 1, UNLED)
    assert broken[stampede.MANY] > 0
    assert broken[stampede.HUNG] == broken[stampede.WRONG] == 0


LAME = """
import os, sys, time
from evals.reliability import forks
forks.LIMIT = 0.5
forks._child = lambda cache, mine: os._exit(1) if mine == "child 0" else time.sleep(60)
forks.busy(*sys.argv[1:])
"""


def test_children_that_fail_or_hang_are_found_out(tmp_path: Path):
    found = forks.fork(forks=2, seed=0, folder=tmp_path, parent=LAME)
    assert found.violations[forks.FAILED] == found.violations[forks.HUNG] == len(forks.KINDS)


@pytest.mark.parametrize(("ahead", "promise"), [(math.inf, clock.IMMORTAL), (-1.0, clock.EARLY)])
def test_clocks_that_are_trusted_too_much_or_too_little_are_found_out(
    tmp_path: Path, monkeypatch, ahead: float, promise: str
):
    monkeypatch.setattr("stemma.policies.life.AHEAD", ahead)
    found = clock.run(size=0.02, seed=0, folder=tmp_path)
    assert found.violations[promise] > 0
    assert found.violations[clock.MOVED] == found.violations[clock.ENDED] == 0
