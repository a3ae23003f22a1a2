"""What the cache costs, against what nobody can avoid, and against what else there is.

Times on a shared machine drift, so what counts is ratios of medians taken in turns in one run: a
block of calls of ours, a block of the other, over and over. Nothing here is a test that can fail:
a target that is missed is shown as missed.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evals.speed.measuring import Measured

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
    module = importlib.import_module(f"evals.speed.{name}")
    with tempfile.TemporaryDirectory(prefix="stemma-") as folder:
        found = module.run(size=size, seed=seed, folder=Path(folder))
    assert isinstance(found, Measured)
    return found


def run(*, size: float, seed: int, out: Console, part: str | None = None) -> dict[str, Any]:
    """Run all parts, or one; print their figures beside their targets, and give all of them."""
    table = Table("part", "what", "figure", "target", "", title="Speed")
    results: dict[str, Any] = {}
    for name in PARTS if part is None else (part,):
        began = time.perf_counter()
        with out.status(f"{name}: {PARTS[name]}"):
            found = measured(name, size=size, seed=seed)
        results[name] = {
            "measured": dict(found.details),
            "figures": [{**asdict(figure), "met": figure.met} for figure in found.figures],
            "seconds": time.perf_counter() - began,
        }
        for figure in found.figures:
            met = figure.met if size == 1 else None  # targets are for the full size
            said = {None: "", True: "met", False: "missed"}[met]
            table.add_row(name, figure.what, figure.shown, figure.target, said)
        table.add_section()
    out.print(table)
    return results
