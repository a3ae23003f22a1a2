"""The journal on SQLite: judgements, servings and counters."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from stemma.stores import rules
from stemma.stores.protocol import Count, Judgement, Serving
from stemma.stores.sqlite_pages import fetch
from stemma.stores.text import escape, unescape

__all__ = ["add", "counts", "judgements", "note", "servings"]

_JUDGEMENTS = """SELECT entry, value, verdict, by, confidence, at FROM judgements
    ORDER BY number DESC LIMIT ?2"""
_JUDGEMENTS_OF = """SELECT entry, value, verdict, by, confidence, at FROM judgements
    WHERE entry = ?1 ORDER BY number DESC LIMIT ?2"""
_SERVINGS = """SELECT entry, tenant, tier, similarity, at FROM servings
    ORDER BY number DESC LIMIT ?2"""
_SERVINGS_OF = """SELECT entry, tenant, tier, similarity, at FROM servings
    WHERE entry = ?1 ORDER BY number DESC LIMIT ?2"""
_ADD = """INSERT INTO counters VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    lookups = lookups + excluded.lookups, seconds = seconds + excluded.seconds,
    tokens = tokens + excluded.tokens"""


def note(cursor: sqlite3.Cursor, judgement: Judgement) -> None:
    """Journal a verdict."""
    texts = (judgement.entry, judgement.value, judgement.verdict, judgement.by)
    cursor.execute(
        """INSERT INTO judgements (entry, value, verdict, by, confidence, at)
        VALUES (?, ?, ?, ?, ?, ?)""",
        (*map(escape, texts), judgement.confidence, judgement.at),
    )


def add(cursor: sqlite3.Cursor, servings: Sequence[Serving], counts: Sequence[Count]) -> None:
    """Journal servings, and add to counters."""
    texts = {text for serving in servings for text in serving[:3]}
    plain = all(escape(text) == text for text in texts)
    cursor.executemany(
        "INSERT INTO servings (entry, tenant, tier, similarity, at) VALUES (?, ?, ?, ?, ?)",
        servings if plain else [(*map(escape, s[:3]), s.similarity, s.at) for s in servings],
    )
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


def counts(cursor: sqlite3.Cursor) -> tuple[Count, ...]:
    """The sums of all counters."""
    statement = "SELECT tenant, node, outcome, lookups, seconds, tokens FROM counters"
    sums = (
        Count(
            tenant=unescape(tenant),
            node=unescape(node),
            outcome=unescape(outcome),
            lookups=lookups,
            seconds=seconds,
            tokens=tokens,
        )
        for tenant, node, outcome, lookups, seconds, tokens in fetch(cursor, statement)
    )
    return tuple(sorted(sums, key=lambda one: (one.tenant, one.node, one.outcome)))


def servings(cursor: sqlite3.Cursor, entry: str | None, limit: int) -> tuple[Serving, ...]:
    """Journalled servings, newest first."""
    key = None if entry is None else escape(entry)
    rows = fetch(cursor, _SERVINGS if entry is None else _SERVINGS_OF, (key, limit))
    return tuple(
        Serving(
            entry=unescape(served),
            tenant=unescape(tenant),
            tier=unescape(tier),
            similarity=similarity,
            at=at,
        )
        for served, tenant, tier, similarity, at in rows
    )


def judgements(cursor: sqlite3.Cursor, entry: str | None, limit: int) -> tuple[Judgement, ...]:
    """Journalled verdicts, newest first."""
    key = None if entry is None else escape(entry)
    rows = fetch(cursor, _JUDGEMENTS if entry is None else _JUDGEMENTS_OF, (key, limit))
    return tuple(
        Judgement(
            entry=unescape(judged),
            value=unescape(value),
            verdict=verdict,
            by=unescape(by),
            confidence=confidence,
            at=at,
        )
        for judged, value, verdict, by, confidence, at in rows
    )
