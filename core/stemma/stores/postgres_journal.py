"""The journal on PostgreSQL: servings, counters, lessons, and what was judged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from stemma.stores import rules
from stemma.stores.journal_rows import (
    COUNTED,
    SERVED,
    TAUGHT,
    counted,
    judged,
    row,
    served,
    taught,
)
from stemma.stores.postgres_rows import escaped
from stemma.stores.postgres_steps import COMMIT, Say, Steps
from stemma.stores.protocol import Count, Judgement, Lesson, Serving
from stemma.stores.text import escape

__all__ = ["add", "counts", "judgements", "learn", "lessons", "note", "said", "servings"]

# ruff: noqa: S608 - statements are put together from constants of this package

_JUDGED = "entry, value, verdict, by, confidence, at, question, reporter, weight"
"""The columns of a judgement for `judged`; `tenant` is whose entry it is of, for the wall."""

_FORGOTTEN = "DELETE FROM servings WHERE number <= (SELECT max(number) FROM servings) - %s"

_SERVED = f"""INSERT INTO servings ({SERVED})
    SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[], %s::float8[],
    %s::text[], %s::text[], %s::text[], %s::float8[])"""
_COUNTED = """INSERT INTO counters AS c (tenant, node, outcome, lookups, seconds, tokens)
    SELECT tenant, node, outcome, sum(lookups), sum(seconds), sum(tokens)
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::float8[], %s::bigint[])
    given (tenant, node, outcome, lookups, seconds, tokens) GROUP BY 1, 2, 3
    ON CONFLICT (tenant, node, outcome) DO UPDATE SET lookups = c.lookups + excluded.lookups,
    seconds = c.seconds + excluded.seconds, tokens = c.tokens + excluded.tokens"""

_LEARN = f"""INSERT INTO lessons ({TAUGHT}) SELECT {TAUGHT} FROM unnest(%s::text[], %s::text[],
    %s::text[], %s::text[], %s::text[], %s::text[], %s::float8[], %s::boolean[], %s::text[],
    %s::bigint[], %s::float8[]) WITH ORDINALITY given ({TAUGHT}, place) ORDER BY place"""
_UNLEARN = """DELETE FROM lessons WHERE tenant = %s AND node = %s AND number <= (
    SELECT number FROM lessons WHERE tenant = %s AND node = %s
    ORDER BY number DESC LIMIT 1 OFFSET %s)"""
_LESSONS = f"""SELECT number, {TAUGHT} FROM lessons
    WHERE tenant = %s AND node = %s AND number > %s ORDER BY number"""


def add(servings: Sequence[Serving], counts: Sequence[Count]) -> Steps[None]:
    """Journal servings, and add to counters, in one trip. See `Store.journal`."""
    yield [
        Say("UPDATE meta SET sequence = sequence + 1"),
        *_served(servings),
        *_counted(counts),
        COMMIT,
    ]


def note(judgement: Judgement, tenant: str) -> Say:
    """Journal a judgement of a tenant's entry."""
    one = judgement
    texts = (tenant, one.entry, one.value, one.verdict, one.by)
    return Say(
        f"INSERT INTO judgements (tenant, {_JUDGED}) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *escaped(texts),
            one.confidence,
            one.at,
            *escaped((one.question, one.tenant)),
            one.weight,
        ),
    )


def said(ids: Collection[str]) -> Say:
    """What was judged of some ids, escaped: rows for `judged`, in the order of the judgements."""
    return Say(
        f"SELECT {_JUDGED} FROM judgements WHERE entry = ANY(%s) ORDER BY number", (list(ids),)
    )


def learn(lessons: Sequence[Lesson]) -> Steps[None]:
    """Append lessons, in one trip. See `Store.learn`."""
    columns = [list(column) for column in zip(*map(row, lessons), strict=True)]
    rooms = sorted({(escape(one.tenant), escape(one.node)) for one in lessons})
    yield [
        # The row of `meta` is held first: numbers are given in the order of the commits.
        Say("UPDATE meta SET sequence = sequence + 1"),
        Say(_LEARN, tuple(columns)),
        *(Say(_UNLEARN, (*room, *room, rules.LESSONS)) for room in rooms),
        COMMIT,
    ]


def lessons(tenant: str, node: str, after: int) -> Steps[tuple[Lesson, ...]]:
    """The lessons of a tenant and node after a number, oldest first. See `Store.lessons`."""
    (rows,) = yield [Say(_LESSONS, (escape(tenant), escape(node), after))]
    return taught(rows)


def counts() -> Steps[tuple[Count, ...]]:
    """The sums of all counters. See `Store.counts`."""
    (rows,) = yield [Say(f"SELECT {COUNTED} FROM counters")]
    return counted(rows)


def servings(entry: str | None, limit: int) -> Steps[tuple[Serving, ...]]:
    """Journalled servings, newest first. See `Store.servings`."""
    (rows,) = yield [_newest("servings", SERVED, entry, limit)]
    return served(rows)


def judgements(entry: str | None, limit: int) -> Steps[tuple[Judgement, ...]]:
    """Journalled judgements, newest first. See `Store.judgements`."""
    (rows,) = yield [_newest("judgements", _JUDGED, entry, limit)]
    return judged(rows)


def _newest(table: str, columns: str, entry: str | None, limit: int) -> Say:
    """The newest rows of a journal, all or one entry's. Table and columns are constants."""
    if entry is None:
        return Say(f"SELECT {columns} FROM {table} ORDER BY number DESC LIMIT %s", (limit,))
    return Say(
        f"SELECT {columns} FROM {table} WHERE entry = %s ORDER BY number DESC LIMIT %s",
        (escape(entry), limit),
    )


def _served(servings: Sequence[Serving]) -> Iterator[Say]:
    if servings:
        numbers = ("similarity", "at", "confidence")
        columns = [
            list(map(float, column)) if name in numbers else escaped(column)
            for name, column in zip(Serving._fields, zip(*servings, strict=True), strict=True)
        ]
        yield Say(_SERVED, columns)
        yield Say(_FORGOTTEN, (rules.SERVINGS,))


def _counted(counts: Sequence[Count]) -> Iterator[Say]:
    if counts:
        keys = zip(*((c.tenant, c.node, c.outcome) for c in counts), strict=True)
        texts = [escaped(one) for one in keys]
        lookups, seconds = [c.lookups for c in counts], [float(c.seconds) for c in counts]
        yield Say(_COUNTED, (*texts, lookups, seconds, [c.tokens for c in counts]))
