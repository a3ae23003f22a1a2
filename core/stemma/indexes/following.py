"""Following a store: what every index in memory does, whatever it does with its vectors.

A lookup takes one cheap look at the store's sequence; only when that has moved are the changes
fetched and applied, by one thread at a time. Lookups take no lock: they read a view of a group as
it was at one moment, which later changes leave alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from stemma import forking
from stemma.embedders.protocol import Matrix
from stemma.entry import Vector
from stemma.errors import UsageError
from stemma.indexes.protocol import Near
from stemma.stores.protocol import Changes, Store

__all__ = ["FollowingIndex", "Group", "Halves", "Rows", "Similarities", "View", "best"]

Rows = np.ndarray[tuple[int], np.dtype[np.int64]]
Halves = np.ndarray[tuple[int, int], np.dtype[np.float16]]
Similarities = np.ndarray[tuple[int], np.dtype[np.float64]]

_CHUNK = 64
"""Vectors taken in at once: the room for what is computed on the way stays with the process."""


class View(Protocol):
    """A group as it was at one moment."""

    def nearest(self, unit: Vector, k: int, floor: float) -> tuple[Near, ...]:
        """As of `Index.nearest`, for a unit vector of the right length."""
        ...


class Group(ABC):
    """The vectors of one group: rows are appended, and die when replaced or removed.

    A subclass keeps the numbers; this class knows which row is whose, and which are dead.
    """

    view: View

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.rows: dict[str, int] = {}
        self._ids: list[str] = []
        self._dead: list[int] = []

    @abstractmethod
    def _reserve(self, count: int) -> None:
        """Make room for so many rows in all."""

    @abstractmethod
    def _write(self, start: int, halves: Halves, wide: Matrix, lengths: Vector) -> None:
        """Write vectors into the rows from `start` on; `wide` are the same in float32."""

    @abstractmethod
    def _keep(self, rows: Rows) -> None:
        """Put these rows first, into new arrays: the old ones are still being read."""

    @abstractmethod
    def _seen(self, ids: list[str], size: int, dead: Rows) -> View:
        """A view of the first `size` rows."""

    def publish(self) -> None:
        """Show what was changed to the lookups that begin from now on."""
        if 4 * len(self._dead) > len(self._ids):
            self._compact()
        self.view = self._seen(self._ids, len(self._ids), np.array(self._dead, dtype=np.int64))

    def remove(self, id: str) -> None:
        """Let the entry's row die, if it has one."""
        row = self.rows.pop(id, None)
        if row is not None:
            self._dead.append(row)

    def put(
        self, ids: Sequence[str], vectors: Sequence[Any], which: Sequence[int] | None = None
    ) -> int:
        """Add entries that have no row yet; gives how many were passed over as unfit.

        Args:
            ids: Entries.
            vectors: Their vectors.
            which: The places in both of the entries to add; all, if not given.
        """
        places = range(len(ids)) if which is None else which
        before = len(self._ids)
        self._reserve(before + len(places))
        for start in range(0, len(places), _CHUNK):
            some = places[start : start + _CHUNK]
            self._take([ids[n] for n in some], _chosen(vectors, some))
        return len(places) - (len(self._ids) - before)

    def _take(self, ids: Sequence[str], vectors: Sequence[Any]) -> None:
        fitting = [n for n, vector in enumerate(vectors) if len(vector) == self.dimensions]
        if not fitting:
            return
        if len(fitting) < len(vectors):
            vectors = _chosen(vectors, fitting)
        halves = np.asarray(vectors).astype(np.float16, copy=False)
        wide = halves.astype(np.float32)
        # Each row is summed by itself, so equal vectors have equal lengths wherever they lie.
        lengths: Vector = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        good = np.flatnonzero(np.isfinite(lengths) & (lengths > 0.0))
        if len(good) < len(fitting):
            halves, wide, lengths = halves[good], wide[good], lengths[good]
        start = len(self._ids)
        self._write(start, halves, wide, lengths)
        for row, place in enumerate(good.tolist(), start):
            entry = ids[fitting[place]]
            if entry in self.rows:
                self.remove(entry)  # an id that comes twice: the later one stands
            self.rows[entry] = row
            self._ids.append(entry)

    def _compact(self) -> None:
        living = list(self.rows.items())
        self._keep(np.array([row for _, row in living], dtype=np.int64))
        self._ids = [entry for entry, _ in living]
        self._dead = []
        self.rows = {entry: row for row, entry in enumerate(self._ids)}


