"""How well a score tells right answers from hallucinated ones."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Scores", "auc", "bar", "interval"]

Scores = np.ndarray[Any, np.dtype[np.float64]]
"""One a question, shape (n,)."""

_DRAWS = 1_000


def auc(right: Scores, wrong: Scores) -> float:
    """How often a right answer scores higher than a wrong one, 0 to 1; a tie counts half."""
    theirs = np.sort(wrong)
    below = np.searchsorted(theirs, right, "left") + np.searchsorted(theirs, right, "right")
    return float(below.sum() / (2.0 * len(right) * len(theirs)))


def bar(right: Scores, kept: float) -> float:
    """The highest score that at least the share `kept` of the right answers reach."""
    ours = np.sort(right)
    return float(ours[int(np.floor((1.0 - kept) * len(ours) + 1e-9))])


def interval(right: Scores, wrong: Scores, *, seed: int) -> tuple[float, float]:
    """The 95 % interval of the `auc`, by drawing with replacement; pairs together, if as many.

    Args:
        right: The scores of right answers.
        wrong: Those of wrong ones; where there are as many, of the same questions in one order.
        seed: Of the draws.
    """
    drawn = np.random.default_rng(seed)
    found = []
    for _ in range(_DRAWS):
        some = drawn.integers(len(right), size=len(right))
        paired = len(right) == len(wrong)
        others = some if paired else drawn.integers(len(wrong), size=len(wrong))
        found.append(auc(right[some], wrong[others]))
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)
