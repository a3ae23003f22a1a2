"""The decision of a semantic hit: near enough, and no guard objects. Pure."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from stemma.errors import UsageError
from stemma.policies.learning import Trial

if TYPE_CHECKING:
    from stemma.policies.guards import Guarded

__all__ = [
    "Accepted",
    "Candidate",
    "Decision",
    "Policy",
    "ThresholdPolicy",
    "nearest_first",
    "probability",
]

SAME = 1.0 - 1e-3
"""The similarity from which on two vectors are the same: they are kept as float16."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored entry that may answer.

    Args:
        id: The entry's id.
        focus: The text it was asked with.
        similarity: Cosine similarity to what is asked now, −1 to 1.
        answer: What its answer is known by: two candidates with an equal one gave the same answer.
            Empty where that is not known.
        aligned: The log-odds that the tokens of both texts say the same; `None` where they were not
            looked at. See `Decision.look`.
    """

    id: str
    focus: str = field(repr=False)
    similarity: float
    answer: str = field(default="", repr=False)
    aligned: float | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A candidate that may be served.

    Args:
        id: The entry's id.
        similarity: Its similarity, −1 to 1.
        probability: The estimated probability that it answers rightly, 0 to 1.
        why: What allowed it, in words.
        trial: What a report of the hit, or an audit of it, will tell the policy of, where it
            learns.
    """

    id: str
    similarity: float
    probability: float
    why: str
    trial: Trial | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """What may be served, best first, or why nothing may.

    Args:
        accepted: What may be served, best first.
        reason: Why the nearest candidate was refused, a code of `stemma.outcome.REASONS`; empty
            where something was accepted.
        nearest: The nearest candidate's id, where there was a candidate.
        similarity: Its similarity, −1 to 1.
        detail: More words on the reason, without any of the texts' words.
        trial: What a fresh answer to this question will tell the policy of, where it learns.
        grey: What could be served if a judge said that it may: no guard's certain objection stands,
            but it is not likely enough to be right. It is the candidate of `trial`.
        look: Where it is not empty, nothing is decided yet: the ids of candidates without `aligned`
            on which it depends. The policy is asked again, with theirs filled in.
    """

    accepted: tuple[Accepted, ...] = ()
    reason: str = ""
    nearest: str | None = None
    similarity: float | None = None
    detail: str = ""
    trial: Trial | None = field(default=None, repr=False)
    grey: Accepted | None = None
    look: tuple[str, ...] = ()


@runtime_checkable
class Policy(Protocol):
    """Decides which of the nearest entries may be served, without any I/O."""

    @property
    def name(self) -> str:
        """The policy's name, as events and notes of hits give it."""
        ...

    @property
    def depth(self) -> int:
        """How many of the nearest candidates it wants to see."""
        ...

    @property
    def floor(self) -> float:
        """The least similarity of a candidate it could accept: those below are not even read."""
        ...

    def decide(self, asked: str, candidates: Sequence[Candidate]) -> Decision:
        """What may be served of these candidates, given in any order; or what must be looked at.

        One that learns gives the same decision for the same question until it has learnt more, save
        that it audits some.
        """
        ...


@dataclass(frozen=True, slots=True)
class ThresholdPolicy:
    """Serves what is near enough, unless a guard objects.

    Args:
        threshold: The least cosine similarity, 0 to 1, inclusive. It belongs to the embedder: the
            default was chosen with MiniLM. 0 lets everything pass to the guards; 1 asks for the
            same meaning, which is a similarity of at least 0.999, since vectors are kept as
            float16.
        guards: Whether the guards are asked. Without them a threshold alone answers other
            questions; it is there to be measured against.

    Raises:
        UsageError: The threshold is not a number from 0 to 1.
    """

    threshold: float = 0.88
    guards: bool = field(default=True, kw_only=True)

    name = "threshold"
    depth = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", _similarity(self.threshold))
        if not isinstance(self.guards, bool):
            raise UsageError(f"guards must be True or False, not {self.guards!r}")

    @property
    def floor(self) -> float:
        """See `Policy.floor`."""
        return -1.0 if self.threshold == 0 else min(self.threshold, SAME)

    def decide(self, asked: str, candidates: Sequence[Candidate]) -> Decision:
        """See `Policy.decide`; the most similar first."""
        ranked = nearest_first(candidates)
        if not ranked:
            return Decision(reason="cold")
        nearest = ranked[0]
        accepted: list[Accepted] = []
        reason, detail = "below_threshold", f"the threshold is {self.threshold:g}"
        for candidate in ranked:
            if not self._near(candidate.similarity):
                break
            objection = self._objection(asked, candidate) if self.guards else None
            if objection is None:
                accepted.append(self._accepted(candidate))
            elif candidate is nearest:
                reason, detail = objection.reason, objection.detail
        if accepted:
            reason = detail = ""
        return Decision(tuple(accepted), reason, nearest.id, nearest.similarity, detail)

    def _objection(self, asked: str, candidate: Candidate) -> Guarded | None:
        from stemma.policies.guards import guard  # noqa: PLC0415 - its tables take long to load

        return guard(asked, candidate.focus, candidate.similarity)

    def _near(self, similarity: float) -> bool:
        return similarity >= self.floor

    def _accepted(self, candidate: Candidate) -> Accepted:
        similarity = candidate.similarity
        agree = ", and numbers, names, negation and order agree" if self.guards else ""
        why = f"similarity {similarity:.3f} is at least {self.threshold:g}{agree}"
        return Accepted(candidate.id, similarity, probability(similarity), why)


def nearest_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates in order of their similarity, without those whose similarity is no number."""
    return sorted(
        (one for one in candidates if math.isfinite(one.similarity)),
        key=lambda one: -one.similarity,
    )


def probability(similarity: float) -> float:
    """The estimated probability that a candidate which passed the guards answers rightly.

    A logistic curve in `−ln(1 − s + 0.01)`, which rises with the similarity. It was fitted once, to
    pairs that pass the guards; see `docs/decision.md` for the data. It is an estimate for traffic
    like those pairs and for MiniLM, not a bound.
    """
    distance = min(max(1.0 - similarity, 0.0), 2.0)
    return 1.0 / (1.0 + math.exp(-(INTERCEPT - SLOPE * math.log(distance + 0.01))))


INTERCEPT = 0.2
SLOPE = 0.4


def _similarity(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError(
            f"threshold must be a similarity from 0 to 1, not a {type(value).__name__}"
        )
    number = float(value)
    if 0.0 <= number <= 1.0:
        return number
    hint = ""
    if 2.0 < number <= 100.0:  # noqa: PLR2004 (cosine distance ends at 2)
        hint = f"; for a percentage give {number / 100:g}"
    elif number > 1.0:
        hint = "; it is a similarity (1 is the same), not a distance (0 is the same)"
    elif number < 0.0:
        hint = "; it is a similarity, not a distance or a negative distance"
    raise UsageError(f"threshold must be a similarity from 0 to 1, not {number}{hint}")
