"""How answers travel between tenants, and what is held back, on PostgreSQL.

An entry's row names the quarantines that hold it, in their order, so that reading it costs no
second look; the receipts keep what each of them held.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from stemma.entry import Entry
from stemma.outcome import Held, Quarantine
from stemma.stores.postgres_reads import portions
from stemma.stores.postgres_rows import ROW, escaped, state_of
from stemma.stores.postgres_steps import COMMIT, Rows, Say, Steps
from stemma.stores.postgres_writing import LOCK, save
from stemma.stores.sharing import Flow, Shared
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

# A record that is damaged names no documents.
_SHARED = """WITH documents AS (
        SELECT DISTINCT source ->> 3 AS owner, source ->> 0 AS document, e.id, e.tenant
        FROM entries e JOIN lineages l ON l.child = e.id
        CROSS JOIN LATERAL (SELECT
            CASE WHEN pg_input_is_valid(l.record, 'jsonb') THEN l.record::jsonb -> 1 END
        ) lineage (sources) CROSS JOIN LATERAL jsonb_array_elements(
            CASE jsonb_typeof(sources) WHEN 'array' THEN sources ELSE '[]' END
        ) source
    ), readers AS (
        SELECT owner, document, tenant, count(*) AS entries,
            count(*) OVER (PARTITION BY owner, document) AS tenants
        FROM documents WHERE owner IS NOT NULL AND document IS NOT NULL GROUP BY 1, 2, 3
    ) SELECT owner, document, tenant, entries FROM readers
    WHERE tenants > 1 OR (owner LIKE 'tenant:%' AND owner <> 'tenant:' || tenant)"""

# What is below 1e-100 counts as 0, and 500 half-lives as for ever: the server refuses to multiply
# numbers whose product is too small for it.
_WEIGHT = """CASE WHEN similarity < 1e-100 OR confidence < 1e-100 THEN 0
    ELSE similarity * confidence END"""
_FADED = "power(0.5::float8, least(greatest(%s::float8 - at, 0), %s::float8) / %s::float8)"
_FOR_EVER = 500.0

_RECEIPTS = """SELECT id, sequence, at, by, reason, threshold, seeds, lifted FROM quarantines
    WHERE %s::text IS NULL OR id = %s ORDER BY sequence DESC LIMIT %s"""
_HELD = """SELECT q.quarantine, q.entry, q.tenant, q.pool, q.node, q.hop, q.probability, q.doubtful
    FROM quarantined q JOIN (SELECT id FROM quarantines WHERE %s::text IS NULL OR id = %s
    ORDER BY sequence DESC LIMIT %s) r ON r.id = q.quarantine ORDER BY q.number"""

_NOTED = """INSERT INTO quarantined
    (quarantine, entry, tenant, pool, node, hop, probability, doubtful)
    SELECT %s, given.entry, given.tenant, given.pool, given.node, given.hop, given.probability,
    given.doubtful FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[],
    %s::float8[], %s::boolean[]) WITH ORDINALITY
    given (entry, tenant, pool, node, hop, probability, doubtful, place) ORDER BY place"""
_RECEIPT = """INSERT INTO quarantines (id, sequence, at, by, reason, threshold, seeds, lifted)
    VALUES (%s, %s, %s, %s, %s, %s, %s::text::json, %s) ON CONFLICT (id) DO UPDATE
    SET sequence = excluded.sequence, at = excluded.at, by = excluded.by,
    reason = excluded.reason, threshold = excluded.threshold, seeds = excluded.seeds,
    lifted = excluded.lifted"""


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
    found = (
        Shared(unescape(owner), unescape(document), unescape(tenant), entries)
        for owner, document, tenant, entries in rows
    )
    return tuple(sorted(found))


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
    """See `Sharing.hold`. Said again, as after a lost reply, it holds what it now names."""
    named = escaped(one.entry for one in quarantine.entries)
    there = Say("SELECT id FROM entries WHERE id = ANY(%s)", (named,))
    numbers, rows = yield [LOCK, there]
    state = state_of(numbers)
    state.sequence += 1
    state.epoch = state.sequence
    stored = {unescape(row[0]) for row in rows}
    entries = tuple(one for one in quarantine.entries if one.entry in stored)
    receipt = replace(quarantine, entries=entries, sequence=state.sequence)
    key = escape(receipt.id)
    yield [
        _freed(key),
        Say("DELETE FROM quarantined WHERE quarantine = %s", (key,)),
        _receipt(key, receipt),
        *([_noted(key, entries)] if entries else []),
        Say(
            "UPDATE entries SET held = array_append(held, %s) WHERE id = ANY(%s)",
            (key, [row[0] for row in rows]),
        ),
        *save(state),
        COMMIT,
    ]
    return receipt


def release(id: str, now: float) -> Steps[Quarantine | None]:
    """See `Sharing.release`."""
    key = escape(id)
    numbers, *told = yield [LOCK, *_asked(key, 1)]
    receipt = next(iter(_receipts(*told)), None)
    if receipt is None or receipt.lifted is not None:
        yield [COMMIT]
        return receipt
    state = state_of(numbers)
    state.sequence += 1
    state.epoch = state.sequence
    yield [
        _freed(key),
        Say("UPDATE quarantines SET lifted = %s WHERE id = %s", (float(now), key)),
        *save(state),
        COMMIT,
    ]
    return replace(receipt, lifted=now)


def quarantines(limit: int) -> Steps[tuple[Quarantine, ...]]:
    """See `Sharing.quarantines`."""
    *told, _ = yield [*_asked(None, limit), COMMIT]
    return _receipts(*told)


def _edges(rows: Rows) -> tuple[tuple[str, str], ...]:
    return tuple((unescape(parent), unescape(child)) for parent, child in rows)


def _freed(key: str) -> Say:
    """End what a quarantine holds, by its escaped id; others go on."""
    return Say(
        """UPDATE entries SET held = nullif(array_remove(held, %s), '{}')
        WHERE held IS NOT NULL AND id IN (SELECT entry FROM quarantined WHERE quarantine = %s)""",
        (key, key),
    )


def _receipt(key: str, receipt: Quarantine) -> Say:
    seeds = json.dumps({escape(one): float(p) for one, p in receipt.seeds.items()})
    by, reason = escaped((receipt.by, receipt.reason))
    times = (receipt.sequence, float(receipt.at))
    return Say(
        _RECEIPT,
        (key, *times, by, reason, float(receipt.threshold), seeds, receipt.lifted),
    )


def _noted(key: str, entries: Iterable[Held]) -> Say:
    rows = [
        (
            *escaped((one.entry, one.tenant)),
            None if one.pool is None else escape(one.pool),
            one.node,
            one.hop,
            float(one.probability),
            one.doubtful,
        )
        for one in entries
    ]
    return Say(_NOTED, (key, *map(list, zip(*rows, strict=True))))


def _asked(key: str | None, limit: int) -> list[Say]:
    """The receipts, newest first, and what they held: of one quarantine, or of all."""
    values = (key, key, limit)
    return [Say(_RECEIPTS, values), Say(_HELD, values)]


def _receipts(receipts: Rows, held: Rows) -> tuple[Quarantine, ...]:
    listed: dict[str, list[Held]] = {}
    for key, entry, tenant, pool, node, hop, probability, doubtful in held:
        one = Held(
            entry=unescape(entry),
            tenant=unescape(tenant),
            pool=None if pool is None else unescape(pool),
            node=node,
            hop=hop,
            probability=probability,
            doubtful=doubtful,
        )
        listed.setdefault(key, []).append(one)
    return tuple(
        Quarantine(
            id=unescape(key),
            seeds={unescape(one): float(p) for one, p in seeds.items()},
            threshold=threshold,
            by=unescape(by),
            reason=unescape(reason),
            at=at,
            entries=tuple(listed.get(key, ())),
            lifted=lifted,
            sequence=sequence,
        )
        for key, sequence, at, by, reason, threshold, seeds, lifted in receipts
    )
