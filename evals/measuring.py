"""What every part measures with: calls in turns, fresh processes, memory; and what it gives."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from stemma import Frame, frames

__all__ = ["BLOCK", "Figure", "Measured", "Skipped", "fresh", "in_turns", "memory", "scaled"]

BLOCK = 100
"""Calls of one kind in a row: fewer, and each would find the other's data in the processor."""

_ROOT = Path(__file__).parents[1]
_CHILD = """
import time
began = time.perf_counter()
import stemma, stemma.stores.sqlite
imported = time.perf_counter() - began
import importlib, json, sys
module, function, arguments = sys.argv[1:]
given = getattr(importlib.import_module(module), function)(*json.loads(arguments))
print(json.dumps({**given, "import_seconds": imported}))
"""

K = TypeVar("K")


class Skipped(Exception):
    """What a part is measured with is not there; the text says what is missing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One line of the table.

    Args:
        what: What was measured.
        value: How much.
        unit: Of the value.
        at_most: The target, where it is an upper bound.
        at_least: The target, where it is a lower one.
    """

    what: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; `None` where there is none."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    @property
    def shown(self) -> str:
        """The value with its unit."""
        return _with_unit(self.value, self.unit)

    @property
    def target(self) -> str:
        """The target in words; empty where there is none."""
        if self.at_most is not None:
            return f"at most {_with_unit(self.at_most, self.unit)}"
        return "" if self.at_least is None else f"at least {_with_unit(self.at_least, self.unit)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What a part found.

    Args:
        figures: What is shown, with targets.
        details: Everything measured, for the JSON.
        beside: Who was measured side by side, and what each came to: a column's text by its name.
        skipped: Why nothing was measured, where something that is needed is missing; else empty.
    """

    figures: Sequence[Figure] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    skipped: str = ""


def scaled(full: int, size: float, *, least: int = 1) -> int:
    """How many of `full` there are at a size."""
    return max(least, round(full * size))


def in_turns(
    calls: Mapping[str, Callable[[K], Any]],
    asked: Sequence[K],
    *,
    block: int = BLOCK,
    once: bool = False,
) -> dict[str, float]:
    """Median microseconds of each, called in turns of a block of calls, after one unmeasured.

    Each call is in a frame of its own, as the calls of a chain's runs are.

    Args:
        calls: What is measured, by name.
        asked: What each is called with.
        block: How many calls make a turn.
        once: Whether none may be called twice with the same; the first block is then not measured.
    """
    first = asked[: min(block, len(asked) // 2)]
    for one in first:
        for call in calls.values():
            call(one)
    if once:
        asked = asked[len(first) :]
    taken: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.freeze()  # what was made to measure with is no work of who is measured
    for start in range(0, len(asked), block):
        for name, call in calls.items():
            for one in asked[start : start + block]:
                frames.enter(Frame())
                began = time.perf_counter()
                call(one)
                taken[name].append(time.perf_counter() - began)
    frames.enter(None)
    gc.unfreeze()
    return {name: statistics.median(times) * 1e6 for name, times in taken.items()}


def fresh(module: str, function: str, *arguments: Any) -> dict[str, Any]:
    """What a function gives in a fresh process, with the seconds of importing Stemma there.

    Args:
        module: Where the function is.
        function: Its name. It gives a dictionary that JSON can hold.
        *arguments: What it is called with, as JSON can hold them.
    """
    ran = subprocess.run(
        [sys.executable, "-c", _CHILD, module, function, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=_ROOT,
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{module}.{function} failed in its process:\n{ran.stderr}")
    given: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return given


def memory() -> dict[str, int]:
    """This process's bytes in memory: `own`, and `mapped` pages of files; 0 if nobody tells."""
    told = {"RssAnon": 0, "RssFile": 0}
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="utf-8").splitlines():
            name, _, rest = line.partition(":")
            if name in told:
                told[name] = int(rest.split()[0]) * 1024
    return {"own": told["RssAnon"], "mapped": told["RssFile"]}


def _with_unit(value: float, unit: str) -> str:
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits} {unit}".rstrip()
