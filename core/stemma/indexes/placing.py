"""Which rows of a group the points of a graph stand for.

A graph knows vectors, a group knows rows. Rows with equal vectors share a point; a point whose
vector nobody has any more stands for none, and only serves to walk by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stemma.indexes.bits import BitsView
from stemma.indexes.following import Rows
from stemma.indexes.hnsw import Graph, digests_of

__all__ = ["Placed", "placed"]

_LEAST = 0.75
"""The part of a graph's points that must still be of use; below it, a new one is better."""


class Placed(NamedTuple):
    """A graph with the rows of a group.

    Args:
        graph: The graph.
        order: The rows, point by point.
        starts: Where each point's rows begin in that, and the end of the last.
        covered: The first row that it does not know of.
        useful: The part of its points that stand for any row.
    """

    graph: Graph
    order: Rows
    starts: Rows
    covered: int
    useful: float

    @classmethod
    def of(cls, graph: Graph, rows: Rows, points: Rows, covered: int) -> Placed:
        """Ascending rows, the point of each, and how many rows the group had."""
        order = rows[np.argsort(points, kind="stable")]
        starts = np.concatenate(([0], np.cumsum(np.bincount(points, minlength=len(graph)))))
        return cls(graph, order, starts, covered, _useful(starts))

    def rows(self, points: Rows) -> Rows:
        """The rows of some points."""
        begin = self.starts[points]
        counts = self.starts[points + 1] - begin
        ends = np.cumsum(counts)
        places = np.repeat(begin - ends + counts, counts) + np.arange(counts.sum())
        rows: Rows = self.order[places]
        return rows

    def moved(self, rows: Rows, before: int) -> Placed:
        """The same when of `before` rows only some, ascending, are left, and move together."""
        now = np.full(before, -1, dtype=np.int64)
        now[rows] = np.arange(len(rows))
        order = now[self.order]
        left = order >= 0
        starts = np.concatenate(([0], np.cumsum(left)))[self.starts]
        covered = int(np.searchsorted(rows, self.covered))
        return Placed(self.graph, order[left], starts, covered, _useful(starts))

    @property
    def worn(self) -> bool:
        """Whether so few of its points are of use that a new graph is better."""
        return self.useful < _LEAST


def placed(base: Graph | None, view: BitsView, step: Callable[[], None], *, shared: bool) -> Placed:
    """A graph that has every living row of a group: an older one with what it lacked, or a new one.

    Args:
        base: The older one, if there is any.
        view: The group.
        step: Called now and then; what it raises ends the work.
        shared: Whether lookups may be reading the older one: then a copy is grown.
    """
    alive = np.ones(view.size, dtype=np.bool_)
    alive[view.dead] = False
    rows = np.flatnonzero(alive)
    known, first, own = np.unique(
        digests_of(view.read(rows), step), return_index=True, return_inverse=True
    )
    graph = base if base is not None else Graph(view.centre)
    points = np.full(len(known), -1, dtype=np.int64)
    _, here, there = np.intersect1d(known, graph.digests, assume_unique=True, return_indices=True)
    if len(here) < _LEAST * len(graph):
        graph, shared = Graph(view.centre), False
    else:
        points[here] = there
    new = np.flatnonzero(points < 0)
    new = new[np.argsort(first[new])]  # in the order of the rows
    points[new] = len(graph) + np.arange(len(new))
    if len(new):
        graph = graph.copy() if shared else graph
        graph.grow(known[new], view.read(rows[first[new]]), step)
    return Placed.of(graph, rows, points[own], view.size)


def _useful(starts: Rows) -> float:
    return np.count_nonzero(np.diff(starts)) / max(1, len(starts) - 1)
