"""What a vector search gave, as it is stored: a ranked list with its vectors."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

import numpy as np

from stemma.codec import MAX_PAYLOAD, Codec, Encoded
from stemma.embedders.protocol import Matrix
from stemma.entry import Source, Vector
from stemma.errors import CodecError
from stemma.keys import digest
from stemma.policies.neighbours import Reuse
from stemma.policies.scores import rescored

__all__ = ["Ranking", "RankingCodec", "narrowed", "outline"]

Kind = Literal["searched", "proven", "statistical"]

_sizes = struct.Struct("<II")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ranking:
    """Chunks that an index gave for a query, best first.

    Args:
        chunks: Their ids.
        contents: Their content hashes.
        documents: The documents themselves, or `None` where they are read again by their ids.
        scores: What the index said of each, where it is part of what is given.
        k: How many were asked for. The list may be longer: what follows are candidates, by which
            another query is answered.
        query: The query's unit vector, shape (d,); `None` where the search is not by vectors alone.
        vectors: The chunks' unit vectors, shape (n, d), float32; `None` where the list can serve no
            other query.
        radius: The similarity of the k-th chunk to the query: a new chunk nearer than that belongs
            to the first k. −inf where the index had fewer than k.
        floor: No chunk outside the list is nearer to the query than this; −inf where there is none.
        kind: How the list came about: searched, or reused from another query's.
        written: Whether the documents are stored. Otherwise they must be read again.
        identity: The value hash, once it is known.
        beyond: The sources of the candidates after the first k, where they are stored as well.
    """

    chunks: tuple[str, ...]
    contents: tuple[str, ...] = field(repr=False)
    documents: Sequence[Any] | None = field(default=None, repr=False)
    scores: tuple[float | None, ...] | None = field(default=None, repr=False)
    k: int
    query: Vector | None = field(default=None, repr=False)
    vectors: Matrix | None = field(default=None, repr=False)
    radius: float = -math.inf
    floor: float = -math.inf
    kind: Kind = "searched"
    written: bool = True
    identity: str = field(default="", repr=False)
    beyond: tuple[Source, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.chunks)

    def holds(self, k: int) -> bool:
        """Whether its first k are what a search for k would give, and it goes when they change.

        A document that comes in behind those that were asked for takes nothing back, so more than
        those are not given; unless there were no more, and any that comes is among them.
        """
        return k <= self.k or (len(self) < self.k and self.floor == -math.inf)

    def first(self, k: int, documents: Sequence[Any]) -> Ranking:
        """Its first k, with these documents; it can serve no other query."""
        return replace(
            self,
            chunks=self.chunks[:k],
            contents=self.contents[:k],
            documents=tuple(documents),
            scores=None if self.scores is None else self.scores[:k],
            vectors=None,
        )

    def reused(self, asked: Vector, found: Reuse, k: int, documents: Sequence[Any]) -> Ranking:
        """The list for another query, of this one's chunks: its first k."""
        chosen = found.order[:k]
        last = found.similarities[k - 1] if len(chosen) == k else -math.inf
        return replace(
            self,
            chunks=tuple(self.chunks[one] for one in chosen),
            contents=tuple(self.contents[one] for one in chosen),
            documents=tuple(documents),
            scores=self._rescored(found.similarities[: len(chosen)]),
            k=k,
            query=asked,
            vectors=None,
            radius=last,
            floor=last,
            kind=found.kind,
            identity="",
            beyond=(),
        )

    def _rescored(self, similarities: Sequence[float]) -> tuple[float | None, ...] | None:
        if self.scores is None or self.query is None or self.vectors is None:
            return None
        return rescored(self.scores, (self.vectors @ self.query).tolist(), similarities)


class _Written(Sequence[Any]):
    """Documents as they are stored; each is read when it is asked for."""

    def __init__(self, codec: Codec, parts: Sequence[bytes]) -> None:
        self._codec = codec
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self._codec.decode(part) for part in self._parts[place]]
        return self._codec.decode(self._parts[place])


