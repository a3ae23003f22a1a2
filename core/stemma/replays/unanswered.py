"""What a log shows that does not say what was answered: how near its requests are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stemma.entry import Vector

__all__ = ["Nearness", "nearness"]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, kw_only=True, slots=True)
class Nearness:
    """How near the requests of a log are to those before them.

    Args:
        requests: How many there are.
        repeats: How many are exact repeats.
        quantiles: Of the others: the similarity to the nearest before it, by its rank from 0 to 1.
        above: By threshold: the share of all requests that have one at least so near before them,
            and are no exact repeat. How many of these hits were right, the log does not say.
    """

    requests: int
    repeats: int
    quantiles: Mapping[float, float] = field(repr=False)
    above: Mapping[float, float] = field(repr=False)


def nearness(
    texts: Sequence[str], at: Mapping[str, Vector], thresholds: Sequence[float]
) -> Nearness:
    """How near the texts of a log are to those before them, in its order."""
    fresh = list(dict.fromkeys(texts))
    rows = np.stack([at[text] for text in fresh])
    nearest = [float(np.max(rows[:place] @ rows[place])) for place in range(1, len(fresh))]
    values = np.array(nearest or [0.0])
    return Nearness(
        requests=len(texts),
        repeats=len(texts) - len(fresh),
        quantiles={one: float(np.quantile(values, one)) for one in QUANTILES},
        above={one: float(np.sum(values >= one)) / len(texts) for one in thresholds},
    )
