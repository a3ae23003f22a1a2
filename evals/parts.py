"""Runs the parts of an evaluation that measures, and prints their figures beside their targets."""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evals.measuring import Measured, Skipped
from stemma import MissingDependency

__all__ = ["measured", "run"]


def measured(package: str, name: str, *, size: float, seed: int) -> Measured:
    """Run one part in a directory of its own; skipped where what it needs is missing."""
    try:
        module = importlib.import_module(f"{package}.{name}")
        with tempfile.TemporaryDirectory(prefix="stemma-") as folder:
            found = module.run(size=size, seed=seed, folder=Path(folder))
    except (MissingDependency, Skipped) as missing:
        return Measured(skipped=str(missing))
    assert isinstance(found, Measured)
    return found


def run(
    package: str,
    parts: Mapping[str, str],
    *,
    size: float,
    seed: int,
    out: Console,
    part: str | None = None,
) -> dict[str, Any]:
    """Run all parts of a package, or one; print their figures, and give all that was measured.

    Args:
        package: Where each part is a module with a `run(size=, seed=, folder=)`.
        parts: The modules, and what each measures.
        size: 1 is the full size, for which the targets are.
        seed: Of everything random.
        out: Where it is printed.
        part: Only this part.
    """
    table = Table("part", "what", "figure", "target", "", title=package.rpartition(".")[2])
    results: dict[str, Any] = {}
    for name in parts if part is None else (part,):
        began = time.perf_counter()
        with out.status(f"{name}: {parts[name]}"):
            found = measured(package, name, size=size, seed=seed)
        results[name] = {
            "measured": dict(found.details),
            "figures": [{**asdict(figure), "met": figure.met} for figure in found.figures],
            "skipped": found.skipped,
            "seconds": time.perf_counter() - began,
        }
        for figure in found.figures:
            met = figure.met if size == 1 else None
            said = {None: "", True: "met", False: "missed"}[met]
            table.add_row(name, figure.what, figure.shown, figure.target, said)
        if found.skipped:
            table.add_row(name, f"skipped: {found.skipped}")
        table.add_section()
        if found.beside:
            out.print(_beside(name, found.beside))
    out.print(table)
    return results


def _beside(title: str, found: Mapping[str, Mapping[str, str]]) -> Table:
    """A row for each that was measured, all with the columns of the first."""
    columns = list(next(iter(found.values())))
    table = Table(title, *columns, title=f"{title}, side by side")
    for name, said in found.items():
        table.add_row(name, *(said[column] for column in columns))
    return table
