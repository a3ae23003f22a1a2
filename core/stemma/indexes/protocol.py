"""What an index is. What it proposes is always read again from the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from stemma.entry import Vector
from stemma.stores.protocol import Store

__all__ = ["Index", "Near"]


@dataclass(frozen=True, slots=True)
class Near:
    """A stored entry near the vector asked for, with their cosine similarity, −1 to 1."""

    id: str
    similarity: float


@runtime_checkable
class Index(Protocol):
    """Finds near entries of one group.

    `exact` says whether `nearest` gives the provably nearest entries, or may miss some. Where it
    has a `close`, that is called when its cache is closed.
    """

    exact: bool

    def nearest(
        self, store: Store, group: str, vector: Vector, k: int, floor: float = -1.0
    ) -> tuple[Near, ...]:
        """At most `k` entries of the group, nearest first, after catching up with the store.

        Entries below the floor are of no use to the caller and may be left out; but where none
        reaches it, the nearest one is given all the same, so that a miss can name it.

        Entries that the store no longer has may still be among them; a lagging index costs
        misses, never wrong hits.

        Raises:
            UsageError: The vector has another length than those of the group.
        """
        ...
