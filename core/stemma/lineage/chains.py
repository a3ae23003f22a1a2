"""Chains: what the hops of one run share, above all how much of it may be wrong.

A hit by meaning is right with probability p. What is built on several of them is wrong with a
probability of at most the sum of their risks 1 − p, however they depend on one another (the union
bound). A chain keeps that sum within its budget.
"""

from __future__ import annotations

from collections.abc import Mapping

from stemma import forking

__all__ = ["NESTED", "RISK", "Chain"]

RISK = 0.5
"""The default budget: what a chain gives is more likely right than wrong."""

NESTED = 1_000
"""How deep hops may be nested by default."""

_EPSILON = 1e-9

_taking = forking.Lock()  # one for all: it is held for the length of a sum, at hits by meaning


class Chain:
    """What the hops of one run share. See the module's text.

    Branches that meet again share their chain, so that their sum is within the budget where they
    meet. What only sees what was before it, as an item of a batch does, has a chain `beside` it.

    Args:
        above: The chain that this is a part of: it is bound by the budget of that one, too.
        beside: The chain of which it inherits all, and to which it adds nothing.
        budget: What the risks may add up to; `None`: as the chain it comes from, or else as the
            cache says.
        nested: How deep hops may be nested; `None`: as the chain that it comes from.

    Other fields: `goal` is what the run is after, in its first words; `origin` is what the path
    that it walks was begun for, in the words of who was there first; `risks` are the hits by
    meaning that count, by what was taken for what.
    """

    __slots__ = ("above", "budget", "goal", "nested", "origin", "risks")

    def __init__(
        self,
        *,
        above: Chain | None = None,
        beside: Chain | None = None,
        budget: float | None = None,
        nested: int | None = None,
    ) -> None:
        before = above if above is not None else beside
        self.above = above
        inherited = None if before is None else before.budget
        self.budget: float | None = inherited if budget is None else budget
        self.nested: int = nested if nested is not None else before.nested if before else NESTED
        self.goal: str | None = None if before is None else before.goal
        self.origin: str | None = None if before is None else before.origin
        self.risks: dict[str, float] = {} if before is None else dict(before.risks)

    def take(self, risks: Mapping[str, float], default: float) -> str:
        """Let risks count, if no budget is overdrawn by that; else says by how much, in words.

        Args:
            risks: Each by what was taken for what: the same one counts once.
            default: The budget where nobody has said one.
        """
        with _taking:
            line = self._line()
            for chain in line:
                budget = chain.budget if chain.budget is not None else default
                total = sum({**chain.risks, **risks}.values())
                if total > budget + _EPSILON:
                    spent = sum(chain.risks.values())
                    return f"{spent:.3g} of {budget:g} is spent, and it would be {total:.3g}"
            for chain in line:
                chain.risks |= risks
        return ""

    def absorb(self, other: Chain) -> None:
        """Let what another chain has taken count here, as what follows is built on it."""
        with _taking:
            for chain in self._line():
                chain.risks |= other.risks

    def _line(self) -> list[Chain]:
        line: list[Chain] = []
        chain: Chain | None = self
        while chain is not None:
            line.append(chain)
            chain = chain.above
        return line
