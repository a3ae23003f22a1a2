"""Scores and the order that follows from them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stemma.errors import RerankerError

__all__ = ["Order", "as_scores", "best_first"]

Order = list[list[Any]]
"""An order of what was given, best first: for each, its place there and its score, if any."""


def as_scores(given: Any, count: int, revision: str) -> list[float]:
    """What a reranker gave for `count` texts, as floats. A missing score (`None`) is NaN.

    Raises:
        RerankerError: It is not one number a text.
    """
    try:
        scores = [_number(one) for one in (given.tolist() if hasattr(given, "tolist") else given)]
    except (TypeError, ValueError, OverflowError) as error:
        raise RerankerError(
            f"the reranker {revision!r} gave something that is not one number a text: {error}"
        ) from error
    if len(scores) != count:
        raise RerankerError(
            f"the reranker {revision!r} gave {len(scores)} scores for {count} texts; which is "
            "whose cannot be told, so none was used or stored"
        )
    return scores


def _number(given: Any) -> float:
    if given is None:
        return math.nan
    if isinstance(given, (list, tuple)):
        if len(given) != 1:
            raise ValueError(f"{len(given)} numbers for one text; pass a function that picks one")
        return _number(given[0])
    if isinstance(given, (str, bytes)):
        raise TypeError(f"a {type(given).__name__}")
    return float(given)


def best_first(scores: Sequence[float]) -> list[int]:
    """The places of the scores, the highest first; equal ones in the order they came in.

    What is not a finite number is no score, and comes last.
    """
    return sorted(
        range(len(scores)),
        key=lambda place: (not math.isfinite(scores[place]), -_finite(scores[place])),
    )


def _finite(score: float) -> float:
    return score if math.isfinite(score) else 0.0
