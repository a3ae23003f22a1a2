"""What the cache costs, against what nobody can avoid, and against what else there is.

Times on a shared machine drift, so what counts is ratios of medians taken in turns in one run: a
block of calls of ours, a block of the other, over and over. Nothing here is a test that can fail:
a target that is missed is shown as missed.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console

from evals import parts
from evals.measuring import Measured

__all__ = ["PARTS", "measured", "run"]

PARTS = {
    "exact": "exact hits, against a raw read and LangChain's SQLiteCache",
    "semantic": "hits by meaning, against a bare product",
    "index": "the index alone, against a bare product",
    "lookup": "whole lookups by meaning in a large partition, against a bare product",
    "chroma": "whole lookups by meaning, against a filtered query of an embedded Chroma",
    "start": "the first hit of a fresh process, and its memory",
    "put": "one put at a time, against a bare insert",
    "growth": "reading, writing, starting, file and memory, as a cache grows",
    "throughput": "gets and puts a second of several processes, on each store",
}
"""Each module in this package that has a `run(size=, seed=, folder=)`, and what it measures."""


def measured(name: str, *, size: float, seed: int) -> Measured:
    """Run one part in a directory of its own."""
    return parts.measured(__name__, name, size=size, seed=seed)


def run(*, size: float, seed: int, out: Console, part: str | None = None) -> dict[str, Any]:
    """Run all parts, or one; print their figures beside their targets, and give all of them."""
    return parts.run(__name__, PARTS, size=size, seed=seed, out=out, part=part)
