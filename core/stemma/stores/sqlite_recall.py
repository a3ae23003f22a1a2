"""Taking back, on SQLite: what a selector reaches, and its removal, in set operations."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from stemma.entry import Entry, Lineage
from stemma.outcome import Recall, Recalled
from stemma.selector import Selector
from stemma.stores.sqlite_pages import SqlitePages, fetch, lenient, selectors, where
from stemma.stores.text import escape, unescape

__all__ = ["gather", "name", "overlooked", "reach", "recall", "receipts"]

_GOING = "CREATE TEMP TABLE IF NOT EXISTS going (id TEXT PRIMARY KEY) WITHOUT ROWID"

_CASCADE = """WITH RECURSIVE down (id) AS (
        SELECT id FROM temp.going UNION
        SELECT edges.child FROM down JOIN edges ON edges.parent = down.id
    ) INSERT OR IGNORE INTO temp.going SELECT id FROM down"""

_LISTED = """SELECT e.id, e.tenant, e.node, e.hop
    FROM temp.going g CROSS JOIN entries e ON e.id = g.id ORDER BY e.sequence"""

_JOURNALLED = """INSERT INTO recalled
    SELECT e.id, ?, e.tenant, e.node, e.hop, row_number() OVER (ORDER BY e.sequence) - 1
    FROM temp.going g CROSS JOIN entries e ON e.id = g.id"""


def name(cursor: sqlite3.Cursor, ids: list[str]) -> None:
    """Name entries in the temporary table `going`."""
    _empty(cursor)
    cursor.executemany(
        "INSERT OR IGNORE INTO temp.going VALUES (?)", [(escape(one),) for one in ids]
    )


def reach(cursor: sqlite3.Cursor, selector: Selector, *, cascade: bool) -> None:
    """Name in `going` what a selector selects and, with `cascade`, everything built from it.

    A source or an entry named alone is followed through entries that went before, too.
    """
    _empty(cursor)
    clauses, values = where(selector)
    cursor.execute(
        f"INSERT INTO temp.going SELECT e.id FROM entries e WHERE {clauses}",  # noqa: S608
        values,
    )
    if not cascade:
        return
    if len(values) == 1 and selector.source is not None:
        cursor.execute(
            "INSERT OR IGNORE INTO temp.going SELECT child FROM source_edges WHERE element = ?",
            values,
        )
    elif len(values) == 1 and selector.entry is not None:
        cursor.execute("INSERT OR IGNORE INTO temp.going VALUES (?)", values)
    cursor.execute(_CASCADE)


def gather(cursor: sqlite3.Cursor) -> tuple[Recalled, ...]:
    """The stored entries among those named in `going`, oldest first."""
    return tuple(
        Recalled(entry=unescape(entry), tenant=unescape(tenant), node=node, hop=hop)
        for entry, tenant, node, hop in fetch(cursor, _LISTED)
    )


def recall(
    cursor: sqlite3.Cursor,
    pages: SqlitePages,
    selector: Selector,
    now: float,
    *,
    cascade: bool = True,
) -> Recall:
    """Take back what a selector reaches, and journal it."""
    reach(cursor, selector, cascade=cascade)
    listed = _take_back(cursor, pages, selector, now)
    return Recall(
        selector=dict(selector.parts()),
        dry_run=False,
        entries=listed,
        sequence=pages.state.sequence,
        at=now,
    )


def _take_back(
    cursor: sqlite3.Cursor, pages: SqlitePages, selector: Selector, now: float
) -> tuple[Recalled, ...]:
    """Journal the recall, and remove what `going` names."""
    pages.state.sequence += 1
    pages.state.epoch = pages.state.recalled = sequence = pages.state.sequence
    listed = gather(cursor)
    parts = (selector.source, selector.entry, selector.tenant, selector.tag, selector.writer)
    more = (selector.subject, selector.model, selector.index, selector.node)
    texts = [None if part is None else escape(part) for part in parts + more]
    cursor.execute(
        "INSERT INTO recalls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (sequence, now, *texts)
    )
    cursor.execute(_JOURNALLED, (sequence,))
    pages.drop()
    return listed


_OVERLOOKING = """SELECT sequence, source, entry, tenant, tag, writer, subject, model, "index", node
    FROM recalls WHERE sequence > ?1 AND (
        source IN (SELECT value FROM json_each(?2)) OR tag IN (SELECT value FROM json_each(?3))
        OR tenant = ?4 OR writer = ?5 OR subject = ?6 OR model = ?7 OR "index" = ?8
    )"""


def overlooked(cursor: sqlite3.Cursor, entry: Entry, lineage: Lineage) -> bool:
    """Whether a recall since its put covers an entry that is there: damage hid it from that.

    The entry and its lineage have checksums, the tables and indexes by which a recall finds them
    have none.
    """
    sources = [edge.source for edge in lineage.sources]
    elements = {name for one in sources for name in (one.document, one.chunk)}
    labels = entry.labels
    values = (
        entry.sequence,
        json.dumps([escape(one) for one in elements]),
        json.dumps([escape(one) for one in labels.tags]),
        *(
            None if one is None else escape(one)
            for one in (entry.tenant, labels.writer, labels.subject, entry.model, entry.index)
        ),
    )
    rows = fetch(cursor, _OVERLOOKING, values)
    return any(selector.covers(entry, lineage) for _, selector in selectors(rows))


def receipts(cursor: sqlite3.Cursor, limit: int) -> Iterator[Recall]:
    """The receipts of past recalls, newest first."""
    statement = """SELECT sequence, source, entry, tenant, tag, writer, subject, model, "index",
        node, at FROM recalls ORDER BY sequence DESC LIMIT ?"""
    listed = """SELECT entry, tenant, node, hop FROM recalled WHERE recall = ? ORDER BY position"""
    with lenient(cursor):
        recalls = cursor.execute(statement, (limit,)).fetchall()
        for at, (sequence, selector) in zip(
            [row[-1] for row in recalls], selectors([row[:-1] for row in recalls]), strict=True
        ):
            rows: list[Any] = cursor.execute(listed, (sequence,)).fetchall()
            yield Recall(
                selector=dict(selector.parts()),
                dry_run=False,
                entries=tuple(
                    Recalled(entry=unescape(entry), tenant=unescape(tenant), node=node, hop=hop)
                    for entry, tenant, node, hop in rows
                ),
                sequence=sequence,
                at=at,
            )


def _empty(cursor: sqlite3.Cursor) -> None:
    cursor.execute(_GOING)
    cursor.execute("DELETE FROM temp.going")
