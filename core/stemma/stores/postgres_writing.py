"""What a write transaction has changed, as statements: one per table, however many rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stemma.entry import Entry, Vector
from stemma.stores.postgres_rows import vector_cell
from stemma.stores.postgres_steps import Say
from stemma.stores.rows import pack
from stemma.stores.rules import State, Vouched
from stemma.stores.text import escape

__all__ = ["LOCK", "Changed", "Embedded", "drop", "link", "save", "trim", "write"]

LOCK = Say("SELECT sequence, epoch, recalled, forgotten FROM meta FOR UPDATE")
"""Waits for other writers, and reads the numbers. Held until the commit, it makes numbers visible
in their order."""


class Embedded(NamedTuple):
    """An entry with its vector."""

    entry: Entry
    vector: Vector


@dataclass(slots=True)
class Changed:
    """What some puts changed. Ids, and all texts but a tenant's, are escaped.

    Args:
        entries: Entries put, with their lineages' checksums.
        marked: Entries of which something was judged, likewise.
        vectors: Of each entry put, its vector or that it has none any more.
        removed: Sequence, group and id of vectors that went.
        lifted: Entries that no quarantine holds any more.
        unlinked: Entries that had another lineage before.
        lineages: New lineages: tenant, record, parents, documents and chunks.
        sources: What indexes said of chunks.
    """

    entries: dict[str, tuple[Entry, int]] = field(default_factory=dict)
    marked: dict[str, tuple[Entry, int]] = field(default_factory=dict)
    vectors: dict[str, Embedded | None] = field(default_factory=dict)
    removed: list[tuple[int, str, str]] = field(default_factory=list)
    lifted: set[str] = field(default_factory=set)
    unlinked: set[str] = field(default_factory=set)
    lineages: dict[str, tuple[str, str, set[str], set[str]]] = field(default_factory=dict)
    sources: dict[tuple[str, str, str], Vouched] = field(default_factory=dict)


def write(changed: Changed) -> Iterator[Say]:
    """The statements that write what changed, but for the numbers."""
    yield from _entries(changed)
    yield from _labels(changed)
    yield from _lineages(changed)
    yield from _vectors(changed)
    if changed.sources:
        rows = [(*k, escape(v.content), v.seen, *v.watched) for k, v in changed.sources.items()]
        yield _insert(
            'sources (owner, "index", chunk, content, seen, first, last, checks, changes)',
            (*["text"] * 4, "bigint", *["double precision"] * 2, *["bigint"] * 2),
            rows,
            'ON CONFLICT (owner, "index", chunk) '
            "DO UPDATE SET content = excluded.content, seen = excluded.seen, "
            "first = excluded.first, last = excluded.last, "
            "checks = excluded.checks, changes = excluded.changes",
        )


def save(state: State) -> Iterator[Say]:
    """Write the store's numbers. The last thing before the commit."""
    yield Say(
        "UPDATE meta SET sequence = %s, epoch = %s, recalled = %s, "
        "forgotten = greatest(forgotten, %s)",
        (state.sequence, state.epoch, state.recalled, state.forgotten),
    )


def trim(reach: int) -> Say:
    """Forget removed vectors beyond a number of them, and note how far the log reaches back."""
    return Say(
        """WITH beyond AS (
            DELETE FROM removed WHERE number <= (SELECT max(number) FROM removed) - %s
            RETURNING sequence
        ) UPDATE meta SET forgotten = greatest(forgotten, (SELECT max(sequence) FROM beyond))
        WHERE EXISTS (SELECT FROM beyond)""",
        (reach,),
    )


def drop(ids: Sequence[str], sequence: int) -> Iterator[Say]:
    """Remove entries by their escaped ids, and log their vectors as removed."""
    named = (list(ids),)
    yield Say(
        """INSERT INTO removed (sequence, "group", entry)
        SELECT %s, "group", entry FROM vectors WHERE entry = ANY(%s)""",
        (sequence, *named),
    )
    yield Say("DELETE FROM vectors WHERE entry = ANY(%s)", named)
    yield Say("DELETE FROM labels WHERE entry = ANY(%s)", named)
    yield Say("DELETE FROM entries WHERE id = ANY(%s)", named)


