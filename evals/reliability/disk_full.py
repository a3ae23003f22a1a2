"""A disk that fills up under a cache: puts fail soft, hits go on, and room is all it needs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import stemma
from evals.reliability import Outcome
from evals.reliability.faults import Failing
from evals.reliability.shim import connecting
from stemma.errors import StoreUnavailable
from stemma.outcome import Miss
from stemma.stores.sqlite import SqliteStore

__all__ = ["run"]

FILLED = 40
"""Disks filled at full size."""

MORE = 20
"""Puts that are tried after the first that found no room."""

_PROMISES = (
    "errors that came through the cache",
    "entries not found on a full disk",
    "entries not found when there was room again",
    "recalled entries found",
    "puts that failed when there was room again",
    "damage found by a check",
)


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """Fill disks of several sizes."""
    tried: Counter[str] = Counter()
    wrong = Counter(dict.fromkeys(_PROMISES, 0))
    lucky = random.Random(seed)
    with Failing("filling") as system:
        for number in range(max(1, round(FILLED * size))):
            wrong.update(_fill(folder / f"{number}.db", system, lucky, tried))
    return Outcome(tried=tried, violations=wrong)


def _fill(path: Path, system: Failing, lucky: random.Random, tried: Counter[str]) -> Iterator[str]:
    system.sizes.clear()
    system.room = None
    cache = stemma.open(
        SqliteStore(path, connect=connecting(system.name)), tenant="acme", embedder=None
    )
    tried["full disks"] += 1
    system.room = sum(system.sizes.values()) + lucky.randrange(100_000, 6_000_000)
    stored: list[str] = []
    refused = 0
    try:
        while refused < MORE:
            question = f"question {len(stored)} {refused}"
            if _put(cache, question, lucky.randrange(100, 10_000)):
                stored.append(question)
            else:
                refused += 1
        tried["puts without room"] += refused
        yield from _found(cache, stored, "entries not found on a full disk")
        tried["hits on a full disk"] += len(stored)
        answer = cache.answers.get_or_compute("something else", lambda: "computed").value
        if answer != "computed":
            yield "errors that came through the cache"
    except Exception:
        yield "errors that came through the cache"
    recalled = _recall(cache, stored[0])
    if lucky.random() < 0.5:
        cache.close()
        system.room = None
        cache = stemma.open(path, tenant="acme", embedder=None)
    system.room = None
    yield from _found(cache, stored[1:], "entries not found when there was room again")
    if recalled and cache.answers.lookup(stored[0]).hit:
        yield "recalled entries found"
    if not all(_put(cache, f"afterwards {number}", 5_000) for number in range(3)):
        yield "puts that failed when there was room again"
    if cache.check():
        yield "damage found by a check"
    cache.close()


def _put(cache: stemma.Cache, question: str, length: int) -> bool:
    """Whether there was room for an answer of this length."""
    missed = cache.answers.lookup(question)
    assert isinstance(missed, Miss)
    assert missed.ticket is not None
    return bool(cache.answers.put(missed.ticket, question * (length // len(question))))


def _recall(cache: stemma.Cache, question: str) -> bool:
    """Whether an answer could be taken back: that needs room, too, and says so."""
    hit = cache.answers.lookup(question)
    try:
        return hit.hit and bool(cache.recall(entry=hit.entry.id))
    except StoreUnavailable:
        return False


def _found(cache: stemma.Cache, questions: list[str], promise: str) -> Iterator[str]:
    """The promise, for each answer that is not found as it was put."""
    for question in questions:
        hit = cache.answers.lookup(question)
        if not hit.hit or not hit.value.startswith(question):
            yield promise
