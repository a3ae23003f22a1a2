"""Records for tests, complete but for what a test is about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stemma.entry import Edge, Entry, Lineage, Source, SourceEdge, Vector
from stemma.scope import Labels
from stemma.stores.protocol import Put, Store

__all__ = ["HOSTILE", "NOW", "copied", "entry", "lineage", "put", "put_one", "source", "vector"]

NOW = 1_700_000_000.0

HOSTILE: Sequence[str] = (
    "'; DROP TABLE entries; --",
    '" OR "1"="1',
    "%",
    "_",
    "*",
    "\\",
    "a\x00b",
    "a\x00c",
    "\x00",
    "a\x1fb",
    "a\x1bb",
    "a\x1b0000b",
    "a\x1b001bb",
    "\ud800",
    "\udfff",
    "\ud83d\ude00",
    "\U0001f600",
    "acme",
    "Acme",
    "ACME",
    "acme ",
    " acme",
    "acme\t",
    "аcme",  # the first letter is Cyrillic
    "caf\u00e9",
    "cafe\u0301",
    "ß",
    "ss",
    "ﬁ",
    "fi",
    "tenant:acme",
    "=acme",
    '["a"]',
    '{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}',
    "{0}{x}%s%(x)s",
    "?1",
    ":tenant",
    "\r\n",
    "\u2028",
    "\ufeff",
    "\uffff",
    "x" * 65_536,
)
"""Texts that broke other caches: each is a tenant, an id, a tag of its own, and nothing more."""


def entry(id: str = "a", value: str = "one", **rest: Any) -> Entry:
    """An entry of the tenant `acme`, made now, that lives for ever."""
    labels = rest.pop("labels", Labels())
    tenant = rest.pop("tenant", "acme")
    return Entry(
        id=id,
        partition=rest.pop("partition", f"partition of {tenant}"),
        group=rest.pop("group", f"group of {tenant}"),
        tenant=tenant,
        node=rest.pop("node", "answer"),
        payload=rest.pop("payload", json.dumps(value).encode()),
        codec=rest.pop("codec", "json/1"),
        value=value,
        labels=labels,
        made=rest.pop("made", NOW),
        verified=rest.pop("verified", NOW),
        **rest,
    )


def source(document: str = "doc-1", chunk: str = "chunk-1", **rest: str) -> Source:
    """A source that the index `docs` vouches for."""
    return Source(
        document=document,
        chunk=chunk,
        content=rest.get("content", "first edition"),
        owner=rest.get("owner", ""),
        index=rest.get("index", "docs"),
    )


def lineage(parents: Iterable[Entry] = (), sources: Iterable[Source] = ()) -> Lineage:
    """Ambient edges to parents, with their present values, and to sources."""
    return Lineage(
        parents=tuple(Edge(parent=one.id, value=one.value) for one in parents),
        sources=tuple(SourceEdge(source=one) for one in sources),
    )


def vector(*numbers: float) -> Vector:
    """A vector, float32."""
    return np.array(numbers, dtype=np.float32)


def put(
    entry: Entry,
    *,
    since: int,
    parents: Iterable[Entry] = (),
    sources: Iterable[Source] = (),
    vector: Vector | None = None,
    read_at: Mapping[str, int] | None = None,
) -> Put:
    """A put of an entry with its lineage."""
    return Put(
        entry=entry,
        lineage=lineage(parents, sources),
        vector=vector,
        since=since,
        read_at={} if read_at is None else read_at,
    )


def put_one(store: Store, entry: Entry, **rest: Any) -> Entry:
    """Store one entry that was looked up just now; gives it as stored."""
    since = rest.pop("since", None)
    now = store.sequence() if since is None else since
    (stored,) = store.put([put(entry, since=now, **rest)], NOW)
    if stored.entry is None:
        raise AssertionError(f"refused: {stored.refused} ({stored.detail})")
    return stored.entry


def copied(store: Store, original: Entry) -> Entry:
    """The copy of an entry in the pool that it is offered to, stored as a promotion stores it."""
    if original.offer is None:
        raise AssertionError(f"{original.id} is offered to no pool")
    place = original.offer.place
    copy = replace(
        original,
        id=place.id,
        partition=place.partition,
        group=place.group,
        pool=original.offer.pool,
        offer=None,
    )
    known = store.vectors([original.id]).get(original.id)
    vector = None if known is None else known.astype(np.float32)
    return put_one(store, copy, parents=[original], vector=vector)
