"""The stored form of entries, lineages and vectors: packed, checksummed, unpacked again.

An entry is one record: its checksum, its numbers, its texts, its payload. The exact read is the
hot path, and every column would cost it a tenth of a microsecond. What a selector can name has a
column besides, and a row whose columns say something else than its record is damaged.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, get_args

import numpy as np

from stemma.codec import MAX_PAYLOAD
from stemma.entry import (
    UNJUDGED,
    Cost,
    Edge,
    Entry,
    Judged,
    Lineage,
    Offer,
    Source,
    SourceEdge,
    Vector,
    Verdict,
)
from stemma.errors import StoreError
from stemma.request import Key, LeftOut
from stemma.scope import NODES, Labels
from stemma.stores.protocol import Ancestor
from stemma.stores.text import ESCAPE, SEPARATOR, Damaged, escape, unescape
from stemma.stores.walks import pack_walk, unpack_walk
from stemma.walk import Walk

__all__ = [
    "Half",
    "ancestor",
    "half",
    "intact",
    "pack",
    "pack_lineage",
    "pack_vector",
    "unpack",
    "unpack_derived",
    "unpack_lineage",
    "unpack_vector",
]

Half = np.ndarray[tuple[int], np.dtype[np.float16]]

_NO_LABELS = Labels()
_VERDICTS = frozenset(get_args(Verdict))
_NO_COST = Cost()
_HELD = 7
_crc = struct.Struct("<I")
_numbers = struct.Struct("<6d8q")
_head = struct.Struct("<I6d8q")
_array = json.JSONEncoder(separators=(",", ":")).encode
# A frozen record's own __init__ takes nearly twice as long as setting its slots does.
_set_slots: tuple[Callable[[Entry, Any], None], ...] = tuple(
    getattr(Entry, field.name).__set__ for field in fields(Entry)
)


def pack(entry: Entry, lineage: int) -> tuple[Any, ...]:
    """An entry as a row: id, tenant, node, model, index, hop, record.

    Args:
        entry: The entry.
        lineage: The checksum of its packed lineage.

    Raises:
        StoreError: A number is too large to be stored.
    """
    texts = (
        entry.id,
        entry.tenant,
        entry.node,
        entry.model,
        entry.index,
        entry.partition,
        entry.group,
        entry.codec,
        entry.value,
        "" if entry.pool is None else f"={entry.pool}",
        "" if entry.labels == _NO_LABELS else _pack_labels(entry.labels),
        entry.verdict,
        "" if entry.focus is None else f"={entry.focus}",
        *_pack_rest(entry),
    )
    escaped = [escape(text) for text in texts]
    packed = SEPARATOR.join(escaped).encode("utf-8")
    body = b"".join((_pack_numbers(entry, lineage, len(packed)), packed, entry.payload))
    return (*escaped[:5], entry.hop, _crc.pack(_sum(body)) + body)


def unpack(row: Sequence[Any]) -> tuple[Entry, int]:
    """The entry of a row (id, tenant, node, model, index, record), and its lineage's checksum.

    A seventh column is a quarantine that holds it, or `None`.

    Raises:
        Damaged: The row is not what was written.
    """
    record = row[5]
    try:
        (
            written,
            confidence,
            seconds,
            made,
            verified,
            expires,
            proven,
            hop,
            tokens,
            derived,
            schema,
            sequence,
            epoch,
            lineage,
            length,
        ) = _head.unpack_from(record)
        if written != _sum(memoryview(record)[_crc.size :]):
            raise Damaged
        end = _head.size + length
        texts = record[_head.size : end].decode("utf-8")
        packed = texts.split(SEPARATOR)
        if packed[:5] != list(row[:5]):
            raise Damaged
        if ESCAPE in texts:
            packed = [unescape(text) for text in packed]
        name, tenant, node, model, index, partition, group, codec, value, *rest = packed
        pool, labels, verdict, focus, *more = rest
        before, left_out, judged, walk, offer = _unpack_rest(more[0]) if more else _NO_REST
        if node not in NODES or verdict not in _VERDICTS or len(record) - end > MAX_PAYLOAD:
            raise Damaged
        values = (
            name,
            partition,
            group,
            tenant,
            node,
            record[end:],
            codec,
            value,
            pool[1:] if pool else None,
            model,
            index,
            _unpack_labels(labels) if labels else _NO_LABELS,
            focus[1:] if focus else None,
            hop,
            confidence,
            Cost(tokens=tokens, seconds=seconds) if tokens or seconds else _NO_COST,
            made,
            verified,
            expires if expires == expires else None,  # noqa: PLR0124 - NaN stands for no end
            verdict,
            derived == 1,
            schema,
            sequence,
            epoch,
            proven if proven == proven else None,  # noqa: PLR0124 - as above
            before,
            left_out,
            judged,
            walk,
            offer,
            "" if len(row) < _HELD or row[6] is None else unescape(row[6]),
        )
    except (TypeError, ValueError, AttributeError, struct.error) as error:
        raise Damaged from error
    entry = object.__new__(Entry)
    for put, one in zip(_set_slots, values, strict=True):
        put(entry, one)
    return entry, lineage


def _sum(body: bytes | memoryview) -> int:
    return zlib.crc32(body)


def _pack_numbers(entry: Entry, lineage: int, length: int) -> bytes:
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
            length,
        )
    except (struct.error, OverflowError) as error:
        raise StoreError(
            f"the entry {entry.id} has a number that cannot be stored: {error}"
        ) from error


def _pack_rest(entry: Entry) -> tuple[str, ...]:
    """What few entries have, as one text more; the others have none."""
    plain, offer = entry.judged == UNJUDGED, entry.offer
    if plain and not (entry.before or entry.left_out or entry.walk or offer):
        return ()
    left = [
        [escape(one.name), one.count, [escape(text) for text in one.texts]]
        for one in entry.left_out
    ]
    judged = None if plain else _pack_judged(entry.judged)
    walk = None if entry.walk is None else pack_walk(entry.walk)
    rest: list[Any] = [[escape(turn) for turn in entry.before], left, judged, walk]
    return (_array(rest if offer is None else [*rest, _pack_offer(offer)]),)


_Rest = tuple[tuple[str, ...], tuple[LeftOut, ...], Judged, Walk | None, Offer | None]
_NO_REST: _Rest = ((), (), UNJUDGED, None, None)


def _unpack_rest(line: str) -> _Rest:
    before, left, *more = json.loads(line)
    judged, walk, offer = (*more, None, None, None)[:3]
    left_out = tuple(
        LeftOut(name=unescape(name), count=int(count), texts=tuple(map(unescape, texts)))
        for name, count, texts in left
    )
    return (
        tuple(map(unescape, before)),
        left_out,
        UNJUDGED if judged is None else _unpack_judged(judged),
        None if walk is None else unpack_walk(walk),
        None if offer is None else _unpack_offer(offer),
    )


def _pack_offer(offer: Offer) -> list[str]:
    place = offer.place
    return [escape(text) for text in (offer.pool, place.partition, place.group, place.id)]


def _unpack_offer(parts: Sequence[str]) -> Offer:
    pool, *place = map(unescape, parts)
    return Offer(pool=pool, place=Key(*place))


def _pack_judged(judged: Judged) -> list[Any]:
    barred = [escape(one) for one in judged.barred]
    return [judged.agreed, judged.disagreed, barred, int(judged.doubted), escape(judged.answer)]


def _unpack_judged(parts: Sequence[Any]) -> Judged:
    agreed, disagreed, barred, doubted, answer = parts
    return Judged(
        agreed=int(agreed),
        disagreed=int(disagreed),
        barred=tuple(map(unescape, barred)),
        doubted=doubted == 1,
        answer=unescape(answer),
    )


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


def unpack_derived(row: Sequence[Any], record: str | None) -> tuple[Entry, Lineage]:
    """An entry with what it was built from: of its row, and of its lineage's line, if any.

    Raises:
        Damaged: The row or the line is not what was written.
    """
    entry, total = unpack(row)
    return entry, unpack_lineage("" if record is None else record, total)


def ancestor(entry: Entry, lineage: Lineage) -> Ancestor:
    """What is asked of an entry above another."""
    return Ancestor(
        id=entry.id,
        value=entry.value,
        made=entry.made,
        expires=entry.expires,
        verdict=entry.verdict,
        lineage=lineage,
    )


def unpack_vector(row: Sequence[Any]) -> tuple[str, str, Half]:
    """Entry, group and vector of a row as `pack_vector` gives it.

    Raises:
        Damaged: The row is not what was written.
    """
    if not intact(row):
        raise Damaged
    name, group, data, _ = row
    return unescape(name), unescape(group), np.frombuffer(data, dtype="<f2")


def intact(row: Sequence[Any]) -> bool:
    """Whether a row of a vector is what was written."""
    name, group, data, written = row
    try:
        return bool(written == _vector_sum(name, group, data))
    except (TypeError, ValueError, AttributeError):
        return False


def _vector_sum(id: str, group: str, data: bytes) -> int:
    texts = id + SEPARATOR + group  # which fails for anything but texts
    return zlib.crc32(data, zlib.crc32(texts.encode("utf-8", "surrogatepass")))
