"""The stored form of entries, lineages and vectors: packed, checksummed, unpacked again.

What a selector can name has a column of its own. The other texts of an entry are packed into one
(`facts`), its numbers into one blob (`numbers`): the exact read is the hot path, and every column
costs it a tenth of a microsecond. The checksum covers all of them.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from stemma.codec import MAX_PAYLOAD
from stemma.entry import Cost, Edge, Entry, Lineage, Source, SourceEdge, Vector, checksum
from stemma.errors import StoreError
from stemma.scope import NODES, Labels
from stemma.stores.text import ESCAPE, SEPARATOR, Damaged, escape, unescape

__all__ = [
    "Half",
    "half",
    "hop_of",
    "pack",
    "pack_lineage",
    "pack_vector",
    "unpack",
    "unpack_lineage",
    "unpack_vector",
]

Half = np.ndarray[tuple[int], np.dtype[np.float16]]

_NO_LABELS = Labels()
_VERDICTS = ("unknown", "supported", "hallucinated")
_numbers = struct.Struct("<6d7q")
_array = json.JSONEncoder(separators=(",", ":")).encode
# A frozen record's own __init__ takes nearly twice as long as setting its slots does.
_set_slots: tuple[Callable[[Entry, Any], None], ...] = tuple(
    getattr(Entry, field.name).__set__ for field in fields(Entry)
)


def pack(entry: Entry, lineage: int) -> tuple[Any, ...]:
    """An entry as a row: id, tenant, node, model, index, facts, numbers, payload, focus, checksum.

    Args:
        entry: The entry.
        lineage: The checksum of its packed lineage.

    Raises:
        StoreError: A number is too large to be stored.
    """
    texts = (entry.id, entry.tenant, entry.node, entry.model, entry.index)
    facts = (
        entry.partition,
        entry.group,
        entry.codec,
        entry.value,
        "" if entry.pool is None else f"={entry.pool}",
        "" if entry.labels == _NO_LABELS else _pack_labels(entry.labels),
        entry.verdict,
    )
    columns = (
        *map(escape, texts),
        SEPARATOR.join(map(escape, facts)),
        _pack_numbers(entry, lineage),
    )
    focus = None if entry.focus is None else escape(entry.focus)
    return (*columns, entry.payload, focus, _sum(columns, entry.payload, focus))


def unpack(row: Sequence[Any]) -> tuple[Entry, int]:
    """The entry of a row as `pack` gives it, and the checksum of its packed lineage.

    Raises:
        Damaged: The row is not what was written.
    """
    name, tenant, node, model, index, facts, numbers, payload, focus, written = row
    try:
        if len(payload) > MAX_PAYLOAD or written != _sum(row[:7], payload, focus):
            raise Damaged
        texts = facts if focus is None else facts + focus
        packed = facts.split(SEPARATOR)
        if ESCAPE in texts or ESCAPE in name or ESCAPE in tenant or ESCAPE in model + index:
            name, tenant, model, index = map(unescape, (name, tenant, model, index))
            focus = None if focus is None else unescape(focus)
            packed = [unescape(fact) for fact in packed]
        partition, group, codec, value, pool, labels, verdict = packed
        confidence, seconds, made, verified, expires, proven, *whole = _numbers.unpack(numbers)
        hop, tokens, derived, schema, sequence, epoch, lineage = whole
        if node not in NODES or verdict not in _VERDICTS:
            raise Damaged
        values = (
            name,
            partition,
            group,
            tenant,
            node,
            payload,
            codec,
            value,
            pool[1:] if pool else None,
            model,
            index,
            _unpack_labels(labels) if labels else _NO_LABELS,
            focus,
            hop,
            confidence,
            Cost(tokens=tokens, seconds=seconds),
            made,
            verified,
            None if math.isnan(expires) else expires,
            verdict,
            derived == 1,
            schema,
            sequence,
            epoch,
            None if math.isnan(proven) else proven,
        )
    except (TypeError, ValueError, AttributeError, struct.error) as error:
        raise Damaged from error
    entry = object.__new__(Entry)
    for put, one in zip(_set_slots, values, strict=True):
        put(entry, one)
    return entry, lineage


def hop_of(numbers: Any) -> int:
    """The hop in an entry's packed numbers; 1 where they are damaged."""
    try:
        return int(_numbers.unpack(numbers)[6])
    except (TypeError, struct.error):
        return 1


