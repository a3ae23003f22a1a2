"""How answers travel between tenants, and what holds them back, on SQLite."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from stemma.entry import Entry
from stemma.outcome import Quarantine
from stemma.stores.rows import unpack
from stemma.stores.sharing import Flow, Shared, several
from stemma.stores.sharing_rows import HELD, RECEIPT, held_row, receipt_row, receipts
from stemma.stores.sqlite_pages import ROW, SqlitePages, fetch, readable
from stemma.stores.text import SEPARATOR, Damaged, escape, unescape

__all__ = [
    "crossed",
    "descent",
    "flows",
    "hold",
    "offered",
    "quarantines",
    "release",
    "shared",
]

# ruff: noqa: S608 - statements are put together from constants of this package

_OFFERED = f"""SELECT {ROW} FROM labels l CROSS JOIN entries e ON e.id = l.entry
    WHERE l.name = 'offer' AND l.value = ? ORDER BY e.sequence LIMIT ?"""

_DESCENT = """WITH RECURSIVE down (id) AS (
        SELECT value FROM json_each(?) UNION
        SELECT edges.child FROM down CROSS JOIN edges ON edges.parent = down.id
    ) SELECT edges.parent, edges.child FROM down CROSS JOIN edges ON edges.parent = down.id
    CROSS JOIN entries e ON e.id = edges.child"""

_CROSSED = """SELECT edges.parent, edges.child FROM edges
    CROSS JOIN entries p ON p.id = edges.parent CROSS JOIN entries c ON c.id = edges.child
    WHERE p.tenant <> c.tenant ORDER BY c.sequence DESC, edges.parent LIMIT ?"""

# Read from the lineages: a table of who read which document would cost every put a write more.
_SHARED = """SELECT json_extract(s.value, '$[3]'), json_extract(s.value, '$[0]'), e.tenant,
        count(DISTINCT e.id)
    FROM lineages l CROSS JOIN entries e ON e.id = l.child
    CROSS JOIN json_each(CASE WHEN json_valid(l.record) THEN l.record ELSE '[[],[]]' END, '$[1]') s
    WHERE l.record <> '' AND s.type = 'array'
    GROUP BY 1, 2, 3"""

# One pass, the names of a flow read as one text: SQLite would sort a million rows by their names
# first, which takes twice as long. The sums are numpy's.
_FLOWS = """SELECT producer || char(31) || tenant || char(31) || pool || char(31) || node
        || char(31) || {entry}, ifnull(max(similarity, 0.0) * max(confidence, 0.0), 0.0), at
    FROM servings WHERE typeof(at) = 'real' AND typeof(similarity) = 'real'
    AND typeof(confidence) = 'real' {which}"""
_AT_ONCE = 1000

_RECEIPTS = f"SELECT {RECEIPT}, lifted FROM quarantines"
_RECEIPT = f"INSERT INTO quarantines ({RECEIPT}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_HOLD = f"INSERT INTO held (quarantine, {HELD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_LISTED = f"""SELECT quarantine, {HELD} FROM held
    WHERE quarantine IN (SELECT value FROM json_each(?)) ORDER BY number"""


def offered(cursor: sqlite3.Cursor, place: str, limit: int) -> tuple[Entry, ...]:
    """See `Sharing.offered`."""
    found = []
    for row in fetch(cursor, _OFFERED, (escape(place), max(limit, 0))):
        with suppress(Damaged):
            found.append(unpack(row)[0])
    return tuple(found)


def descent(cursor: sqlite3.Cursor, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """See `Sharing.descent`."""
    return _edges(fetch(cursor, _DESCENT, (json.dumps([escape(one) for one in ids]),)))


def crossed(cursor: sqlite3.Cursor, limit: int) -> tuple[tuple[str, str], ...]:
    """See `Sharing.crossed`."""
    return _edges(fetch(cursor, _CROSSED, (max(limit, 0),)))


def _edges(rows: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    return tuple((unescape(parent), unescape(child)) for parent, child in rows)


def shared(cursor: sqlite3.Cursor) -> tuple[Shared, ...]:
    """See `Sharing.shared`."""
    found = []
    for owner, document, tenant, entries in fetch(cursor, _SHARED):
        with suppress(Damaged):
            found.append(Shared(unescape(owner), unescape(document), unescape(tenant), entries))
    return several(found)


def flows(
    cursor: sqlite3.Cursor, now: float, half_life: float | None, entries: Sequence[str] | None
) -> tuple[Flow, ...]:
    """See `Sharing.flows`."""
    entry, which = "''", ""
    values: tuple[str, ...] = ()
    if entries is not None:
        entry, which = "entry", "AND entry IN (SELECT value FROM json_each(?))"
        values = (json.dumps([escape(one) for one in entries]),)
    statement = _FLOWS.format(entry=entry, which=which)
    return readable(cursor, lambda: _added_up(cursor.execute(statement, values), now, half_life))


def _added_up(rows: sqlite3.Cursor, now: float, half_life: float | None) -> tuple[Flow, ...]:
    """The flows of rows (names as one text, weight, time)."""
    known: dict[str, int] = {}
    numbers, weights, times = array("q"), array("d"), array("d")
    while some := list(islice(rows, _AT_ONCE)):
        names, heavy, then = zip(*some, strict=True)
        numbers.extend(known.setdefault(name, len(known)) for name in names)
        weights.extend(heavy)
        times.extend(then)
    if not known:
        return ()
    flow, weight, at = np.asarray(numbers), np.asarray(weights), np.asarray(times)
    age = np.maximum(now - at, 0.0)
    recent = weight if half_life is None else weight * 0.5 ** (age / half_life)
    first, last = np.full(len(known), np.inf), np.full(len(known), -np.inf)
    np.minimum.at(first, flow, at)
    np.maximum.at(last, flow, at)
    sums = (np.bincount(flow), np.bincount(flow, weight), np.bincount(flow, recent), first, last)
    found = zip(known, *(column.tolist() for column in sums), strict=True)
    return tuple(sorted(_flow(*one) for one in found))


def _flow(names: str, *sums: Any) -> Flow:
    producer, consumer, pool, node, entry = map(unescape, names.split(SEPARATOR))
    return Flow(producer, consumer, pool, node, entry, *sums)


def hold(cursor: sqlite3.Cursor, pages: SqlitePages, quarantine: Quarantine) -> Quarantine:
    """See `Sharing.hold`."""
    former = _named(cursor, quarantine.id)
    if former is not None:
        return former
    pages.state.sequence += 1
    pages.state.epoch = pages.state.sequence
    asked = json.dumps([escape(one.entry) for one in quarantine.entries])
    rows = fetch(
        cursor, "SELECT id FROM entries WHERE id IN (SELECT value FROM json_each(?))", (asked,)
    )
    stored = {unescape(row[0]) for row in rows}
    receipt = replace(
        quarantine,
        entries=tuple(one for one in quarantine.entries if one.entry in stored),
        sequence=pages.state.sequence,
    )
    cursor.execute(_RECEIPT, receipt_row(receipt))
    key = escape(receipt.id)
    cursor.executemany(_HOLD, [(key, *held_row(one)) for one in receipt.entries])
    return receipt


def release(cursor: sqlite3.Cursor, pages: SqlitePages, id: str, now: float) -> Quarantine | None:
    """See `Sharing.release`."""
    receipt = _named(cursor, id)
    if receipt is None or receipt.lifted is not None:
        return receipt
    pages.state.sequence += 1
    pages.state.epoch = pages.state.sequence
    key = escape(id)
    cursor.execute("UPDATE quarantines SET lifted = ? WHERE id = ?", (now, key))
    cursor.execute("UPDATE held SET lifted = 1 WHERE quarantine = ? AND lifted = 0", (key,))
    return replace(receipt, lifted=now)


def quarantines(cursor: sqlite3.Cursor, limit: int) -> tuple[Quarantine, ...]:
    """See `Sharing.quarantines`."""
    rows = fetch(cursor, f"{_RECEIPTS} ORDER BY number DESC LIMIT ?", (max(limit, 0),))
    return _listed(cursor, rows)


def _named(cursor: sqlite3.Cursor, id: str) -> Quarantine | None:
    rows = fetch(cursor, f"{_RECEIPTS} WHERE id = ?", (escape(id),))
    return next(iter(_listed(cursor, rows)), None)


def _listed(cursor: sqlite3.Cursor, rows: Sequence[Any]) -> tuple[Quarantine, ...]:
    """The receipts of some rows, with what they hold."""
    keys = json.dumps([key for key, *_ in rows if isinstance(key, str)])
    return receipts(rows, fetch(cursor, _LISTED, (keys,)))
