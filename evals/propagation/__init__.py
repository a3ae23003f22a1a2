"""Propagation: what a grounding check tells, and how well a wrong answer's spread is foretold.

The texts are in the folder that `STEMMA_DATA` names; without, the parts that need them are skipped.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console

from evals import parts
from evals.measuring import Measured

__all__ = ["PARTS", "measured", "run"]

PARTS = {
    "attacks": "what tenants can do to what others are served: by reports",
    "attacks_on_pools": "one tenant tries to plant an answer in a pool, in a thousand attempts",
    "containing": "how long a quarantine takes to stop what is being served",
    "grounding": "right and hallucinated answers told apart by their sources, against baselines",
    "pools": "what a pool lets through, by how many must agree, with and without grounding",
    "recall": "worlds in a real store: what recall and quarantine find, and hold, of the truth",
    "speed": "quarantine of 1,000 dependants, and the tenants' graph of a million servings",
    "spread": "the spread over random worlds against the truth, and over many edges against time",
    "timing": "what lookups' times tell of another tenant, in a pool and without; what hides it",
}
"""Each module in this package that has a `run(size=, seed=, folder=)`, and what it measures."""


def measured(name: str, *, size: float, seed: int) -> Measured:
    """Run one part in a directory of its own."""
    return parts.measured(__name__, name, size=size, seed=seed)


def run(*, size: float, seed: int, out: Console, part: str | None = None) -> dict[str, Any]:
    """Run all parts, or one; print their figures beside their targets, and give all of them."""
    return parts.run(__name__, PARTS, size=size, seed=seed, out=out, part=part)
