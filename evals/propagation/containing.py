"""How long it takes from calling for a quarantine until nothing of it is served any more."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path
from typing import Any

import stemma
from evals.measuring import Figure, Measured, scaled

__all__ = ["run"]

READERS = 3
DEPENDANTS = 300
ROUNDS = 7


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Threads read what was built on an answer, while the answer is put into quarantine."""
    del seed  # nothing is drawn
    rounds = [
        _round(folder / f"{number}.db", scaled(DEPENDANTS, size, least=5))
        for number in range(scaled(ROUNDS, size, least=2))
    ]
    late = sum(one["late"] for one in rounds)
    hits = max(one["last hit"] for one in rounds)
    returned = statistics.median(one["returned"] for one in rounds)
    return Measured(
        figures=[
            Figure(
                what="served, of lookups begun after it returned", value=late, unit="", at_most=0
            ),
            Figure(what="from the call to the last hit, worst round", value=hits * 1e3, unit="ms"),
            Figure(what="from the call to its return, median", value=returned * 1e3, unit="ms"),
        ],
        details={"rounds": rounds, "readers": READERS},
    )


def _round(file: Path, many: int) -> dict[str, Any]:
    with stemma.open(file, tenant="acme", embedder=None) as cache:
        questions = [f"question {number}" for number in range(many)]
        cache.answers.get_or_compute("first", lambda: "answer")
        first = cache.answers.lookup("first")
        if not first.hit:
            raise RuntimeError(f"the first answer was not stored: {first.reason}")
        for question in questions:
            with cache.trace():
                cache.answers.lookup("first")
                cache.answers.get_or_compute(question, lambda: "built on it")
        hits: list[tuple[float, float]] = []
        done = threading.Event()
        readers = [
            threading.Thread(target=_read, args=(cache, questions, hits, done))
            for _ in range(READERS)
        ]
        for reader in readers:
            reader.start()
        time.sleep(0.05)
        called = time.perf_counter()
        cache.quarantine(first.entry.id, by="evals")
        returned = time.perf_counter()
        time.sleep(0.05)
        done.set()
        for reader in readers:
            reader.join()
    return {
        "late": sum(began > returned for began, _ in hits),
        "last hit": max((ended for _, ended in hits), default=called) - called,
        "returned": returned - called,
        "hits": len(hits),
    }


def _read(
    cache: stemma.Cache,
    questions: list[str],
    hits: list[tuple[float, float]],
    done: threading.Event,
) -> None:
    """Read in turns; note when each hit was asked for, and when it came."""
    while not done.is_set():
        for question in questions:
            began = time.perf_counter()
            if cache.answers.lookup(question).hit:
                hits.append((began, time.perf_counter()))
