"""Whether two conversations mean the same, and the vector by which such are found. Pure.

A follow-up's vector is that of its focus beside that of its context: `c = Σ ρ^k · e(turn)`, with k
counted back from the focus, made a unit vector. So one search of an index finds what is near in
both. As older turns hardly weigh in c, it does not decide: that is done turn by turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stemma.embedders.protocol import Matrix
from stemma.entry import Vector

__all__ = ["CONTEXT", "RHO", "TURN", "beside", "floor", "near_turns", "objection", "parted"]

RHO = 0.6
"""What one turn more between it and the focus leaves of a turn's weight."""

CONTEXT = 0.9
"""The least cosine similarity of two contexts, −1 to 1, inclusive. See `docs/decision.md`."""

TURN = 0.8
"""The least cosine similarity of two turns that stand in the same place."""

_BOTH = math.sqrt(2.0)


def beside(focus: Vector, turns: Matrix) -> Vector:
    """The vector of a focus in its context: of length 1, with twice as many numbers.

    Args:
        focus: The focus's vector, of length 1.
        turns: The vectors of the turns before it, oldest first, of shape (turns, dimensions).
    """
    weights = RHO ** np.arange(len(turns) - 1, -1, -1, dtype=np.float32)
    context: Vector = np.asarray(weights @ turns, dtype=np.float32)
    length = float(np.linalg.norm(context))
    if length > 0.0:
        context /= length
    joined: Vector = np.asarray(np.concatenate((focus, context)) / _BOTH, dtype=np.float32)
    return joined


def floor(least: float) -> float:
    """The least similarity of two vectors made by `beside`, whose focuses reach `least`."""
    return (least + CONTEXT) / 2


def parted(one: Vector, other: Vector) -> tuple[float, float]:
    """The similarities of the focuses and of the contexts of two vectors made by `beside`.

    Both −1 to 1; −1 where the vectors do not belong together.
    """
    if one.shape != other.shape or len(one) % 2:
        return -1.0, -1.0
    half = len(one) // 2
    return _cosine(one[:half], other[:half]), _cosine(one[half:], other[half:])


def objection(asked: Sequence[str], stored: Sequence[str]) -> str:
    """Why two conversations cannot mean the same, in words without theirs; empty if they may.

    Args:
        asked: The turns before the question.
        stored: Those before the stored one.
    """
    from stemma.policies.guards import guard  # noqa: PLC0415 - its tables take long to load

    if len(asked) != len(stored):
        return "another number of turns before it"
    for back, (one, other) in enumerate(zip(reversed(asked), reversed(stored), strict=True), 1):
        refused = guard(one, other)
        if refused is not None:
            return f"{refused.reason} in the turn {back} before it: {refused.detail}"
    return ""


def near_turns(asked: Matrix, stored: Matrix) -> bool:
    """Whether every turn is near the one in its place; of shape (turns, dimensions) both."""
    return all(_cosine(one, other) >= TURN for one, other in zip(asked, stored, strict=True))


def _cosine(one: Vector, other: Vector) -> float:
    lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return float(one.astype(np.float32) @ other.astype(np.float32)) / lengths if lengths else -1.0
