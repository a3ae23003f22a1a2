"""An open write transaction on SQLite: what the rules read and write (`stemma.stores.rules`)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from stemma.entry import Entry, Lineage, Vector
from stemma.policies.changes import Watched
from stemma.selector import Selector
from stemma.stores.journal_rows import JUDGED, judged
from stemma.stores.protocol import Judgement, Put
from stemma.stores.rows import pack, pack_lineage, pack_vector, unpack, unpack_lineage
from stemma.stores.rules import State, Vouched, elements
from stemma.stores.text import Damaged, escape, unescape

__all__ = [
    "LABEL",
    "ROW",
    "SqlitePages",
    "ends",
    "fetch",
    "labels",
    "lenient",
    "readable",
    "selectors",
    "where",
    "whole",
]

T = TypeVar("T")

ROW = """e.id, e.tenant, e.node, e.model, e."index",
    CASE WHEN length(e.record) <= 33554432 THEN e.record END,
    (SELECT quarantine FROM held WHERE entry = e.id AND lifted = 0 ORDER BY number LIMIT 1)"""
"""An entry's columns as `stemma.stores.rows.unpack` takes them; a record too long is none."""

_ENTRY = f"SELECT {ROW} FROM entries e WHERE e.id = ?"  # noqa: S608 - constant columns

_SAID = f"SELECT {JUDGED} FROM judgements WHERE entry = ? ORDER BY number"  # noqa: S608 - constant columns

_RECALLS = """SELECT sequence, source, entry, tenant, tag, writer, subject, model, "index", node
    FROM recalls WHERE sequence > ?1
    AND (tenant IS NULL OR tenant = ?2) AND (model IS NULL OR model = ?3)
    AND (source IS NULL OR source IN (SELECT value FROM json_each(?4)))
    AND (entry IS NULL OR entry IN (SELECT value FROM json_each(?5)))
    ORDER BY sequence DESC"""

LABEL = "INSERT OR IGNORE INTO labels VALUES (?, ?, ?)"
"""How a row of `labels` is entered."""

_PARTS = ("source", "entry", "tenant", "tag", "writer", "subject", "model", "index", "node")

_CLAUSES = {
    "source": "e.id IN (SELECT child FROM source_edges WHERE element = ?)",
    "entry": "e.id = ?",
    "tenant": "e.tenant = ?",
    "tag": "e.id IN (SELECT entry FROM labels WHERE name = 'tag' AND value = ?)",
    "writer": "e.id IN (SELECT entry FROM labels WHERE name = 'writer' AND value = ?)",
    "subject": "e.id IN (SELECT entry FROM labels WHERE name = 'subject' AND value = ?)",
    "model": "e.model = ?",
    "index": 'e."index" = ?',
    "node": "e.node = ?",
}


def where(selector: Selector) -> tuple[str, list[str]]:
    """What a selector says of a row `e` of entries, in constant clauses, and the values to bind."""
    parts = selector.parts()
    return " AND ".join(_CLAUSES[name] for name in parts), [escape(parts[name]) for name in parts]


@contextmanager
def lenient(cursor: sqlite3.Cursor) -> Iterator[None]:
    """Read texts that are no longer UTF-8 all the same, to find that their checksums fail."""
    connection = cursor.connection
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        connection.text_factory = str


def readable(cursor: sqlite3.Cursor, read: Callable[[], T]) -> T:
    """What is read with a cursor; where a text is damaged, read again leniently: that is slower."""
    try:
        return read()
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" not in str(error):
            raise
    with lenient(cursor):
        return read()


def fetch(cursor: sqlite3.Cursor, statement: str, values: Any = ()) -> list[Any]:
    """All rows of a query, also where a text is damaged."""
    return readable(cursor, lambda: cursor.execute(statement, values).fetchall())


def whole(row: Sequence[Any] | None) -> Sequence[int]:
    """The row of whole numbers that this must be.

    Raises:
        Damaged: It is something else.
    """
    if row is None or {*map(type, row)} != {int}:
        raise Damaged
    return row


def selectors(rows: list[Any]) -> Iterator[tuple[int, Selector]]:
    """The recalls of some rows: sequence and selector.

    Raises:
        Damaged: A row names nothing, or something that is no text.
    """
    for sequence, *parts in rows:
        named = {k: unescape(v) for k, v in zip(_PARTS, parts, strict=True) if v is not None}
        if not named:
            raise Damaged
        yield sequence, Selector(**named)


