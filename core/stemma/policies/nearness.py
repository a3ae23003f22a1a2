"""A similarity as a number that a logistic curve can read. Pure."""

from __future__ import annotations

import math

__all__ = ["nearness"]


def nearness(similarity: float) -> float:
    """A similarity (−1 to 1) as −ln(1 − s + 0.01), −0.7 to 4.6: what a logistic curve can read."""
    return -math.log(min(max(1.0 - similarity, 0.0), 2.0) + 0.01)
