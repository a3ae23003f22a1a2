"""The async twins of the PostgreSQL store's methods: the same operations, awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stemma.entry import Entry, Lineage, Vector
from stemma.outcome import Quarantine, Recall, Stored
from stemma.selector import Selector
from stemma.stores import (
    postgres_check,
    postgres_journal,
    postgres_pages,
    postgres_reads,
    postgres_recall,
    postgres_sharing,
)
from stemma.stores.postgres_connections import Server
from stemma.stores.postgres_steps import READ, WRITE
from stemma.stores.protocol import (
    Ancestry,
    Changes,
    Count,
    Fetched,
    Judgement,
    Lesson,
    Put,
    Serving,
)
from stemma.stores.rows import Half
from stemma.stores.sharing import CROSSED, Flow, Shared

__all__ = ["Twins"]


class Twins:
    """Each method does what the one of the same name without `a` does."""

    tenant: str | None
    _server: Server
    _reach: int

    async def aget(self, ids: Sequence[str]) -> Fetched:
        """See `Store.get`."""
        return await self._server.arun(lambda: postgres_reads.get(ids))

    async def aput(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:  # noqa: ARG002 - contract
        """See `Store.put`."""
        return await self._server.arun(lambda: postgres_pages.putting(puts, self._reach), WRITE)

    async def aancestry(self, id: str) -> Ancestry | None:
        """See `Store.ancestry`."""
        return await self._server.arun(lambda: postgres_reads.ancestry(id), READ)

    async def achanges(self, after: int) -> Changes:
        """See `Store.changes`."""
        return await self._server.arun(lambda: postgres_reads.changes(after), READ)

    async def avectors(self, ids: Sequence[str]) -> Mapping[str, Half]:
        """See `Store.vectors`."""
        return await self._server.arun(lambda: postgres_reads.vectors(ids))

    async def anearest(self, group: str, vector: Vector, k: int) -> tuple[tuple[str, float], ...]:
        """See `PostgresStore.nearest`."""
        return await self._server.arun(lambda: postgres_reads.nearest(group, vector, k))

    async def arecall(
        self, selector: Selector, *, now: float, dry_run: bool = False, cascade: bool = True
    ) -> Recall:
        """See `Store.recall`."""
        self._refuse_confined("recall")
        if dry_run:
            return await self._server.arun(
                lambda: postgres_recall.rehearse(selector, cascade=cascade), READ
            )
        return await self._server.arun(
            lambda: postgres_recall.recall(selector, now=now, cascade=cascade, reach=self._reach),
            WRITE,
        )

    async def aremove(self, ids: Sequence[str]) -> int:
        """See `Store.remove`."""
        return await self._server.arun(lambda: postgres_recall.remove(ids, self._reach), WRITE)

    async def ajudge(self, judgement: Judgement, near: Sequence[str] = ()) -> Entry | None:
        """See `Store.judge`."""
        return await self._server.arun(
            lambda: postgres_pages.judging(judgement, near, self.tenant), WRITE
        )

    async def ajournal(self, servings: Sequence[Serving], counts: Sequence[Count]) -> None:
        """See `Store.journal`."""
        if servings or counts:
            await self._server.arun(lambda: postgres_journal.add(servings, counts), WRITE)

    async def alearn(self, lessons: Sequence[Lesson]) -> None:
        """See `Store.learn`."""
        if lessons:
            await self._server.arun(lambda: postgres_journal.learn(lessons), WRITE)

    async def alessons(self, tenant: str, node: str, *, after: int = 0) -> tuple[Lesson, ...]:
        """See `Store.lessons`. One that is damaged is none."""
        return await self._server.arun(lambda: postgres_journal.lessons(tenant, node, after))

    async def alineage(self, id: str) -> Lineage | None:
        """See `Store.lineage`."""
        return await self._server.arun(lambda: postgres_reads.lineage(id))

    async def achildren(self, id: str) -> tuple[str, ...]:
        """See `Store.children`."""
        return await self._server.arun(lambda: postgres_reads.children(id))

    async def afind(
        self, selector: Selector | None = None, *, limit: int = 100, before: int | None = None
    ) -> tuple[Entry, ...]:
        """As `find`."""
        return await self._server.arun(lambda: postgres_reads.find(selector, limit, before), READ)

    async def acounts(self) -> tuple[Count, ...]:
        """See `Store.counts`."""
        return await self._server.arun(postgres_journal.counts)

    async def aservings(
        self, *, entry: str | None = None, limit: int = 1000
    ) -> tuple[Serving, ...]:
        """See `Store.servings`."""
        return await self._server.arun(lambda: postgres_journal.servings(entry, max(limit, 0)))

    async def ajudgements(
        self, *, entry: str | None = None, limit: int = 1000
    ) -> tuple[Judgement, ...]:
        """See `Store.judgements`."""
        return await self._server.arun(lambda: postgres_journal.judgements(entry, max(limit, 0)))

    async def arecalls(self, *, limit: int = 1000) -> tuple[Recall, ...]:
        """See `Store.recalls`."""
        return await self._server.arun(lambda: postgres_recall.receipts(max(limit, 0)), READ)

    async def aoffered(self, place: str, *, limit: int = 1000) -> tuple[Entry, ...]:
        """See `Sharing.offered`."""
        return await self._server.arun(lambda: postgres_sharing.offered(place, limit), READ)

    async def adescent(self, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """See `Sharing.descent`."""
        return await self._server.arun(lambda: postgres_sharing.descent(ids))

    async def acrossed(self, *, limit: int = CROSSED) -> tuple[tuple[str, str], ...]:
        """See `Sharing.crossed`."""
        return await self._server.arun(lambda: postgres_sharing.crossed(max(limit, 0)))

    async def ashared(self) -> tuple[Shared, ...]:
        """See `Sharing.shared`."""
        return await self._server.arun(postgres_sharing.shared, patient=True)

    async def aflows(
        self, *, now: float, half_life: float | None = None, entries: Sequence[str] | None = None
    ) -> tuple[Flow, ...]:
        """See `Sharing.flows`."""
        return await self._server.arun(lambda: postgres_sharing.flows(now, half_life, entries))

    async def ahold(self, quarantine: Quarantine) -> Quarantine:
        """See `Sharing.hold`."""
        self._refuse_confined("quarantine")
        return await self._server.arun(lambda: postgres_sharing.hold(quarantine), WRITE)

    async def arelease(self, id: str, *, now: float) -> Quarantine | None:
        """See `Sharing.release`."""
        self._refuse_confined("release")
        return await self._server.arun(lambda: postgres_sharing.release(id, now), WRITE)

    async def aquarantines(self, *, limit: int = 1000) -> tuple[Quarantine, ...]:
        """See `Sharing.quarantines`."""
        return await self._server.arun(lambda: postgres_sharing.quarantines(max(limit, 0)), READ)

    async def asizes(self) -> Mapping[tuple[str, str], int]:
        """See `Store.sizes`."""
        return await self._server.arun(postgres_reads.sizes)

    async def asequence(self) -> int:
        """See `Store.sequence`."""
        return await self._server.arun(postgres_reads.sequence)

    async def acheck(self) -> tuple[str, ...]:
        """See `Store.check`."""
        self._refuse_confined("check")
        return await self._server.arun(
            lambda: postgres_check.look_through(self._reach), WRITE, patient=True
        )

    def _refuse_confined(self, what: str) -> None:
        raise NotImplementedError
