"""Whether two samples differ (Kolmogorov and Smirnov), with p-values that are uniform if not.

No tables and no approximations: a test's null distribution is drawn, and a statistic that is equal
to a drawn one counts as above it by a coin's share. So the p-values of samples that do not differ
are exactly uniform, however few there are, and can be tested for being so.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from evals.propagation.telling import Scores

__all__ = ["p_apart", "p_uniform"]

_DRAWS = 10_000


def p_apart(one: Scores, other: Scores, rng: np.random.Generator) -> float:
    """The p-value of two samples of one size having one distribution, above 0 to 1.

    Args:
        one: Shape (n,).
        other: Shape (n,).
        rng: The order of equal values, and the coin.
    """
    values = np.concatenate([one, other])
    first = np.arange(len(values)) < len(one)
    gap = _gaps(first[np.lexsort((rng.random(len(values)), values))])
    return _rank(gap, _null_apart(len(one)), rng)


def p_uniform(values: Scores, rng: np.random.Generator) -> float:
    """The p-value of values being uniform between 0 and 1, shape (n,), above 0 to 1."""
    return _rank(_distance(np.sort(values)), _null_uniform(len(values)), rng)


def _rank(found: Any, null: Scores, rng: np.random.Generator) -> float:
    """Which share of the draws, and of itself, is at least as large; equal ones by a coin."""
    above, equal = np.sum(null > found), np.sum(null == found)
    return float((above + (1.0 - rng.random()) * (equal + 1)) / (len(null) + 1))


def _gaps(first: Any) -> Any:
    """The largest gap between two distribution functions, times n.

    Args:
        first: Of which sample each value is, in the values' order; shape (…, 2 n).
    """
    return np.abs(np.cumsum(np.where(first, 1, -1), axis=-1)).max(axis=-1)


def _distance(ordered: Any) -> Any:
    """How far the values, in order, are from uniform; shape (…, n)."""
    count = ordered.shape[-1]
    steps = np.arange(1, count + 1) / count
    return np.maximum(steps - ordered, ordered - steps + 1 / count).max(axis=-1)


@lru_cache(maxsize=8)
def _null_apart(count: int) -> Scores:
    first = np.tile(np.arange(2 * count) < count, (_DRAWS, 1))
    return np.asarray(_gaps(np.random.default_rng(0).permuted(first, axis=1)), dtype=np.float64)


@lru_cache(maxsize=8)
def _null_uniform(count: int) -> Scores:
    drawn = np.random.default_rng(0).random((_DRAWS, count))
    return np.asarray(_distance(np.sort(drawn, axis=1)), dtype=np.float64)
