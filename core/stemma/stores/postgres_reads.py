"""Reading from PostgreSQL: entries, ancestries, vectors, what changed, what is nearest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from stemma.entry import Entry, Lineage, Vector
from stemma.errors import StoreError
from stemma.selector import Selector
from stemma.stores.postgres_rows import ROW, VECTOR, escaped, state_of, vectors_of, where
from stemma.stores.postgres_steps import COMMIT, Say, Steps
from stemma.stores.protocol import Ancestor, Ancestry, Changes, Fetched, edge_sources
from stemma.stores.rows import Half, ancestor, unpack, unpack_derived, unpack_lineage
from stemma.stores.text import Damaged, escape, unescape

__all__ = [
    "ancestry",
    "changes",
    "children",
    "find",
    "get",
    "lineage",
    "nearest",
    "portions",
    "sequence",
    "sizes",
    "vectors",
]

# ruff: noqa: S608 - statements are put together from constants of this package

_NUMBERS = Say("SELECT sequence, epoch, recalled, forgotten FROM meta")
_GET = f"""SELECT m.sequence, m.epoch, m.recalled, m.forgotten, {ROW}
    FROM meta m LEFT JOIN entries e ON e.id = ANY(%s)"""
_UP = f"""WITH RECURSIVE up (id) AS (
        SELECT %s::text COLLATE "C" UNION
        SELECT edges.parent FROM up JOIN entries ON entries.id = up.id
        JOIN edges ON edges.child = up.id
    ) SELECT {ROW}, l.record FROM up JOIN entries e ON e.id = up.id
    LEFT JOIN lineages l ON l.child = e.id"""
_CURRENT = """SELECT s.owner, s."index", s.chunk, s.content
    FROM unnest(%s::text[], %s::text[], %s::text[]) asked (owner, "index", chunk)
    JOIN sources s USING (owner, "index", chunk)"""
_SINCE = f"SELECT {VECTOR} FROM vectors v WHERE v.sequence > %s ORDER BY v.sequence"
_REMOVED = """SELECT DISTINCT r."group", r.entry FROM removed r
    WHERE r.sequence > %s AND NOT EXISTS (SELECT FROM vectors v
    WHERE v.entry = r.entry AND v."group" = r."group")"""
_NEAREST = f"""SELECT {VECTOR} FROM vectors v WHERE v."group" = %s
    ORDER BY distance(v.vector, %s::question) LIMIT %s"""
_SPARE = 8
"""As many more are asked for than are wanted: the server's arithmetic may confuse near equals."""


def get(ids: Sequence[str]) -> Steps[Fetched]:
    """Entries by id. See `Store.get`.

    Raises:
        StoreError: The reply has an entry that was not asked for.
    """
    asked = escaped(ids)
    (rows,) = yield [Say(_GET, (asked,))]
    state = state_of([row[:4] for row in rows[:1]])
    entries: dict[str, Entry] = {}
    damaged: tuple[str, ...] = ()
    known = set(asked)
    for row in (row[4:] for row in rows):
        if row[0] is None:
            continue
        if row[0] not in known:
            raise StoreError("the reply has an entry that was not asked for")
        try:
            entry, _ = unpack(row)
            entries[entry.id] = entry
        except Damaged:
            damaged = (*damaged, unescape(row[0]))
    return Fetched(entries=entries, sequence=state.sequence, epoch=state.epoch, damaged=damaged)


def ancestry(id: str) -> Steps[Ancestry | None]:
    """An entry with everything above it. See `Store.ancestry`. What is damaged is not there."""
    numbers, rows = yield [_NUMBERS, Say(_UP, (escape(id),))]
    epoch = state_of(numbers).epoch
    read: dict[str, Ancestor] = {}
    for *row, record in rows:
        with suppress(Damaged):
            one = ancestor(*unpack_derived(row, record))
            read[one.id] = one
    found = _above(id, read)
    sources = edge_sources([one.lineage for one in found.values()])
    vouched = {(s.owner, s.index, s.chunk) for s in sources if s.index}
    if not vouched:
        yield [COMMIT]
        return Ancestry(entries=found, current={}, epoch=epoch) if found else None
    columns = [escaped(column) for column in zip(*vouched, strict=True)]
    told, _ = yield [Say(_CURRENT, columns), COMMIT]
    current = {
        (unescape(owner), unescape(index), unescape(chunk)): unescape(content)
        for owner, index, chunk, content in told
    }
    return Ancestry(entries=found, current=current, epoch=epoch)


def changes(after: int) -> Steps[Changes]:
    """What changed for an index since a sequence. See `Store.changes`."""
    numbers, *told = yield [_NUMBERS, Say(_SINCE, (after,)), Say(_REMOVED, (after,))]
    state = state_of(numbers)
    rebuild = 0 < after < state.forgotten
    if rebuild:
        told = yield [Say(_SINCE, (0,)), COMMIT]
    else:
        yield [COMMIT]
    kept = vectors_of(told[0])
    removed = told[1] if after and not rebuild else []
    return Changes(
        ids=[name for name, _, _ in kept],
        groups=[group for _, group, _ in kept],
        vectors=[vector for _, _, vector in kept],
        removed=tuple((unescape(group), unescape(name)) for group, name in removed),
        sequence=state.sequence,
        rebuild=rebuild,
    )


