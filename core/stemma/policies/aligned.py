"""The verifier that weighs how the tokens of two texts align, beside their differences."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from stemma.errors import UsageError
from stemma.keys import digest
from stemma.policies.threshold import Candidate
from stemma.policies.verifier import FeatureVerifier, Verified

__all__ = ["AlignedVerifier", "Aligns", "alignable", "misaligned"]


@runtime_checkable
class Aligns(Protocol):
    """What a verifier has as well that scores a candidate lower once its tokens were aligned."""

    def wants(self, asked: str, candidate: Candidate) -> bool:
        """Whether the candidate's `aligned` would count, and is not known yet."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class AlignedVerifier:
    """Weighs differences, similarity and alignment, where both texts are in Latin script.

    A candidate whose alignment is not known has the score of a perfect one: the highest it can
    have. Of other scripts the embedder's tokens tell little: there the features count alone.

    Args:
        plain: What scores texts in other scripts; its weights were fitted to such.
        features: The weights beside the alignment.
        weight: What `misaligned` adds, 0 or less.
        aligner: The revision of the aligner that the weights were fitted to.

    Raises:
        UsageError: The weight is above 0, or no number.
    """

    plain: FeatureVerifier
    features: FeatureVerifier
    weight: float
    aligner: str

    def __post_init__(self) -> None:
        if not -math.inf < self.weight <= 0:
            raise UsageError(f"the weight of misaligned must be 0 or less, not {self.weight!r}")

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> AlignedVerifier:
        """The verifier that a record, such as the one of `verifier.json`, describes.

        Raises:
            UsageError: The record has not the right fields.
        """
        try:
            own, shared = record["aligned"], {"embedder": record["embedder"]}
            return cls(
                plain=FeatureVerifier.read({**own["other_scripts"], **shared}),
                features=FeatureVerifier.read({**own, **shared}),
                weight=float(own["misaligned"]),
                aligner=str(own["aligner"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                "an aligned verifier's record has the fields of a verifier, and under 'aligned' "
                "constant, weights, misaligned, aligner and other_scripts"
            ) from error

    @property
    def revision(self) -> str:
        """See `Verifier.revision`."""
        told = json.dumps([self.plain.revision, self.features.revision, self.weight, self.aligner])
        return f"aligned/{digest('verifier/1', told)}"

    def ceiling(self, similarity: float) -> float:
        """See `Verifier.ceiling`."""
        return max(self.plain.ceiling(similarity), self.features.ceiling(similarity))

    def wants(self, asked: str, candidate: Candidate) -> bool:
        """See `Aligns.wants`."""
        return candidate.aligned is None and alignable(asked, candidate.focus)

    def verify(self, asked: str, candidate: Candidate) -> Verified:
        """See `Verifier.verify`."""
        if not alignable(asked, candidate.focus):
            return self.plain.verify(asked, candidate)
        said = self.features.verify(asked, candidate)
        if candidate.aligned is None:
            return said
        lost = self.weight * misaligned(candidate.aligned)
        return Verified(said.score + lost, said.refused, said.against or "guard:word")


def alignable(asked: str, stored: str) -> bool:
    """Whether both texts are in Latin script, and short enough to be compared at all."""
    from stemma.policies.guards import LONGEST  # noqa: PLC0415 - as in the verifier
    from stemma.policies.symbols import symbols  # noqa: PLC0415

    return max(len(asked), len(stored)) <= LONGEST and (
        symbols(asked).script == symbols(stored).script == "latin"
    )


def misaligned(aligned: float) -> float:
    """Log-odds that two texts say the same as −ln of that probability: 0 where it is certain."""
    return math.log1p(math.exp(-aligned)) if aligned > -_STEEP else -aligned


_STEEP = 30.0
