"""The store in a PostgreSQL database: shared by any number of processes and machines.

Each method has an async twin (`aget`, `aput`, …) that holds no thread while it waits. Both run the
same operation, written once (`stemma.stores.postgres_steps`). Reading never waits for a writer; an
acknowledged write is committed, and as durable as the server's `synchronous_commit` makes it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stemma.entry import Entry, Lineage, Vector
from stemma.errors import StoreError, UsageError
from stemma.outcome import Quarantine, Recall, Stored
from stemma.selector import Selector
from stemma.stores import (
    postgres_check,
    postgres_journal,
    postgres_pages,
    postgres_reads,
    postgres_recall,
    postgres_schema,
    postgres_sharing,
)
from stemma.stores.postgres_async import Twins
from stemma.stores.postgres_connections import Server
from stemma.stores.postgres_errors import spoken
from stemma.stores.postgres_session import Session
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

__all__ = ["PostgresStore"]

_SCHEMA = re.compile("[a-z_][a-z0-9_]{0,62}")
_LONGEST_WAIT = 3600


class PostgresStore(Twins):
    """Everything in one schema of a database.

    Args:
        url: `postgresql://role:password@host:port/database`, with libpq's options after a `?`.
        schema: The schema of the tables; made if it is not there.
        tenant: Confine the store to one tenant: of other tenants it sees ids at most, and may not
            recall or check, since that crosses tenants.
        max_connections: How many connections the threads together, and each event loop, may have.
        timeout: How long to wait for a connection, and the server may work on a statement, seconds.
            A check takes as long as it takes.
        reach: How many removed vectors are remembered for the indexes that follow.
        lazy: Come to the server at the first use, and not before: so an application can start
            while the server is out. What is wrong there is raised then.

    Raises:
        MissingDependency: psycopg is not installed.
        UsageError: An argument is out of its range.
        ForeignDatabase: The schema holds tables of something else; it is left as it is.
        SchemaTooNew: A newer Stemma made it; it is left as it is.
        StoreUnavailable: The server cannot be reached, or does not let us in.
        StoreError: pgvector is missing or too old, or the role may not do what it must.
    """

    quick: frozenset[str] = frozenset()

    def __init__(
        self,
        url: str,
        *,
        schema: str = "stemma",
        tenant: str | None = None,
        max_connections: int = 10,
        timeout: float = 10.0,
        reach: int = 10_000,
        lazy: bool = False,
    ) -> None:
        if _SCHEMA.fullmatch(schema) is None or schema.startswith("pg_"):
            raise UsageError(f"schema must be a plain name in small letters, not {schema!r}")
        if tenant == "":
            raise UsageError("tenant must not be empty; None confines the store to nobody")
        if not 1 <= max_connections <= 1000:  # noqa: PLR2004 - far more than a server has
            raise UsageError(f"max_connections must be 1 to 1000, not {max_connections!r}")
        if not 0 < timeout <= _LONGEST_WAIT:
            raise UsageError(f"timeout must be above 0 and at most 3600 seconds, not {timeout!r}")
        if reach < 1:
            raise UsageError(f"reach must be at least 1, not {reach!r}")
        self.url = spoken(url)
        self.tenant = tenant
        self._reach = reach
        self._server = Server(
            url,
            where=self.url,
            session=Session(schema, tenant, timeout),
            most=max_connections,
            timeout=timeout,
            prepare=lambda: postgres_schema.prepare(schema),
        )
        if not lazy:
            self._server.prepare()

    def __repr__(self) -> str:
        confined = "" if self.tenant is None else f", tenant={self.tenant!r}"
        return f"PostgresStore({self.url!r}{confined})"

    def get(self, ids: Sequence[str]) -> Fetched:
        """See `Store.get`."""
        return self._server.run(lambda: postgres_reads.get(ids))

    def put(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:  # noqa: ARG002 - contract
        """See `Store.put`."""
        return self._server.run(lambda: postgres_pages.putting(puts, self._reach), WRITE)

    def ancestry(self, id: str) -> Ancestry | None:
        """See `Store.ancestry`. An ancestor that is damaged is none."""
        return self._server.run(lambda: postgres_reads.ancestry(id), READ)

    def changes(self, after: int) -> Changes:
        """See `Store.changes`. A vector that is damaged is none."""
        return self._server.run(lambda: postgres_reads.changes(after), READ)

    def vectors(self, ids: Sequence[str]) -> Mapping[str, Half]:
        """See `Store.vectors`."""
        return self._server.run(lambda: postgres_reads.vectors(ids))

    def nearest(self, group: str, vector: Vector, k: int) -> tuple[tuple[str, float], ...]:
        """The ids nearest to a vector within a group, with their cosine similarities.

        Nearest first, at most `k`, and the true nearest: the server compares the whole group. For
        partitions that are too large to be followed in the memory of a process.
        """
        return self._server.run(lambda: postgres_reads.nearest(group, vector, k))

    def recall(
        self, selector: Selector, *, now: float, dry_run: bool = False, cascade: bool = True
    ) -> Recall:
        """See `Store.recall`. Raises `StoreError` where the store is confined to a tenant."""
        self._refuse_confined("recall")
        if dry_run:
            return self._server.run(
                lambda: postgres_recall.rehearse(selector, cascade=cascade), READ
            )
        return self._server.run(
            lambda: postgres_recall.recall(selector, now=now, cascade=cascade, reach=self._reach),
            WRITE,
        )

    def remove(self, ids: Sequence[str]) -> int:
        """See `Store.remove`."""
        return self._server.run(lambda: postgres_recall.remove(ids, self._reach), WRITE)

    def judge(self, judgement: Judgement, near: Sequence[str] = ()) -> Entry | None:
        """See `Store.judge`."""
        return self._server.run(lambda: postgres_pages.judging(judgement, near, self.tenant), WRITE)

    def journal(self, servings: Sequence[Serving], counts: Sequence[Count]) -> None:
        """See `Store.journal`."""
        if servings or counts:
            self._server.run(lambda: postgres_journal.add(servings, counts), WRITE)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """See `Store.learn`."""
        if lessons:
            self._server.run(lambda: postgres_journal.learn(lessons), WRITE)

    def lessons(self, tenant: str, node: str, *, after: int = 0) -> tuple[Lesson, ...]:
        """See `Store.lessons`. One that is damaged is none."""
        return self._server.run(lambda: postgres_journal.lessons(tenant, node, after))

    def lineage(self, id: str) -> Lineage | None:
        """See `Store.lineage`. Raises `StoreError` where the record is damaged."""
        return self._server.run(lambda: postgres_reads.lineage(id))

    def children(self, id: str) -> tuple[str, ...]:
        """See `Store.children`."""
        return self._server.run(lambda: postgres_reads.children(id))

    def find(
        self, selector: Selector | None = None, *, limit: int = 100, before: int | None = None
    ) -> tuple[Entry, ...]:
        """See `Store.find`."""
        return self._server.run(lambda: postgres_reads.find(selector, limit, before), READ)

    def counts(self) -> tuple[Count, ...]:
        """See `Store.counts`."""
        return self._server.run(postgres_journal.counts)

    def servings(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Serving, ...]:
        """See `Store.servings`."""
        return self._server.run(lambda: postgres_journal.servings(entry, max(limit, 0)))

    def judgements(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Judgement, ...]:
        """See `Store.judgements`."""
        return self._server.run(lambda: postgres_journal.judgements(entry, max(limit, 0)))

    def recalls(self, *, limit: int = 1000) -> tuple[Recall, ...]:
        """See `Store.recalls`."""
        return self._server.run(lambda: postgres_recall.receipts(max(limit, 0)), READ)

    def offered(self, place: str, *, limit: int = 1000) -> tuple[Entry, ...]:
        """See `Sharing.offered`."""
        return self._server.run(lambda: postgres_sharing.offered(place, limit), READ)

    def descent(self, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """See `Sharing.descent`."""
        return self._server.run(lambda: postgres_sharing.descent(ids))

    def crossed(self, *, limit: int = CROSSED) -> tuple[tuple[str, str], ...]:
        """See `Sharing.crossed`."""
        return self._server.run(lambda: postgres_sharing.crossed(max(limit, 0)))

    def shared(self) -> tuple[Shared, ...]:
        """See `Sharing.shared`."""
        return self._server.run(postgres_sharing.shared, patient=True)

    def flows(
        self, *, now: float, half_life: float | None = None, entries: Sequence[str] | None = None
    ) -> tuple[Flow, ...]:
        """See `Sharing.flows`."""
        return self._server.run(lambda: postgres_sharing.flows(now, half_life, entries))

    def hold(self, quarantine: Quarantine) -> Quarantine:
        """See `Sharing.hold`. Raises `StoreError` where the store is confined to a tenant."""
        self._refuse_confined("quarantine")
        return self._server.run(lambda: postgres_sharing.hold(quarantine), WRITE)

    def release(self, id: str, *, now: float) -> Quarantine | None:
        """See `Sharing.release`. Raises `StoreError` where the store is confined to a tenant."""
        self._refuse_confined("release")
        return self._server.run(lambda: postgres_sharing.release(id, now), WRITE)

    def quarantines(self, *, limit: int = 1000) -> tuple[Quarantine, ...]:
        """See `Sharing.quarantines`."""
        return self._server.run(lambda: postgres_sharing.quarantines(max(limit, 0)), READ)

    def sizes(self) -> Mapping[tuple[str, str], int]:
        """See `Store.sizes`."""
        return self._server.run(postgres_reads.sizes)

    def sequence(self) -> int:
        """See `Store.sequence`."""
        return self._server.run(postgres_reads.sequence)

    def check(self) -> tuple[str, ...]:
        """See `Store.check`. Raises `StoreError` where the store is confined to a tenant."""
        self._refuse_confined("check")
        return self._server.run(
            lambda: postgres_check.look_through(self._reach), WRITE, patient=True
        )

    def close(self) -> None:
        """See `Store.close`. Also closes the connections of event loops, from any thread."""
        self._server.close()

    def _refuse_confined(self, what: str) -> None:
        if self.tenant is not None:
            raise StoreError(
                f"a {what} crosses tenants, and this store is confined to one; do it from a store "
                "opened without tenant, by the role that owns the tables"
            )