def link(lineages: dict[str, tuple[str, str, set[str], set[str]]]) -> Iterator[Say]:
    """Enter the edges of some lineages, unless they are there. Each gives those that were not."""
    edges = [(p, child) for child, (_, _, parents, _) in lineages.items() for p in parents]
    elements = [
        (name, child, escape(tenant))
        for child, (tenant, _, _, names) in lineages.items()
        for name in names
    ]
    if edges:
        yield _insert("edges (parent, child)", ("text",) * 2, edges, "ON CONFLICT DO NOTHING")
    if elements:
        table = "source_edges (element, child, tenant)"
        yield _insert(table, ("text",) * 3, elements, "ON CONFLICT DO NOTHING")


def _entries(changed: Changed) -> Iterator[Say]:
    rows = [(*pack(entry, total), entry.sequence) for entry, total in changed.entries.values()]
    if rows:
        columns = ("tenant", "node", "model", '"index"', "hop", "record", "sequence")
        sets = ", ".join(f"{name} = excluded.{name}" for name in columns)
        yield _insert(
            f"entries (id, {', '.join(columns)})",
            ("text", "text", "text", "text", "text", "bigint", "bytea", "bigint"),
            rows,
            f"ON CONFLICT (id) DO UPDATE SET {sets}",
        )
    for key, (entry, total) in changed.marked.items():
        yield Say("UPDATE entries SET record = %s WHERE id = %s", (pack(entry, total)[6], key))
    if changed.lifted:
        yield Say("UPDATE entries SET held = NULL WHERE id = ANY(%s)", (list(changed.lifted),))


def _labels(changed: Changed) -> Iterator[Say]:
    if not changed.entries:
        return
    yield Say("DELETE FROM labels WHERE entry = ANY(%s)", (list(changed.entries),))
    rows = [
        (name, escape(value), key, escape(entry.tenant))
        for key, (entry, _) in changed.entries.items()
        for name, value in _named(entry)
    ]
    if rows:
        table = "labels (name, value, entry, tenant)"
        yield _insert(table, ("text",) * 4, rows, "ON CONFLICT DO NOTHING")


def _named(entry: Entry) -> Iterator[tuple[str, str]]:
    """By what an entry is found that has no column: names and values."""
    for name, value in entry.labels.pairs():
        if name in ("tag", "writer", "subject"):
            yield name, value
    if entry.offer is not None:
        yield "offer", entry.offer.place.id


def _lineages(changed: Changed) -> Iterator[Say]:
    if changed.unlinked:
        former = (list(changed.unlinked),)
        yield Say("DELETE FROM edges WHERE child = ANY(%s)", former)
        yield Say("DELETE FROM source_edges WHERE child = ANY(%s)", former)
    if changed.lineages:
        yield _insert(
            "lineages (child, tenant, record)",
            ("text",) * 3,
            [(key, escape(one[0]), one[1]) for key, one in changed.lineages.items()],
            "ON CONFLICT (child) DO UPDATE SET tenant = excluded.tenant, record = excluded.record",
        )
        yield from link(changed.lineages)


def _vectors(changed: Changed) -> Iterator[Say]:
    if not changed.vectors:
        return
    if changed.removed:
        table = 'removed (sequence, "group", entry)'
        yield _insert(table, ("bigint", "text", "text"), changed.removed)
    yield Say("DELETE FROM vectors WHERE entry = ANY(%s)", (list(changed.vectors),))
    rows = []
    for key, kept in changed.vectors.items():
        if kept is not None:
            entry, vector = kept
            cell, total = vector_cell(entry, vector)
            texts = (key, escape(entry.group), escape(entry.tenant))
            rows.append((*texts, entry.sequence, cell, total))
    if rows:
        yield Say(
            """INSERT INTO vectors (entry, "group", tenant, sequence, vector, checksum)
            SELECT entry, "group", tenant, sequence, cell::embedding, checksum
            FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[], %s::bigint[])
            given (entry, "group", tenant, sequence, cell, checksum)""",
            _columns(rows),
        )


def _insert(table: str, types: Sequence[str], rows: Iterable[Sequence[Any]], tail: str = "") -> Say:
    """Insert rows, sent column by column. Table, types and tail are constants of this package."""
    arrays = ", ".join(f"%s::{one}[]" for one in types)
    return Say(f"INSERT INTO {table} SELECT * FROM unnest({arrays}) {tail}", _columns(rows))  # noqa: S608


def _columns(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
