"""How often a wrong parent makes a wrong child, as audits tell it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stemma.policies.changes import check_number

__all__ = ["CERTAIN", "STRENGTH", "Attenuation", "Audit", "Passing", "attenuation"]

CERTAIN = 1.0
"""The attenuation of a copy: it is as wrong as its original."""

STRENGTH = 2.0
"""How many audits of one pair of tenants all others of their kind weigh as much as."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """What was found of a child and the parent it was built on.

    Args:
        parent_wrong: Whether the parent was wrong. If not, the audit tells nothing of attenuation.
        child_wrong: Whether the child was.
        at: When, seconds since the epoch.
    """

    parent_wrong: bool
    child_wrong: bool
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Attenuation:
    """What is believed of an edge: a Beta distribution. Alone, it is Beta(1, 1): nothing is known.

    Args:
        wrong: How many wrong parents count as having made a wrong child, above 0.
        right: How many count as having made none, above 0.

    Raises:
        UsageError: A number is not above 0.
    """

    wrong: float = 1.0
    right: float = 1.0

    def __post_init__(self) -> None:
        check_number("wrong", self.wrong, low=0.0, open_low=True)
        check_number("right", self.right, low=0.0, open_low=True)

    @property
    def mean(self) -> float:
        """What to reckon with, 0 to 1."""
        return self.wrong / (self.wrong + self.right)

    @property
    def deviation(self) -> float:
        """The standard deviation of what is believed."""
        total = self.wrong + self.right
        return math.sqrt(self.wrong * self.right / (total + 1.0)) / total


def attenuation(
    audits: Iterable[Audit],
    *,
    now: float,
    half_life: float | None = None,
    prior: Attenuation | None = None,
) -> Attenuation:
    """What audits tell of an edge.

    The mean is (wrong child and wrong parent) / (wrong parent), with the prior's counts added to
    both. An audit counts half after each half-life, so that an edge long unaudited goes back to
    its prior.

    Args:
        audits: Of this edge, in any order.
        now: Seconds since the epoch. An audit later than this counts as of now.
        half_life: Seconds, above 0; `None`: an audit never counts less.
        prior: What is believed without audits; `None`: Beta(1, 1), mean 0.5.

    Raises:
        UsageError: A number is out of its range.
    """
    check_number("now", now, low=-math.inf)
    check_number("half_life", half_life, low=0.0, open_low=True)
    before = Attenuation() if prior is None else prior
    wrong, right = [before.wrong], [before.right]
    for audit in audits:
        check_number("at", audit.at, low=-math.inf)
        if audit.parent_wrong:
            age = max(now - audit.at, 0.0)
            weight = 1.0 if half_life is None else 0.5 ** (age / half_life)
            (wrong if audit.child_wrong else right).append(weight)
    return Attenuation(wrong=math.fsum(wrong), right=math.fsum(right))


class Passing:
    """How likely errors pass from one tenant's entries to another's, out of all audits.

    Few pairs of tenants have audits of their own. So all of a kind are pooled first, those within
    a tenant and those between two: Beta(1, 1) and their audits. Scaled down to a strength of
    `STRENGTH` audits, that is the prior of each pair.

    Args:
        audits: By producer and consumer: whose the parent is, and whose the child.
        now: Seconds since the epoch.
        half_life: As of `attenuation`.

    Raises:
        UsageError: A number is out of its range.
    """

    def __init__(
        self,
        audits: Mapping[tuple[str, str], Sequence[Audit]],
        *,
        now: float,
        half_life: float | None = None,
    ) -> None:
        kinds: dict[bool, list[Audit]] = {True: [], False: []}
        for (producer, consumer), some in audits.items():
            kinds[producer == consumer] += some
        self._kinds = {
            kind: _scaled(attenuation(some, now=now, half_life=half_life))
            for kind, some in kinds.items()
        }
        self._pairs = {
            pair: attenuation(
                some, now=now, half_life=half_life, prior=self._kinds[pair[0] == pair[1]]
            )
            for pair, some in audits.items()
        }

    def between(self, producer: str, consumer: str) -> Attenuation:
        """What is believed of edges from one tenant's entries to another's, or to its own."""
        found = self._pairs.get((producer, consumer))
        return self._kinds[producer == consumer] if found is None else found


def _scaled(known: Attenuation) -> Attenuation:
    factor = STRENGTH / (known.wrong + known.right)
    return Attenuation(wrong=known.wrong * factor, right=known.right * factor)
