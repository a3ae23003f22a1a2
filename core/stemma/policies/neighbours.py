"""When the ranked list that an index gave for one query may serve another. Pure.

A list holds the documents nearest to a query, with their vectors, and its *floor*: no document
outside it is nearer to that query. For unit vectors, with cosine similarity,

* the angle between them is a metric, so a document outside the list is at least
  `arccos(floor) − arccos(s)` away from a query at similarity `s`. Its similarity to the new query
  is therefore at most the cosine of that: the **cone bound**. If the k documents of the list that
  are nearest to the new query all reach it, they are *proven* to be the nearest of all, as far as
  the floor is true: of an exact index it is, of an approximate one for what that returned;
* the cone bound is met only by a document that lies exactly in the worst direction, and among real
  texts none does. The **statistical** rule takes `floor + factor · √(2 − 2s)` instead, where
  `√(2 − 2s)` is the distance of the two queries. How large the factor must be is measured, index by
  index (see `stemma.calibration`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from stemma.embedders.protocol import Matrix
from stemma.entry import Vector

__all__ = [
    "SLACK",
    "Reuse",
    "cone_bound",
    "distance",
    "factor_served",
    "of_length_one",
    "reuse",
    "unit",
]

SLACK = 1e-6
"""What rounding may do to a similarity of float32 vectors."""

UNIT = 1e-5
"""How far a length may be off 1, for rounding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reuse:
    """A list reused.

    Args:
        kind: How its first k are known to be the right ones.
        order: Which documents of the list, nearest to the new query first: those that are known to
            be nearer than all outside, at least k.
        similarities: Theirs to the new query, −1 to 1.
        floor: No document outside `order` is nearer to the new query (as far as `kind` says).
        margin: By how much the k-th is nearer than it need be.
    """

    kind: Literal["proven", "statistical"]
    order: tuple[int, ...]
    similarities: tuple[float, ...] = field(repr=False)
    floor: float
    margin: float


def unit(numbers: object) -> Vector | None:
    """A vector of length 1, float32; `None` for what has no direction, or is no vector."""
    try:
        vector = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    length = float(np.linalg.norm(vector)) if vector.ndim == 1 and vector.size else 0.0
    if not math.isfinite(length) or length == 0.0:
        return None
    return (vector / length).astype(np.float32)


def of_length_one(numbers: object) -> bool:
    """Whether a vector has length 1, but for rounding."""
    return abs(float(np.linalg.norm(np.asarray(numbers, dtype=np.float64))) - 1.0) <= UNIT


def distance(similarity: float) -> float:
    """The Euclidean distance of two unit vectors, 0 to 2: `√(2 − 2s)`."""
    return math.sqrt(max(0.0, 2.0 - 2.0 * similarity))


def cone_bound(floor: float, similarity: float) -> float:
    """The highest similarity to the new query that a document outside the list can have.

    Args:
        floor: The highest that one outside can have to the list's own query; −inf where the index
            has no document outside.
        similarity: Of the two queries, −1 to 1.
    """
    if floor == -math.inf:
        return -math.inf
    between = math.acos(min(1.0, max(-1.0, similarity)))
    outside = math.acos(min(1.0, max(-1.0, floor)))
    return math.cos(max(0.0, outside - between))


def reuse(
    asked: Vector, query: Vector, vectors: Matrix, *, floor: float, k: int, factor: float
) -> Reuse | None:
    """What a list says of another query; `None` where its first k cannot be told.

    Args:
        asked: The new query's unit vector, shape (d,).
        query: The list's own, shape (d,).
        vectors: The listed documents' unit vectors, shape (n, d).
        floor: The list's floor.
        k: How many documents are asked for, from 1.
        factor: The statistical rule's; infinite: only what is proven.
    """
    similarities = vectors @ asked
    ranked = np.argsort(-similarities, kind="stable")
    if len(ranked) < k and floor != -math.inf:
        return None
    last = float(similarities[ranked[min(k, len(ranked)) - 1]]) if len(ranked) else -math.inf
    # Of nearly equal vectors the product is 1 for all that float32 can tell.
    apart = np.subtract(query, asked, dtype=np.float64)
    between = 1.0 - float(apart @ apart) / 2.0
    proven = cone_bound(floor, between)
    likely = floor + factor * distance(between) if math.isfinite(factor) else math.inf
    if last >= proven + SLACK or proven == -math.inf:
        return _reused("proven", ranked, similarities, proven, last)
    if last >= likely + SLACK:
        return _reused("statistical", ranked, similarities, likely, last)
    return None


def _reused(
    kind: Literal["proven", "statistical"],
    ranked: np.ndarray[tuple[int], np.dtype[np.intp]],
    similarities: np.ndarray[tuple[int], np.dtype[np.float32]],
    bound: float,
    last: float,
) -> Reuse:
    kept = [int(one) for one in ranked if similarities[one] >= bound]
    return Reuse(
        kind=kind,
        order=tuple(kept),
        similarities=tuple(float(similarities[one]) for one in kept),
        floor=bound,
        margin=last - bound,
    )


def factor_served(
    asked: Vector, query: Vector, vectors: Matrix, *, floor: float, k: int
) -> float | None:
    """The largest factor with which the statistical rule would serve a list.

    Args:
        asked: The new query's unit vector, shape (d,).
        query: The list's own, shape (d,).
        vectors: The listed documents' unit vectors, shape (n, d).
        floor: The list's floor.
        k: How many documents are asked for, from 1.

    Returns:
        `None` where there is none: the list is too short, or the queries are the same.
    """
    apart = distance(float(query @ asked))
    if len(vectors) < k or apart < math.sqrt(SLACK) or not math.isfinite(floor):
        return None
    last = float(np.partition(vectors @ asked, len(vectors) - k)[len(vectors) - k])
    return (last - floor) / apart
