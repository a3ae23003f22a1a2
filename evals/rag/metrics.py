"""What a ranked list is worth: recall against an exact search, nDCG and reciprocal rank."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = ["by_kind", "mean", "ndcg", "recall", "reciprocal_rank"]

TIE = 1e-6
"""Similarities that differ by less are equal: float32 vectors tell no more."""


def recall(found: Sequence[str], similarities: Mapping[str, float], k: int) -> float:
    """The share of the k nearest that was found; as near as the k-th counts as one of them.

    Args:
        found: Ids of what was found.
        similarities: Of every document in the index, by id, to the query.
        k: How many were asked for, from 1.
    """
    nearest = sorted(similarities.values(), reverse=True)[:k]
    right = {one for one in found[:k] if similarities.get(one, -math.inf) >= nearest[-1] - TIE}
    return len(right) / len(nearest)


def by_kind(recalls: Iterable[tuple[str, float]]) -> dict[str, dict[str, float]]:
    """Of lists with what they say of themselves: how many, mean recall, how many lack something."""
    found: dict[str, list[float]] = {}
    for kind, value in recalls:
        found.setdefault(kind, []).append(value)
    return {
        kind: {
            "lists": len(all_of),
            "recall": mean(all_of),
            "short": sum(one < 1 for one in all_of),
        }
        for kind, all_of in sorted(found.items())
    }


def ndcg(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Normalised discounted cumulative gain of the first k, with relevance 0 or 1."""
    gains = (1 / math.log2(rank + 2) for rank, one in enumerate(found[:k]) if one in relevant)
    best = sum(1 / math.log2(rank + 2) for rank in range(min(k, len(relevant))))
    return sum(gains) / best if best else 0.0


def reciprocal_rank(found: Sequence[str], relevant: Collection[str]) -> float:
    """One over the place of the first relevant one; 0 where there is none."""
    return next((1 / (rank + 1) for rank, one in enumerate(found) if one in relevant), 0.0)


def mean(values: Collection[float]) -> float:
    """The mean; NaN of nothing."""
    return sum(values) / len(values) if values else math.nan
