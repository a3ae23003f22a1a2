"""Private worlds: where one run acts, and nobody else.

Where every run starts from the same beginning (a simulation, a sandbox, a copy of a database for
each test), what one run writes says nothing about another's world. So nothing is taken back there.
Instead, each resource has a *version*: the digest of all that was written in this world up to the
last write that concerned it, in its order, with arguments and results. What is read is kept under
the versions of the resources that it was read from. A run that writes the same comes to the same
versions, and finds what was read there; a run that took another turn does not.

The digest goes over all that was written until then, not only over what concerned the resource:
what a write does to one resource may depend on what another one was at that moment.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from stemma import forking
from stemma.errors import UsageError
from stemma.keys import digest

__all__ = ["EVERYTHING", "Moment", "Path", "World", "Writing", "objection"]

Path = tuple[str, ...]
"""A resource, segment by segment. It stands for everything below it."""

EVERYTHING: tuple[Path, ...] = ((),)


class _Write(NamedTuple):
    number: int
    version: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A world at one moment, as far as some resources are concerned.

    Args:
        world: The world.
        paths: The resources.
        version: Equal in all worlds that are the same there; where no resource is named, in all
            that began alike.
        settled: Whether none of them was being written.
    """

    world: World
    paths: tuple[Path, ...]
    version: str
    settled: bool = True

    @property
    def lasts(self) -> bool:
        """Whether nothing that concerns the resources was written since, or is being written."""
        return self.settled and self.world.moment(self.paths) == self

    def covers(self, other: Moment) -> bool:
        """Whether the version tells of all that the other's tells of."""
        return other.world is self.world and all(
            any(path[: len(own)] == own for own in self.paths) for path in other.paths
        )


def objection(moment: Moment | None, read: Iterable[Moment]) -> str | None:
    """Why a value must not be stored; `None` if it may be.

    Args:
        moment: By which it was asked for; `None`: outside all private worlds.
        read: What it is built on.
    """
    if moment is not None and not moment.lasts:
        return "its world was written to while it was computed"
    if all(moment is not None and moment.covers(one) for one in read):
        return None
    return "it is built on more of a private world than its key tells of"


class World:
    """What one run writes to, from its beginning. Threads and tasks may share it.

    It lives in one process: in a forked child nothing that was written before is known any more.

    Args:
        start: What the world is at its beginning. Worlds that begin alike say the same.

    Raises:
        UsageError: `start` is no text.
    """

    def __init__(self, start: str = "") -> None:
        if not isinstance(start, str):
            raise UsageError(f"a world begins with what a text names, not {type(start).__name__}")
        self.start = start
        self._lock = forking.Lock()
        self._last = _Write(0, digest("world/1", start))
        self._first = self._last
        self._at: dict[Path, _Write] = {}
        self._below: dict[Path, _Write] = {}
        self._open: list[Writing] = []
        forking.follow(self)

    def __repr__(self) -> str:
        return f"World({self.start!r})"

    def after_fork(self) -> None:
        """In the child, nobody ends what its parent's threads were writing."""
        self._open.clear()
        self.lose(EVERYTHING)

    def moment(self, paths: tuple[Path, ...] = EVERYTHING) -> Moment:
        """The world now, as far as these resources are concerned."""
        with self._lock:
            if any(_meet(one.paths, paths) for one in self._open):
                return Moment(self, paths, secrets.token_hex(16), settled=False)
            writes = [write for path in paths for write in self._concerning(path)]
        return Moment(self, paths, max((self._first, *writes)).version)

    def lose(self, paths: Sequence[Path]) -> None:
        """Nobody knows what these resources are now: a version that never comes again."""
        with self._lock:
            self._write(paths, None)

    def _concerning(self, path: Path) -> list[_Write]:
        """The last write to a resource or below it, and those to what it lies in."""
        above = (self._at.get(path[:depth]) for depth in range(len(path)))
        return [write for write in (self._below.get(path), *above) if write is not None]

    def _write(self, paths: Sequence[Path], said: str | None) -> None:
        version = secrets.token_hex(16) if said is None else digest(self._last.version, said)
        self._last = _Write(self._last.number + 1, version)
        for path in paths:
            self._at[path] = self._last
            for depth in range(len(path) + 1):
                self._below[path[:depth]] = self._last

    def begin(self, writing: Writing) -> None:
        """A write begins. Of two that overlap nobody knows which came first."""
        with self._lock:
            writing.alone = not self._open
            for other in self._open:
                other.alone = False
            self._open.append(writing)

    def end(self, writing: Writing, said: str | None) -> None:
        """It has ended; `said` tells what was done and what came of it, where that is known."""
        with self._lock:
            self._write(writing.paths, said if writing.alone else None)
            self._close(writing)

    def put_off(self, writing: Writing) -> None:
        """It has not begun after all: it will."""
        with self._lock:
            self._close(writing)

    def _close(self, writing: Writing) -> None:
        if writing in self._open:  # not in a forked child
            self._open.remove(writing)


@dataclass(slots=True, eq=False)
class Writing:
    """One write to a world: a context manager around it.

    However it ends, the versions of what it concerns move on; where it raised, was cancelled or
    overlapped with another one, to such as never come again.

    Args:
        world: The world.
        paths: The resources that it concerns.
        telling: Called with the result; gives what tells the write and its result from others, or
            `None` where nothing does.
    """

    world: World
    paths: tuple[Path, ...]
    telling: Callable[[Any], str | None] = field(repr=False)
    alone: bool = field(default=True, init=False)
    _said: str | None = field(default=None, init=False, repr=False)
    _later: bool = field(default=False, init=False, repr=False)

    def __enter__(self) -> Self:
        self._said, self._later = None, False
        self.world.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._later:
            self.world.put_off(self)
        else:
            self.world.end(self, self._said)

    def came_to(self, result: Any, *, awaited: bool = False) -> Any:
        """Note the result, and give it back.

        Args:
            result: What the tool gave.
            awaited: Whether whoever gets it awaits it, if it can be, in another block of this
                write. Of a coroutine, nothing was written yet then; a task may write at any time.
        """
        self._later = awaited and inspect.iscoroutine(result)
        self._said = None if self._later else self.telling(result)
        return result


def _meet(some: Iterable[Path], others: Iterable[Path]) -> bool:
    """Whether one of some resources has something in common with one of others."""
    return any(
        one[: len(other)] == other or other[: len(one)] == one for one in some for other in others
    )
