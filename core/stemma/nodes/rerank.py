"""Rerank scores: one per query and chunk. Pure functions of content, so they have no lineage.

What scores a list as a whole (a language model that is shown all of it) has no score a pair; of
such a reranker the whole list is cached.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

from stemma.engine import Served
from stemma.entry import content_digest
from stemma.errors import UsageError
from stemma.nodes.node import Asked, NodeCache
from stemma.request import Request
from stemma.rerankers.ordering import as_scores
from stemma.rerankers.protocol import Reranker

__all__ = ["RerankCache", "rerank", "whole_list"]

P = ParamSpec("P")
Q = TypeVar("Q")


def rerank(query: str, *, chunk: str, model: str, life: float | None = None) -> Asked:
    """Ask for the score that a reranker gives one chunk for one query.

    Args:
        query: The query.
        chunk: The chunk's content hash (`stemma.content_digest` of its text).
        model: The reranker with its revision.
        life: Base life, seconds.
    """
    return Asked(
        scope={"model": model},
        request=Request(exact=[query, chunk], meaning=False),
        life=life,
        scope_key=model,
    )


def whole_list(
    query: str,
    *,
    chunks: Sequence[str],
    model: str,
    parameters: Any = None,
    life: float | None = None,
) -> Asked:
    """Ask for the order that a reranker gives a whole list.

    Args:
        query: The query.
        chunks: The chunks' content hashes, in the order in which the reranker sees them.
        model: The reranker with its revision.
        parameters: What else shapes the list, such as how many of it are wanted.
        life: Base life, seconds.
    """
    return Asked(
        scope={"model": model, "parameters": {"list": parameters}},
        request=Request(exact=[query, *chunks], meaning=False),
        life=life,
    )


class RerankCache(NodeCache[Q, P]):
    """The cache of rerank scores: besides what every node has, for many texts at once."""

    def score(
        self, query: str, texts: Sequence[str], reranker: Reranker, *, life: float | None = None
    ) -> list[Served]:
        """The score of each text for a query, in the order of the texts.

        All pairs are looked up with one read; the reranker is asked once for those that are
        missing, each distinct text once. A score that is not a finite number is given as it is,
        never stored, and told of once. What the reranker raises passes through.

        Args:
            query: The query.
            texts: The texts.
            reranker: What scores; see `stemma.rerankers.as_reranker`.
            life: Base life of what is stored, seconds; by default as the cache's policy says.

        Raises:
            UsageError: `reranker` is none.
            RerankerError: It gave something that is not one number a text.
        """
        pairs = _Pairs(reranker, query, texts)
        return self._given(pairs, self.serve_all(pairs.asked(life), pairs, admit=_unfit))

    async def ascore(
        self, query: str, texts: Sequence[str], reranker: Reranker, *, life: float | None = None
    ) -> list[Served]:
        """As `score`; a reranker without `ascore` runs in a thread."""
        pairs = _Pairs(reranker, query, texts)
        return self._given(pairs, await self.aserve_all(pairs.asked(life), pairs, admit=_unfit))

    def rank(
        self,
        query: str,
        texts: Sequence[str],
        compute: Callable[[], Any],
        *,
        model: str,
        parameters: Any = None,
        life: float | None = None,
    ) -> Served:
        """The order that a reranker gives a whole list: for what does not score pair by pair.

        Args:
            query: The query.
            texts: The texts, in the order in which the reranker sees them.
            compute: Gives a `Order`: `[place, score or None]` for each text that is kept, best
                first. Anything else, an empty one, or a score that is not a finite number is
                given as it is and not stored.
            model: The reranker with its revision.
            parameters: What else shapes the list.
            life: Base life of what is stored, seconds; by default as the cache's policy says.
        """
        asked = _whole(query, texts, model, parameters, life)
        return self.serve(asked, compute, admit=partial(_unlisted, len(texts)))

    async def arank(
        self,
        query: str,
        texts: Sequence[str],
        compute: Callable[[], Awaitable[Any]] | Callable[[], Any],
        *,
        model: str,
        parameters: Any = None,
        life: float | None = None,
    ) -> Served:
        """As `rank`."""
        asked = _whole(query, texts, model, parameters, life)
        return await self.aserve(asked, compute, admit=partial(_unlisted, len(texts)))

    def _given(self, pairs: _Pairs, served: Sequence[Served]) -> list[Served]:
        """Each text with its own score, whatever the order and however often it occurs."""
        unfit = sum(_unfit(one.value) is not None for one in served)
        if unfit:
            self.warn_once(
                pairs.reranker.revision,
                f"the reranker {pairs.reranker.revision!r} gave {unfit} of {len(served)} texts no "
                "finite score; they rank last and are not stored",
            )
        by_text = dict(zip(pairs.distinct, served, strict=True))
        return [by_text[text] for text in pairs.texts]


class _Pairs:
    """The pairs of one query with some texts, and what scores those that are missing."""

    acompute: Callable[[Sequence[int]], Awaitable[list[float]]]

    def __init__(self, reranker: Reranker, query: str, texts: Sequence[str]) -> None:
        if not isinstance(reranker, Reranker):
            raise UsageError(
                f"a {type(reranker).__qualname__} is no reranker: see stemma.rerankers.as_reranker"
            )
        self.reranker = reranker
        self.texts = list(texts)
        self.distinct = list(dict.fromkeys(texts))
        self._query = query
        native = getattr(reranker, "ascore", None)
        if native is not None:
            self.acompute = partial(self._acompute, native)

    def asked(self, life: float | None) -> list[Asked]:
        return [
            rerank(self._query, chunk=content_digest(text), model=self.reranker.revision, life=life)
            for text in self.distinct
        ]

    def compute(self, places: Sequence[int]) -> list[float]:
        given = self.reranker.score(self._query, self._at(places))
        return as_scores(given, len(places), self.reranker.revision)

    async def _acompute(
        self, native: Callable[[str, list[str]], Awaitable[Any]], places: Sequence[int]
    ) -> list[float]:
        given = await native(self._query, self._at(places))
        return as_scores(given, len(places), self.reranker.revision)

    def _at(self, places: Sequence[int]) -> list[str]:
        return [self.distinct[place] for place in places]


def _unfit(score: float) -> str | None:
    return None if math.isfinite(score) else "the score is not a finite number"


def _whole(
    query: str, texts: Sequence[str], model: str, parameters: Any, life: float | None
) -> Asked:
    chunks = [content_digest(text) for text in texts]
    return whole_list(query, chunks=chunks, model=model, parameters=parameters, life=life)


def _unlisted(count: int, value: Any) -> str | None:
    """Why what a listwise reranker gave is not to be stored, or `None`."""
    if not isinstance(value, list):
        return "what came back is not among what was given"
    if not value:
        return "the reranker kept nothing"
    try:
        kept = {range(count)[place] for place, _ in value}
        scores = [score for _, score in value if score is not None]
        unfit = next(filter(None, map(_unfit, scores)), None)
    except (IndexError, TypeError, ValueError):
        return "this is no list of places and scores"
    return unfit if len(kept) == len(value) else "a place comes twice"
