"""Taking back, on PostgreSQL: what a selector reaches, and its removal, in set operations."""

from __future__ import annotations

from collections.abc import Sequence

from stemma.outcome import Recall, Recalled
from stemma.selector import Selector
from stemma.stores.postgres_rows import escaped, selectors, state_of, where
from stemma.stores.postgres_steps import COMMIT, Rows, Say, Steps
from stemma.stores.postgres_writing import LOCK, drop, save, trim
from stemma.stores.text import escape, unescape

__all__ = ["recall", "receipts", "rehearse", "remove"]

# ruff: noqa: S608 - statements are put together from constants of this package

_DOWN = "UNION SELECT edges.child FROM down JOIN edges ON edges.parent = down.id"

_RECEIPTS = """SELECT sequence, source, entry, tenant, tag, writer, subject, model, "index", node,
    at FROM recalls ORDER BY sequence DESC LIMIT %s"""
_TAKEN = """SELECT d.recall, d.entry, d.tenant, d.node, d.hop FROM recalled d
    JOIN (SELECT sequence FROM recalls ORDER BY sequence DESC LIMIT %s) r ON r.sequence = d.recall
    ORDER BY d.recall, d.position"""


def rehearse(selector: Selector, *, cascade: bool) -> Steps[Recall]:
    """What a recall would take. Reads only. See `Store.recall`."""
    asked = Say("SELECT sequence, epoch, recalled, forgotten FROM meta")
    numbers, rows, _ = yield [asked, _reach(selector, cascade=cascade), COMMIT]
    sequence = state_of(numbers).sequence
    named = dict(selector.parts())
    return Recall(selector=named, dry_run=True, entries=_listed(rows), sequence=sequence)


def recall(selector: Selector, *, now: float, cascade: bool, reach: int) -> Steps[Recall]:
    """Take back what a selector reaches. See `Store.recall`.

    Args:
        selector: What is named.
        now: The time, seconds since 1970-01-01 UTC.
        cascade: Whether everything built from it goes too.
        reach: How many removed vectors are remembered.
    """
    numbers, rows = yield [LOCK, _reach(selector, cascade=cascade)]
    state = state_of(numbers)
    state.sequence += 1
    state.epoch = state.recalled = state.sequence
    parts = (selector.source, selector.entry, selector.tenant, selector.tag, selector.writer)
    more = (selector.subject, selector.model, selector.index, selector.node)
    texts = [None if part is None else escape(part) for part in parts + more]
    yield [
        Say(
            "INSERT INTO recalls VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (state.sequence, now, *texts),
        ),
        *_noted(state.sequence, rows),
        *drop([row[0] for row in rows], state.sequence),
        trim(reach),
        *save(state),
        COMMIT,
    ]
    return Recall(
        selector=dict(selector.parts()),
        dry_run=False,
        entries=_listed(rows),
        sequence=state.sequence,
        at=now,
    )


def remove(ids: Sequence[str], reach: int) -> Steps[int]:
    """Remove entries by id, without their children. See `Store.remove`."""
    there = Say("SELECT id FROM entries WHERE id = ANY(%s)", (escaped(ids),))
    numbers, rows = yield [LOCK, there]
    state = state_of(numbers)
    if not rows:
        yield [COMMIT]
        return 0
    state.sequence += 1
    state.epoch = state.sequence
    gone = drop([row[0] for row in rows], state.sequence)
    yield [*gone, trim(reach), *save(state), COMMIT]
    return len(rows)


def receipts(limit: int) -> Steps[tuple[Recall, ...]]:
    """The receipts of past recalls, newest first. See `Store.recalls`."""
    recalls, taken, _ = yield [Say(_RECEIPTS, (limit,)), Say(_TAKEN, (limit,)), COMMIT]
    listed: dict[int, Rows] = {}
    for number, *row in taken:
        listed.setdefault(number, []).append(tuple(row))
    return tuple(
        Recall(
            selector=dict(selector.parts()),
            dry_run=False,
            entries=_listed(listed.get(number, [])),
            sequence=number,
            at=at,
        )
        for at, (number, selector) in zip(
            [row[-1] for row in recalls], selectors(row[:-1] for row in recalls), strict=True
        )
    )


def _reach(selector: Selector, *, cascade: bool) -> Say:
    """The stored entries that a recall takes, oldest first.

    A source or an entry named alone is followed through entries that went before, too.
    """
    clauses, values = where(selector)
    seed = f"SELECT e.id FROM entries e WHERE {clauses}"
    if cascade and len(values) == 1 and selector.source is not None:
        seed += " UNION SELECT child FROM source_edges WHERE element = %s"
        values *= 2
    elif cascade and len(values) == 1 and selector.entry is not None:
        seed += ' UNION SELECT %s::text COLLATE "C"'
        values *= 2
    return Say(
        f"""WITH RECURSIVE down (id) AS (({seed}) {_DOWN if cascade else ""})
        SELECT e.id, e.tenant, e.node, e.hop FROM down JOIN entries e ON e.id = down.id
        ORDER BY e.sequence""",
        values,
    )


def _listed(rows: Rows) -> tuple[Recalled, ...]:
    return tuple(
        Recalled(entry=unescape(entry), tenant=unescape(tenant), node=node, hop=hop)
        for entry, tenant, node, hop in rows
    )


def _noted(sequence: int, rows: Rows) -> list[Say]:
    """Journal what a recall took."""
    if not rows:
        return []
    columns = [list(column) for column in zip(*rows, strict=True)]
    statement = """INSERT INTO recalled (recall, entry, tenant, node, hop, position)
        SELECT %s::bigint, given.* FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[])
        WITH ORDINALITY given"""
    return [Say(statement, (sequence, *columns))]
