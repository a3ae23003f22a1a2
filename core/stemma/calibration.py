"""How large the factor of the statistical rule must be, measured index by index.

The rule is meant to have 999 of 1,000 places right. Whether it has can be told wherever a search
was made although a list was near: because no list could serve, or as an *audit*, in place of a
statistical hit. For each factor of a ladder it is counted how many of these lists it would have
served, and which share of the right documents they would have missed; an audit counts for all the
hits that were not audited. The factor in use is the smallest that has missed few enough.

What is missed is reckoned together with a prior, from three corpora with MiniLM (passages and
questions, short utterances, headings of one manual), so that a new index starts with a factor that
was right on average over these, goes down where nothing is missed, and up where too much is. The
counts are kept in the store: they outlive the process, and add up over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stemma.journal import FACTOR
from stemma.parts import Parts
from stemma.stores.protocol import Count

__all__ = ["LADDER", "Calibration"]

LADDER: Mapping[float, float] = {
    0.25: 0.0036,
    0.30: 0.0017,
    0.35: 0.0007,
    0.42: 0.0003,
    0.50: 0.0001,
    0.60: 0.0,
}
"""The factors, and the share of the right documents that lists served by each missed before."""

MISSED = 0.001
"""The share that may be missed."""

PRIOR = 100
"""For how many lists the prior counts."""

_Sums = dict[float, tuple[int, float]]


class Calibration:
    """The factors of one cache.

    Args:
        parts: What the cache works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._indexes: dict[str, _Sums] = {}

    def factor(self, index: str) -> float:
        """The factor for lists that an index gave; it must have been loaded. Infinite: none."""
        known = self._indexes[index]
        for factor, before in LADDER.items():
            lists, missed = known[factor]
            if (PRIOR * before + missed) / (PRIOR + lists) <= MISSED:
                return factor
        return math.inf

    def learn(self, index: str, served: float, missed: float, *, weight: float = 1.0) -> None:
        """Note what a list would have been worth.

        Args:
            index: The index that gave it.
            served: The largest factor with which it would have been served.
            missed: The share of the right documents that it would have missed, 0 to 1.
            weight: For how many lists it counts, from 1.
        """
        known = self._indexes[index]
        counted = max(1, round(weight))
        for factor in LADDER:
            if served >= factor:
                lists, so_far = known[factor]
                known[factor] = (lists + counted, so_far + counted * missed)
                outcome = _outcome(factor, index)
                self._parts.journal.count("", "retrieval", outcome, counted * missed, counted)

    def knows(self, index: str) -> bool:
        """Whether what the store holds of an index has been read."""
        return index in self._indexes

    def load(self, index: str) -> None:
        """Read what the store holds of an index; what is learnt here is added to it."""
        counts: dict[str, Count] = {}
        try:
            counts = {one.outcome: one for one in self._parts.store.counts()}
        except Exception as error:
            self._parts.fault("calibration", error)
        told = ((factor, counts.get(_outcome(factor, index))) for factor in LADDER)
        sums = {f: (0, 0.0) if one is None else (one.tokens, one.seconds) for f, one in told}
        self._indexes.setdefault(index, sums)


def _outcome(factor: float, index: str) -> str:
    return f"{FACTOR}{factor:g} {index}"
