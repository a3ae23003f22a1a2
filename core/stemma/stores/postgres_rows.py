"""Rows of the PostgreSQL store, made into records: what is damaged is left out, or named."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from stemma.entry import Entry, Lineage, Vector
from stemma.errors import StoreError
from stemma.selector import Selector
from stemma.stores.rows import Half, half, pack_vector, unpack_vector
from stemma.stores.rules import State
from stemma.stores.text import Damaged, escape, unescape

__all__ = [
    "ROW",
    "VECTOR",
    "ends",
    "escaped",
    "selectors",
    "state_of",
    "vector_cell",
    "vector_of",
    "vectors_of",
    "where",
]

ROW = """e.id, e.tenant, e.node, e.model, e."index",
    CASE WHEN octet_length(e.record) <= 33554432 THEN e.record END, e.held[1]"""
"""An entry's columns as `stemma.stores.rows.unpack` takes them; a record too long is none."""

VECTOR = 'v.entry, v."group", v.vector, v.checksum'
"""A vector's columns as `vector_of` takes them."""

LONGEST = 16_000
"""As many numbers pgvector takes in a vector, 1 at least."""

_PARTS = ("source", "entry", "tenant", "tag", "writer", "subject", "model", "index", "node")
_LABELLED = "e.id IN (SELECT entry FROM labels WHERE value = %s AND name = '{}')"
_CLAUSES = {
    "source": "e.id IN (SELECT child FROM source_edges WHERE element = %s)",
    "entry": "e.id = %s",
    "tenant": "e.tenant = %s",
    "tag": _LABELLED.format("tag"),
    "writer": _LABELLED.format("writer"),
    "subject": _LABELLED.format("subject"),
    "model": "e.model = %s",
    "index": 'e."index" = %s',
    "node": "e.node = %s",
}
_BEFORE_NUMBERS = struct.calcsize(">HH")


def escaped(texts: Iterable[str]) -> list[str]:
    """Some texts as they are written."""
    return [escape(text) for text in texts]


def state_of(rows: Sequence[Sequence[Any]]) -> State:
    """The store's numbers, from the row of `meta`.

    Raises:
        StoreError: There is no such row to be seen.
    """
    if len(rows) != 1:
        raise StoreError(
            "the store's numbers cannot be seen: either this role does not own the tables (then "
            "open the store with tenant=…, or by the role that made them), or they were restored "
            "in part"
        )
    return State(*rows[0])


def where(selector: Selector) -> tuple[str, list[str]]:
    """What a selector says of a row `e` of entries, in constant clauses, and the values to bind."""
    parts = selector.parts()
    return " AND ".join(_CLAUSES[name] for name in parts), escaped(parts.values())


def selectors(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Selector]]:
    """The recalls of some rows: sequence and selector."""
    for sequence, *parts in rows:
        named = zip(_PARTS, parts, strict=True)
        yield sequence, Selector(**{k: unescape(v) for k, v in named if v is not None})


def ends(lineage: Lineage) -> tuple[set[str], set[str]]:
    """The other ends of a lineage's edges, escaped: parents, and documents with chunks."""
    parents = {escape(edge.parent) for edge in lineage.parents}
    sources = [edge.source for edge in lineage.sources]
    return parents, {escape(name) for one in sources for name in (one.document, one.chunk)}


def vector_cell(entry: Entry, vector: Vector) -> tuple[str, int]:
    """A vector as pgvector reads it, and its checksum.

    Raises:
        StoreError: pgvector cannot hold it.
    """
    numbers = half(vector).tolist()
    if not 0 < len(numbers) <= LONGEST or not all(map(math.isfinite, numbers)):
        raise StoreError(
            f"the vector of {entry.id} cannot be stored: it must have 1 to {LONGEST} numbers, all "
            "within ±65504"
        )
    return f"[{','.join(map(repr, numbers))}]", pack_vector(entry.id, entry.group, vector)[3]


def vector_of(row: Sequence[Any]) -> tuple[str, str, Half]:
    """Entry, group and vector of a row, from pgvector's binary form of it.

    Raises:
        Damaged: The row is not what was written.
    """
    name, group, cell, written = row
    try:
        (length,) = struct.unpack_from(">H", cell)
        size, left = divmod(len(cell) - _BEFORE_NUMBERS, length)
        if left or size not in (2, 4):
            raise Damaged
        numbers = np.frombuffer(cell, dtype=f">f{size}", offset=_BEFORE_NUMBERS)
        with np.errstate(over="ignore"):
            data = numbers.astype("<f2").tobytes()
    except (struct.error, ZeroDivisionError) as error:
        raise Damaged from error
    return unpack_vector((name, group, data, written))


def vectors_of(rows: Iterable[Sequence[Any]]) -> list[tuple[str, str, Half]]:
    """The undamaged vectors of some rows, with entry and group."""
    kept = []
    for row in rows:
        with suppress(Damaged):
            kept.append(vector_of(row))
    return kept
