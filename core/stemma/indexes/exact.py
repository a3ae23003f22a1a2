"""The exact index: every vector of a group is compared. Nothing is approximated.

Vectors are kept in two pieces: the first quarter of their numbers, and the rest. By Cauchy and
Schwarz a product is at most the product of the first pieces plus the product of the lengths of the
rests; for a rest that is long, that says little, but almost no vector comes near a high floor by
it. So where only what reaches a floor is of use, a quarter of the work finds all of it for certain.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stemma.embedders.protocol import Matrix
from stemma.entry import Vector
from stemma.errors import UsageError
from stemma.indexes.protocol import Near
from stemma.stores.protocol import Changes, Store

__all__ = ["ExactIndex"]

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

Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


class _View(NamedTuple):
    """A group as it was at one moment. What it points to is only ever appended to."""

    head: Matrix
    tail: Matrix
    rests: Vector
    ids: list[str]
    size: int
    dead: Rows


class ExactIndex:
    """Finds the nearest entries by a scan, in memory; follows one store.

    Rows are unit vectors in float32 (4 bytes a dimension and entry). A lookup takes one cheap look
    at the store's sequence; only when that has moved are the changes fetched and applied, by one
    thread at a time. Scans take no lock: they read a view that later changes leave alone.
    """

    exact = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._sequence = -1
        self._groups: dict[str, _Group] = {}
        self._skipped = 0

    def __repr__(self) -> str:
        return f"ExactIndex(entries={len(self)}, groups={len(self._groups)})"

    def __len__(self) -> int:
        """How many entries it holds."""
        with self._lock:
            return sum(len(group.rows) for group in self._groups.values())

    @property
    def skipped(self) -> int:
        """Vectors passed over so far: of another length than their group's, zero, or not finite."""
        return self._skipped

    def nearest(
        self, store: Store, group: str, vector: Vector, k: int, floor: float = -1.0
    ) -> tuple[Near, ...]:
        """The `k` nearest entries of the group, nearest first; equally near ones by their ids.

        Where any reaches the floor, those below it are left out.

        Raises:
            UsageError: The vector has another length than those of the group, or none at all, or
                is not finite; `k` is below 1; or the index follows another store.
        """
        if k < 1:
            raise UsageError(f"k must be 1 or more, not {k}")
        self._follow(store)
        found = self._groups.get(group)
        if found is None:
            return ()
        view = found.view
        width = view.head.shape[1] + view.tail.shape[1]
        if vector.shape != (width,):
            raise UsageError(
                f"the vector has the shape {vector.shape}, but those stored in this group have "
                f"{width} numbers: was the embedder changed without its revision?"
            )
        length = float(np.sqrt(np.dot(vector, vector)))
        if not 0.0 < length < np.inf:
            raise UsageError("the vector is zero or not finite: it has no direction")
        unit = (vector / np.float32(length)).astype(np.float32, copy=False)
        near = _above(view, unit, floor) if view.size >= _WORTH else None
        return _scan(view, unit, k) if near is None else near[:k]

    def _follow(self, store: Store) -> None:
        if store.sequence() == self._sequence and store is self._store:
            return
        with self._lock:
            if self._store is None:
                self._store = store
            elif store is not self._store:
                raise UsageError("an index follows one store; make another one for this store")
            now = store.sequence()
            if now == self._sequence:
                return
            backwards = now < self._sequence  # the store was put back to an older state
            after = 0 if backwards else max(self._sequence, 0)
            self._apply(store.changes(after), fresh=after == 0)

    def _apply(self, changes: Changes, *, fresh: bool) -> None:
        groups = {} if fresh or changes.rebuild else self._groups
        skipped = 0
        for name, entry in changes.removed:
            if name in groups:
                groups[name].remove(entry)
        arrived: dict[str, list[int]] = {}
        for number, name in enumerate(changes.groups):
            arrived.setdefault(name, []).append(number)
        for name, numbers in arrived.items():
            ids = [changes.ids[number] for number in numbers]
            vectors = [changes.vectors[number] for number in numbers]
            for entry in ids if name in groups else ():
                groups[name].remove(entry)
            if name not in groups or not groups[name].rows:
                groups[name] = _Group(len(vectors[0]))
            skipped += groups[name].put(ids, vectors)
        for name in {name for name, _ in changes.removed}.union(arrived):
            if name in groups:
                groups[name].publish()
                if not groups[name].rows:
                    del groups[name]
        self._skipped = skipped if fresh or changes.rebuild else self._skipped + skipped
        self._groups = groups
        self._sequence = changes.sequence