def vectors(ids: Sequence[str]) -> Steps[Mapping[str, Half]]:
    """The vectors of some entries. See `Store.vectors`."""
    (rows,) = yield [
        Say(f"SELECT {VECTOR} FROM vectors v WHERE v.entry = ANY(%s)", (escaped(ids),))
    ]
    return {name: vector for name, _, vector in vectors_of(rows)}


def nearest(group: str, vector: Vector, k: int) -> Steps[tuple[tuple[str, float], ...]]:
    """The ids nearest to a vector within a group, with their similarities, nearest first.

    The server reads the whole group, so that these are the true nearest; the similarities are
    computed here once more, from the vectors it gave.
    """
    asked = np.asarray(vector, dtype=np.float32)
    size = float(np.linalg.norm(asked.astype(np.float64)))
    if k < 1 or not size or not np.isfinite(size):
        return ()
    cell = f"[{','.join(map(repr, (asked / np.float32(size)).tolist()))}]"
    (rows,) = yield [Say(_NEAREST, (escape(group), cell, k + _SPARE))]
    found = []
    for name, _, half in vectors_of(rows):
        kept = half.astype(np.float64)
        length = float(np.linalg.norm(kept))
        if len(kept) == len(asked) and length:
            found.append((name, float(kept @ asked) / (length * size)))
    return tuple(sorted(found, key=lambda one: -one[1])[:k])


def lineage(id: str) -> Steps[Lineage | None]:
    """What an entry was built from. See `Store.lineage`.

    Raises:
        StoreError: The record is damaged.
    """
    (rows,) = yield [Say("SELECT record FROM lineages WHERE child = %s", (escape(id),))]
    try:
        return unpack_lineage(rows[0][0]) if rows else None
    except Damaged as error:
        raise StoreError(f"the lineage of {id} is damaged; run a check") from error


def children(id: str) -> Steps[tuple[str, ...]]:
    """The stored entries built on one. See `Store.children`."""
    statement = "SELECT e.id FROM edges JOIN entries e ON e.id = edges.child WHERE parent = %s"
    (rows,) = yield [Say(statement, (escape(id),))]
    return tuple(sorted(unescape(row[0]) for row in rows))


def find(
    selector: Selector | None, limit: int, before: int | None = None
) -> Steps[tuple[Entry, ...]]:
    """The entries that a selector selects, newest first. See `Store.find`.

    What is damaged does not count.
    """
    clauses, values = ("true", []) if selector is None else where(selector)
    statement = f"""SELECT {ROW}, e.sequence FROM entries e
        WHERE {clauses} AND e.sequence < %s ORDER BY e.sequence DESC LIMIT %s"""
    found = yield from portions(statement, values, 2**62 if before is None else before, limit)
    yield [COMMIT]
    return found


def portions(
    statement: str, values: Sequence[str], edge: int, limit: int
) -> Steps[tuple[Entry, ...]]:
    """The undamaged entries that a statement gives, portion after portion.

    Args:
        statement: Gives columns of `ROW` and the sequence, in its order; takes the values, the
            sequence where a portion begins, and how many are wanted.
        values: What to bind first.
        edge: Where the first portion begins.
        limit: How many are wanted at most.
    """
    found: list[Entry] = []
    while (wanted := min(limit - len(found), 1000)) > 0:
        (rows,) = yield [Say(statement, (*values, edge, wanted))]
        for *row, _ in rows:
            with suppress(Damaged):
                found.append(unpack(row)[0])
        if len(rows) < wanted:
            break
        edge = rows[-1][-1]
    return tuple(found)


def sizes() -> Steps[Mapping[tuple[str, str], int]]:
    """How many entries, by tenant and node. See `Store.sizes`."""
    (rows,) = yield [Say("SELECT tenant, node, count(*) FROM entries GROUP BY tenant, node")]
    return {(unescape(tenant), unescape(node)): count for tenant, node, count in rows}


def sequence() -> Steps[int]:
    """The store's sequence. See `Store.sequence`."""
    (rows,) = yield [_NUMBERS]
    return state_of(rows).sequence


def _above(id: str, read: Mapping[str, Ancestor]) -> dict[str, Ancestor]:
    """The entry and what lies above it along the lineages, as far as it is there."""
    found: dict[str, Ancestor] = {}
    waiting = [id]
    while waiting:
        name = waiting.pop()
        one = read.get(name)
        if one is not None and name not in found:
            found[name] = one
            waiting += [edge.parent for edge in one.lineage.parents]
    return found
