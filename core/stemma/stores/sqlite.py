"""The store in one SQLite file: the embedded truth, for any number of threads and processes.

Reads see what any process has committed before them, and never wait for a writer. A put that was
acknowledged survives the process being killed; with `durability="full"` also loss of power. An
invalidation (whatever raises the epoch) always survives both: a recall does not come undone.

A damaged record is named as such and not given. A file that is damaged beyond its records is set
aside under another name, and begun anew: the call that finds it raises `DamagedDatabase`, the next
one finds an empty store; at opening, a warning says so. Where the file was removed or replaced, a
store that has it open goes over to what is there now, and begins it if nothing is.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stemma.entry import Entry, Lineage
from stemma.errors import DamagedDatabase, StoreError, UsageError
from stemma.outcome import Quarantine, Recall, Stored
from stemma.selector import Selector
from stemma.stores import sqlite_check, sqlite_journal, sqlite_recall, sqlite_sharing
from stemma.stores.connections import Connections
from stemma.stores.protocol import (
    Ancestry,
    Changes,
    Count,
    Fetched,
    Judgement,
    Lesson,
    Put,
    Serving,
    edge_sources,
)
from stemma.stores.rows import (
    Half,
    ancestor,
    unpack,
    unpack_derived,
    unpack_lineage,
    unpack_vector,
)
from stemma.stores.rules import admit, judge
from stemma.stores.sharing import CROSSED, Flow, Shared
from stemma.stores.sqlite_errors import FAULTS
from stemma.stores.sqlite_pages import ROW, SqlitePages, fetch, lenient, where, whole
from stemma.stores.sqlite_pool import Connect, Durability, connect
from stemma.stores.sqlite_schema import APPLICATION
from stemma.stores.sqlite_vectors import gather
from stemma.stores.text import Damaged, escape, unescape

__all__ = ["SqliteStore"]

_GET = f"SELECT m.sequence, m.epoch, {ROW} FROM meta m LEFT JOIN entries e ON e.id = ?"  # noqa: S608
_GET_MANY = f"""SELECT m.sequence, m.epoch, {ROW} FROM meta m
    LEFT JOIN entries e ON e.id IN (SELECT value FROM json_each(?))"""  # noqa: S608 - constant
_WITH_LINEAGE = f"""SELECT {ROW}, l.record FROM entries e LEFT JOIN lineages l ON l.child = e.id
    WHERE e.id IN (SELECT value FROM json_each(?))"""  # noqa: S608 - constant
_REMOVED = """SELECT DISTINCT r."group", r.entry FROM removed r
    WHERE r.sequence > ? AND NOT EXISTS (SELECT 1 FROM vectors v
    WHERE v.entry = r.entry AND v."group" = r."group")"""
_CURRENT = """SELECT s.owner, s."index", s.chunk, s.content FROM json_each(?) asked
    JOIN sources s ON s.owner = json_extract(asked.value, '$[0]')
    AND s."index" = json_extract(asked.value, '$[1]')
    AND s.chunk = json_extract(asked.value, '$[2]')"""
_FIND = f"SELECT {ROW} FROM entries e WHERE {{clauses}} ORDER BY e.sequence DESC"  # noqa: S608 - constant


class SqliteStore:
    """Everything in one file, for its owner's eyes only (0600).

    Beside it lie SQLite's `-wal` and `-shm`, and `-stemma`, a marker by which a damaged file is
    known to be ours.

    Args:
        path: The file; made if it is not there. Not on a network file system.
        durability: `normal` survives the process being killed; loss of power may take the last
            puts, never an invalidation. `full` survives both.
        busy_timeout: How long to wait for another process that writes, seconds.
        connect: Opens a connection; every connection is made by it.
        reach: How many removed vectors are remembered for the indexes that follow.
        set_aside: Whether a file that is damaged as a whole is set aside and begun anew; if not,
            `DamagedDatabase` is raised, and it is left as it is.

    Raises:
        UsageError: An argument is out of its range.
        DamagedDatabase: The file is damaged, and cannot be set aside.
        ForeignDatabase: The file is not one of ours; it is left as it is.
        SchemaTooNew: A newer Stemma wrote it; it is left as it is.
        StoreUnavailable: It cannot be opened.
    """

    quick = frozenset({"get", "sequence"})

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "normal",
        busy_timeout: float = 5.0,
        connect: Connect = connect,
        reach: int = 10_000,
        set_aside: bool = True,
    ) -> None:
        text = os.fspath(path)
        if not text or text == ":memory:" or "\x00" in text:
            raise UsageError(f"{text!r} names no file; for a cache in memory take MemoryStore")
        if isinstance(reach, bool) or not isinstance(reach, int) or reach < 1:
            raise UsageError(f"reach must be a whole number from 1, not {reach!r}")
        self._path = Path(text).resolve()  # one file by two names has one marker
        self.url = f"sqlite:///{self._path}"
        self._reach = reach
        self._connections = Connections(
            self._path,
            durability=durability,
            busy_timeout=busy_timeout,
            make=connect,
            set_aside=set_aside,
        )

    def __repr__(self) -> str:
        return f"SqliteStore({str(self._path)!r})"

    @contextmanager
    def _write(self, *, last: bool = False) -> Iterator[tuple[sqlite3.Cursor, SqlitePages]]:
        last = last or self._connections.durability == "full"
        with self._connections.writing(last=last) as cursor:
            pages = SqlitePages(cursor, self._reach)
            before = pages.state.epoch
            yield cursor, pages
            pages.save()
            self._connections.reached = pages.state.sequence
        if pages.state.epoch > before and not last:
            # Only now it is known that it must last: a commit that does takes it along. SQLite
            # leaves out the write of a row that stays as it was, but not that of a pragma.
            with self._connections.writing(last=True) as cursor:
                cursor.execute(f"PRAGMA application_id = {APPLICATION}")

    def get(self, ids: Sequence[str]) -> Fetched:
        """See `Store.get`."""
        cursor = self._connections.take()
        try:
            if len(ids) == 1:
                rows = fetch(cursor, _GET, (escape(ids[0]),))
            else:
                rows = fetch(cursor, _GET_MANY, (json.dumps([escape(one) for one in ids]),))
            sequence, epoch = whole(rows[0][:2] if rows else None)
            self._connections.reached = sequence
        except FAULTS as error:
            raise self._connections.failed(error, cursor) from error
        finally:
            self._connections.give(cursor)
        entries: dict[str, Entry] = {}
        damaged: tuple[str, ...] = ()
        for row in rows:
            if row[2] is None:
                continue
            try:
                entry, _ = unpack(row[2:])
                entries[entry.id] = entry
            except Damaged:
                damaged = (*damaged, unescape(row[2]))
        return Fetched(entries=entries, sequence=sequence, epoch=epoch, damaged=damaged)

    def put(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:  # noqa: ARG002 - contract
        """See `Store.put`."""
        with self._write() as (_, pages):
            return tuple([admit(put, pages) for put in puts])

    def ancestry(self, id: str) -> Ancestry | None:
        """See `Store.ancestry`. An ancestor that is damaged is none."""
        with self._connections.reading() as cursor:
            found: dict[str, tuple[Entry, Lineage]] = {}
            waiting = {id}
            while waiting:
                level = _derived(cursor, waiting)
                found |= level
                above = {edge.parent for _, lineage in level.values() for edge in lineage.parents}
                waiting = above - found.keys()
            if id not in found:
                return None
            epoch, recalled = whole(cursor.execute("SELECT epoch, recalled FROM meta").fetchone())
            return Ancestry(
                entries={name: ancestor(*one) for name, one in found.items()},
                current=_current(cursor, [lineage for _, lineage in found.values()]),
                epoch=epoch,
                overlooked=frozenset(
                    entry.id
                    for entry, lineage in found.values()
                    if entry.sequence < recalled
                    and sqlite_recall.overlooked(cursor, entry, lineage)
                ),
            )

    def changes(self, after: int) -> Changes:
        """See `Store.changes`. A vector that is damaged is none."""
        with self._connections.reading() as cursor:
            cursor.execute("SELECT sequence, forgotten FROM meta")
            sequence, forgotten = whole(cursor.fetchone())
            rebuild = 0 < after < forgotten
            start = 0 if rebuild else after
            ids, groups, vectors = gather(cursor, start)
            if start == 0:  # what was read now is in the index, and not read again from here
                cursor.execute("PRAGMA shrink_memory")
            removed = fetch(cursor, _REMOVED, (start,)) if start else []
            return Changes(
                ids=ids,
                groups=groups,
                vectors=vectors,
                removed=tuple((unescape(group), unescape(name)) for group, name in removed),
                sequence=sequence,
                rebuild=rebuild,
            )

    def vectors(self, ids: Sequence[str]) -> Mapping[str, Half]:
        """See `Store.vectors`."""
        statement = """SELECT entry, "group", vector, checksum FROM vectors
            WHERE entry IN (SELECT value FROM json_each(?))"""
        rows = self._read(statement, json.dumps([escape(one) for one in ids]))
        return {name: vector for name, _, vector in _vectors(rows)}

    def recall(
        self, selector: Selector, *, now: float, dry_run: bool = False, cascade: bool = True
    ) -> Recall:
        """See `Store.recall`."""
        named = dict(selector.parts())
        if dry_run:
            with self._connections.reading() as cursor:
                (sequence,) = whole(cursor.execute("SELECT sequence FROM meta").fetchone())
                sqlite_recall.reach(cursor, selector, cascade=cascade)
                listed = sqlite_recall.gather(cursor)
            return Recall(selector=named, dry_run=True, entries=listed, sequence=sequence)
        with self._write(last=True) as (cursor, pages):
            return sqlite_recall.recall(cursor, pages, selector, now, cascade=cascade)

    def recall_all(self, selectors: Sequence[Selector], *, now: float) -> tuple[Recall, ...]:
        """See `stemma.stores.protocol.RecallsMany`."""
        with self._write(last=True) as (cursor, pages):
            return tuple(sqlite_recall.recall(cursor, pages, one, now) for one in selectors)

    def remove(self, ids: Sequence[str]) -> int:
        """See `Store.remove`."""
        with self._write() as (cursor, pages):
            sqlite_recall.name(cursor, list(ids))
            pages.state.sequence += 1
            gone = pages.drop()
            if gone:
                pages.state.epoch = pages.state.sequence
            else:
                pages.state.sequence -= 1
            return gone

    def judge(self, judgement: Judgement, near: Sequence[str] = ()) -> Entry | None:
        """See `Store.judge`."""
        with self._write() as (cursor, pages):
            sqlite_journal.note(cursor, judgement)
            return judge(judgement, near, pages)

    def journal(self, servings: Sequence[Serving], counts: Sequence[Count]) -> None:
        """See `Store.journal`."""
        if not servings and not counts:
            return
        with self._write() as (cursor, pages):
            pages.state.sequence += 1
            sqlite_journal.add(cursor, servings, counts)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """See `Store.learn`."""
        if not lessons:
            return
        with self._write() as (cursor, pages):
            pages.state.sequence += 1
            sqlite_journal.learn(cursor, lessons)

    def lessons(self, tenant: str, node: str, *, after: int = 0) -> tuple[Lesson, ...]:
        """See `Store.lessons`. One that is damaged is none."""
        with self._connections.reading() as cursor:
            return sqlite_journal.lessons(cursor, tenant, node, after)

    def lineage(self, id: str) -> Lineage | None:
        """See `Store.lineage`. Raises `StoreError` where the record is damaged."""
        rows = self._read("SELECT record FROM lineages WHERE child = ?", escape(id))
        try:
            return unpack_lineage(rows[0][0]) if rows else None
        except Damaged as error:
            raise StoreError(f"the lineage of {id} is damaged; run a check") from error

    def children(self, id: str) -> tuple[str, ...]:
        """See `Store.children`."""
        statement = "SELECT e.id FROM edges JOIN entries e ON e.id = edges.child WHERE parent = ?"
        with self._connections.reading() as cursor:
            return tuple(
                sorted(unescape(row[0]) for row in fetch(cursor, statement, (escape(id),)))
            )

    def find(
        self, selector: Selector | None = None, *, limit: int = 100, before: int | None = None
    ) -> tuple[Entry, ...]:
        """See `Store.find`."""
        clauses, values = ("true", []) if selector is None else where(selector)
        statement = _FIND.format(clauses=clauses)
        if before is not None:
            statement = _FIND.format(clauses=f"{clauses} AND e.sequence < {int(before)}")
        found: list[Entry] = []
        with self._connections.reading() as cursor, lenient(cursor):
            for row in cursor.execute(statement, values):
                if len(found) >= limit:
                    break
                with suppress(Damaged):
                    found.append(unpack(row)[0])
        return tuple(found)

    def counts(self) -> tuple[Count, ...]:
        """See `Store.counts`."""
        with self._connections.reading() as cursor:
            return sqlite_journal.counts(cursor)

    def servings(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Serving, ...]:
        """See `Store.servings`."""
        with self._connections.reading() as cursor:
            return sqlite_journal.servings(cursor, entry, max(limit, 0))

    def judgements(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Judgement, ...]:
        """See `Store.judgements`."""
        with self._connections.reading() as cursor:
            return sqlite_journal.judgements(cursor, entry, max(limit, 0))

    def recalls(self, *, limit: int = 1000) -> tuple[Recall, ...]:
        """See `Store.recalls`."""
        with self._connections.reading() as cursor:
            return tuple(sqlite_recall.receipts(cursor, max(limit, 0)))

    def offered(self, place: str, *, limit: int = 1000) -> tuple[Entry, ...]:
        """See `Sharing.offered`."""
        with self._connections.reading() as cursor:
            return sqlite_sharing.offered(cursor, place, limit)

    def descent(self, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """See `Sharing.descent`."""
        with self._connections.reading() as cursor:
            return sqlite_sharing.descent(cursor, ids)

    def crossed(self, *, limit: int = CROSSED) -> tuple[tuple[str, str], ...]:
        """See `Sharing.crossed`."""
        with self._connections.reading() as cursor:
            return sqlite_sharing.crossed(cursor, limit)

    def shared(self) -> tuple[Shared, ...]:
        """See `Sharing.shared`. What was built on, but has a damaged lineage, is left out."""
        with self._connections.reading() as cursor:
            return sqlite_sharing.shared(cursor)

    def flows(
        self, *, now: float, half_life: float | None = None, entries: Sequence[str] | None = None
    ) -> tuple[Flow, ...]:
        """See `Sharing.flows`."""
        with self._connections.reading() as cursor:
            return sqlite_sharing.flows(cursor, now, half_life, entries)

    def hold(self, quarantine: Quarantine) -> Quarantine:
        """See `Sharing.hold`."""
        with self._write(last=True) as (cursor, pages):
            return sqlite_sharing.hold(cursor, pages, quarantine)

    def release(self, id: str, *, now: float) -> Quarantine | None:
        """See `Sharing.release`."""
        with self._write(last=True) as (cursor, pages):
            return sqlite_sharing.release(cursor, pages, id, now)

    def quarantines(self, *, limit: int = 1000) -> tuple[Quarantine, ...]:
        """See `Sharing.quarantines`."""
        with self._connections.reading() as cursor:
            return sqlite_sharing.quarantines(cursor, limit)

    def sizes(self) -> Mapping[tuple[str, str], int]:
        """See `Store.sizes`."""
        with self._connections.reading() as cursor:
            rows = fetch(cursor, "SELECT tenant, node, count(*) FROM entries GROUP BY tenant, node")
            return {(unescape(tenant), unescape(node)): count for tenant, node, count in rows}

    def sequence(self) -> int:
        """See `Store.sequence`."""
        cursor = self._connections.take()
        try:
            (sequence,) = whole(cursor.execute("SELECT sequence FROM meta").fetchone())
        except FAULTS as error:
            raise self._connections.failed(error, cursor) from error
        finally:
            self._connections.give(cursor)
        return sequence

    def check(self) -> tuple[str, ...]:
        """See `Store.check`. A file that is damaged as a whole is set aside, and begun anew."""
        try:
            with self._write() as (cursor, pages):
                return tuple(sqlite_check.look_through(cursor, pages))
        except DamagedDatabase as told:
            return (str(told),)

    def close(self) -> None:
        """See `Store.close`."""
        self._connections.close()

    def _read(self, statement: str, value: str) -> list[Any]:
        """The rows of one query with one value to bind."""
        cursor = self._connections.take()
        try:
            return fetch(cursor, statement, (value,))
        except FAULTS as error:
            raise self._connections.failed(error, cursor) from error
        finally:
            self._connections.give(cursor)


def _derived(cursor: sqlite3.Cursor, ids: set[str]) -> dict[str, tuple[Entry, Lineage]]:
    """Those of some entries that exist and are undamaged, with their lineages."""
    found = {}
    for *row, record in fetch(cursor, _WITH_LINEAGE, (json.dumps([escape(one) for one in ids]),)):
        with suppress(Damaged):
            entry, lineage = unpack_derived(row, record)
            found[entry.id] = (entry, lineage)
    return found


def _current(
    cursor: sqlite3.Cursor, lineages: Sequence[Lineage]
) -> dict[tuple[str, str, str], str]:
    """What the source table says of the chunks that an index vouches for."""
    vouched = {(s.owner, s.index, s.chunk) for s in edge_sources(lineages) if s.index}
    if not vouched:
        return {}
    asked = json.dumps([[escape(text) for text in one] for one in vouched])
    return {
        (unescape(owner), unescape(index), unescape(chunk)): unescape(content)
        for owner, index, chunk, content in fetch(cursor, _CURRENT, (asked,))
    }


def _vectors(rows: Sequence[Any]) -> list[tuple[str, str, Half]]:
    """The undamaged vectors of some rows, with entry and group."""
    kept = []
    for row in rows:
        with suppress(Damaged):
            kept.append(unpack_vector(row))
    return kept
