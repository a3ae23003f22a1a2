"""Attacks by tenants on what all of them read, each tried many times."""

from __future__ import annotations

from pathlib import Path

from evals.measuring import Measured
from evals.propagation import attacks_by_reports

__all__ = ["ATTACKS", "run"]

ATTACKS = (attacks_by_reports,)
"""Modules with a `tried(size=, seed=)` that gives what came of it."""


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Try all of them, in memory."""
    del folder
    found = [attack.tried(size=size, seed=seed) for attack in ATTACKS]
    return Measured(
        figures=[figure for one in found for figure in one.figures],
        details={name: told for one in found for name, told in one.details.items()},
    )
