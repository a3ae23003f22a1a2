"""The journal on SQLite: judgements, servings, counters and lessons."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from stemma.stores import rules
from stemma.stores.journal_rows import (
    COUNTED,
    JUDGED,
    SERVED,
    TAUGHT,
    counted,
    judged,
    row,
    served,
    taught,
)
from stemma.stores.protocol import Count, Judgement, Lesson, Serving
from stemma.stores.sqlite_pages import fetch
from stemma.stores.text import escape

__all__ = ["add", "counts", "judgements", "learn", "lessons", "note", "servings"]

# ruff: noqa: S608 - statements are put together from constants of this package

_ADD = """INSERT INTO counters VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    lookups = lookups + excluded.lookups, seconds = seconds + excluded.seconds,
    tokens = tokens + excluded.tokens"""

_NOTE = f"INSERT INTO judgements ({JUDGED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SERVE = f"INSERT INTO servings ({SERVED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

_LEARN = f"INSERT INTO lessons ({TAUGHT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UNLEARN = """DELETE FROM lessons WHERE tenant = ?1 AND node = ?2 AND number <= (
    SELECT number FROM lessons WHERE tenant = ?1 AND node = ?2
    ORDER BY number DESC LIMIT 1 OFFSET ?3)"""
_LESSONS = f"""SELECT number, {TAUGHT} FROM lessons
    WHERE tenant = ? AND node = ? AND number > ? ORDER BY number"""


def note(cursor: sqlite3.Cursor, judgement: Judgement) -> None:
    """Journal a judgement."""
    one = judgement
    said = (*map(escape, (one.entry, one.value, one.verdict, one.by)), one.confidence, one.at)
    cursor.execute(_NOTE, (*said, escape(one.question), escape(one.tenant), one.weight))


def add(cursor: sqlite3.Cursor, servings: Sequence[Serving], counts: Sequence[Count]) -> None:
    """Journal servings, and add to counters."""
    texts = {text for serving in servings for text in serving if isinstance(text, str)}
    plain = all(escape(text) == text for text in texts)
    cursor.executemany(_SERVE, servings if plain else map(_escaped, servings))
    cursor.execute(
        "DELETE FROM servings WHERE number <= (SELECT max(number) FROM servings) - ?",
        (rules.SERVINGS,),
    )
    cursor.executemany(
        _ADD,
        [
            (*map(escape, (c.tenant, c.node, c.outcome)), c.lookups, c.seconds, c.tokens)
            for c in counts
        ],
    )


def _escaped(serving: Serving) -> list[Any]:
    return [escape(one) if isinstance(one, str) else one for one in serving]


def learn(cursor: sqlite3.Cursor, lessons: Sequence[Lesson]) -> None:
    """Append lessons."""
    cursor.executemany(_LEARN, map(row, lessons))
    rooms = {(escape(one.tenant), escape(one.node)) for one in lessons}
    cursor.executemany(_UNLEARN, [(*room, rules.LESSONS) for room in sorted(rooms)])


def lessons(cursor: sqlite3.Cursor, tenant: str, node: str, after: int) -> tuple[Lesson, ...]:
    """The lessons of a tenant and node after a number, oldest first."""
    return taught(fetch(cursor, _LESSONS, (escape(tenant), escape(node), after)))


def counts(cursor: sqlite3.Cursor) -> tuple[Count, ...]:
    """The sums of all counters."""
    return counted(fetch(cursor, f"SELECT {COUNTED} FROM counters"))


def servings(cursor: sqlite3.Cursor, entry: str | None, limit: int) -> tuple[Serving, ...]:
    """Journalled servings, newest first."""
    return served(_newest(cursor, "servings", SERVED, entry, limit))


def judgements(cursor: sqlite3.Cursor, entry: str | None, limit: int) -> tuple[Judgement, ...]:
    """Journalled judgements, newest first."""
    return judged(_newest(cursor, "judgements", JUDGED, entry, limit))


def _newest(
    cursor: sqlite3.Cursor, table: str, columns: str, entry: str | None, limit: int
) -> list[Any]:
    """The newest rows of a journal, all or one entry's. Table and columns are constants."""
    where, key = ("", ()) if entry is None else ("WHERE entry = ?", (escape(entry),))
    statement = f"SELECT {columns} FROM {table} {where} ORDER BY number DESC LIMIT ?"
    return fetch(cursor, statement, (*key, limit))
