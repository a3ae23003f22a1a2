"""What the cache promises under abuse, tried: killed, cut off, damaged, raced, overrun.

Every experiment counts what it did and what went against a promise. Of the latter a single one is
a failure, so a table of these experiments is a table of zeros; what makes a zero worth something
is how often it was tried. `size` scales that, and the seeds are in the results.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stemma.errors import MissingDependency

__all__ = ["PARTS", "Outcome", "run", "times", "tried"]

PARTS: dict[str, str] = {
    "damaged_database": "damaged copies of a filled SQLite database, opened and used",
    "disk_full": "a disk that fills up under a cache, and is given room again",
    "io_errors": "an error at the n-th call to the file system, for every n, on SQLite",
    "power_cuts": "loss of power at any moment of a history, on SQLite",
    "killed_writers": "two writers on one SQLite file are killed, and what they were told holds",
    "shared_file": "four processes put, look up, take back and report on one file",
    "cancelled": "threads and tasks share a cache, and a part of the tasks is cancelled",
    "racing_recalls": "recalls race with puts of what they cover, on random graphs",
    "stampede": "many ask the same at once, and their leader is killed or fails",
    "forks": "a process forks while its threads use the cache",
    "clock": "wall clocks jump, and differ between processes",
    "killed_server": "the PostgreSQL server is killed while an application writes",
    "crossing": "a proxy delays, cuts and breaks what PostgreSQL says, and callers give up",
    "outage": "the store refuses, is black-holed, or seconds late, while an application works",
    "lost_recalls": "recalls during outages, by processes that are killed",
    "damaged_index": "saved graphs damaged: no process dies, no answer is wrong",
}
"""Each module in this package that has a `run(size=, seed=, folder=)`, and what it tries."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What an experiment found.

    Args:
        tried: How often what was done: the weight of the zeros.
        violations: How often a promise was broken, by promise; 0 each, if all is well.
        figures: Measured besides: seconds, milliseconds, ratios; named with their unit.
        skipped: Why nothing was tried, where something that is needed is missing; else empty.
    """

    tried: Mapping[str, int] = field(default_factory=dict)
    violations: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
    skipped: str = ""

    @property
    def held(self) -> bool:
        """Whether something was tried, and every promise was kept."""
        return sum(self.tried.values()) > 0 and not any(self.violations.values())


def times(count: int, size: float) -> int:
    """How often to try what is tried `count` times at full size: at least once."""
    return max(1, round(count * size))


def tried(name: str, *, size: float, seed: int) -> Outcome:
    """Run one experiment in a directory of its own; skipped where what it needs is missing."""
    try:
        module = importlib.import_module(f"evals.reliability.{name}")
        with tempfile.TemporaryDirectory(prefix="stemma-") as folder:
            outcome = module.run(size=size, seed=seed, folder=Path(folder))
    except MissingDependency as missing:
        return Outcome(skipped=str(missing))
    assert isinstance(outcome, Outcome)
    return outcome


def run(*, size: float, seed: int, out: Console, part: str | None = None) -> dict[str, Any]:
    """Run all experiments, or one; print them, and give what they found."""
    table = Table("experiment", "tried", "against a promise", "seconds", title="Reliability")
    results: dict[str, Any] = {}
    for name in PARTS if part is None else (part,):
        began = time.perf_counter()
        with out.status(f"{name}: {PARTS[name]}"):
            outcome = tried(name, size=size, seed=seed)
        seconds = time.perf_counter() - began
        results[name] = {
            "what": PARTS[name],
            "held": outcome.held,
            "tried": dict(outcome.tried),
            "violations": dict(outcome.violations),
            "figures": dict(outcome.figures),
            "skipped": outcome.skipped,
            "seconds": seconds,
        }
        done = _lines(outcome.tried) if not outcome.skipped else f"skipped: {outcome.skipped}"
        table.add_row(name, escape(done), _lines(outcome.violations), f"{seconds:.0f}")
    out.print(table)
    return results


def _lines(numbers: Mapping[str, int]) -> str:
    return "\n".join(f"{number:,} {what}" for what, number in numbers.items())
