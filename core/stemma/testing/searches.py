"""A vector index that a test can look into, and retrievals from it through a cache."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stemma.cache import Cache
from stemma.codec import JsonCodec
from stemma.engine import Served
from stemma.entry import Source, Vector, content_digest
from stemma.lineage import frames
from stemma.lineage.frames import Frame
from stemma.nodes.node import Asked
from stemma.policies.neighbours import unit
from stemma.ranking import Ranking, RankingCodec
from stemma.request import Request
from stemma.search import Search, candidates

__all__ = ["INDEX", "CountingIndex", "Sought", "World"]

INDEX = "docs"
"""The identity of the index."""

WIDTH = 12


@dataclass
class CountingIndex:
    """Documents with vectors; it counts how often it is asked."""

    vectors: dict[str, Vector] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    queries: dict[str, Vector] = field(default_factory=dict)
    embedded: int = 0
    searched: int = 0
    read: int = 0

    def add(self, name: str, vector: Vector, text: str | None = None) -> None:
        """Put a document in."""
        self.vectors[name] = vector
        self.texts[name] = f"text of {name}" if text is None else text

    def remove(self, name: str) -> None:
        """Take a document out."""
        del self.vectors[name], self.texts[name]

    def ranked(self, vector: Vector, k: int) -> list[str]:
        """The ids of the k nearest documents."""
        near = sorted(self.vectors, key=lambda name: (-float(self.vectors[name] @ vector), name))
        return near[:k]


@dataclass
class Sought:
    """One query to the index, as a face asks it (`stemma.Searcher`).

    Args:
        index: The index.
        query: The query's name.
        k: How many documents are wanted.
        times: How many times more are asked for.
        written: Whether documents are stored, instead of being read again.
    """

    index: CountingIndex
    query: str
    k: int
    times: int = 8
    written: bool = False
    marks: Mapping[int, int] = field(default_factory=frames.marks)

    def embed(self, query: str) -> Sequence[float]:
        """The query's vector."""
        self.index.embedded += 1
        vector: Sequence[float] = self.index.queries[query].tolist()
        return vector

    def read(self, chunks: Sequence[str]) -> Mapping[str, Any]:
        """Documents as pairs of id and text."""
        self.index.read += 1
        return {one: [one, self.index.texts[one]] for one in chunks if one in self.index.texts}

    def content(self, document: Any) -> str:
        """The hash of a document's text."""
        return content_digest(document[1])

    def note(self, documents: Sequence[Any], frame: Frame | None) -> None:
        """Note documents as sources."""
        if frame is not None:
            pairs = [(_source(*one), f"{one[1]}: {one[0]}") for one in documents]
            frame.read_sources(pairs, self.marks)

    def search(self) -> Ranking:
        """Search the index."""
        self.index.searched += 1
        query = self.index.queries[self.query]
        wanted = candidates(self.k, self.times)
        found = self.index.ranked(query, wanted)
        documents = [[name, self.index.texts[name]] for name in found]
        self.note(documents[: self.k], frames.current())
        rows = [self.index.vectors[name] for name in found]
        vectors = np.stack(rows) if rows else np.zeros((0, len(query)), dtype=np.float32)
        similarities = (vectors @ query).tolist()
        return Ranking(
            chunks=tuple(found),
            contents=tuple(map(self.content, documents)),
            documents=tuple(documents),
            k=self.k,
            query=query,
            vectors=vectors if self.times > 1 else None,
            radius=similarities[self.k - 1] if len(found) >= self.k else -math.inf,
            floor=-math.inf if len(found) < wanted else similarities[-1],
            written=self.written,
            beyond=tuple(_source(*one) for one in documents[self.k :]) if self.written else (),
        )


class World:
    """A cache before an index of random documents.

    Args:
        cache: The cache.
        seed: Of the documents and queries.
    """

    def __init__(self, cache: Cache, seed: int = 0) -> None:
        self.cache = cache
        self.index = CountingIndex()
        self.codec = RankingCodec(JsonCodec())
        self._rng = np.random.default_rng(seed)
        self._names: Iterator[int] = itertools.count()

    def direction(self, near: Vector | None = None, by: float = 1.0) -> Vector:
        """A random unit vector, or one near another."""
        noise = unit(self._rng.normal(size=WIDTH))
        found = noise if near is None or noise is None else unit(near + by * noise)
        if found is None:
            raise AssertionError("a random vector has a direction")
        return found

    def fill(self, documents: int) -> None:
        """Put random documents in."""
        for _ in range(documents):
            self.index.add(self.name("d"), self.direction())

    def name(self, kind: str) -> str:
        """A name that nothing has yet."""
        return f"{kind}{next(self._names)}"

    def query(self, near: str | None = None, by: float = 0.1) -> str:
        """A new query: anywhere, or near another one."""
        name = self.name("q")
        self.index.queries[name] = self.direction(
            None if near is None else self.index.queries[near], by
        )
        return name

    def asked(self, sought: Sought, *, audited: float = 0.0, **parameters: Any) -> Asked:
        """What the cache is asked for a query."""
        search = Search(searcher=sought, k=sought.k, meaning=sought.times > 1, audited=audited)
        return Asked(
            scope={"index": INDEX, "parameters": parameters},
            request=Request(focus=sought.query, meaning=False),
            codec=self.codec,
            prompt=(sought.query,),
            search=search,
        )

    def retrieve(self, query: str, k: int = 3, *, audited: float = 0.0, **rest: Any) -> Served:
        """Retrieve through the cache."""
        sought = Sought(self.index, query, k, **rest)
        return self.cache.retrievals.serve(self.asked(sought, audited=audited), sought.search)

    def answer(self, query: str) -> Served:
        """An answer that is built on a retrieval."""

        def compute() -> str:
            return "answer from " + ", ".join(self.given(self.retrieve(query)))

        return self.cache.answers.get_or_compute(f"answer {query}", compute, meaning=False)

    def given(self, served: Served, k: int = 3) -> list[str]:
        """The ids of the documents that were given."""
        return list(served.value.chunks[:k])

    def truth(self, query: str, k: int = 3) -> list[str]:
        """The ids that a search gives."""
        return self.index.ranked(self.index.queries[query], k)


def _source(chunk: str, text: str) -> Source:
    return Source(document=chunk, chunk=chunk, content=content_digest(text), index=INDEX)
