"""How low the bar may be for the share of wrong hits to stay under a bound, and how much to audit.

The requests that reach the semantic decision are counted, and some are judged. How many hits above
a bar were wrong follows in two steps. What the scores make one expect: each judged request stands
for `weight` requests, as doubtful as its score says. And how far the scores are to be believed: as
many as were found wrong among the judged above the bar, over as many as had been expected there.
The weights have no part in the second step, since what a judgement says of a score does not depend
on why it was judged. Where the wrong ones, each counted as many times as it stands for, are more
than that, they count: what the scores have seen so far is then not what they meet now.
"""

from __future__ import annotations

import math

import numpy as np

from stemma.policies.logistic import Floats

__all__ = ["SUREST", "audit_share", "doubts", "lowest_bar"]

SUREST = 0.005
"""No hit is taken to be less doubtful: below, scores say nothing that judgements could confirm."""

_MOST = 0.25
"""The greatest share that is audited, unless more is asked for."""

_BELIEVED = 1.0
"""So many wrong ones are taken to be found, and expected, before any: the scores are right."""

_UNTOLD = 2.0
"""So many wrong hits the budget must hold beside: those made before a judgement tells of them."""

_FARTHEST = 30.0
_DEVIATIONS = 1.0
"""By how many the number of those found wrong is taken to be too low."""


def doubts(scores: Floats) -> Floats:
    """How likely candidates of these log-odds are wrong, `SUREST` to 1."""
    return np.maximum(SUREST, 1.0 / (1.0 + np.exp(np.clip(scores, -_FARTHEST, _FARTHEST))))


def audit_share(score: float, bound: float, *, usual: float) -> float:
    """Which share of the hits of a score is computed afresh to be judged, above 0.

    It grows with the square root of the doubt: so a given number of audits says most.

    Args:
        score: The log-odds that they are right.
        bound: The allowed share of wrong hits among the requests, above 0.
        usual: The share where they are as doubtful as the bound, above 0 and at most 1.
    """
    doubt = max(SUREST, 1.0 / (1.0 + math.exp(max(-_FARTHEST, min(_FARTHEST, score)))))
    return min(max(_MOST, usual), usual * math.sqrt(doubt / bound))


def lowest_bar(
    scores: Floats, doubt: Floats, weights: Floats, wrong: Floats, *, requests: int, bound: float
) -> float:
    """The lowest bar that keeps wrong hits under the bound, as do all higher ones.

    Infinite if none does.

    Args:
        scores: Of the judged requests, shape (n,).
        doubt: How likely each was wrong by what is known, shape (n,).
        weights: How many requests each stands for, shape (n,).
        wrong: 1 where the hit would have been wrong, else 0, shape (n,).
        requests: How many requests there were, judged or not.
        bound: The allowed share of wrong hits among them, 0 to 1.
    """
    if not len(scores):
        return math.inf
    order = np.argsort(-scores, kind="stable")
    ranked, weights, wrong, doubt = (one[order] for one in (scores, weights, wrong, doubt))
    found, expected = _BELIEVED + np.cumsum(wrong), _BELIEVED + np.cumsum(doubt)
    spent = _UNTOLD + (found + _DEVIATIONS * np.sqrt(found)) / expected * np.cumsum(weights * doubt)
    counted = np.cumsum(weights * wrong)
    among = np.append(ranked[1:] == ranked[:-1], False)  # a bar is over or under all of a score
    over = (np.maximum(spent, counted) > bound * (requests + 1)) & ~among
    if not over.any():
        return float(ranked[-1])
    first = float(ranked[int(np.argmax(over))])
    return math.inf if first == ranked[0] else float(np.nextafter(first, math.inf))
