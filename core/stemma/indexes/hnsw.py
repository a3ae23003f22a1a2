"""A graph over sign bits: its points are linked to near ones, and a search walks along the links.

USearch keeps the graph (hierarchical navigable small world, Malkov and Yashunin 2016). A point
stands for one vector, however many entries have it: thousands of equal questions would only be
linked to each other. Points are known by digests of their vectors, so that a graph fits whatever
group has the same vectors, in this process or in another.

A graph is grown by one thread that nobody shares it with; from then on it is only searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any

import numpy as np

from stemma import forking
from stemma.entry import Vector
from stemma.errors import MissingDependency
from stemma.indexes.bits import CANDIDATES, widened
from stemma.indexes.following import Halves, Rows
from stemma.indexes.hamming import packed

__all__ = ["Digests", "Graph", "digests_of", "library"]

Digests = np.ndarray[tuple[int], np.dtype[np.uint64]]
Octets = np.ndarray[tuple[int, int], np.dtype[np.uint8]]

LINKS = 32
"""Links of a point, at most; twice as many on the ground floor."""

BREADTH = 128
"""Points kept in view while a new one is linked; a search keeps as many as it is to find."""

_STEP = 512
"""Points added at a stretch: a tenth of a second, after which the caller is asked to go on."""


class Graph:
    """Points by their sign bits.

    Args:
        centre: What the bits are about, as long as the vectors.
        digests: Those of the points that `data` holds.
        data: What `saved` gave of it. Never anything that may be damaged: the library reads it with
            native code that believes every number.

    Raises:
        MissingDependency: USearch is not installed.
    """

    def __init__(
        self, centre: Vector, digests: Digests | None = None, data: memoryview | None = None
    ) -> None:
        self.centre = centre
        self.digests = np.empty(0, dtype=np.uint64) if digests is None else digests
        self._lock = forking.Lock()
        self._native = _native(len(centre))
        if data is not None:
            self._native.load(data)
        self._native.expansion_add = BREADTH

    def __len__(self) -> int:
        """How many points it has."""
        return len(self.digests)

    def copy(self) -> Graph:
        """One that may be grown, while this one is searched."""
        copied = Graph(self.centre, self.digests)
        with self._lock:
            copied._native = self._native.copy()
        copied._native.expansion_add = BREADTH
        return copied

    def grow(
        self,
        digests: Digests,
        pieces: Iterable[tuple[Halves, Vector]],
        step: Callable[[], None],
    ) -> None:
        """Add points; only while nobody else knows this graph.

        Args:
            digests: Of the new points.
            pieces: Their vectors and lengths.
            step: Called now and then; what it raises ends the growth.
        """
        done = len(self)
        for halves, lengths in pieces:
            octets = self._octets(widened(halves) / lengths[:, None])
            for start in range(0, len(octets), _STEP):
                step()
                some = octets[start : start + _STEP]
                keys = np.arange(done, done + len(some), dtype=np.uint64)
                self._native.add(keys, some, threads=1)
                done += len(some)
        self.digests = np.concatenate([self.digests, digests])

    def nearest(self, unit: Vector, count: int) -> Rows:
        """Points that differ in few bits from a unit vector, as far as the links led to them."""
        octets = self._octets(unit[None])[0]
        with self._lock:  # the library has room for so many searches at once, and checks nothing
            self._native.expansion_search = max(count, CANDIDATES)
            keys = self._native.search(octets, count, threads=1).keys
        points: Rows = np.asarray(keys).astype(np.int64)
        return points

    def saved(self) -> bytearray:
        """The links and bits, as the library writes them."""
        with self._lock:
            links: bytearray = self._native.save()
        return links

    def _octets(self, units: Any) -> Octets:
        return np.ascontiguousarray(packed(units > self.centre).T).view(np.uint8)


def library() -> str:
    """The version of the library.

    Raises:
        MissingDependency: It is not installed.
    """
    if find_spec("usearch") is None:
        raise MissingDependency("a graph needs usearch: pip install 'stemma-cache[graph]'")
    from usearch import __version__  # noqa: PLC0415 - native code, loaded where it is used

    return str(__version__)


def digests_of(pieces: Iterable[tuple[Halves, Vector]], step: Callable[[], None]) -> Digests:
    """By which vectors are known; `step` as of `Graph.grow`."""
    found = bytearray()
    for halves, _ in pieces:
        step()
        found += b"".join([blake2b(row.tobytes(), digest_size=8).digest() for row in halves])
    return np.frombuffer(found, dtype=np.uint64)


def _native(dimensions: int) -> Any:
    library()
    from usearch.index import Index  # noqa: PLC0415 - as above

    return Index(
        ndim=-(-dimensions // 64) * 64,
        metric="hamming",
        dtype="b1",
        connectivity=LINKS,
        expansion_add=BREADTH,
    )
