"""How fast the nearest entries are found, against a bare product over the same vectors.

The baseline is one float32 matrix-vector product: what a scan cannot avoid that leaves nothing
out. Half of the vectors asked with have an entry near them, the other half have none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from evals.speed.given import NEAR, clustered, missed, noisy, units
from evals.speed.measuring import Figure, Measured, in_turns, scaled
from stemma.embedders.protocol import Matrix
from stemma.entry import Vector
from stemma.indexes.bits import BitsIndex
from stemma.indexes.exact import ExactIndex
from stemma.indexes.following import FollowingIndex
from stemma.stores.protocol import Changes, Store

__all__ = ["measure", "run"]

GROUP = "g" * 32
NEIGHBOURS, FLOOR = 8, 0.88
BLOCK, TIMED = 20, 200
ASKED = 400

KINDS: dict[str, Callable[[], FollowingIndex]] = {"exact": ExactIndex, "bits": BitsIndex}


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001 - as all parts
    """The nearest eight among 100,000 entries of one group."""
    found = measure(scaled(100_000, size, least=20), seed=seed)
    entries, near = f"{found['entries']:,} entries", found["missed"]["bits"]
    figures = [
        Figure(
            what=f"index by {kind}, {entries}, of the bare product",
            value=found["times_bare_product"][kind],
            unit="×",
            at_most=1 / 6 if kind == "bits" else None,
        )
        for kind in KINDS
    ]
    figures += [
        Figure(
            what=f"bits found the nearest, of {near['asked']} at 0.7 or above",
            value=100 * (1 - near["missed"] / near["asked"]),
            unit="%",
            at_least=99.9,
        ),
        Figure(what="taking everything in", value=found["seconds_to_build"]["bits"], unit="s"),
    ]
    return Measured(figures=figures, details=found)


def measure(count: int, *, seed: int, kinds: Sequence[str] = tuple(KINDS)) -> dict[str, Any]:
    """Times, times of the bare product, and what was missed, for each index.

    Args:
        count: Entries of one group.
        seed: Of the vectors.
        kinds: Which indexes.
    """
    rng = np.random.default_rng(seed)
    rows = clustered(rng, count)
    near = noisy(rng, rows[rng.integers(0, count, size=ASKED // 2)], NEAR)
    asked = np.concatenate([near, units(rng, ASKED // 2)])[rng.permutation(ASKED)]
    store = _Given(rows)
    indexes = {kind: KINDS[kind]() for kind in kinds}
    asking = {kind: partial(_ask, index, store.store) for kind, index in indexes.items()}
    built = {kind: _seconds(ask, asked[0]) for kind, ask in asking.items()}
    calls: dict[str, Callable[[Vector], Any]] = {"product": lambda vector: rows @ vector, **asking}
    times = in_turns(calls, list(asked[:TIMED]), block=BLOCK)
    return {
        "entries": count,
        "microseconds": times,
        "times_bare_product": {kind: times[kind] / times["product"] for kind in kinds},
        "seconds_to_build": built,
        "missed": {
            kind: missed(rows, dict(enumerate(asked)), partial(_similarity, ask, asked))
            for kind, ask in asking.items()
        },
    }


class _Given:
    """A store as an index sees it, whose vectors are given."""

    def __init__(self, rows: Matrix) -> None:
        self._changes = Changes(
            ids=[f"{number:032x}" for number in range(len(rows))],
            groups=[GROUP] * len(rows),
            vectors=cast("Sequence[Any]", rows.astype(np.float16)),
            removed=(),
            sequence=1,
        )

    def sequence(self) -> int:
        """Never moves."""
        return 1

    def changes(self, after: int) -> Changes:  # noqa: ARG002 - of the protocol
        """Everything."""
        return self._changes

    @property
    def store(self) -> Store:
        """This where a store is wanted: an index uses no more of it."""
        return cast("Store", self)


def _ask(index: FollowingIndex, store: Store, vector: Vector) -> Any:
    return index.nearest(store, GROUP, vector, NEIGHBOURS, FLOOR)


def _similarity(ask: Callable[[Vector], Any], asked: Matrix, number: int) -> float:
    return float(ask(asked[number])[0].similarity)


def _seconds(ask: Callable[[Vector], Any], vector: Vector) -> float:
    began = time.perf_counter()
    ask(vector)
    return time.perf_counter() - began
