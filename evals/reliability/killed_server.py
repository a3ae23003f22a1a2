"""The PostgreSQL server is killed in the middle of writing, again and again.

One application writes by two threads and a task: entries with vectors, of which every fifth is
taken back again. What its store acknowledged must be there after the server has been killed and
started again, and what was taken back must not; and the same store must go on by itself.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from evals.reliability import Outcome, times
from stemma.errors import StoreError, StoreUnavailable
from stemma.selector import Selector
from stemma.stores.postgres import PostgresStore
from stemma.stores.protocol import Put
from stemma.testing.builders import NOW, entry, put, put_one, vector
from stemma.testing.postgres import NEWEST, PostgresServer

__all__ = ["run"]

LOOPS = 12
GOES_ON = 5.0
"""Seconds after which the application must have gone on, once the server answers."""


class Writer(threading.Thread):
    """Puts entries, and takes every fifth back, until the server is gone."""

    def __init__(self, store: PostgresStore, name: str, acknowledged: threading.Semaphore) -> None:
        super().__init__(name=name)
        self._store = store
        self._acknowledged = acknowledged
        self.stored: set[str] = set()
        self.recalled: set[str] = set()

    def run(self) -> None:
        number = 0
        with suppress(StoreUnavailable):
            while True:
                one = f"{self.name}-{number}"
                self._put(put(entry(one, one), since=0, vector=vector(number, 1)))
                self.stored.add(one)
                if number % 5 == 0:
                    self.stored.discard(one)  # until it is acknowledged, it may be there or not
                    self._store.recall(Selector(entry=one), now=NOW)
                    self.recalled.add(one)
                self._acknowledged.release()
                number += 1

    def _put(self, one: Put) -> None:
        self._store.put([one], NOW)


class Awaiting(Writer):
    """The same by a task, on an event loop of its own."""

    def run(self) -> None:
        with asyncio.Runner() as self._runner:
            super().run()

    def _put(self, one: Put) -> None:
        self._runner.run(self._store.aput([one], NOW))


WRITERS = (Writer, Writer, Awaiting)


def run(
    *,
    size: float,
    seed: int,
    folder: Path,  # noqa: ARG001 - the server has its own
    opened: Callable[[str], PostgresStore] = PostgresStore,
) -> Outcome:
    """Kill the server so often; `opened` makes the application's store."""
    lucky = random.Random(seed)
    tried: Counter[str] = Counter()
    violations = dict.fromkeys(
        (
            "acknowledged entries lost",
            "recalls undone",
            "damaged records",
            "other values",
            "contradictions found by a check",
            "applications that did not go on",
        ),
        0,
    )
    stored: set[str] = set()
    recalled: set[str] = set()
    waited = 0.0
    with PostgresServer(NEWEST) as server:
        store = opened(server.url(server.database(), "keeper"))
        for loop in range(times(LOOPS, size)):
            for writer in _killed(server, store, loop, lucky):
                stored |= writer.stored
                recalled |= writer.recalled
            waited = max(waited, _goes_on(store))
            tried["kills"] += 1
            violations["applications that did not go on"] += waited > GOES_ON
            found = store.get(sorted(stored | recalled))
            violations["damaged records"] += len(found.damaged)
            violations["other values"] += sum(o.value != n for n, o in found.entries.items())
        whole = found.entries.keys() & store.vectors(sorted(stored)).keys()
        violations["acknowledged entries lost"] += len(stored - whole)
        violations["recalls undone"] += len(recalled & found.entries.keys())
        violations["contradictions found by a check"] += len(store.check())
        store.close()
    tried["acknowledged puts"] = len(stored)
    tried["acknowledged recalls"] = len(recalled)
    return Outcome(
        tried=tried,
        violations=violations,
        figures={"seconds from the server's answer to the application's next put, most": waited},
    )


def _killed(
    server: PostgresServer, store: PostgresStore, loop: int, lucky: random.Random
) -> list[Writer]:
    """Let all write, kill the server at some moment, and start it again."""
    acknowledged = threading.Semaphore(0)
    writers = [kind(store, f"{loop}-{number}", acknowledged) for number, kind in enumerate(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in range(lucky.randrange(10, 50)):
        acknowledged.acquire(timeout=60)
    server.kill()
    for writer in writers:
        writer.join()
    server.start()
    return writers


def _goes_on(store: PostgresStore) -> float:
    """Seconds until the application can write and read again, without having been restarted."""
    began = time.monotonic()
    while time.monotonic() - began <= GOES_ON:
        with suppress(StoreError):
            one = put_one(store, entry("goes on"))
            if store.get([one.id]).entries and asyncio.run(store.aget([one.id])).entries:
                break
    return time.monotonic() - began
