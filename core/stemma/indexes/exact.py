"""The exact index: every vector of a group is compared. Nothing is approximated.

Vectors are kept in two pieces: the first quarter of their numbers, and the rest. By Cauchy and
Schwarz a product is at most the product of the first pieces plus the product of the lengths of the
rests; for a rest that is long, that says little, but almost no vector comes near a high floor by
it. So where only what reaches a floor is of use, a quarter of the work finds all of it for certain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stemma.embedders.protocol import Matrix
from stemma.entry import Vector
from stemma.indexes.following import FollowingIndex, Group, Halves, Rows, Similarities, best
from stemma.indexes.protocol import Near

__all__ = ["ExactGroup", "ExactIndex"]

_SLACK = 1e-5
"""More than a float32 dot product of unit vectors can be off; rows this near are scored again."""

_BLOCK = 256
"""Scores of which the highest is found first."""

_CHUNK = 4096
"""Rows scored again at once: bounds the memory where very many are equally near."""

_PIECES = 4
"""The first piece holds one in so many of a vector's numbers."""

_WORTH = 1_024
"""Rows from which on the short cut pays."""

_FEW = 16
"""The short cut is given up where it leaves more than one row in so many."""


class ExactIndex(FollowingIndex):
    """Finds the nearest entries by a scan, in memory; follows one store.

    Rows are unit vectors in float32 (4 bytes a dimension and entry).
    """

    exact = True

    def _new(self, dimensions: int, arriving: int) -> Group:  # noqa: ARG002 - any size is the same
        return ExactGroup(dimensions)


class _View(NamedTuple):
    """A group as it was at one moment. What it points to is only ever appended to."""

    head: Matrix
    tail: Matrix
    rests: Vector
    ids: list[str]
    size: int
    dead: Rows

    def nearest(self, unit: Vector, k: int, floor: float) -> tuple[Near, ...]:
        """The `k` nearest, for certain."""
        rows = _above(self, unit, floor) if self.size >= _WORTH else None
        if rows is not None:
            found = _similarities(self, rows, unit)
            if found.max() >= floor:
                return best(self.ids, rows, found, k, floor)
        rows = _scan(self, unit, k)
        if not len(rows):
            return ()
        return best(self.ids, rows, _similarities(self, rows, unit), k, floor)


class ExactGroup(Group):
    """A group's unit vectors, whole."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self._cut = dimensions if dimensions < 16 * _PIECES else dimensions // _PIECES
        self._head: Matrix = np.empty((1, self._cut), dtype=np.float32)
        self._tail: Matrix = np.empty((1, dimensions - self._cut), dtype=np.float32)
        self._rests: Vector = np.empty(1, dtype=np.float32)
        self._lengths: Vector = np.empty(1, dtype=np.float32)
        self.publish()

    def halves(self) -> Halves:
        """The living vectors as they came, in the order of `rows`."""
        rows = np.fromiter(self.rows.values(), dtype=np.int64, count=len(self.rows))
        units = np.concatenate((self._head[rows], self._tail[rows]), axis=1)
        return (units * self._lengths[rows, None]).astype(np.float16)

    def _seen(self, ids: list[str], size: int, dead: Rows) -> _View:
        return _View(self._head, self._tail, self._rests, ids, size, dead)

    def _reserve(self, count: int) -> None:
        if count > len(self._head):
            self._move(np.arange(len(self._ids)), max(count, 2 * len(self._head)))

    def _write(self, start: int, halves: Halves, wide: Matrix, lengths: Vector) -> None:
        end = start + len(halves)
        units = wide / lengths[:, None]
        self._head[start:end] = units[:, : self._cut]
        self._tail[start:end] = units[:, self._cut :]
        self._rests[start:end] = np.linalg.norm(units[:, self._cut :], axis=1)
        self._lengths[start:end] = lengths

    def _keep(self, rows: Rows) -> None:
        self._move(rows, max(1, len(rows)))

    def _move(self, rows: Rows, capacity: int) -> None:
        for name in ("_head", "_tail", "_rests", "_lengths"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), dtype=np.float32)
            new[: len(rows)] = old[rows]
            setattr(self, name, new)


def _above(view: _View, unit: Vector, floor: float) -> Rows | None:
    """All rows that may reach the floor; `None` where a scan must tell: none, or too many."""
    cut = view.head.shape[1]
    most = view.rests[: view.size] * np.float32(np.linalg.norm(unit[cut:]))
    most += view.head[: view.size] @ unit[:cut]
    if len(view.dead):
        most[view.dead] = -np.inf
    rows = np.flatnonzero(most >= floor - _SLACK)
    return rows if 0 < len(rows) <= view.size // _FEW else None


def _scan(view: _View, unit: Vector, k: int) -> Rows:
    """The rows of the `k` nearest, with those that are further by rounding at most."""
    cut = view.head.shape[1]
    scores = view.head[: view.size] @ unit[:cut]
    scores += view.tail[: view.size] @ unit[cut:]
    if len(view.dead):
        scores[view.dead] = -np.inf
    if view.size - len(view.dead) > k:
        return _highest(scores, k)
    return np.flatnonzero(scores > -np.inf)


def _highest(scores: Vector, k: int) -> Rows:
    """The rows of the `k` highest scores, with those that are lower by rounding at most.

    At least `k` scores reach the `k`-th highest of the blocks' maxima: that leaves few to
    select from, at a fifth of the cost of selecting among all.
    """
    blocks = len(scores) // _BLOCK
    if blocks < 2 * k:
        return np.flatnonzero(scores >= _kth(scores.copy(), k) - _SLACK)
    maxima = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
    rows = np.flatnonzero(scores >= _kth(maxima, k) - _SLACK)
    if len(rows) == k:
        return rows
    few = scores[rows]
    return np.compress(few >= _kth(few.copy(), k) - _SLACK, rows)


def _kth(scores: Vector, k: int) -> float:
    """The `k`-th highest of at least `k` scores, which are put in another order by this."""
    place = len(scores) - k
    scores.partition(place)
    return float(scores[place])


def _similarities(view: _View, rows: Rows, unit: Vector) -> Similarities:
    """Cosines of some rows, −1 to 1, each summed in one order wherever the row lies.

    A matrix product sums a row in another order at the end of a block, so that equal vectors get
    scores that differ in the last digit, and ties would fall by chance.
    """
    found = np.empty(len(rows), dtype=np.float64)
    for start in range(0, len(rows), _CHUNK):
        some = rows[start : start + _CHUNK]
        whole = np.concatenate((view.head[some], view.tail[some]), axis=1)
        products = np.multiply(whole, unit, dtype=np.float64)
        np.clip(products.sum(axis=1), -1.0, 1.0, out=found[start : start + _CHUNK])
    return found
