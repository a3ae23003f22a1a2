"""Looking a SQLite store through: damage is found, and what can be mended is mended."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from stemma.entry import Entry
from stemma.stores.rows import unpack, unpack_lineage, unpack_vector
from stemma.stores.sqlite_pages import LABEL, ROW, SqlitePages, ends, labels, lenient
from stemma.stores.sqlite_recall import name
from stemma.stores.text import Damaged, unescape

__all__ = ["look_through"]

_ALL = f"""SELECT {ROW}, l.record, e.sequence
    FROM entries e LEFT JOIN lineages l ON l.child = e.id"""  # noqa: S608 - constant

_VECTORS = 'SELECT entry, "group", vector, checksum FROM vectors'

_ORPHANS = (
    ("vectors of no entry", "DELETE FROM vectors WHERE entry NOT IN (SELECT id FROM entries)"),
    ("labels of no entry", "DELETE FROM labels WHERE entry NOT IN (SELECT id FROM entries)"),
    ("edges of no lineage", "DELETE FROM edges WHERE child NOT IN (SELECT child FROM lineages)"),
    (
        "source edges of no lineage",
        "DELETE FROM source_edges WHERE child NOT IN (SELECT child FROM lineages)",
    ),
    (
        "holds on no entry",
        """UPDATE held SET lifted = 1 WHERE lifted = 0
        AND entry NOT IN (SELECT id FROM entries)""",
    ),
)

_NAMELESS = """INSERT INTO quarantines (sequence, id, at, by, reason, threshold, seeds)
    SELECT DISTINCT ?, quarantine, 0, '', 'restored by a check', 1, '{}' FROM held
    WHERE typeof(quarantine) = 'text' AND quarantine NOT IN (SELECT id FROM quarantines)"""
_SEEDLESS = """UPDATE quarantines SET seeds = '{}'
    WHERE typeof(seeds) <> 'text' OR NOT json_valid(seeds) OR json_type(seeds) <> 'object'"""


def look_through(cursor: sqlite3.Cursor, pages: SqlitePages) -> Iterator[str]:
    """Say what is wrong, and mend it. Must run in a write transaction.

    Raises:
        Damaged: Not only records are damaged, but the file that holds them.
    """
    yield from _mend_indexes(cursor)
    damaged, labelled = _looked_through(cursor)
    if damaged:
        pages.state.sequence += 1
        pages.state.epoch = pages.state.sequence
        name(cursor, damaged)
        pages.drop()
        yield f"{len(damaged)} damaged entries: removed"
    vectors = _damaged_vectors(cursor)
    if vectors:
        pages.state.sequence += 1
        values = (pages.state.sequence, json.dumps(vectors))
        which = "sequence IN (SELECT value FROM json_each(?))"
        pages.forget(
            f'SELECT ?, "group", entry FROM vectors WHERE {which}',  # noqa: S608 - constant
            values,
        )
        cursor.execute(f"DELETE FROM vectors WHERE {which}", values[1:])  # noqa: S608 - constant
        yield f"{len(vectors)} damaged vectors: removed; these entries are found exactly only"
    for what, statement in _ORPHANS:
        if cursor.execute(statement).rowcount:
            yield f"{cursor.rowcount} {what}: removed"
    cursor.executemany(LABEL, labelled)
    if cursor.rowcount > 0:
        yield f"{cursor.rowcount} labels were missing: restored"
    yield from _mend_quarantines(cursor, pages)
    missing = _restore_edges(cursor)
    if missing:
        yield f"{missing} edges were missing from the tables that a recall follows: restored"


def _mend_indexes(cursor: sqlite3.Cursor) -> Iterator[str]:
    """Make SQLite's indexes anew where they do not say what their tables say."""
    (line,) = cursor.execute("PRAGMA integrity_check(1)").fetchone()
    if line == "ok":
        return
    (worse,) = cursor.execute("PRAGMA quick_check(1)").fetchone()
    if worse != "ok":
        raise Damaged(worse)
    try:
        cursor.execute("REINDEX")
    except sqlite3.IntegrityError as error:
        raise Damaged(line) from error
    yield f"indexes that differed from their tables: made anew ({line})"


def _looked_through(cursor: sqlite3.Cursor) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Ids of entries that fail their checksum or whose lineage fails its own; labels of others."""
    damaged, labelled = list[str](), list[tuple[str, str, str]]()
    with lenient(cursor):
        for row in cursor.execute(_ALL):
            entry = _sound(*row)
            if entry is None:
                damaged.append(unescape(str(row[0])))
            else:
                labelled += labels(entry)
    return damaged, labelled


def _sound(*row: Any) -> Entry | None:
    *columns, record, sequence = row
    try:
        entry, total = unpack(columns)
        unpack_lineage("" if record is None else record, total)
    except Damaged:
        return None
    return entry if entry.sequence == sequence else None


def _mend_quarantines(cursor: sqlite3.Cursor, pages: SqlitePages) -> Iterator[str]:
    """Have a receipt for whatever is held: what is suspected is not served because of damage."""
    if cursor.execute(_NAMELESS, (pages.state.sequence,)).rowcount:
        yield f"{cursor.rowcount} quarantines were missing: restored from what they hold"
    if cursor.execute(_SEEDLESS).rowcount:
        yield f"{cursor.rowcount} quarantines had damaged seeds: these are forgotten"


def _damaged_vectors(cursor: sqlite3.Cursor) -> list[int]:
    """Row numbers of vectors that fail their checksum."""
    damaged = []
    with lenient(cursor):
        for number, *row in cursor.execute(_VECTORS.replace("entry", "sequence, entry", 1)):
            try:
                unpack_vector(row)
            except Damaged:
                damaged.append(number)
    return damaged


def _restore_edges(cursor: sqlite3.Cursor) -> int:
    """Enter every lineage's edges again; gives how many were not there."""
    restored = 0
    with lenient(cursor):
        rows = cursor.execute("SELECT child, record FROM lineages WHERE record <> ''").fetchall()
    for child, record in rows:
        try:
            child.encode()
            parents, elements = ends(unpack_lineage(record))
        except (Damaged, UnicodeError, AttributeError):
            continue  # of a stored entry, it was found above; of one that went, there is no proof
        for statement, names in (
            ("INSERT OR IGNORE INTO edges VALUES (?, ?)", parents),
            ("INSERT OR IGNORE INTO source_edges VALUES (?, ?)", elements),
        ):
            cursor.executemany(statement, [(one, child) for one in names])
            restored += max(cursor.rowcount, 0)
    return restored
