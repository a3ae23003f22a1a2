"""What hides that an answer came out of a pool, and what that costs.

Simulated on top of measured lookups: an answer takes its lookup, and on a miss a model's time. A
hit may be kept back until an answer that was computed would have been there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from evals.propagation.apart import p_apart, p_uniform
from evals.propagation.telling import Scores, auc

__all__ = ["WAYS", "kept", "waits"]

MODEL = 1e6
"""The median of a model's time, microseconds. Its logarithm is normal with a deviation of 0.5."""

SEEN = 256
"""Misses that are remembered, from which a delay is drawn."""

TENANTS, QUESTIONS, ASKED = 6, 1_000, 2_000
"""Of a pool whose questions are asked as by Zipf's law, and how often each tenant asks."""

Delay = Callable[[Scores, int, np.random.Generator], Scores]
"""When a number of hits may be answered at the earliest, from the misses that were seen."""

WAYS: Mapping[str, Delay] = {
    "at once": lambda seen, number, rng: np.zeros(number),  # noqa: ARG005 - of the type
    "after the mean of misses": lambda seen, number, rng: np.full(number, seen.mean()),  # noqa: ARG005
    "after a miss drawn at random": lambda seen, number, rng: rng.choice(seen, number),
}


def waits(
    hits: Scores, misses: Scores, *, audits: int, rng: np.random.Generator
) -> dict[str, dict[str, float]]:
    """For each way, how well an answer's time tells a hit from a miss, and what a hit waits.

    Args:
        hits: Microseconds of lookups that hit, shape (n,).
        misses: Of those that missed, shape (n,).
        audits: Among how many two-sample audits they are divided.
        rng: Of the model's times and the delays.
    """
    computed = misses + MODEL * rng.lognormal(0.0, 0.5, size=len(misses))
    seen = rng.choice(misses, SEEN) + MODEL * rng.lognormal(0.0, 0.5, size=SEEN)
    found = {}
    for name, delay in WAYS.items():
        served = np.maximum(hits, delay(seen, len(hits), rng))
        pairs = zip(np.split(served, audits), np.split(computed, audits), strict=True)
        values = np.array([p_apart(one, other, rng) for one, other in pairs])
        found[name] = {
            "AUC of one answer": auc(computed, served),
            "p of the p-values being uniform": p_uniform(values, rng),
            "share of audits below 0.05": float(np.mean(values < 0.05)),
            "seconds that a hit takes, mean": float(served.mean() / 1e6),
            "seconds that a miss takes, mean": float(computed.mean() / 1e6),
        }
    return found


def kept(rng: np.random.Generator) -> float:
    """The share of a pool's hits that are not a tenant's first of their question, 0 to 1."""
    shares = 1.0 / np.arange(1, QUESTIONS + 1)
    asked = rng.choice(QUESTIONS, size=(TENANTS, ASKED), p=shares / shares.sum())
    return 1.0 - float(np.mean([len(set(one)) for one in asked.tolist()])) / ASKED
