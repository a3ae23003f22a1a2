"""Threads and tasks share one cache on a file, and a part of the tasks is cancelled at random.

Whoever is not cancelled must get the answer to its own question; afterwards nothing may be left:
no caller that waits, no computation thought to be under way, no connection that is not given back.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import stemma
from evals.reliability import Outcome, times
from evals.reliability.crowd import ended
from stemma.stores.sqlite import SqliteStore
from stemma.stores.sqlite_pool import MOST_IDLE

ROUNDS = 20
THREADS, TASKS = 64, 1_000
ASKS = 10
"""How often each thread asks."""

CANCELLED = 0.3
"""Of the tasks."""

QUESTIONS = 300
SPREAD = 0.4
"""Seconds over which the callers of a round begin, and the cancellations fall."""

SETTLING = 5.0
"""Seconds in which what was done for callers that are gone must have come to its end."""

WRONG = "wrong replies"
NONE = "callers that got an error instead of a reply"
HUNG = "rounds that hung"
FLIGHTS = "computations left under way"
IDLE = "connections kept beyond those that may be idle"
LEAKED = "connections left open"
PROMISES = (WRONG, NONE, HUNG, FLIGHTS, IDLE, LEAKED)


class Counting:
    """Opens connections, and knows how many are open."""

    def __init__(self) -> None:
        self.open = self.made = 0
        self._lock = threading.Lock()

    def left(self, allowed: int) -> int:
        """How many are open beyond those allowed, once those in use have been given back."""
        until = time.monotonic() + SETTLING
        while self.open > allowed and time.monotonic() < until:
            time.sleep(0.01)
        return max(0, self.open - allowed)

    def __call__(self, path: str, timeout: float) -> sqlite3.Connection:
        """As `stemma.stores.sqlite_pool.connect`."""
        counting = self

        class Connection(sqlite3.Connection):
            closed = False

            def close(self) -> None:
                super().close()
                with counting._lock:
                    counting.open -= not self.closed
                    self.closed = True

        with self._lock:
            self.open += 1
            self.made += 1
        return sqlite3.connect(
            path,
            timeout=timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """See the module's text."""
    return cancel(rounds=times(ROUNDS, size), seed=seed, folder=folder)


def cancel(
    *, rounds: int, seed: int, folder: Path, make: Callable[..., SqliteStore] = SqliteStore
) -> Outcome:
    """Cancel a part of the tasks, in rounds, each on a file of its own.

    Args:
        rounds: How many.
        seed: Of questions and moments.
        folder: Where the files are.
        make: Makes the store.
    """
    lucky = random.Random(seed)
    tried: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    seconds = []
    for number in range(rounds):
        connections = Counting()
        store = make(folder / f"cache-{number}.db", connect=connections)
        cache = stemma.open(store, tenant="me", embedder="hashing", threshold=0.9)
        one = _Round(cache, random.Random(lucky.random()))
        began = time.perf_counter()
        all_ended = ended([one.ask] * THREADS, one.tasks)
        seconds.append(time.perf_counter() - began)
        tried.update(one.tried)
        broken.update(one.broken)
        if not all_ended:
            broken[HUNG] += 1
            break
        broken[FLIGHTS] += len(cache.engine.flights)
        broken[IDLE] += connections.left(MOST_IDLE)
        cache.close()
        broken[LEAKED] += connections.left(0)
        tried["connections made"] += connections.made
    return Outcome(
        tried=tried,
        violations={promise: broken[promise] for promise in PROMISES},
        figures={"longest round, seconds": max(seconds)},
    )


class _Round:
    """One round: all callers, until each has its reply or was cancelled."""

    def __init__(self, cache: stemma.Cache, lucky: random.Random) -> None:
        self._cache = cache
        self._lucky = lucky
        self._lock = threading.Lock()
        self.tried: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()

    def _drawn(self) -> tuple[int, float, float]:
        """A question, when it is asked, and how long its answer takes."""
        lucky = self._lucky
        return lucky.randrange(QUESTIONS), lucky.uniform(0, SPREAD), lucky.uniform(0, SPREAD / 10)

    def ask(self) -> None:
        """What a thread does."""
        for _ in range(ASKS):
            number, begin, took = self._drawn()
            time.sleep(begin / ASKS)

            def compute(number: int = number, took: float = took) -> str:
                time.sleep(took)
                return _answer(number)

            try:
                value = self._cache.answers.get_or_compute(_question(number), compute).value
            except Exception:
                value = None
            self._judge(number, value)

    async def tasks(self) -> None:
        """All tasks, of which a part is cancelled while it waits or computes."""
        loop = asyncio.get_running_loop()
        chosen = set(self._lucky.sample(range(TASKS), round(CANCELLED * TASKS)))
        tasks = []
        for one in range(TASKS):
            number, begin, took = self._drawn()
            task = loop.create_task(self._task(number, begin, took, blocking=one % 4 == 0))
            if one in chosen:
                loop.call_later(begin + self._lucky.uniform(0, took), task.cancel)
            tasks.append(task)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        self.tried["tasks cancelled"] = sum(isinstance(one, BaseException) for one in ends)

    async def _task(self, number: int, begin: float, took: float, *, blocking: bool) -> None:
        await asyncio.sleep(begin)

        def compute() -> str:
            time.sleep(took)
            return _answer(number)

        async def acompute() -> str:
            await asyncio.sleep(took)
            return _answer(number)

        asking = self._cache.answers.aget_or_compute
        try:
            value = (await asking(_question(number), compute if blocking else acompute)).value
        except Exception:
            value = None
        self._judge(number, value)

    def _judge(self, number: int, value: object) -> None:
        with self._lock:
            self.tried["replies"] += 1
            self.broken[NONE] += value is None
            self.broken[WRONG] += value not in (None, _answer(number))


def _question(number: int) -> str:
    return f"What is kept in drawer {number}?"


def _answer(number: int) -> str:
    return f"answer {number}"
