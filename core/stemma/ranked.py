"""What a vector search found, as a list that knows how far it reaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stemma.embedders.protocol import Matrix
from stemma.entry import Source, Vector
from stemma.policies.neighbours import of_length_one, unit
from stemma.policies.scores import rescored
from stemma.ranking import Ranking

__all__ = ["Found", "ranked"]

OUT_OF_ORDER = 1e-3
"""By how much one document may be nearer than the one before it, for rounding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a search gave, best first.

    Args:
        documents: The documents.
        ids: Their ids, or their content hashes where they have none.
        contents: Their content hashes.
        query: The query's vector.
        vectors: The documents' vectors; `None` where they could not be had.
        scores: What the store said of each, where it says it.
        complete: Whether the index had no more.
        cosine: Whether the index is known to rank by cosine similarity. If not, it may rank by
            products or distances, which is the same for vectors of length 1 only.
        written: Whether the documents are to be stored, rather than read again by their ids.
        sources: The documents as sources, where they are stored.
    """

    documents: Sequence[Any] = field(repr=False)
    ids: Sequence[str]
    contents: Sequence[str] = field(repr=False)
    query: Any = field(repr=False)
    vectors: Sequence[Any] | None = field(repr=False)
    scores: tuple[float | None, ...] | None = field(default=None, repr=False)
    complete: bool
    cosine: bool
    written: bool
    sources: Sequence[Source] = field(default=(), repr=False)


def ranked(found: Found, *, k: int, reusable: bool) -> Ranking:
    """What was found, as a list that knows how far it reaches.

    Where the vectors do not say the order that the store gave, it ranks by something else: then
    the list serves the same query only (`Ranking.query` is `None`). So does one whose scores are
    no known function of the similarity, but of that it is known which new chunks belong to it.

    Args:
        found: What was found.
        k: How many of it were wanted.
        reusable: Whether it may serve other queries.
    """
    query, vectors, similarities = _compared(found)
    if query is None:  # nothing can be said of it; −inf and 1 bound any similarity
        radius, floor = -math.inf, -math.inf if found.complete else 1.0
    else:
        radius = similarities[k - 1] if len(similarities) >= k else -math.inf
        floor = -math.inf if found.complete else min(similarities, default=1.0)
    if found.scores is not None and rescored(found.scores, similarities, ()) is None:
        reusable = False
    return Ranking(
        chunks=tuple(found.ids),
        contents=tuple(found.contents),
        documents=tuple(found.documents),
        scores=found.scores,
        k=k,
        query=query,
        vectors=vectors if reusable else None,
        radius=radius,
        floor=floor,
        written=found.written,
        beyond=tuple(found.sources[k:]),
    )


def _compared(found: Found) -> tuple[Vector | None, Matrix | None, Sequence[float]]:
    """Query, documents and their similarities, if these say the order that the store gave."""
    query = unit(found.query)
    given = [] if found.vectors is None else found.vectors
    rows = [
        one
        for one in map(unit, given)
        if one is not None and query is not None and one.shape == query.shape
    ]
    if query is None or found.vectors is None or len(rows) < len(found.documents):
        return None, None, ()
    if not (found.cosine or all(map(of_length_one, given))):
        return None, None, ()
    matrix = np.stack(rows) if rows else np.zeros((0, len(query)), dtype=np.float32)
    similarities = matrix @ query
    if (np.diff(similarities) > OUT_OF_ORDER).any():
        return None, None, ()
    return query, matrix, similarities.tolist()
