"""How many gets and puts a second several processes get done together, on each store.

Each process has a cache of its own over the one store; the store in memory has threads instead.
Gets are exact hits on entries that all share; puts store new entries with vector, each in a
transaction of its own.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.speed.given import Given, answer, fill, question
from stemma import Cache
from stemma.errors import MissingDependency
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Store
from stemma.stores.sqlite import SqliteStore
from stemma.stores.wrappers.guarded import Guarded
from stemma.stores.wrappers.two_level import TwoLevel

__all__ = ["STORES", "run"]

WORKERS = (1, 2, 4)
STORES = ("memory", "sqlite", "guarded", "two-level", "postgresql")

_ENTRIES = 5_000
_SECONDS = 2.0
_PATIENCE = 60.0
"""Seconds in which all workers must be ready, and each call be done."""

_Rates = tuple[float, float]


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Two seconds of gets and two of puts, with 1, 2 and 4 at once."""
    work = _Work(scaled(_ENTRIES, size, least=20), max(0.05, _SECONDS * size), seed)
    found: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(max(WORKERS), mp_context=context) as processes,
        context.Manager() as manager,
    ):
        for name in STORES:
            try:
                with _place(name, folder) as place:
                    found[name] = _rates(work, name, place, processes, manager)
            except MissingDependency as error:
                skipped[name] = str(error)
    figures = [
        Figure(what=f"{kind} on {name}, {number} at once", value=rate, unit="a second")
        for name, kinds in found.items()
        for kind, rates in kinds.items()
        for number, rate in zip(WORKERS, rates, strict=True)
    ]
    details = {"entries": work.entries, "workers": WORKERS, "stores": found, "skipped": skipped}
    return Measured(figures=figures, details=details)


@contextmanager
def _place(name: str, folder: Path) -> Iterator[str]:
    """Where a store of a kind has its data."""
    if name != "postgresql":
        yield str(folder / f"{name}.db")
        return
    from stemma.testing.postgres import PostgresServer  # noqa: PLC0415 - needs a client

    with PostgresServer() as server:
        yield server.url(server.database(), "keeper")


def _rates(
    work: _Work, name: str, place: str, processes: Executor, manager: Any
) -> dict[str, list[float]]:
    """Gets and puts a second of one store, for each number of workers."""
    rates = []
    with (
        stemma.open(
            _store(name, place), tenant="me", embedder=Given({}), policy="threshold"
        ) as cache,
        ThreadPoolExecutor(max(WORKERS)) as threads,
    ):
        fill(cache, [question(number) for number in range(work.entries)])
        for number in WORKERS:
            pool: Executor = processes
            do = partial(work.opened, name, place, manager.Barrier(number))
            if name == "memory":
                pool, do = threads, partial(work.do, cache, threading.Barrier(number))
            # Each has a worker to itself: they wait for one another.
            told = pool.map(do, [(number, worker) for worker in range(number)])
            rates.append([sum(kind) for kind in zip(*told, strict=True)])
    gets, puts = zip(*rates, strict=True)
    return {"gets": list(gets), "puts": list(puts)}


def _store(name: str, place: str) -> Store:
    if name == "memory":
        return MemoryStore()
    if name == "postgresql":
        from stemma.stores.postgres import PostgresStore  # noqa: PLC0415 - needs a client

        return PostgresStore(place)
    store = SqliteStore(place, busy_timeout=_PATIENCE)
    if name == "sqlite":
        return store
    # With budgets that no call exceeds: what is measured is work done, not given up.
    guarded = Guarded(store, budget=_PATIENCE)
    return guarded if name == "guarded" else TwoLevel(guarded, lease=5)


class _Work(NamedTuple):
    """Gets, then puts, for so many seconds each."""

    entries: int
    seconds: float
    seed: int

    def opened(self, name: str, place: str, start: Any, who: tuple[int, int]) -> _Rates:
        """In a process of its own, over a cache of its own."""
        with stemma.open(
            _store(name, place), tenant="me", embedder=Given({}), policy="threshold"
        ) as cache:
            return self.do(cache, start, who)

    def do(self, cache: Cache, start: Any, who: tuple[int, int]) -> _Rates:
        """Beginning when all others do; `who` says of how many, and which."""
        own = (self.seed * 7 + who[1] * 1_009) % self.entries

        def get(number: int) -> None:
            assert cache.answers.lookup(question((own + number * 31) % self.entries)).hit

        def put(number: int) -> None:
            ticket = cache.answers.ticket(f"{number}, {who}")
            assert cache.answers.put(ticket, answer(number)).entry is not None

        try:
            get(0)
            return _rate(get, start, self.seconds), _rate(put, start, self.seconds)
        except BaseException:
            start.abort()  # nobody waits for one that will not come
            raise


def _rate(call: Callable[[int], None], start: Any, seconds: float) -> float:
    start.wait(_PATIENCE)
    began = time.perf_counter()
    for number in count():
        call(number)
        taken = time.perf_counter() - began
        if taken >= seconds:
            break
    return (number + 1) / taken
