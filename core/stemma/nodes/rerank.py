"""Rerank scores: one per query and chunk. Pure functions of content, so they have no lineage.

What ranks a list as a whole (a language model that is shown all of it) has no score a pair; of
such a reranker the whole list is cached.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stemma.engine import Served
from stemma.entry import content_digest
from stemma.errors import UsageError
from stemma.nodes.node import Asked, NodeCache, Surroundings
from stemma.outcome import Hit
from stemma.request import Request
from stemma.rerankers.lists import Foreign, ListReranker, Unscored
from stemma.rerankers.ordering import Order, as_scores, best_first
from stemma.rerankers.protocol import Reranker

__all__ = ["Ranked", "RerankCache", "Reranking", "rerank", "whole_list"]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Reranking:
    """What a face asks for one list.

    Args:
        query: The query.
        texts: The texts of the list, in its order.
        reranker: What scores pair by pair; `None` where nothing does.
        whole: What ranks the list as a whole, where pairs do not do.
        named: Gives the name of `whole` with its revision, and what else shapes its order.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
    """

    query: str
    texts: Sequence[str]
    reranker: Reranker | None
    whole: ListReranker | None = None
    named: Callable[[], tuple[str, Any]] = lambda: ("", None)
    life: float | None = None

    def as_whole(self) -> Asked:
        """The question for the whole list."""
        model, parameters = self.named()
        chunks = [content_digest(text) for text in self.texts]
        return whole_list(
            self.query, chunks=chunks, model=model, parameters=parameters, life=self.life
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """One of a list that was reranked.

    Args:
        place: Its place in the list as it was given, from 0.
        score: Its score, higher is closer, in the reranker's range; `None` where it has none.
        hit: The hit, if its score or the whole order came from the cache.
        whole: Whether the list was ranked as a whole.
    """

    place: int
    score: float | None
    hit: Hit | None = None
    whole: bool = False

    def note(self) -> dict[str, Any] | None:
        """The note of the hit, if it is one: as `Hit.note`, with `"list": "whole"` where it was."""
        if self.hit is None:
            return None
        return {**self.hit.note(), "list": "whole"} if self.whole else self.hit.note()


class RerankCache(NodeCache[str, ...]):
    """The cache of rerank scores: besides what every node has, for many texts at once."""

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__("rerank", rerank, surroundings, traced=False)
        self._unscored: set[str] = set()

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

    def order(self, asked: Reranking) -> list[Ranked] | Foreign:
        """A list reranked, best first: pair by pair where it can be, else as a whole.

        Of what ranks the list as a whole, the order is cached for the same texts in the same
        order; an empty order, one with a score that is not a finite number, and what is not among
        the list are given and not stored. What was to score pairs, and leaves some without a
        score, counts as such from then on, and that is said once.
        """
        pairs = self._pairwise(asked)
        if pairs is not None:
            try:
                return _by_score(self.score(asked.query, asked.texts, pairs, life=asked.life))
            except Unscored:
                self._say_unscored(pairs)
        whole = _Whole(asked)
        return _by_list(self.serve(asked.as_whole(), whole.compute, admit=whole.refusal))

    async def aorder(self, asked: Reranking) -> list[Ranked] | Foreign:
        """As `order`."""
        pairs = self._pairwise(asked)
        if pairs is not None:
            try:
                return _by_score(
                    await self.ascore(asked.query, asked.texts, pairs, life=asked.life)
                )
            except Unscored:
                self._say_unscored(pairs)
        whole = _Whole(asked)
        return _by_list(await self.aserve(asked.as_whole(), whole.acompute, admit=whole.refusal))

    def _pairwise(self, asked: Reranking) -> Reranker | None:
        pairs = asked.reranker
        return None if pairs is None or pairs.revision in self._unscored else pairs

    def _say_unscored(self, pairs: Reranker) -> None:
        self._unscored.add(pairs.revision)
        self.warn_once(
            f"unscored {pairs.revision}",
            f"the reranker {pairs.revision!r} left something without a score; its lists are "
            "cached as a whole from now on",
        )

    def _given(self, pairs: _Pairs, served: Sequence[Served]) -> list[Served]:
        """Each text with its own score, whatever the order and however often it occurs."""
        unfit = sum(_unfit(one.value) is not None for one in served)
        if unfit:
            self.warn_once(
                f"unfit {pairs.reranker.revision}",
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
        model = self.reranker.revision
        return [
            rerank(self._query, chunk=content_digest(text), model=model, life=life)
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


class _Whole:
    """A list that is ranked as a whole."""

    def __init__(self, asked: Reranking) -> None:
        if asked.whole is None:
            raise UsageError("nothing ranks the list: give a reranker of pairs, or of whole lists")
        self._inner = asked.whole
        self._places = range(len(asked.texts))

    def compute(self) -> Order | Foreign:
        return self._inner.order(self._places, scored=False)

    async def acompute(self) -> Order | Foreign:
        return await self._inner.aorder(self._places, scored=False)

    def refusal(self, order: Order | Foreign) -> str | None:
        if isinstance(order, Foreign):
            return "what came back is not among what was given"
        if not order:
            return "the reranker kept nothing"
        scores = [score for _, score in order if score is not None]
        return next(filter(None, map(_unfit, scores)), None)


def _unfit(score: float) -> str | None:
    return None if math.isfinite(score) else "the score is not a finite number"


def _by_score(served: Sequence[Served]) -> list[Ranked]:
    scores = [one.value for one in served]
    return [
        Ranked(
            place=place,
            score=scores[place] if math.isfinite(scores[place]) else None,
            hit=_hit(served[place]),
        )
        for place in best_first(scores)
    ]


def _by_list(served: Served) -> list[Ranked] | Foreign:
    if isinstance(served.value, Foreign):
        return served.value
    return [
        Ranked(place=place, score=score, hit=_hit(served), whole=True)
        for place, score in served.value
    ]


def _hit(served: Served) -> Hit | None:
    return served.outcome if isinstance(served.outcome, Hit) else None
