"""What a store calls a score: which function of the cosine similarity, told from what it gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["SCALES", "rescored"]

Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]
Score = float | None

NEAR_ENOUGH = 1e-3
"""By how much a score may be off, for rounding and vectors of nearly equal length."""

SCALES: tuple[Callable[[Numbers], Numbers], ...] = (
    lambda s: s,
    lambda s: (1 + s) / 2,
    lambda s: np.exp(s - 1),
    lambda s: np.exp(2 * s - 2),
    lambda s: 1 - s,
    lambda s: 2 - 2 * s,
    lambda s: np.sqrt(np.maximum(0, 2 - 2 * s)),
)
"""From a cosine similarity to the score: itself, halved, by cosine or squared Euclidean distance,
and these distances."""


def rescored(
    scores: Sequence[Score], before: Sequence[float], after: Sequence[float]
) -> tuple[Score, ...] | None:
    """The scores that a store would have given for another query; `None` where nobody can say.

    Args:
        scores: What it gave; `None` for all where it gives none.
        before: The documents' cosine similarities to the query then, −1 to 1.
        after: Other documents' similarities to the other query.
    """
    if all(score is None for score in scores):
        return (None,) * len(after)
    given = np.array([np.nan if score is None else score for score in scores])
    known = np.asarray(before, dtype=np.float64)
    for scale in SCALES:
        if np.allclose(scale(known), given, rtol=0, atol=NEAR_ENOUGH):
            found: list[float] = scale(np.asarray(after, dtype=np.float64)).tolist()
            return tuple(found)
    return None
