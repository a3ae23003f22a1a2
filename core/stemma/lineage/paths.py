"""Paths: the hops that led to where an agent is, as one key and as something to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stemma.keys import digest

__all__ = ["START", "Passed", "Path", "Step", "joined"]


class Step(NamedTuple):
    """A step of a hop: what it matched, and how.

    Args:
        entry: The id of the entry, or what stands for a value that was not stored.
        how: `exact`, `semantic`, `stored` (computed just then), `not stored`, `failed` or `left`.
    """

    entry: str
    how: str


class Passed(NamedTuple):
    """A hop that is over: its name, and the steps in it."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """Where an agent is.

    Args:
        key: Equal for two runs that passed the same hops and matched the same entries in them.
        hops: The hops passed so far, the first one first.
    """

    key: str = ""
    hops: tuple[Passed, ...] = field(default=(), repr=False, compare=False)

    def after(self, name: str, steps: Sequence[Step]) -> Path:
        """The path once a hop is over. Its steps may have run side by side: no order counts."""
        matched = sorted({step.entry for step in steps})
        passed = Passed(name, tuple(dict.fromkeys(steps)))
        return Path(digest("path/2", self.key, name, matched), (*self.hops, passed))


START = Path()


def joined(start: Path, ends: Iterable[Path]) -> Path:
    """The path where branches meet that began at the same place, whichever ended first."""
    ended = sorted(set(ends), key=lambda path: path.key)
    if len(ended) == 1:
        return ended[0]
    hops = [hop for path in ended for hop in path.hops[len(start.hops) :]]
    return Path(digest("join/1", [path.key for path in ended]), (*start.hops, *hops))
