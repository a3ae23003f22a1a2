"""How low the bar may be for the share of wrong hits to stay under a bound, and how much to audit.

The requests that reach the semantic decision are counted, and some are judged. Each judged one
stands for `weight` requests. Of a bar on the score, the wrong hits above it are then estimated by
the weights of the wrong judgements above it; to that come the largest weight that a single
judgement can have, as if the next one were wrong, and one deviation of the estimate.
"""

from __future__ import annotations

import math

import numpy as np

from stemma.policies.logistic import Floats

__all__ = ["audit_share", "lowest_bar"]

_OF_BUDGET = 0.25
"""What the weight of one audit may take of the budget, while few requests were seen."""


def audit_share(bound: float, requests: int, *, least: float, most: float) -> float:
    """Which share of the would-be hits is computed afresh to be judged.

    Many at first: a judgement that stands for more requests than the budget has room for allows no
    hit at all.

    Args:
        bound: The allowed share of wrong hits among the requests, above 0.
        requests: How many there were so far.
        least: The share in the long run, above 0.
        most: The share at the beginning, at least `least` and at most 1.
    """
    return max(least, min(most, 1.0 / (_OF_BUDGET * bound * (requests + 1))))


def lowest_bar(
    scores: Floats, weights: Floats, wrong: Floats, *, requests: int, bound: float, heaviest: float
) -> float:
    """The lowest bar on the score that keeps wrong hits under the bound; infinite if none does.

    Args:
        scores: Of the judged requests, shape (n,).
        weights: How many requests each stands for, shape (n,).
        wrong: 1 where the hit would have been wrong, else 0, shape (n,).
        requests: How many requests there were, judged or not.
        bound: The allowed share of wrong hits among them, 0 to 1.
        heaviest: The largest weight of the next judgement.
    """
    order = np.argsort(-scores, kind="stable")
    lost = weights[order] * wrong[order]
    spent = np.cumsum(lost) + heaviest + np.sqrt(np.cumsum(weights[order] * lost))
    within = spent <= bound * (requests + 1)
    if not len(scores) or not within[0]:
        return math.inf
    ranked = scores[order]
    if within.all():
        return float(ranked[-1])
    # What scores as high as the first that is too much is not above the bar.
    return float(np.nextafter(ranked[int(np.argmin(within))], math.inf))
