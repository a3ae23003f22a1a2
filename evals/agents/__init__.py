"""Agents: what a cache can spare them, how often that is out of date or foreign, what it costs.

The texts are in the folder that `STEMMA_DATA` names; without, the parts that need them are skipped.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console

from evals import parts
from evals.measuring import Measured

__all__ = ["PARTS", "measured", "run"]

PARTS = {
    "airline": "an airline's agents replayed: calls served, against a world that writes change",
    "arguments": "a tool's free text compared by meaning: other calls taken for this one",
    "chains": "chains of hops over sources that change: answers out of date, against a fixed life",
    "frames": "one hop's lookup and put; deep traces, threads and tasks that keep their frames",
}
"""Each module in this package that has a `run(size=, seed=, folder=)`, and what it measures."""


def measured(name: str, *, size: float, seed: int) -> Measured:
    """Run one part in a directory of its own."""
    return parts.measured(__name__, name, size=size, seed=seed)


def run(*, size: float, seed: int, out: Console, part: str | None = None) -> dict[str, Any]:
    """Run all parts, or one; print their figures beside their targets, and give all of them."""
    return parts.run(__name__, PARTS, size=size, seed=seed, out=out, part=part)
