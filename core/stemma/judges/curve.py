"""From a model's raw scores to probabilities: a logistic curve, fitted to pairs that are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stemma.errors import UsageError
from stemma.policies.logistic import fit

__all__ = ["LEAST", "Curve"]

LEAST = 10
"""So many pairs of either kind are needed to fit a curve."""

_FARTHEST = 30.0
_RIDGE = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """The probability 1 / (1 + exp(−slope · (score − middle))).

    Args:
        slope: How steeply it rises, above 0.
        middle: The score that is as likely right as wrong.

    Raises:
        UsageError: A number is not finite, or the slope is not above 0.
    """

    slope: float
    middle: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and self.slope > 0 and math.isfinite(self.middle)):
            raise UsageError(
                f"a curve has a finite slope above 0 and a finite middle, not {self.slope!r} "
                f"and {self.middle!r}"
            )

    def __call__(self, score: float) -> float:
        """The probability that goes with a score, 0 to 1."""
        steep = self.slope * (score - self.middle)
        return 1.0 / (1.0 + math.exp(-max(min(steep, _FARTHEST), -_FARTHEST)))

    @classmethod
    def fitted(cls, scores: Sequence[float], same: Sequence[bool]) -> Curve:
        """The curve that says best which pairs are the same.

        With few pairs it is flatter than they are, so that nothing is surer than it can be.

        Args:
            scores: The model's scores of some pairs.
            same: Whether each of them is the same.

        Raises:
            UsageError: There are fewer than `LEAST` pairs of either kind, a score is not finite, or
                higher scores are not more likely the same.
        """
        given, right = np.asarray(scores, dtype=np.float64), np.asarray(same, dtype=np.float64)
        if given.ndim != 1 or given.shape != right.shape or not np.isfinite(given).all():
            raise UsageError("give one finite score and one True or False for each pair")
        fewer = int(min(right.sum(), len(right) - right.sum()))
        if fewer < LEAST:
            raise UsageError(
                f"a curve needs {LEAST} pairs that are the same and {LEAST} that are "
                f"not; of one kind there are {fewer}"
            )
        centre, spread = float(given.mean()), float(given.std())
        if spread == 0.0:
            raise UsageError("all scores are the same: nothing can be told by them")
        rows = np.column_stack((np.ones_like(given), (given - centre) / spread))
        constant, steep = fit(rows, right, np.ones_like(given), prior=np.zeros(2), ridge=_RIDGE)
        if steep <= 0:
            raise UsageError("the pairs with higher scores are not more likely the same")
        slope = float(steep) / spread
        return cls(slope=slope, middle=centre - float(constant) / slope)
