"""What one hop costs, and whether traces that run side by side or are deep keep their own parents.

Every step is given its parents by the frames alone. What the store says of them afterwards is
compared with what each run has walked: a parent that is none of its own is in the wrong frame, and
one that is not there is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import stemma
from evals.measuring import Figure, Measured, in_turns, scaled
from stemma import Cache, Hit, Miss

__all__ = ["Walked", "in_tasks", "in_threads", "misplaced", "nested", "run"]

CALLS = 4_000
DEEP = 1_000
THREADS = 64
TASKS = 1_000
STEPS = 5
"""Hops of a run in a thread or task."""

FLOOR = 3_600.0
"""Seconds: at the thousandth hop, no life would be left otherwise."""

Walked = Mapping[str, set[str]]
"""For each entry that was made, those that were made or served before it in the same run."""


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """Costs on both embedded stores; deep and concurrent traces on one in memory."""
    costs = {
        name: _cost(url, scaled(CALLS, size, least=20))
        for name, url in (("memory", ":memory:"), ("SQLite", str(folder / "hops.db")))
    }
    figures = [
        Figure(what=f"{name}: {what}", value=us[key] / 1e3, unit="ms", at_most=1)
        for name, us in costs.items()
        for key, what in (
            ("miss", "one hop, a lookup that misses and a put"),
            ("hit", "one hop, a lookup that hits"),
        )
    ]
    deep, threads, tasks = (scaled(most, size, least=8) for most in (DEEP, THREADS, TASKS))
    told: dict[str, Any] = {"microseconds": costs, "hops": deep, "threads": threads, "tasks": tasks}
    kinds: tuple[tuple[str, Callable[[Cache], Walked]], ...] = (
        (f"{deep:,} hops inside one another", lambda cache: nested(cache, deep)),
        (f"{threads:,} threads of {STEPS} hops", lambda cache: in_threads(cache, threads)),
        (f"{tasks:,} tasks of {STEPS} hops", lambda cache: in_tasks(cache, tasks)),
    )
    for name, walk in kinds:
        began = time.perf_counter()
        with stemma.open(":memory:", tenant="me", embedder=None) as cache:
            walked = walk(cache)
            seconds = time.perf_counter() - began
            found = misplaced(cache, walked)
        told[name] = {**found, "seconds": seconds}
        figures += [
            Figure(
                what=f"{name}: parents {kind} of {found['parents']:,}",
                value=found[kind],
                unit="",
                at_most=0,
            )
            for kind in ("in the wrong frame", "missing")
        ]
    return Measured(figures=figures, details=told)


def _cost(url: str, calls: int) -> dict[str, float]:
    """Median microseconds of a hop with a step in it, its own opening and closing included."""
    value = {"found": ["a page about stemmata", "another one"], "text": "x" * 400}
    with stemma.open(url, tenant="me", embedder=None) as cache:

        def missed(number: int) -> None:
            with cache.hop("search"):
                miss = cache.hops.lookup("search", arguments={"query": f"{number}", "limit": 5})
                assert isinstance(miss, Miss)
                assert miss.ticket is not None
                cache.hops.put(miss.ticket, value)

        def hit(number: int) -> None:
            with cache.hop("search"):
                found = cache.hops.lookup("search", arguments={"query": f"{number}", "limit": 5})
                assert isinstance(found, Hit)

        return {
            name: in_turns({name: call}, range(calls), once=name == "miss")[name]
            for name, call in (("miss", missed), ("hit", hit))
        }


def nested(cache: Cache, depth: int) -> Walked:
    """Hops inside one another, with a step in each."""
    walked: dict[str, set[str]] = {}
    with contextlib.ExitStack() as hops:
        hops.enter_context(cache.trace())
        for number in range(depth):
            hops.enter_context(cache.hop("again"))
            made = cache.hops.get_or_compute("step", lambda: "deep", arguments=number, floor=FLOOR)
            _note(walked, made)
    return walked


def in_threads(cache: Cache, number: int) -> Walked:
    """As many runs at once, each in a thread of its own."""
    together = threading.Barrier(number)

    def one(name: str) -> Walked:
        walked: dict[str, set[str]] = {}
        with cache.trace():
            for step in range(STEPS):
                with cache.hop(f"step {step}"):
                    together.wait()  # so that all have a hop open at the same time
                    made = cache.hops.get_or_compute("step", lambda: name, arguments=[name, step])
                _note(walked, made)
        return walked

    with ThreadPoolExecutor(number) as pool:
        return _joined(pool.map(one, (f"thread {one}" for one in range(number))))


def in_tasks(cache: Cache, number: int) -> Walked:
    """As many runs at once, each in a task of its own, in turns at every step."""

    async def one(name: str) -> Walked:
        walked: dict[str, set[str]] = {}
        with cache.trace():
            for step in range(STEPS):
                with cache.hop(f"step {step}"):
                    await asyncio.sleep(0)
                    made = await cache.hops.aget_or_compute("step", given, arguments=[name, step])
                _note(walked, made)
        return walked

    async def given() -> str:
        await asyncio.sleep(0)
        return "given"

    async def all_of_them() -> list[Walked]:
        return await asyncio.gather(*(one(f"task {one_of}") for one_of in range(number)))

    return _joined(asyncio.run(all_of_them()))


def _note(walked: dict[str, set[str]], made: stemma.Served) -> None:
    assert made.stored is not None
    assert made.stored.entry is not None, made.stored
    walked[made.stored.entry.id] = set(walked)


def _joined(all_of: Iterable[Walked]) -> Walked:
    return {entry: before for walked in all_of for entry, before in walked.items()}


def misplaced(cache: Cache, walked: Walked) -> dict[str, int]:
    """How many parents there should be, how many are in the wrong frame, and how many missing."""
    found = {"parents": 0, "in the wrong frame": 0, "missing": 0}
    for entry, before in walked.items():
        lineage = cache.engine.parts.store.lineage(entry)
        parents = set() if lineage is None else {edge.parent for edge in lineage.parents}
        found["parents"] += len(before)
        found["in the wrong frame"] += len(parents - before)
        found["missing"] += len(before - parents)
    return found
