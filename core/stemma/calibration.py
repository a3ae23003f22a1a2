"""How large the factor of the statistical rule must be, measured index by index.

Each search that had to be made anyway tells, for every cached list that was near, which factor
would have been right about it; so do audits, searches made although a list could have served. Mean
and deviation of what was needed are kept as counters of the store, so that they outlive the process
and add up over all of them.

The factor in use is `mean + Z · deviation`, with the prior counting as `PRIOR` observations. `Z`
and the prior were found with MiniLM on two corpora, one of passages and questions, one of short
utterances: with them a list that is reused has all the right chunks in 99.94 % of the places or
more (`python -m evals rag`). Few observations move it little, none makes it smaller than `LEAST`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from stemma.journal import FACTOR, FACTOR_SQUARED
from stemma.parts import Parts

__all__ = ["LEAST", "Calibration"]

Z = 1.95
PRIOR, PRIOR_MEAN, PRIOR_DEVIATION = 200, 0.119, 0.093
LEAST = 0.2


class Calibration:
    """The factors of one cache.

    Args:
        parts: What the cache works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sums: dict[str, tuple[int, float, float]] = {}

    def factor(self, index: str) -> float:
        """The factor for lists that an index gave; it must have been loaded."""
        seen, total, squares = self._sums[index]
        number = seen + PRIOR
        mean = (total + PRIOR * PRIOR_MEAN) / number
        squared = squares + PRIOR * (PRIOR_MEAN**2 + PRIOR_DEVIATION**2)
        deviation = math.sqrt(max(0.0, squared / number - mean**2))
        return max(LEAST, mean + Z * deviation)

    def learn(self, index: str, needed: Iterable[float]) -> None:
        """Note which factors would have been right."""
        seen, total, squares = self._sums[index]
        for one in needed:
            seen, total, squares = seen + 1, total + one, squares + one * one
            self._parts.journal.count("", "retrieval", FACTOR + index, one)
            self._parts.journal.count("", "retrieval", FACTOR_SQUARED + index, one * one)
        self._sums[index] = (seen, total, squares)

    def knows(self, index: str) -> bool:
        """Whether what the store holds of an index has been read."""
        return index in self._sums

    def load(self, index: str) -> None:
        """Read what the store holds of an index; what is learnt here is added to it."""
        try:
            counts = {one.outcome: one for one in self._parts.store.counts()}
        except Exception as error:
            self._parts.fault("calibration", error)
            counts = {}
        first, second = counts.get(FACTOR + index), counts.get(FACTOR_SQUARED + index)
        known = (0, 0.0, 0.0)
        if first is not None and second is not None and first.lookups == second.lookups:
            known = (first.lookups, first.seconds, second.seconds)
        self._sums.setdefault(index, known)
