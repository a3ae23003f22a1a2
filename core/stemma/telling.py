"""What a store of documents tells the cache; nothing is forgotten while the cache is away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stemma.cache import Cache
from stemma.errors import StoreError

__all__ = ["Change", "Teller"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What one call changed in an index.

    Args:
        added: For each new chunk its vector, or `None`: see `Cache.documents_changed`.
        changed: Ids of chunks or documents that have other contents now.
        removed: Ids of chunks or documents that are gone.
        everything: Whether that cannot be told, so that all that came from the index goes.
    """

    added: Sequence[Any] = ()
    changed: Sequence[str] = ()
    removed: Sequence[str] = ()
    everything: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.everything)


class Teller:
    """Tells a cache of the changes of one index. What could not be told is told first next time.

    Args:
        cache: The cache.
        index: The index's identity.
    """

    def __init__(self, cache: Cache, index: str) -> None:
        self._cache = cache
        self.index = index
        self._owed: list[Change] = []

    def tell(self, change: Change) -> None:
        """Take back what a change, made already, has spoiled.

        Raises:
            StoreError: The cache's store could not do it; the next call does it first.
        """
        self._owe(change)
        while self._owed:
            owed = self._owed[0]
            try:
                if owed.everything:
                    self._cache.recall(index=self.index)
                if named := _named(owed):
                    self._cache.documents_changed(self.index, **named)
            except StoreError as error:
                raise _failed(error) from error
            self._settled(owed)

    async def atell(self, change: Change) -> None:
        """As `tell`."""
        self._owe(change)
        while self._owed:
            owed = self._owed[0]
            try:
                if owed.everything:
                    await self._cache.arecall(index=self.index)
                if named := _named(owed):
                    await self._cache.adocuments_changed(self.index, **named)
            except StoreError as error:
                raise _failed(error) from error
            self._settled(owed)

    def _owe(self, change: Change) -> None:
        if change:
            self._owed.append(change)

    def _settled(self, change: Change) -> None:
        # Another thread may have told the same; that does no harm.
        self._owed = [owed for owed in self._owed if owed is not change]


def _named(change: Change) -> dict[str, Any]:
    told = {"added": change.added, "changed": change.changed, "removed": change.removed}
    return {name: values for name, values in told.items() if values}


def _failed(error: StoreError) -> StoreError:
    return type(error)(
        "the documents are in the index as they should be, but what the cache holds was not "
        f"taken back; the next call through this object does it first: {error}"
    )
