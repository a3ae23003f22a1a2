"""The index for very large groups: a graph finds the candidates, where a scan would take long.

A group is scanned, whole or by bits, until it is so large that a graph pays. That is built by a
thread beside the lookups, which go on scanning, and put in place when it has all that the group
had when it was begun; what came since is scanned by bits until it is worth growing a copy of the
graph. Entries that go are gone at once.

The graph only names candidates. They are ranked by the stored vectors themselves, and wherever
it does not name enough that live, the scan by bits answers.
"""

from __future__ import annotations

import logging
import os
import weakref
from functools import partial
from typing import NamedTuple

import numpy as np

from stemma import forking
from stemma.beside import Beside
from stemma.entry import Vector
from stemma.errors import UsageError
from stemma.indexes.bits import CANDIDATES, LARGE, WIDE, BitsGroup, BitsIndex, BitsView
from stemma.indexes.following import Rows, View
from stemma.indexes.graph_files import GraphFiles
from stemma.indexes.hnsw import Graph, library
from stemma.indexes.placing import Placed, placed
from stemma.indexes.protocol import Near
from stemma.stores.protocol import Store

__all__ = ["GraphIndex"]

Living = np.ndarray[tuple[int], np.dtype[np.bool_]]

_log = logging.getLogger("stemma")

_beside = partial(
    Beside,
    "stemma-graph",
    failed="making a graph failed; lookups scan that group from now on",
)

_BEYOND = 1_000_000
"""Entries from which on a graph pays for its building (docs/indexes.md)."""

_TAIL = 16
"""A graph is grown when the group has one in so many entries more than it."""

_FEW = 4
"""A graph of fewer than so many times the candidates wanted finds no faster than a scan."""

_ENOUGH = 2
"""A scan answers where of the candidates wanted not even one in so many lives."""


class GraphIndex(BitsIndex):
    """Finds the nearest entries by a graph in very large groups, by bits or exactly in others.

    The making of a graph goes on in a thread of its own and leaves the lookups alone; `close` ends
    it. A forked child has the graphs of its parent, and makes its own from then on.

    Args:
        beyond: Entries from which on a group has a graph.
        folder: Where graphs are kept, so that a restart does not build them again; made, for its
            owner only, if it is not there. Without one they last as long as the process.
        large: Entries from which on a group is searched by bits.
        wide: Dimensions from which on it is; narrower vectors have too few bits.

    Raises:
        MissingDependency: USearch is not installed.
        UsageError: `beyond` is below `large` (4,096 unless given), or an argument is of no use.
    """

    def __init__(
        self,
        *,
        beyond: int = _BEYOND,
        folder: str | os.PathLike[str] | None = None,
        large: int = LARGE,
        wide: int = WIDE,
    ) -> None:
        for name, number, least in (
            ("large", large, 1),
            ("wide", wide, 1),
            ("beyond", beyond, large),
        ):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise UsageError(f"{name} must be a whole number from {least}, not {number!r}")
        if folder is not None and not os.fspath(folder):
            raise UsageError("folder must name a directory, or be None")
        library()
        super().__init__(large=large, wide=wide)
        self._beyond = beyond
        self._files = None if folder is None else GraphFiles(folder)
        self._beside = _beside()
        self._end = weakref.finalize(self, Beside.close, self._beside)
        forking.follow(self)

    def nearest(
        self, store: Store, group: str, vector: Vector, k: int, floor: float = -1.0
    ) -> tuple[Near, ...]:
        """See `Index.nearest`."""
        found = super().nearest(store, group, vector, k, floor)
        held = self._groups.get(group)
        if isinstance(held, _GraphGroup) and held.wants(self._beyond):
            self._beside.ask(group, partial(self._make, group))
        return found

    def ready(self, timeout: float | None = None) -> bool:
        """Wait until no graph is being made; gives whether that came within so many seconds."""
        return self._beside.wait(timeout)

    def close(self) -> None:
        """Make no more graphs, and end the making of one. Lookups go on with what there is."""
        self._end()

    def after_fork(self) -> None:
        """In a forked child: the thread that made graphs stayed behind."""
        self._end.detach()
        self._beside = _beside()
        self._end = weakref.finalize(self, Beside.close, self._beside)

    def _by_bits(self, dimensions: int) -> BitsGroup:
        return _GraphGroup(dimensions)

    def _make(self, name: str) -> None:
        """Make or grow a group's graph, put it in place, and save it."""
        base, shared, saved = None, False, 0
        while True:
            with self._lock:
                group = self._groups.get(name)
                if not isinstance(group, _GraphGroup):
                    return
                view, arrangement, old = group.bits, group.arrangement, group.placed
            if base is None and old is not None:
                base, shared = old.graph, True
            elif base is None and self._files is not None:
                base = self._files.load(name, group.dimensions, view.size)
                saved = 0 if base is None else len(base)
            made = placed(base, view, self._beside.step, shared=shared)
            with self._lock:
                if group.arrangement is arrangement and self._groups.get(name) is group:
                    group.adopt(made)
                    break
            if made.graph is not base:
                shared, saved = False, 0
            base = made.graph  # its rows have moved meanwhile; what it knows is still of use
        if self._files is not None and (made.graph is not base or len(base) != saved):
            self._save(self._files, name, made.graph)

    def _save(self, files: GraphFiles, name: str, graph: Graph) -> None:
        try:
            files.save(name, graph)
        except OSError as error:
            _log.warning("a graph could not be saved and will be made anew: %s", error)


class _View(NamedTuple):
    """A group with a graph as it was at one moment."""

    bits: BitsView
    placed: Placed
    living: Living

    def nearest(self, unit: Vector, k: int, floor: float) -> tuple[Near, ...]:
        """The `k` nearest among those that the graph names and those it does not know of."""
        rows = self._proposed(unit, max(CANDIDATES, 2 * k))
        if rows is None:
            return self.bits.nearest(unit, k, floor)
        return self.bits.ranked(rows, unit, k, floor)

    def _proposed(self, unit: Vector, count: int) -> Rows | None:
        """Living rows, ascending; `None` where the graph names too few."""
        if len(self.placed.graph) < _FEW * count:
            return None
        rows = self.placed.rows(self.placed.graph.nearest(unit, count))
        rows = np.compress(self.living[rows], rows)
        if _ENOUGH * len(rows) < count:
            return None
        return np.sort(np.append(rows, self.bits.closest(unit, count, self.placed.covered)))


class _GraphGroup(BitsGroup):
    """A group with bits, and with a graph once there is one."""

    def __init__(self, dimensions: int) -> None:
        self.placed: Placed | None = None
        self.arrangement = object()
        super().__init__(dimensions)

    def wants(self, beyond: int) -> bool:
        """Whether a graph should be made or grown."""
        if len(self.rows) < beyond:
            return False
        held = self.placed
        if held is None:
            return True
        return held.worn or _TAIL * (len(self._ids) - held.covered) > held.covered

    def adopt(self, made: Placed) -> None:
        """Let lookups use a graph, which has the rows where they are."""
        self.placed = made
        self.publish()

    def _seen(self, ids: list[str], size: int, dead: Rows) -> View:
        bits = super()._seen(ids, size, dead)
        if self.placed is None:
            return bits
        living = np.ones(size, dtype=np.bool_)
        living[dead] = False
        return _View(self.bits, self.placed, living)

    def _keep(self, rows: Rows) -> None:
        super()._keep(rows)
        self.arrangement = object()
        if self.placed is not None:
            self.placed = self.placed.moved(rows, len(self._ids))
