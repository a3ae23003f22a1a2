"""What all wrappers share: every method of a store, by way of one that the wrapper writes.

The methods that the engine may ask for on an event loop have an async twin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from stemma import forking
from stemma.entry import Entry, Lineage
from stemma.outcome import Quarantine, Recall, Stored
from stemma.selector import Selector
from stemma.stores.protocol import (
    Ancestry,
    Changes,
    Count,
    Fetched,
    Judgement,
    Lesson,
    Put,
    Serving,
    Store,
)
from stemma.stores.sharing import CROSSED, Flow, Shared

__all__ = ["Forwarding"]


class Forwarding:
    """A store that asks another one.

    Args:
        store: The store that does the work; closed with this one.
    """

    quick: frozenset[str] = frozenset()

    def __init__(self, store: Store) -> None:
        self._store = store
        self.url = store.url
        forking.follow(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r})"

    def after_fork(self) -> None:
        """Begin anew in the child: no lock and no thread of the parent is its own."""

    def _ask(self, method: str, *args: Any, **named: Any) -> Any:
        return getattr(self._store, method)(*args, **named)

    async def _aask(self, method: str, *args: Any, **named: Any) -> Any:
        native = getattr(self._store, f"a{method}", None)
        if native is not None:
            return await native(*args, **named)
        if method in self._store.quick:
            return getattr(self._store, method)(*args, **named)
        return await asyncio.to_thread(getattr(self._store, method), *args, **named)

    def get(self, ids: Sequence[str]) -> Fetched:
        """See `Store.get`."""
        return cast("Fetched", self._ask("get", ids))

    async def aget(self, ids: Sequence[str]) -> Fetched:
        """As `get`."""
        return cast("Fetched", await self._aask("get", ids))

    def put(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:
        """See `Store.put`."""
        return cast("tuple[Stored, ...]", self._ask("put", puts, now))

    async def aput(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:
        """As `put`."""
        return cast("tuple[Stored, ...]", await self._aask("put", puts, now))

    def ancestry(self, id: str) -> Ancestry | None:
        """See `Store.ancestry`."""
        return cast("Ancestry | None", self._ask("ancestry", id))

    async def aancestry(self, id: str) -> Ancestry | None:
        """As `ancestry`."""
        return cast("Ancestry | None", await self._aask("ancestry", id))

    def changes(self, after: int) -> Changes:
        """See `Store.changes`."""
        return cast("Changes", self._ask("changes", after))

    def vectors(
        self, ids: Sequence[str]
    ) -> Mapping[str, np.ndarray[tuple[int], np.dtype[np.float16]]]:
        """See `Store.vectors`."""
        return cast(
            "Mapping[str, np.ndarray[tuple[int], np.dtype[np.float16]]]", self._ask("vectors", ids)
        )

    def recall(
        self, selector: Selector, *, now: float, dry_run: bool = False, cascade: bool = True
    ) -> Recall:
        """See `Store.recall`."""
        return cast(
            "Recall", self._ask("recall", selector, now=now, dry_run=dry_run, cascade=cascade)
        )

    async def arecall(
        self, selector: Selector, *, now: float, dry_run: bool = False, cascade: bool = True
    ) -> Recall:
        """As `recall`."""
        return cast(
            "Recall",
            await self._aask("recall", selector, now=now, dry_run=dry_run, cascade=cascade),
        )

    def remove(self, ids: Sequence[str]) -> int:
        """See `Store.remove`."""
        return cast("int", self._ask("remove", ids))

    async def aremove(self, ids: Sequence[str]) -> int:
        """As `remove`."""
        return cast("int", await self._aask("remove", ids))

    def judge(self, judgement: Judgement, near: Sequence[str] = ()) -> Entry | None:
        """See `Store.judge`."""
        return cast("Entry | None", self._ask("judge", judgement, near))

    async def ajudge(self, judgement: Judgement, near: Sequence[str] = ()) -> Entry | None:
        """As `judge`."""
        return cast("Entry | None", await self._aask("judge", judgement, near))

    def journal(self, servings: Sequence[Serving], counts: Sequence[Count]) -> None:
        """See `Store.journal`."""
        self._ask("journal", servings, counts)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """See `Store.learn`."""
        self._ask("learn", lessons)

    def lessons(self, tenant: str, node: str, *, after: int = 0) -> tuple[Lesson, ...]:
        """See `Store.lessons`."""
        return cast("tuple[Lesson, ...]", self._ask("lessons", tenant, node, after=after))

    def lineage(self, id: str) -> Lineage | None:
        """See `Store.lineage`."""
        return cast("Lineage | None", self._ask("lineage", id))

    def children(self, id: str) -> tuple[str, ...]:
        """See `Store.children`."""
        return cast("tuple[str, ...]", self._ask("children", id))

    def find(
        self, selector: Selector | None = None, *, limit: int = 100, before: int | None = None
    ) -> tuple[Entry, ...]:
        """See `Store.find`."""
        found = self._ask("find", selector, limit=limit, before=before)
        return cast("tuple[Entry, ...]", found)

    def counts(self) -> tuple[Count, ...]:
        """See `Store.counts`."""
        return cast("tuple[Count, ...]", self._ask("counts"))

    def servings(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Serving, ...]:
        """See `Store.servings`."""
        return cast("tuple[Serving, ...]", self._ask("servings", entry=entry, limit=limit))

    def judgements(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Judgement, ...]:
        """See `Store.judgements`."""
        return cast("tuple[Judgement, ...]", self._ask("judgements", entry=entry, limit=limit))

    def recalls(self, *, limit: int = 1000) -> tuple[Recall, ...]:
        """See `Store.recalls`."""
        return cast("tuple[Recall, ...]", self._ask("recalls", limit=limit))

    def offered(self, place: str, *, limit: int = 1000) -> tuple[Entry, ...]:
        """See `Sharing.offered`."""
        return cast("tuple[Entry, ...]", self._ask("offered", place, limit=limit))

    async def aoffered(self, place: str, *, limit: int = 1000) -> tuple[Entry, ...]:
        """As `offered`."""
        return cast("tuple[Entry, ...]", await self._aask("offered", place, limit=limit))

    def descent(self, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """See `Sharing.descent`."""
        return cast("tuple[tuple[str, str], ...]", self._ask("descent", ids))

    async def adescent(self, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """As `descent`."""
        return cast("tuple[tuple[str, str], ...]", await self._aask("descent", ids))

    def crossed(self, *, limit: int = CROSSED) -> tuple[tuple[str, str], ...]:
        """See `Sharing.crossed`."""
        return cast("tuple[tuple[str, str], ...]", self._ask("crossed", limit=limit))

    def shared(self) -> tuple[Shared, ...]:
        """See `Sharing.shared`."""
        return cast("tuple[Shared, ...]", self._ask("shared"))

    def flows(
        self, *, now: float, half_life: float | None = None, entries: Sequence[str] | None = None
    ) -> tuple[Flow, ...]:
        """See `Sharing.flows`."""
        found = self._ask("flows", now=now, half_life=half_life, entries=entries)
        return cast("tuple[Flow, ...]", found)

    def hold(self, quarantine: Quarantine) -> Quarantine:
        """See `Sharing.hold`."""
        return cast("Quarantine", self._ask("hold", quarantine))

    async def ahold(self, quarantine: Quarantine) -> Quarantine:
        """As `hold`."""
        return cast("Quarantine", await self._aask("hold", quarantine))

    def release(self, id: str, *, now: float) -> Quarantine | None:
        """See `Sharing.release`."""
        return cast("Quarantine | None", self._ask("release", id, now=now))

    async def arelease(self, id: str, *, now: float) -> Quarantine | None:
        """As `release`."""
        return cast("Quarantine | None", await self._aask("release", id, now=now))

    def quarantines(self, *, limit: int = 1000) -> tuple[Quarantine, ...]:
        """See `Sharing.quarantines`."""
        return cast("tuple[Quarantine, ...]", self._ask("quarantines", limit=limit))

    def sizes(self) -> Mapping[tuple[str, str], int]:
        """See `Store.sizes`."""
        return cast("Mapping[tuple[str, str], int]", self._ask("sizes"))

    def sequence(self) -> int:
        """See `Store.sequence`."""
        return cast("int", self._ask("sequence"))

    def check(self) -> tuple[str, ...]:
        """See `Store.check`."""
        return cast("tuple[str, ...]", self._ask("check"))

    def close(self) -> None:
        """See `Store.close`."""
        self._store.close()
