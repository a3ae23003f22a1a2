"""Rerankers of a framework's own lists: what comes back, found again in what went in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from stemma.rerankers.ordering import Order

__all__ = ["Foreign", "ListReranker", "PairScores", "Unscored", "places"]

T = TypeVar("T")


class Unscored(Exception):
    """A reranker that was to score pair by pair has left something without a score."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a reranker gave that is not among what it was given, such as extracts."""

    items: list[Any]


class ListReranker(Protocol):
    """What reranks one list for one query. Its async twin is `aorder`."""

    def order(self, chosen: Sequence[int], *, scored: bool) -> Order | Foreign:
        """The order of some of the list; the places in it count within `chosen`.

        Args:
            chosen: Where in the list those are that are to be reranked.
            scored: Whether all of them must come back, each with a score: a cut of the
                reranker's own does not count then.
        """
        ...

    async def aorder(self, chosen: Sequence[int], *, scored: bool) -> Order | Foreign:
        """As `order`."""
        ...


class PairScores:
    """A reranker of lists that scores pair by pair, as a `Reranker` of the list's texts.

    Args:
        inner: What reranks the list.
        texts: The texts of the list.
        revision: What names the reranker and its version.
    """

    revision: str

    def __init__(self, inner: ListReranker, texts: Sequence[str], *, revision: str) -> None:
        self._inner = inner
        self._at = {text: place for place, text in reversed(list(enumerate(texts)))}
        self.revision = revision

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text. The query is the list's.

        Raises:
            Unscored: Not all of them came back with a score.
        """
        del query
        chosen = [self._at[text] for text in texts]
        return _scores(self._inner.order(chosen, scored=True), len(texts))

    async def ascore(self, query: str, texts: Sequence[str]) -> list[float]:
        """As `score`."""
        del query
        chosen = [self._at[text] for text in texts]
        return _scores(await self._inner.aorder(chosen, scored=True), len(texts))


def _scores(order: Order | Foreign, count: int) -> list[float]:
    found = {} if isinstance(order, Foreign) else {p: s for p, s in order if s is not None}
    if len(found) != count:
        raise Unscored
    return [found[place] for place in range(count)]


def places(
    found: Sequence[T], given: Sequence[T], *alike: Callable[[T], Hashable]
) -> list[int] | None:
    """Where each of what was found stands in what was given; `None` if one stands nowhere.

    The same object is the same; else what is alike is, each one once, in order.

    Args:
        found: What came back from a reranker.
        given: What it was given.
        *alike: What two objects that stand for the same have in common, the surest first.
    """
    at: dict[int, int] = {}
    for key in (id, *alike):
        keys = {place: key(one) for place, one in enumerate(given) if place not in at.values()}
        for number, one in enumerate(found):
            if number not in at:
                place = next((place for place in keys if keys[place] == key(one)), None)
                if place is not None:
                    at[number] = place
                    del keys[place]
    return [at[number] for number in range(len(found))] if len(at) == len(found) else None
