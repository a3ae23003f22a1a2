"""Who gave the same answer to the same request as a pool holds: it is as right or wrong there."""

from __future__ import annotations

from stemma.entry import Entry
from stemma.stores.protocol import Store

__all__ = ["Namesakes"]


class Namesakes:
    """The namesakes of entries: a pool's copy, and the equal answers of those who agreed to it.

    Args:
        store: Where they are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, entry: Entry) -> tuple[Entry, ...]:
        """The others that say the same in answer to the same; none where no copy is in the pool.

        What somebody made of documents of their own is none: it may be right for those.
        """
        place = entry.id if entry.pool is not None else ""
        if entry.offer is not None:
            place = entry.offer.place.id
        copy = self._store.get([place]).entries.get(place) if place else None
        if copy is None or copy.value != entry.value or self._private(entry):
            return ()
        offered = (one for one in self._store.offered(place) if one.value == entry.value)
        alike = (one for one in offered if one.id != entry.id and not self._private(one))
        return (*alike, *([copy] if copy.id != entry.id else []))

    def _private(self, entry: Entry) -> bool:
        """Whether anything above it is a document that one tenant alone may know."""
        ancestry = self._store.ancestry(entry.id)
        above = () if ancestry is None else ancestry.entries.values()
        return any(
            edge.source.owner.startswith("tenant:") for one in above for edge in one.lineage.sources
        )