def _chosen(vectors: Any, places: Sequence[int]) -> Any:
    """Some of many vectors: all at once, where they lie in one array."""
    if isinstance(vectors, np.ndarray):
        return vectors[places]
    return [vectors[n] for n in places]


class FollowingIndex(ABC):
    """An index in memory that follows one store; a subclass says how a group is kept."""

    exact: bool

    def __init__(self) -> None:
        self._lock = forking.Lock()
        self._store: Store | None = None
        self._sequence = -1
        self._groups: dict[str, Group] = {}
        self._skipped = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(entries={len(self)}, groups={len(self._groups)})"

    def __len__(self) -> int:
        """How many entries it holds."""
        with self._lock:
            return sum(len(group.rows) for group in self._groups.values())

    @property
    def skipped(self) -> int:
        """Vectors passed over so far: of another length than their group's, zero, or not finite."""
        return self._skipped

    @abstractmethod
    def _new(self, dimensions: int, arriving: int) -> Group:
        """An empty group, into which so many vectors are about to be put."""

    def _settled(self, group: Group) -> Group:
        """The group in the form that its present size asks for."""
        return group

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
        if vector.shape != (found.dimensions,):
            raise UsageError(
                f"the vector has the shape {vector.shape}, but those stored in this group have "
                f"{found.dimensions} numbers: was the embedder changed without its revision?"
            )
        wide = vector.astype(np.float64)
        length = float(np.sqrt(np.dot(wide, wide)))
        if not 0.0 < length < np.inf:
            raise UsageError("the vector is zero or not finite: it has no direction")
        return found.view.nearest((wide / length).astype(np.float32), k, floor)

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
        arrived: dict[str, array[int]] = {}
        for number, name in enumerate(changes.groups):
            if name not in arrived:
                arrived[name] = array("q")
            arrived[name].append(number)
        for name, which in arrived.items():
            for number in which if name in groups else ():
                groups[name].remove(changes.ids[number])
            if name not in groups or not groups[name].rows:
                groups[name] = self._new(len(changes.vectors[which[0]]), len(which))
            skipped += groups[name].put(changes.ids, changes.vectors, which)
        for name in {name for name, _ in changes.removed}.union(arrived):
            if name in groups:
                self._show(groups, name)
        self._skipped = skipped if fresh or changes.rebuild else self._skipped + skipped
        self._groups = groups
        self._sequence = changes.sequence

    def _show(self, groups: dict[str, Group], name: str) -> None:
        group = self._settled(groups[name])
        group.publish()
        groups[name] = group
        if not group.rows:
            del groups[name]


def best(
    ids: Sequence[str], rows: Rows, similarities: Similarities, k: int, floor: float
) -> tuple[Near, ...]:
    """The `k` most similar of some rows, then by their ids; those below the floor if none is above.

    Args:
        ids: The ids by row.
        rows: The rows, at least one.
        similarities: Their similarities, −1 to 1.
        k: How many, 1 or more.
        floor: What a similarity must reach, if any does.
    """
    ranked = sorted(
        (-similarity, ids[row])
        for row, similarity in zip(rows.tolist(), similarities.tolist(), strict=True)
    )
    found = [Near(entry, -negative) for negative, entry in ranked[:k]]
    if found[0].similarity >= floor:
        return tuple([near for near in found if near.similarity >= floor])
    return tuple(found)
