"""What everything costs as one partition grows, a hundred and a thousand times over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import stemma
from evals.measuring import Figure, Measured, in_turns, scaled
from evals.speed.given import Given, Questions, fill, in_batches, question, reworded
from evals.speed.put import one_by_one
from evals.speed.start import FirstHit
from evals.speed.vectors import NEAR, noisy, units
from stemma import Cache

__all__ = ["run"]

LEVELS = (1_000, 10_000, 100_000, 1_000_000)
_ASKED = 100
_BLOCK = 20
_PUTS = 60
"""At each level: so few that it is still what it says."""


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """One file on SQLite; at each level it is read, written and opened by another process."""
    levels = [scaled(level, size, least=20 * (n + 1)) for n, level in enumerate(LEVELS)]
    found = list(_levels(folder, levels, seed))
    first, last = found[0], found[-1]
    entries = f"{last['entries']:,} entries"
    figures = [
        Figure(what=f"{what}, {entries}", value=last["microseconds"][kind] / 1e3, unit="ms")
        for kind, what in (
            ("get", "exact hit"),
            ("hit", "hit by meaning"),
            ("product", "the bare product"),
            ("put", "put"),
        )
    ]
    figures += [
        Figure(what=f"first hit of a fresh process, {entries}", value=last["seconds"], unit="s"),
        Figure(what="the file, an entry", value=last["file_bytes_an_entry"], unit="bytes"),
        Figure(what="memory, an entry", value=last["bytes_an_entry"], unit="bytes"),
        Figure(
            what=f"an exact hit slower than among {first['entries']:,}",
            value=last["microseconds"]["get"] / first["microseconds"]["get"],
            unit="×",
        ),
    ]
    return Measured(figures=figures, details={"levels": found})


def _levels(folder: Path, levels: list[int], seed: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    path = folder / "cache.db"
    rows = np.concatenate([units(rng, len(batch)) for batch in in_batches(levels[-1])])
    first_hit = FirstHit(folder, question(0), rows[0])
    vectors: dict[str, Any] = {}
    before = 0
    for level in levels:
        with stemma.open(path, tenant="me", embedder=Given(vectors), policy="threshold") as cache:
            for batch in in_batches(level, before):
                texts = [question(number) for number in batch]
                vectors.update(zip(texts, rows[batch.start : batch.stop], strict=True))
                fill(cache, texts)
                vectors.clear()
            given = _questions(rng, rows[:level])
            new = [f"among {level}, {question(number)}" for number in range(_PUTS)]
            vectors.update(given.asked)
            vectors.update(zip(new, units(rng, _PUTS), strict=True))
            times = _times(cache, given, new)
            held = sum(cache.engine.parts.store.sizes().values())  # with what was put besides
        yield {
            "microseconds": times,
            "file_bytes_an_entry": path.stat().st_size / held,
            **first_hit.of(path, held),
            "entries": level,
        }
        before = level


def _questions(rng: np.random.Generator, rows: Any) -> Questions:
    """Of some that are stored, near ones."""
    chosen = rng.integers(0, len(rows), size=_ASKED).tolist()
    stored = [question(number) for number in chosen]
    near = [reworded(text) for text in stored]
    asked = dict(zip(near, noisy(rng, rows[chosen], NEAR), strict=True))
    return Questions(stored=stored, rows=rows, near=near, far=(), asked=asked)


def _times(cache: Cache, given: Questions, new: list[str]) -> dict[str, float]:
    asked = [given.asked[text] for text in given.near]
    cache.answers.lookup(given.near[0])  # the index takes everything in

    def get(number: int) -> None:
        assert cache.answers.lookup(given.stored[number]).hit

    def hit(number: int) -> None:
        assert cache.answers.lookup(given.near[number]).hit

    calls = {"get": get, "hit": hit, "product": lambda number: given.rows @ asked[number]}
    times = in_turns(calls, range(_ASKED), block=_BLOCK)
    put = one_by_one(cache, new)
    return {**times, **in_turns({"put": put}, range(len(new)), block=_BLOCK, once=True)}