def _sum(columns: Sequence[Any], payload: Any, focus: Any) -> int:
    return checksum((*columns[:6], columns[6].decode("latin-1")), payload, focus)


def _pack_numbers(entry: Entry, lineage: int) -> bytes:
    try:
        return _numbers.pack(
            entry.confidence,
            entry.cost.seconds,
            entry.made,
            entry.verified,
            math.nan if entry.expires is None else entry.expires,
            math.nan if entry.proven_until is None else entry.proven_until,
            entry.hop,
            entry.cost.tokens,
            entry.derived,
            entry.schema,
            entry.sequence,
            entry.epoch,
            lineage,
        )
    except (struct.error, OverflowError) as error:
        raise StoreError(
            f"the entry {entry.id} has a number that cannot be stored: {error}"
        ) from error


def _pack_labels(labels: Labels) -> str:
    single = (labels.session, labels.user, labels.arm, labels.subject, labels.writer)
    texts = [None if text is None else escape(text) for text in single]
    return _array([*texts, [escape(tag) for tag in labels.tags]])


def _unpack_labels(line: str) -> Labels:
    *texts, tags = json.loads(line)
    session, user, arm, subject, writer = (
        None if text is None else unescape(text) for text in texts
    )
    return Labels(
        session=session,
        user=user,
        arm=arm,
        subject=subject,
        writer=writer,
        tags=tuple(map(unescape, tags)),
    )


def pack_lineage(lineage: Lineage) -> tuple[str, int]:
    """A lineage as one line of ASCII JSON (empty for an empty one), and its checksum."""
    if not lineage:
        return "", 0
    parents = [[escape(edge.parent), escape(edge.value), edge.known] for edge in lineage.parents]
    sources = []
    for edge in lineage.sources:
        one = edge.source
        texts = (one.document, one.chunk, one.content, one.owner, one.index, edge.known)
        sources.append([escape(text) for text in texts])
    line = _array([parents, sources])
    return line, zlib.crc32(line.encode("ascii"))


def unpack_lineage(line: str, written: int | None = None) -> Lineage:
    """The lineage of a packed line.

    Raises:
        Damaged: The line is not one of ours, or not the one whose checksum is `written`.
    """
    try:
        if written is not None and written != (zlib.crc32(line.encode("ascii")) if line else 0):
            raise Damaged
        if not line:
            return Lineage()
        parents, sources = json.loads(line)
        return Lineage(
            parents=tuple(
                Edge(parent=unescape(parent), value=unescape(value), known=_known(known))
                for parent, value, known in parents
            ),
            sources=tuple(_source_edge([unescape(text) for text in texts]) for texts in sources),
        )
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Damaged from error


def _source_edge(texts: list[str]) -> SourceEdge:
    document, chunk, content, owner, index, known = texts
    source = Source(document=document, chunk=chunk, content=content, owner=owner, index=index)
    return SourceEdge(source=source, known=_known(known))


def _known(text: str) -> Any:
    if text not in ("observed", "ambient"):
        raise Damaged
    return text


def half(vector: Vector) -> Half:
    """The vector as float16; what is too large for it becomes infinite."""
    with np.errstate(over="ignore"):
        return vector.astype("<f2")


def pack_vector(id: str, group: str, vector: Vector) -> tuple[str, str, bytes, int]:
    """A vector as a row: entry, group, float16 little-endian, checksum."""
    data = half(vector).tobytes()
    return escape(id), escape(group), data, _vector_sum(escape(id), escape(group), data)


def unpack_vector(row: Sequence[Any]) -> tuple[str, str, Half]:
    """Entry, group and vector of a row as `pack_vector` gives it.

    Raises:
        Damaged: The row is not what was written.
    """
    name, group, data, written = row
    try:
        if written != _vector_sum(name, group, data):
            raise Damaged
        return unescape(name), unescape(group), np.frombuffer(data, dtype="<f2")
    except (TypeError, ValueError, AttributeError) as error:
        raise Damaged from error


def _vector_sum(id: str, group: str, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(f"{id}{SEPARATOR}{group}".encode("utf-8", "surrogatepass")))