class SqlitePages:
    """See the module's text.

    Args:
        cursor: In a write transaction.
        reach: How many removed vectors are remembered.
    """

    def __init__(self, cursor: sqlite3.Cursor, reach: int) -> None:
        self._cursor = cursor
        self._reach = reach
        cursor.execute("SELECT sequence, epoch, recalled, forgotten, began FROM meta")
        self.state = State(*whole(cursor.fetchone()))

    def save(self) -> None:
        """Write the store's numbers. The last thing in a transaction."""
        state = self.state
        self._cursor.execute(
            "UPDATE meta SET sequence = ?, epoch = ?, recalled = ?, forgotten = ?",
            (state.sequence, state.epoch, state.recalled, state.forgotten),
        )

    def entry(self, id: str) -> Entry | None:
        """The stored entry, if it is undamaged."""
        found = self._found(id)
        return None if found is None else found[0]

    def value(self, id: str) -> str | None:
        """Its value hash; empty if the record is damaged."""
        try:
            rows = fetch(self._cursor, _ENTRY, (escape(id),))
            return unpack(rows[0])[0].value if rows else None
        except Damaged:
            return ""

    def lineage(self, id: str) -> Lineage | None:
        """What it was built from; `None` also where that record is damaged."""
        record = self._record(id)
        try:
            return None if record is None else unpack_lineage(record)
        except Damaged:
            return None

    def is_parent(self, id: str) -> bool:
        """Whether anything was ever built on it."""
        statement = "SELECT 1 FROM edges WHERE parent = ? LIMIT 1"
        return self._cursor.execute(statement, (escape(id),)).fetchone() is not None

    def said(self, id: str) -> tuple[Judgement, ...]:
        """What was judged of it."""
        return judged(fetch(self._cursor, _SAID, (escape(id),)))

    def lift(self, id: str) -> None:
        """End all holds on it."""
        self._cursor.execute(
            "UPDATE held SET lifted = 1 WHERE entry = ? AND lifted = 0", (escape(id),)
        )

    def recalls(self, put: Put, after: int) -> Iterator[tuple[int, Selector]]:
        """The recalls after a sequence that may concern a put."""
        entries = {put.entry.id, *(edge.parent for edge in put.lineage.parents)}
        values = (
            after,
            escape(put.entry.tenant),
            escape(put.entry.model),
            json.dumps([escape(one) for one in elements(put)]),
            json.dumps([escape(one) for one in entries]),
        )
        return selectors(self._cursor.execute(_RECALLS, values).fetchall())

    def taken(self, id: str) -> int:
        """When a recall last took it back; 0 if none did."""
        statement = "SELECT max(recall) FROM recalled WHERE entry = ?"
        (sequence,) = self._cursor.execute(statement, (escape(id),)).fetchone()
        return sequence or 0

    def vouched(self, owner: str, index: str, chunk: str) -> Vouched | None:
        """What an index last said of a chunk."""
        row = self._cursor.execute(
            """SELECT content, seen, first, last, checks, changes FROM sources
            WHERE owner = ? AND "index" = ? AND chunk = ?""",
            (escape(owner), escape(index), escape(chunk)),
        ).fetchone()
        return None if row is None else Vouched(unescape(row[0]), row[1], Watched(*row[2:]))

    def vouch(self, owner: str, index: str, chunk: str, vouched: Vouched) -> None:
        """Enter what an index says of a chunk."""
        texts = (owner, index, chunk, vouched.content)
        self._cursor.execute(
            "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*map(escape, texts), vouched.seen, *vouched.watched),
        )

    def store(self, entry: Entry, lineage: Lineage, vector: Vector | None) -> None:
        """Write an entry in place of the one with the same id."""
        record, total = pack_lineage(lineage)
        key = escape(entry.id)
        self._link(key, lineage, record)
        self._cursor.execute(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*pack(entry, total), entry.sequence),
        )
        self._cursor.execute("DELETE FROM labels WHERE entry = ?", (key,))
        self._cursor.executemany(LABEL, labels(entry))
        self._set_vector(key, entry, vector)

    def mark(self, entry: Entry) -> None:
        """Write an entry of which something was judged."""
        found = self._found(entry.id)
        if found is not None:
            row = pack(entry, found[1])
            self._cursor.execute("UPDATE entries SET record = ? WHERE id = ?", (row[6], row[0]))

    def forget(self, statement: str, values: Any = ()) -> None:
        """Log the vectors that a statement names by (sequence, group, entry) as removed."""
        self._cursor.execute(
            f'INSERT INTO removed (sequence, "group", entry) {statement}',
            values,
        )
        if self._cursor.rowcount > 0:
            (last,) = self._cursor.execute("SELECT max(number) FROM removed").fetchone()
            bound = (last - self._reach,)
            beyond = "SELECT max(sequence) FROM removed WHERE number <= ?"
            (sequence,) = self._cursor.execute(beyond, bound).fetchone()
            if sequence is not None:
                self.state.forgotten = sequence
                self._cursor.execute("DELETE FROM removed WHERE number <= ?", bound)

    def drop(self) -> int:
        """Remove the entries named in the temporary table `going`; gives how many there were.

        What they were built from stays known.
        """
        gone = "(SELECT id FROM temp.going)"
        self.forget(
            f'SELECT ?, "group", entry FROM vectors WHERE entry IN {gone}',  # noqa: S608 - constant
            (self.state.sequence,),
        )
        for statement in (
            f"DELETE FROM vectors WHERE entry IN {gone}",  # noqa: S608 - constant
            f"DELETE FROM labels WHERE entry IN {gone}",  # noqa: S608 - constant
            f"UPDATE held SET lifted = 1 WHERE lifted = 0 AND entry IN {gone}",  # noqa: S608 - constant
            f"DELETE FROM entries WHERE id IN {gone}",  # noqa: S608 - constant
        ):
            self._cursor.execute(statement)
        return self._cursor.rowcount

    def _found(self, id: str) -> tuple[Entry, int] | None:
        rows = fetch(self._cursor, _ENTRY, (escape(id),))
        try:
            return unpack(rows[0]) if rows else None
        except Damaged:
            return None

    def _record(self, id: str) -> str | None:
        rows = fetch(self._cursor, "SELECT record FROM lineages WHERE child = ?", (escape(id),))
        return rows[0][0] if rows else None

    def _link(self, key: str, lineage: Lineage, record: str) -> None:
        former = self._cursor.execute(
            "SELECT record FROM lineages WHERE child = ?", (key,)
        ).fetchone()
        if former is not None and former[0] == record:
            return
        if former is not None and former[0]:
            self._unlink(key, former[0])
        self._cursor.execute("INSERT OR REPLACE INTO lineages VALUES (?, ?)", (key, record))
        parents, elements = ends(lineage)
        self._cursor.executemany(
            "INSERT OR IGNORE INTO edges VALUES (?, ?)", [(parent, key) for parent in parents]
        )
        self._cursor.executemany(
            "INSERT OR IGNORE INTO source_edges VALUES (?, ?)", [(one, key) for one in elements]
        )

    def _unlink(self, key: str, record: str) -> None:
        try:
            parents, elements = ends(unpack_lineage(record))
        except Damaged:
            return  # edges too many only make a recall take more; a check mends them
        self._cursor.executemany(
            "DELETE FROM edges WHERE parent = ? AND child = ?", [(one, key) for one in parents]
        )
        self._cursor.executemany(
            "DELETE FROM source_edges WHERE element = ? AND child = ?",
            [(one, key) for one in elements],
        )

    def _set_vector(self, key: str, entry: Entry, vector: Vector | None) -> None:
        former = self._cursor.execute(
            'SELECT "group" FROM vectors WHERE entry = ?', (key,)
        ).fetchone()
        if former is not None:
            if vector is None or former[0] != escape(entry.group):
                self.forget("SELECT ?, ?, ?", (entry.sequence, former[0], key))
            self._cursor.execute("DELETE FROM vectors WHERE entry = ?", (key,))
        if vector is not None:
            self._cursor.execute(
                "INSERT INTO vectors VALUES (?, ?, ?, ?, ?)",
                (entry.sequence, *pack_vector(entry.id, entry.group, vector)),
            )


def labels(entry: Entry) -> list[tuple[str, str, str]]:
    """By what an entry is found in the table of labels: for recalls, and for promotions."""
    named = [pair for pair in entry.labels.pairs() if pair[0] in ("tag", "writer", "subject")]
    if entry.offer is not None:
        named.append(("offer", entry.offer.place.id))
    return [(name, escape(value), escape(entry.id)) for name, value in named]


def ends(lineage: Lineage) -> tuple[set[str], set[str]]:
    """The other ends of a lineage's edges, escaped: parents, and documents with chunks."""
    parents = {escape(edge.parent) for edge in lineage.parents}
    sources = [edge.source for edge in lineage.sources]
    return parents, {escape(name) for one in sources for name in (one.document, one.chunk)}