class RankingCodec:
    """Rankings to bytes and back: a JSON head, the documents, the vectors.

    Two rankings are the same value if their first k documents are: what follows them is not part
    of what anybody was given.

    Args:
        documents: How the documents are written.
    """

    def __init__(self, documents: Codec) -> None:
        self._documents = documents
        self.name = f"ranking/1 {documents.name}"

    def encode(self, value: Any) -> Encoded:
        """See `stemma.Codec.encode`."""
        if not isinstance(value, Ranking):
            raise CodecError(f"a retrieval gives a ranking, not a {type(value).__name__}")
        given = [] if value.documents is None else value.documents
        written = [self._documents.encode(one) for one in given]
        identity = value.identity
        if identity == "":
            identity = digest("ranking/1", [one.value for one in written[: value.k]])
        parts = [one.payload for one in written] if value.written else []
        head = {
            "chunks": value.chunks,
            "contents": value.contents,
            "k": value.k,
            "radius": _plain(value.radius),
            "floor": _plain(value.floor),
            "kind": value.kind,
            "scores": value.scores,
            "written": value.written,
            "identity": identity,
            "lengths": [len(part) for part in parts],
            "query": 0 if value.query is None else len(value.query),
            "rows": None if value.vectors is None else len(value.vectors),
        }
        payload = _pack(head, _numbers(value.query, value.vectors), parts)
        text = "\n".join(filter(None, (one.text for one in written[: value.k])))
        return Encoded(payload, identity, text)

    def decode(self, payload: bytes) -> Ranking:
        """See `stemma.Codec.decode`. The documents are read when they are asked for."""
        head, query, vectors, parts = _unpack(payload)
        try:
            return Ranking(
                chunks=tuple(map(str, head["chunks"])),
                contents=tuple(map(str, head["contents"])),
                documents=_Written(self._documents, parts) if head["written"] else None,
                scores=None if (scores := head.get("scores")) is None else tuple(scores),
                k=int(head["k"]),
                query=query,
                vectors=vectors,
                radius=_number(head["radius"]),
                floor=_number(head["floor"]),
                kind=head["kind"],
                written=bool(head["written"]),
                identity=str(head["identity"]),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise CodecError(f"cannot read the stored list: {type(error).__name__}") from error

    def text(self, value: Any) -> str:
        """See `stemma.Codec.text`: that of the first k documents, where they are stored."""
        documents = value.documents
        given = [] if documents is None else documents[: value.k]
        return "\n".join(filter(None, map(self._documents.text, given)))


def narrowed(payload: bytes, nearest: float) -> bytes:
    """A stored list after a chunk came into the index behind its first k.

    What is less near than the new chunk is cut off, and the floor is as high as that; the documents
    are not looked at, and the value stays the same.

    Args:
        payload: The list as it is stored.
        nearest: The new chunk's similarity to the list's query.

    Raises:
        CodecError: These bytes are no list with vectors.
    """
    head, query, vectors, parts = _unpack(payload)
    if query is None or vectors is None:
        raise CodecError("a list without vectors cannot be narrowed")
    kept = max(min(head["k"], len(vectors)), int((vectors @ query >= nearest).sum()))
    for name in ("chunks", "contents", "lengths", "scores"):
        if head.get(name) is not None:
            head[name] = head[name][:kept]
    head["floor"] = max(_number(head["floor"]), nearest)
    head["rows"] = kept
    return _pack(head, _numbers(query, vectors[:kept]), parts[:kept])


def outline(payload: bytes) -> dict[str, Any]:
    """What a stored list says of itself, without documents and vectors: for looking at.

    Raises:
        CodecError: These bytes are no list.
    """
    head, query, vectors, _ = _unpack(payload)
    if query is not None and vectors is not None:
        head["similarities"] = [round(float(one), 4) for one in vectors @ query]
    return {k: v for k, v in head.items() if k not in ("lengths", "query", "rows", "identity")}


def _numbers(*arrays: Vector | Matrix | None) -> bytes:
    given = (one for one in arrays if one is not None)
    return b"".join(np.ascontiguousarray(one, dtype="<f4").tobytes() for one in given)


def _pack(head: Mapping[str, Any], numbers: bytes, parts: Sequence[bytes]) -> bytes:
    told = json.dumps(head, separators=(",", ":")).encode("ascii")
    payload = _sizes.pack(len(told), len(numbers)) + told + numbers + b"".join(parts)
    if len(payload) > MAX_PAYLOAD:
        raise CodecError(f"the list takes {len(payload)} bytes; at most {MAX_PAYLOAD} are kept")
    return payload


def _unpack(payload: bytes) -> tuple[dict[str, Any], Vector | None, Matrix | None, list[bytes]]:
    """Head, query, vectors and documents of a stored list."""
    try:
        told, numbers = _sizes.unpack_from(payload)
        start = _sizes.size + told
        head = json.loads(payload[_sizes.size : start])
        floats = np.frombuffer(payload[start : start + numbers], dtype="<f4")
        width = int(head["query"])
        query = floats[:width] if width else None
        rows = head["rows"]
        vectors = None if rows is None else floats[width:].reshape(int(rows), width)
        parts, place = [], start + numbers
        for length in head["lengths"]:
            parts.append(payload[place : place + length])
            place += length
        lengths = {len(head["chunks"]), len(head["contents"])}
        lengths |= {len(parts)} if head["written"] else set()
        lengths |= {len(vectors)} if vectors is not None else set()
        if len(lengths) > 1 or place != len(payload):
            raise CodecError("the parts of the stored list do not fit together")
    except (struct.error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CodecError(f"cannot read the stored list: {type(error).__name__}") from error
    return head, query, vectors, parts


def _plain(number: float) -> float | None:
    return None if number == -math.inf else number


def _number(told: float | None) -> float:
    return -math.inf if told is None else float(told)
