"""The independent cascade in topological order, and where it is more than a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stemma.propagation.edges import Outward

__all__ = ["Bound", "ascend"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Bound:
    """What no entry's probability exceeds.

    Args:
        most: The bound of each entry, 0 to 1; 1 all round a circle that has not settled.
        exact: Whether it is the probability itself.
        settled: Whether all circles have settled.
    """

    most: NDArray[np.float64]
    exact: NDArray[np.bool_]
    settled: bool


def ascend(
    outward: Outward,
    order: Sequence[Sequence[int]],
    own: Mapping[int, float],
    *,
    tolerance: float = 1e-9,
    rounds: int = 1000,
) -> Bound:
    """Pass from parents to children, taking a child's parents for independent.

    Args:
        outward: The edges.
        order: Who can be reached, in parts, parents' parts before their children's.
        own: How likely some are wrong of themselves.
        tolerance: A circle has settled where nothing rises by more.
        rounds: How often a circle is gone round at most.
    """
    entries = len(outward.firsts) - 1
    spared, exact = [1.0] * entries, [True] * entries  # spared: how likely nothing made it wrong
    for node, probability in own.items():
        spared[node] = 1.0 - probability
    families, settled = _Families(entries), True
    for members in order:
        inside: set[int] = set(members) if len(members) > 1 else set()
        if inside:
            settled &= _go_round(outward, members, spared, tolerance, rounds)
            for node in members:
                exact[node] = False
        for node in members:
            wrong = 1.0 - spared[node]
            for edge in outward.span(node):
                passed = wrong * outward.attenuations[edge]
                child = outward.children[edge]
                if not passed or child in inside:
                    continue
                spared[child] *= 1.0 - passed
                # What certainly is wrong cannot make its children err together.
                alone = wrong == 1.0 or families.join(node, child)
                exact[child] = exact[child] and exact[node] and alone
    return Bound(most=1.0 - np.array(spared, dtype=float), exact=np.array(exact), settled=settled)


class _Families:
    """Who may err together: sets that are joined along uncertain edges."""

    __slots__ = ("_above",)

    def __init__(self, entries: int) -> None:
        self._above = list(range(entries))

    def join(self, one: int, other: int) -> bool:
        """Join the families of two; whether they were apart."""
        first, second = self._oldest(one), self._oldest(other)
        self._above[second] = first
        return first != second

    def _oldest(self, node: int) -> int:
        above = self._above
        while above[node] != node:
            above[node] = above[above[node]]
            node = above[node]
        return node


def _go_round(
    outward: Outward,
    members: Sequence[int],
    spared: list[float],
    tolerance: float,
    rounds: int,
) -> bool:
    """Let a circle settle, from below; whether it did. If not, all in it are taken for wrong."""
    place = {node: at for at, node in enumerate(members)}
    within = [
        (place[node], place[outward.children[edge]], outward.attenuations[edge])
        for node in members
        for edge in outward.span(node)
        if outward.children[edge] in place
    ]
    parents, children = (np.array([edge[end] for edge in within]) for end in (0, 1))
    attenuations = np.array([edge[2] for edge in within])
    outside = np.array([spared[node] for node in members])
    wrong, rise = 1.0 - outside, np.inf
    for _ in range(rounds):
        now = outside.copy()
        np.multiply.at(now, children, 1.0 - attenuations * wrong[parents])
        rise = float(np.max(1.0 - now - wrong))
        wrong = 1.0 - now
        if rise <= tolerance:
            break
    done = rise <= tolerance
    for node, value in zip(members, wrong.tolist(), strict=True):
        spared[node] = 1.0 - value if done else 0.0
    return done
