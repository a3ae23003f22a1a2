"""Whole lookups by meaning among 100,000 entries of one partition, embedding apart."""

from __future__ import annotations

from pathlib import Path

from evals.measuring import Figure, Measured, scaled
from evals.speed.semantic import by_meaning

__all__ = ["run"]


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Exact key, index, reading what it proposes, guards, validity: all but the embedding."""
    found = by_meaning(folder, scaled(100_000, size, least=20), turns=400, seed=seed)
    entries, near = f"{found['entries']:,} entries", found["nearest"]
    products = [
        Figure(
            what=f"{kind} by meaning, {entries}, of the bare product",
            value=found["times_bare_product"][kind],
            unit="×",
            at_most=1 / 6,
        )
        for kind in ("hit", "miss")
    ]
    return Measured(
        figures=(
            Figure(
                what=f"hit by meaning, {entries}, embedding apart",
                value=found["microseconds"]["hit"],
                unit="µs",
            ),
            *products,
            Figure(
                what=f"the nearest was found, of {near['asked']} at 0.7 or above",
                value=100 * (1 - near["missed"] / near["asked"]),
                unit="%",
                at_least=99.9,
            ),
        ),
        details=found,
    )
