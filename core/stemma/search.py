"""A vector search, as a retriever's face lends it to the cache."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from stemma.lineage.frames import Frame
from stemma.ranking import Ranking

__all__ = ["AUDITED", "CANDIDATES", "MOST", "Search", "Searcher", "candidates"]

CANDIDATES = 8
"""How many times more candidates are kept than were asked for."""

MOST = 256
"""Candidates that are kept at most, unless more were asked for."""

AUDITED = 0.02
"""The share of the statistical hits that are searched all the same, to see what they are worth."""


class Searcher(Protocol):
    """One index, seen from the cache. A method may have an async twin (`aembed`, `aread`)."""

    def embed(self, query: str) -> Sequence[float]:
        """The query's vector, as the index embeds queries."""
        ...

    def read(self, chunks: Sequence[str]) -> Mapping[str, Any]:
        """The documents with these ids, as the index has them now; those it has."""
        ...

    def content(self, document: Any) -> str:
        """A document's content hash (`stemma.content_digest` of its text)."""
        ...

    def note(self, documents: Sequence[Any], frame: Frame | None) -> None:
        """Note documents that are about to be given as sources in a frame."""
        ...


# Not frozen: the last three are filled in by the lookup.
@dataclass(kw_only=True, slots=True, eq=False)
class Search:
    """One search for one query.

    Args:
        searcher: The index.
        k: How many documents are wanted, from 1.
        meaning: Whether lists found for other queries may serve.
        audited: The share of statistical hits that are searched all the same, 0 to 1.
        near: Lists of near queries that the lookup has seen: a search that is made anyway tells
            what they would have been worth.
        factor: The factor of the statistical rule at the lookup.
        audit: Whether the search is made in place of a statistical hit.
    """

    searcher: Searcher
    k: int
    meaning: bool = True
    audited: float = AUDITED
    near: list[Ranking] = field(default_factory=list, repr=False)
    factor: float = math.inf
    audit: bool = False


def candidates(k: int, times: int = CANDIDATES) -> int:
    """How many chunks to ask an index for, so that the list may serve other queries."""
    return max(k, min(k * times, MOST))
