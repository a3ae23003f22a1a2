"""Looking a PostgreSQL store through: damage is found, and what can be mended is mended."""

from __future__ import annotations

from typing import Any

from stemma.stores.postgres_rows import ROW, VECTOR, ends, state_of, vector_of
from stemma.stores.postgres_steps import COMMIT, Say, Steps
from stemma.stores.postgres_writing import LOCK, drop, link, save, trim
from stemma.stores.rows import unpack, unpack_lineage
from stemma.stores.text import Damaged, unescape

__all__ = ["look_through"]

# ruff: noqa: S608 - statements are put together from constants of this package

_PORTION = 1000
_ENTRIES = f"""SELECT {ROW}, l.record, e.sequence FROM entries e
    LEFT JOIN lineages l ON l.child = e.id WHERE e.id > %s ORDER BY e.id LIMIT {_PORTION}"""
_VECTORS = f"SELECT {VECTOR} FROM vectors v WHERE v.entry > %s ORDER BY v.entry LIMIT {_PORTION}"
_LINEAGES = f"""SELECT child, tenant, record FROM lineages
    WHERE child > %s ORDER BY child LIMIT {_PORTION}"""

_ORPHANS = {
    "vectors of no entry": "vectors WHERE NOT EXISTS (SELECT FROM entries WHERE id = entry)",
    "labels of no entry": "labels WHERE NOT EXISTS (SELECT FROM entries WHERE id = entry)",
    "holds of no quarantine": """quarantined WHERE NOT EXISTS
        (SELECT FROM quarantines WHERE id = quarantine)""",
    "edges of no lineage": """edges WHERE NOT EXISTS
        (SELECT FROM lineages WHERE lineages.child = edges.child)""",
    "source edges of no lineage": """source_edges WHERE NOT EXISTS
        (SELECT FROM lineages WHERE lineages.child = source_edges.child)""",
}


def look_through(reach: int) -> Steps[tuple[str, ...]]:
    """Say what is wrong, and mend it. Writers wait meanwhile. See `Store.check`.

    Args:
        reach: How many removed vectors are remembered.
    """
    (numbers,) = yield [LOCK]
    state = state_of(numbers)
    told: list[str] = []
    damaged = yield from _damaged(_ENTRIES, _sound_entry)
    if damaged:
        state.sequence += 1
        state.epoch = state.sequence
        yield list(drop(damaged, state.sequence))
        told.append(f"{len(damaged)} damaged entries: removed")
    vectors = yield from _damaged(_VECTORS, _sound_vector)
    if vectors:
        state.sequence += 1
        yield [_logged(vectors, state.sequence), _unlogged(vectors)]
        told.append(
            f"{len(vectors)} damaged vectors: removed; these entries are found exactly only"
        )
    for what, rows in _ORPHANS.items():
        statement = f"WITH gone AS (DELETE FROM {rows} RETURNING 1) SELECT count(*) FROM gone"
        (((count,),),) = yield [Say(statement)]
        if count:
            told.append(f"{count} {what}: removed")
    restored = yield from _restore_edges()
    if restored:
        told.append(
            f"{restored} edges were missing from the tables that a recall follows: restored"
        )
    yield [trim(reach), *save(state), COMMIT]
    return tuple(told)


def _damaged(statement: str, sound: Any) -> Steps[list[str]]:
    """The keys, escaped, of those rows that are not what was written."""
    found: list[str] = []
    after = ""
    while True:
        (rows,) = yield [Say(statement, (after,))]
        found += [row[0] for row in rows if not sound(row)]
        if len(rows) < _PORTION:
            return found
        after = rows[-1][0]


def _sound_entry(row: tuple[Any, ...]) -> bool:
    *columns, record, sequence = row
    try:
        entry, total = unpack(columns)
        unpack_lineage("" if record is None else record, total)
    except Damaged:
        return False
    return bool(entry.sequence == sequence)


def _sound_vector(row: tuple[Any, ...]) -> bool:
    try:
        vector_of(row)
    except Damaged:
        return False
    return True


def _logged(vectors: list[str], sequence: int) -> Say:
    return Say(
        """INSERT INTO removed (sequence, "group", entry)
        SELECT %s, "group", entry FROM vectors WHERE entry = ANY(%s)""",
        (sequence, vectors),
    )


def _unlogged(vectors: list[str]) -> Say:
    return Say("DELETE FROM vectors WHERE entry = ANY(%s)", (vectors,))


def _restore_edges() -> Steps[int]:
    """Enter every lineage's edges again; gives how many were not there."""
    restored = 0
    after = ""
    while True:
        (rows,) = yield [Say(_LINEAGES, (after,))]
        known = {}
        for child, tenant, record in rows:
            try:
                known[child] = (unescape(tenant), record, *ends(unpack_lineage(record)))
            except Damaged:
                continue  # of a stored entry, it was found above; of one that went, no proof is
        for say in link(known):
            counted = f"WITH new AS ({say.text} RETURNING 1) SELECT count(*) FROM new"
            (((count,),),) = yield [Say(counted, say.values)]
            restored += count
        if len(rows) < _PORTION:
            return restored
        after = rows[-1][0]