class _Group:
    """The vectors of one group: rows are appended, and die when replaced or removed."""

    def __init__(self, dimensions: int) -> None:
        self.rows: dict[str, int] = {}
        self._cut = dimensions if dimensions < 16 * _PIECES else dimensions // _PIECES
        self._head: Matrix = np.empty((1, self._cut), dtype=np.float32)
        self._tail: Matrix = np.empty((1, dimensions - self._cut), dtype=np.float32)
        self._rests: Vector = np.empty(1, dtype=np.float32)
        self._ids: list[str] = []
        self._dead: list[int] = []
        self.publish()

    def publish(self) -> None:
        """Show what was changed to the scans that begin from now on."""
        if 4 * len(self._dead) > len(self._ids):
            self._compact()
        dead = np.array(self._dead, dtype=np.int64)
        size = len(self._ids)
        self.view = _View(self._head, self._tail, self._rests, self._ids, size, dead)

    def remove(self, id: str) -> None:
        """Let the entry's row die, if it has one."""
        row = self.rows.pop(id, None)
        if row is not None:
            self._dead.append(row)

    def put(self, ids: Sequence[str], vectors: Sequence[Any]) -> int:
        """Add entries that have no row yet; gives how many were passed over as unfit."""
        wide = self._head.shape[1] + self._tail.shape[1]
        fitting = [number for number, vector in enumerate(vectors) if len(vector) == wide]
        if not fitting:
            return len(ids)
        arrived = np.array([vectors[number] for number in fitting], dtype=np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", arrived, arrived, dtype=np.float64))
        good = np.flatnonzero(np.isfinite(lengths) & (lengths > 0.0))
        start, end = len(self._ids), len(self._ids) + len(good)
        self._reserve(end)
        units = arrived[good] / lengths[good, None]
        self._head[start:end] = units[:, : self._cut]
        self._tail[start:end] = units[:, self._cut :]
        self._rests[start:end] = np.linalg.norm(units[:, self._cut :], axis=1)
        for row, place in enumerate(good.tolist(), start):
            entry = ids[fitting[place]]
            self.remove(entry)  # an id that comes twice: the later one stands
            self.rows[entry] = row
            self._ids.append(entry)
        return len(ids) - len(good)

    def _reserve(self, count: int) -> None:
        if count > len(self._head):
            self._move(list(range(len(self._ids))), max(count, 2 * len(self._head)))

    def _compact(self) -> None:
        living = list(self.rows.items())
        self._move([row for _, row in living], max(1, len(living)))
        self._ids = [entry for entry, _ in living]
        self._dead = []
        self.rows = {entry: row for row, entry in enumerate(self._ids)}

    def _move(self, rows: list[int], capacity: int) -> None:
        """Put these rows first into new arrays: the old ones are still being read."""
        for name in ("_head", "_tail", "_rests"):
            old = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), dtype=np.float32)
            new[: len(rows)] = old[rows]
            setattr(self, name, new)


def _above(view: _View, unit: Vector, floor: float) -> tuple[Near, ...] | None:
    """All that reach the floor, nearest first; `None` where a scan must tell: none, or too many."""
    cut = view.head.shape[1]
    most = view.rests[: view.size] * np.float32(np.linalg.norm(unit[cut:]))
    most += view.head[: view.size] @ unit[:cut]
    if len(view.dead):
        most[view.dead] = -np.inf
    rows = np.flatnonzero(most >= floor - _SLACK)
    if not 0 < len(rows) <= view.size // _FEW:
        return None
    near = _ranked(view, rows, unit)
    return tuple(item for item in near if item.similarity >= floor) or None


def _scan(view: _View, unit: Vector, k: int) -> tuple[Near, ...]:
    cut = view.head.shape[1]
    scores = view.head[: view.size] @ unit[:cut]
    scores += view.tail[: view.size] @ unit[cut:]
    if len(view.dead):
        scores[view.dead] = -np.inf
    if view.size - len(view.dead) > k:
        rows = _highest(scores, k)
    else:
        rows = np.flatnonzero(scores > -np.inf)
    return _ranked(view, rows, unit)[:k]


def _ranked(view: _View, rows: Rows, unit: Vector) -> tuple[Near, ...]:
    """These rows by their similarity, then by their ids."""
    ranked = sorted(
        (-similarity, view.ids[row])
        for row, similarity in zip(rows.tolist(), _similarities(view, rows, unit), strict=True)
    )
    return tuple(Near(entry, -negative) for negative, entry in ranked)


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


def _similarities(view: _View, rows: Rows, unit: Vector) -> list[float]:
    """Cosines of some rows, −1 to 1, each summed in one order wherever the row lies.

    A matrix product sums a row in another order at the end of a block, so that equal vectors get
    scores that differ in the last digit, and ties would fall by chance.
    """
    found: list[float] = []
    for start in range(0, len(rows), _CHUNK):
        some = rows[start : start + _CHUNK]
        whole = np.concatenate((view.head[some], view.tail[some]), axis=1)
        products = np.multiply(whole, unit, dtype=np.float64)
        found.extend(np.clip(products.sum(axis=1), -1.0, 1.0).tolist())
    return found
