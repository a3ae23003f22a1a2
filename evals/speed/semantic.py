"""How long a whole lookup by meaning takes, embedding apart, against a bare product.

The product is one of a float32 matrix of all vectors and the vector asked with: what a scan that
leaves nothing out cannot do without. Half of the questions have an entry near them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import stemma
from evals.measuring import Figure, Measured, in_turns, scaled
from evals.speed.given import Given, Questions, fill, questions
from evals.speed.vectors import missed
from stemma import Hit, Miss

__all__ = ["Asked", "by_meaning", "run"]

Asked = Callable[[Questions], Callable[[int], Any]]
"""Made of the questions, what asks the n-th near one."""


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Among 10,000 entries of one partition, which are scanned by bits."""
    found = by_meaning(folder, scaled(10_000, size, least=20), turns=1_000, seed=seed)
    return Measured(
        figures=(
            Figure(
                what=f"hit by meaning, {found['entries']:,} entries, embedding apart",
                value=found["microseconds"]["hit"],
                unit="µs",
            ),
            Figure(
                what="… of the bare product",
                value=found["times_bare_product"]["hit"],
                unit="×",
                at_most=1.6,
            ),
        ),
        details=found,
    )


def by_meaning(
    folder: Path, count: int, *, turns: int, seed: int, other: Asked | None = None
) -> dict[str, Any]:
    """Times of hits, of misses and of the bare product, and how often the nearest was missed.

    Args:
        folder: Where the cache's file is made.
        count: How many entries are stored.
        turns: How many questions are asked of either kind, at most as many as there are entries.
        seed: Of the questions.
        other: Somebody else to be asked in turns with ours.
    """
    given = questions(count, asked=min(turns, count), seed=seed)
    with stemma.open(
        folder / "cache.db", tenant="me", embedder=Given(given.vectors), policy="threshold"
    ) as cache:
        fill(cache, given.stored)
        cache.answers.lookup(given.far[0])  # the index takes everything in

        def hit(number: int) -> None:
            found = cache.answers.lookup(given.near[number])
            assert isinstance(found, Hit), found
            assert found.tier == "semantic"

        def miss(number: int) -> None:
            assert isinstance(cache.answers.lookup(given.far[number]), Miss)

        asked = [given.asked[text] for text in given.near]
        calls: dict[str, Callable[[int], Any]] = {
            "hit": hit,
            "miss": miss,
            "product": lambda number: given.rows @ asked[number],
        }
        if other is not None:
            calls["other"] = other(given)
        times = in_turns(calls, range(len(given.near)))
        nearest = missed(
            given.rows, given.asked, lambda text: cache.answers.lookup(text).similarity
        )
    return {
        "entries": count,
        "microseconds": times,
        "times_bare_product": {kind: times[kind] / times["product"] for kind in ("hit", "miss")},
        "nearest": nearest,
    }
