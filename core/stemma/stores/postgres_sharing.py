"""How answers travel between tenants, and what is held back, on PostgreSQL.

An entry's row names the quarantines that hold it, in their order, so that reading it costs no
second look; the receipts keep what each of them held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stemma.entry import Entry
from stemma.outcome import Quarantine
from stemma.stores.postgres_reads import portions
from stemma.stores.postgres_rows import ROW, escaped, state_of
from stemma.stores.postgres_steps import COMMIT, Rows, Say, Steps
from stemma.stores.postgres_writing import LOCK, save
from stemma.stores.sharing import Flow, Shared, several
from stemma.stores.sharing_rows import HELD, RECEIPT, held_row, receipt_row, receipts
from stemma.stores.text import escape, unescape

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

_OFFERED = f"""SELECT {ROW}, e.sequence FROM labels l JOIN entries e ON e.id = l.entry
    WHERE l.value = %s AND l.name = 'offer' AND e.sequence > %s ORDER BY e.sequence LIMIT %s"""

_DESCENT = """WITH RECURSIVE down (id) AS (
        SELECT unnest(%s::text[]) COLLATE "C" UNION
        SELECT edges.child FROM down JOIN edges ON edges.parent = down.id
    ) SELECT edges.parent, edges.child FROM down JOIN edges ON edges.parent = down.id
    JOIN entries e ON e.id = edges.child ORDER BY e.sequence, edges.parent"""

_CROSSED = """SELECT edges.parent, edges.child FROM edges
    JOIN entries child ON child.id = edges.child JOIN entries parent ON parent.id = edges.parent
    WHERE child.tenant <> parent.tenant ORDER BY child.sequence DESC, edges.parent LIMIT %s"""

# Read from the lineages: a table of who read which document would cost every put a write more. A
# record that is damaged names none.
_SHARED = """SELECT source ->> 3, source ->> 0, e.tenant, count(DISTINCT e.id)
    FROM entries e JOIN lineages l ON l.child = e.id CROSS JOIN LATERAL (
        SELECT CASE WHEN pg_input_is_valid(l.record, 'jsonb') THEN l.record::jsonb -> 1 END
    ) lineage (sources) CROSS JOIN LATERAL jsonb_array_elements(
        CASE jsonb_typeof(sources) WHEN 'array' THEN sources ELSE '[]' END
    ) source WHERE l.record <> '' AND source ->> 3 IS NOT NULL AND source ->> 0 IS NOT NULL
    GROUP BY 1, 2, 3"""

# What is below 1e-100 counts as 0, and 500 half-lives as for ever: the server refuses to multiply
# numbers whose product is too small for it.
_WEIGHT = """CASE WHEN similarity < 1e-100 OR confidence < 1e-100 THEN 0
    ELSE similarity * confidence END"""
_FADED = "power(0.5::float8, least(greatest(%s::float8 - at, 0), %s::float8) / %s::float8)"
_FOR_EVER = 500.0

_RECEIPTS = f"""SELECT {RECEIPT}, lifted FROM quarantines
    WHERE %s::text IS NULL OR id = %s ORDER BY sequence DESC LIMIT %s"""
_LISTED = f"""SELECT quarantine, {HELD} FROM quarantined
    JOIN (SELECT id FROM quarantines WHERE %s::text IS NULL OR id = %s
    ORDER BY sequence DESC LIMIT %s) r ON r.id = quarantine ORDER BY number"""

_RECEIPT = f"INSERT INTO quarantines ({RECEIPT}) VALUES (%s, %s, %s, %s, %s, %s, %s)"
_HELD = f"""INSERT INTO quarantined (quarantine, {HELD}) SELECT %s, {HELD}
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::float8[],
    %s::boolean[]) WITH ORDINALITY given ({HELD}, place) ORDER BY place"""
_HOLD = "UPDATE entries SET held = array_append(held, %s) WHERE id = ANY(%s)"
_FREE = """UPDATE entries SET held = nullif(array_remove(held, %s), '{}')
    WHERE held IS NOT NULL AND id IN (SELECT entry FROM quarantined WHERE quarantine = %s)"""


def offered(place: str, limit: int) -> Steps[tuple[Entry, ...]]:
    """See `Sharing.offered`. What is damaged does not count."""
    found = yield from portions(_OFFERED, (escape(place),), 0, limit)
    yield [COMMIT]
    return found


def descent(ids: Sequence[str]) -> Steps[tuple[tuple[str, str], ...]]:
    """See `Sharing.descent`."""
    (rows,) = yield [Say(_DESCENT, (escaped(ids),))]
    return _edges(rows)


def crossed(limit: int) -> Steps[tuple[tuple[str, str], ...]]:
    """See `Sharing.crossed`."""
    (rows,) = yield [Say(_CROSSED, (limit,))]
    return _edges(rows)


def shared() -> Steps[tuple[Shared, ...]]:
    """See `Sharing.shared`."""
    (rows,) = yield [Say(_SHARED)]
    return several(
        Shared(unescape(owner), unescape(document), unescape(tenant), entries)
        for owner, document, tenant, entries in rows
    )


def flows(
    now: float, half_life: float | None, entries: Sequence[str] | None
) -> Steps[tuple[Flow, ...]]:
    """See `Sharing.flows`."""
    weight, values = f"sum({_WEIGHT})", list[object]()
    recent = weight
    if half_life is not None:
        recent = f"sum(({_WEIGHT}) * {_FADED})"
        values += [float(now), _FOR_EVER * half_life, float(half_life)]
    entry, wanted = "''", ""
    if entries is not None:
        entry, wanted = "entry", "WHERE entry = ANY(%s)"
        values.append(escaped(entries))
    statement = f"""SELECT producer, tenant, pool, node, {entry}, count(*), {weight}, {recent},
        min(at), max(at) FROM servings {wanted} GROUP BY 1, 2, 3, 4, 5"""
    (rows,) = yield [Say(statement, values)]
    return tuple(sorted(Flow._make((*map(unescape, row[:5]), *row[5:])) for row in rows))


def hold(quarantine: Quarantine) -> Steps[Quarantine]:
    """See `Sharing.hold`."""
    key = escape(quarantine.id)
    named = escaped(one.entry for one in quarantine.entries)
    there = Say("SELECT id FROM entries WHERE id = ANY(%s)", (named,))
    numbers, rows, *told = yield [LOCK, there, *_asked(key, 1)]
    for former in receipts(*told):
        yield [COMMIT]
        return former
    state = state_of(numbers)
    state.sequence += 1
    state.epoch = state.sequence
    stored = {unescape(row[0]) for row in rows}
    entries = tuple(one for one in quarantine.entries if one.entry in stored)
    receipt = replace(quarantine, entries=entries, sequence=state.sequence)
    yield [Say(_RECEIPT, receipt_row(receipt)), *_held(key, receipt), *save(state), COMMIT]
    return receipt


def release(id: str, now: float) -> Steps[Quarantine | None]:
    """See `Sharing.release`."""
    key = escape(id)
    numbers, *told = yield [LOCK, *_asked(key, 1)]
    receipt = next(iter(receipts(*told)), None)
    if receipt is None or receipt.lifted is not None:
        yield [COMMIT]
        return receipt
    state = state_of(numbers)
    state.sequence += 1
    state.epoch = state.sequence
    yield [
        Say(_FREE, (key, key)),
        Say("UPDATE quarantines SET lifted = %s WHERE id = %s", (float(now), key)),
        *save(state),
        COMMIT,
    ]
    return replace(receipt, lifted=now)


def quarantines(limit: int) -> Steps[tuple[Quarantine, ...]]:
    """See `Sharing.quarantines`."""
    *told, _ = yield [*_asked(None, limit), COMMIT]
    return receipts(*told)


def _edges(rows: Rows) -> tuple[tuple[str, str], ...]:
    return tuple((unescape(parent), unescape(child)) for parent, child in rows)


def _held(key: str, receipt: Quarantine) -> Iterator[Say]:
    """Have a quarantine hold what its receipt names."""
    rows = [held_row(one) for one in receipt.entries]
    if rows:
        entries, *rest = map(list, zip(*rows, strict=True))
        yield Say(_HELD, (key, entries, *rest))
        yield Say(_HOLD, (key, entries))


def _asked(key: str | None, limit: int) -> list[Say]:
    """The receipts, newest first, and what they hold: of one quarantine, or of all."""
    values = (key, key, limit)
    return [Say(_RECEIPTS, values), Say(_LISTED, values)]
