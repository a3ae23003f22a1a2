"""The index for large groups: sign bits find the candidates, the vectors themselves rank them.

Of each vector one bit a dimension says on which side of the group's centre it lies. Two vectors
with a small angle between them differ in few bits, so the entries that differ in the fewest are
nearly always the nearest; their similarities are then computed from the stored float16 numbers.
Nothing is trained or built, entries come and go at once, and a scan reads a thirty-second of what
the float32 vectors take.

What may be missed is an entry with more than a hundred others before it by bits but not by angle.
Small groups are therefore, and because it is faster there, scanned whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from stemma.embedders.protocol import Matrix
from stemma.entry import Vector
from stemma.indexes.exact import ExactGroup
from stemma.indexes.following import (
    FollowingIndex,
    Group,
    Halves,
    Rows,
    Similarities,
    View,
    best,
)
from stemma.indexes.hamming import Distances, Words, differing, lowest, packed
from stemma.indexes.protocol import Near

__all__ = ["CANDIDATES", "LARGE", "WIDE", "BitsGroup", "BitsIndex", "BitsView", "widened"]

LARGE = 4_096
"""Entries from which on bits are faster than the exact scan at 384 dimensions (docs/indexes.md)."""

WIDE = 256
"""Dimensions below which a vector has too few bits, and is small enough to be kept whole."""

CANDIDATES = 128
"""Entries ranked by their similarities, at least; where many are wanted, twice as many as those."""

_SEGMENT = 65_536
"""Rows of a segment: what is appended moves no more than one of them."""

_PIECE = 1_024
"""Candidates read at once: bounds the memory where very many are equally near."""

_SLACK = 1e-5
"""More than a float32 dot product of unit vectors can be off; rows this near are scored again."""

_SAMPLE = 1_024
"""Vectors of which the centre is made."""

_INWARD = 0.8
"""The longest centre. One that comes near the unit sphere would lie among the vectors themselves,
and the bits of those close to it would be noise."""

_FAR = np.uint16(65_535)


class BitsIndex(FollowingIndex):
    """Finds the nearest entries by sign bits, in memory; follows one store.

    A large group takes 2⅛ bytes a dimension and entry, a small one 4.

    Args:
        large: Entries from which on a group is searched by bits.
        wide: Dimensions from which on it is; narrower vectors have too few bits.
    """

    exact = False

    def __init__(self, *, large: int = LARGE, wide: int = WIDE) -> None:
        super().__init__()
        self._large = large
        self._wide = wide

    def _new(self, dimensions: int, arriving: int) -> Group:
        if arriving >= self._large and dimensions >= self._wide:
            return self._by_bits(dimensions)
        return ExactGroup(dimensions)

    def _by_bits(self, dimensions: int) -> BitsGroup:
        """An empty group that is searched by bits."""
        return BitsGroup(dimensions)

    def _settled(self, group: Group) -> Group:
        """Once searched by bits, a group stays so: what shrinks may grow again."""
        small = len(group.rows) < self._large or group.dimensions < self._wide
        if small or not isinstance(group, ExactGroup):
            return group
        grown = self._by_bits(group.dimensions)
        grown.put(list(group.rows), list(group.halves()))
        return grown


class _Segment(NamedTuple):
    """Some rows of a group: their vectors, lengths and bits."""

    halves: Halves
    lengths: Vector
    words: Words

    @classmethod
    def of(cls, capacity: int, dimensions: int) -> _Segment:
        """Room for so many rows."""
        return cls(
            np.empty((capacity, dimensions), dtype=np.float16),
            np.empty(capacity, dtype=np.float32),
            np.empty((-(-dimensions // 64), capacity), dtype=np.uint64),
        )

    def fill(self, start: int, halves: Halves, lengths: Vector, words: Words) -> None:
        """Write into the rows from `start` on."""
        end = start + len(halves)
        self.halves[start:end] = halves
        self.lengths[start:end] = lengths
        self.words[:, start:end] = words


class BitsView(NamedTuple):
    """A group as it was at one moment. What it points to is only ever appended to."""

    segments: tuple[_Segment, ...]
    centre: Vector
    ids: list[str]
    size: int
    dead: Rows

    def nearest(self, unit: Vector, k: int, floor: float) -> tuple[Near, ...]:
        """The `k` nearest among those that differ in the fewest bits."""
        return self.ranked(self.closest(unit, max(CANDIDATES, 2 * k)), unit, k, floor)

    def closest(self, unit: Vector, count: int, first: int = 0) -> Rows:
        """Living rows that differ in the fewest bits: so many, and all that equal the last.

        Args:
            unit: The vector asked for.
            count: How many, 1 or more.
            first: The row to begin with.
        """
        dead = np.compress(self.dead >= first, self.dead) - first
        alive = self.size - first - len(dead)
        if not alive:
            return np.empty(0, dtype=np.int64)
        distances = self._distances(packed((unit > self.centre)[None]), first)
        distances[dead] = _FAR
        return lowest(distances, min(alive, count)) + first  # so none that is dead

    def ranked(self, rows: Rows, unit: Vector, k: int, floor: float) -> tuple[Near, ...]:
        """The `k` nearest of some ascending rows, by their similarities."""
        if not len(rows):
            return ()
        rows = self._highest(rows, unit, k)
        return best(self.ids, rows, self._similarities(rows, unit), k, floor)

    def read(self, rows: Rows) -> Iterator[tuple[Halves, Vector]]:
        """The vectors of some ascending rows as they are stored, and their lengths, in pieces."""
        for start in range(0, len(rows), _PIECE):
            for segment, own in _split(self.segments, rows[start : start + _PIECE]):
                yield segment.halves[own], segment.lengths[own]

    def _distances(self, asked: Words, first: int) -> Distances:
        distances = np.empty(self.size - first, dtype=np.uint16)
        done = 0
        while done < len(distances):
            number, row = divmod(first + done, _SEGMENT)
            part = distances[done : done + _SEGMENT - row]
            differing(self.segments[number].words[:, row : row + len(part)], asked, part)
            done += len(part)
        return distances

    def _highest(self, rows: Rows, unit: Vector, k: int) -> Rows:
        """The rows of the `k` highest products, with those that are lower by rounding at most."""
        if len(rows) <= k:
            return rows
        scores = np.concatenate([widened(own) @ unit / lengths for own, lengths in self.read(rows)])
        least = np.partition(scores, len(rows) - k)[len(rows) - k]
        return np.compress(scores >= least - _SLACK, rows)

    def _similarities(self, rows: Rows, unit: Vector) -> Similarities:
        """Cosines of some rows, −1 to 1, each summed in one order wherever the row lies."""
        found = [
            np.multiply(widened(own), unit, dtype=np.float64).sum(axis=1) / lengths
            for own, lengths in self.read(rows)
        ]
        similarities: Similarities = np.clip(np.concatenate(found), -1.0, 1.0)
        return similarities


class BitsGroup(Group):
    """A group's vectors as they are stored, with their bits; in segments, so that none moves far.

    The centre is the mean of some of the vectors first put. Many models place all texts within a
    narrow cone, where about zero most signs would be the same for all of them.
    """

    bits: BitsView
    """What lookups see; a subclass may show them more."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self._segments: list[_Segment] = []
        self._centre = np.zeros(dimensions, dtype=np.float32)
        self.publish()

    def put(
        self, ids: Sequence[str], vectors: Sequence[Any], which: Sequence[int] | None = None
    ) -> int:
        """As of `Group.put`; what is put first makes the centre."""
        if not self._ids:
            places = range(len(ids)) if which is None else which
            sample = [vectors[n] for n in places[:: max(1, len(places) // _SAMPLE)]]
            self._centre = _middle(sample, self.dimensions)
        return super().put(ids, vectors, which)

    def _seen(self, ids: list[str], size: int, dead: Rows) -> View:
        self.bits = BitsView(tuple(self._segments), self._centre, ids, size, dead)
        return self.bits

    def _write(self, start: int, halves: Halves, wide: Matrix, lengths: Vector) -> None:
        words = packed(wide / lengths[:, None] > self._centre)
        done = 0
        while done < len(halves):
            number, row = divmod(start + done, _SEGMENT)
            part = slice(done, done + _SEGMENT - row)
            self._segments[number].fill(row, halves[part], lengths[part], words[:, part])
            done = part.stop

    def _reserve(self, count: int) -> None:
        """Room in the last segment by a copy, as the old one is still being read; in new ones."""
        for number in range(len(self._ids) // _SEGMENT, -(-count // _SEGMENT)):
            needed = min(_SEGMENT, count - number * _SEGMENT)
            if number == len(self._segments):
                self._segments.append(_Segment.of(needed, self.dimensions))
            old = self._segments[number]
            if needed > len(old.halves):
                used = len(self._ids) - number * _SEGMENT
                new = _Segment.of(min(_SEGMENT, max(needed, 2 * used)), self.dimensions)
                new.fill(0, old.halves[:used], old.lengths[:used], old.words[:, :used])
                self._segments[number] = new

    def _keep(self, rows: Rows) -> None:
        self._segments = [
            _gathered(self._segments, rows[at : at + _SEGMENT])
            for at in range(0, len(rows), _SEGMENT)
        ]


def _middle(vectors: Sequence[Any], dimensions: int) -> Vector:
    """The mean direction of those that have one; shortened where they lie close together.

    One by one: the room that all of them take at once would stay with the process.
    """
    total, count = np.zeros(dimensions), 0
    for vector in vectors:
        if len(vector) == dimensions:
            wide = np.asarray(vector, dtype=np.float64)
            length = float(np.sqrt(wide @ wide))
            if 0.0 < length < np.inf:
                total += wide / length
                count += 1
    middle: Vector = (total / max(1, count)).astype(np.float32)
    length = float(np.sqrt(middle @ middle))
    return middle * np.float32(_INWARD / length) if length > _INWARD else middle


def _split(segments: Sequence[_Segment], rows: Rows) -> Iterator[tuple[_Segment, Rows]]:
    """Each segment that has some of these ascending rows, with their places in it."""
    ends = np.searchsorted(rows, np.arange(1, len(segments) + 1) * _SEGMENT).tolist()
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        if end > start:
            yield segments[number], rows[start:end] - number * _SEGMENT


def _gathered(segments: Sequence[_Segment], rows: Rows) -> _Segment:
    """Some ascending rows of several segments, as one."""
    parts = [
        (segment.halves[own], segment.lengths[own], segment.words[:, own])
        for segment, own in _split(segments, rows)
    ]
    halves, lengths, words = zip(*parts, strict=True)
    return _Segment(np.concatenate(halves), np.concatenate(lengths), np.concatenate(words, axis=1))


def widened(halves: Halves) -> Matrix:
    """Finite float16 numbers as float32, exactly, in a quarter of the time that a cast takes.

    A half number's bits, moved up by 13, are those of the same number with an exponent that is
    too small by 112, because the two formats count exponents from 15 and from 127. That holds for
    subnormal numbers too.
    """
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= np.int32(~0x70000000)  # what the sign filled on its way
    wide = bits.view(np.float32)
    wide *= np.float32(2.0**112)
    return wide
