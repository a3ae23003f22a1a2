"""Whether a stored question asks for the same as this one: a score that needs no further model."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, Protocol, runtime_checkable

from stemma.errors import UsageError
from stemma.keys import digest
from stemma.policies.nearness import nearness
from stemma.policies.threshold import Candidate

__all__ = ["CERTAIN", "FEATURES", "SOFT", "FeatureVerifier", "Verified", "Verifier", "shipped"]

FEATURES = (
    "nearness",
    "number_differs",
    "number_missing",
    "unit",
    "negated",
    "negation",
    "antonym",
    "asked_otherwise",
    "question_differs",
    "question_missing",
    "name_exchanged",
    "name_differs",
    "name_missing",
    "literal",
    "order",
    "small_word",
    "short_edit",
    "strange",
    "foreign",
    "script",
)
"""The names, in the order in which `stemma.policies.features` gives the values.

`negated`, `asked_otherwise` and `name_exchanged` are differences with nothing else beside them: a
negation, a question word or names, where no other word was exchanged. Where others were, the texts
are worded otherwise throughout, and the difference says less: `negation`, `question_differs` and
`name_differs`.
"""

CERTAIN: Mapping[str, str] = {
    "number_differs": "guard:number",
    "unit": "guard:unit",
    "negated": "guard:negation",
    "antonym": "guard:antonym",
    "asked_otherwise": "guard:question",
    "name_exchanged": "guard:name",
    "order": "guard:order",
    "script": "guard:word",
}
"""Features that refuse whatever the score says, and the reason they give."""

SOFT: Mapping[str, str] = {
    "number_missing": "guard:number",
    "negation": "guard:negation",
    "question_differs": "guard:question",
    "question_missing": "guard:question",
    "name_differs": "guard:name",
    "name_missing": "guard:name",
    "literal": "guard:name",
    "small_word": "guard:word",
    "short_edit": "guard:word",
    "strange": "guard:word",
    "foreign": "guard:word",
}
"""Features that only lower the score, and the reason they stand for."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verifier says of one candidate.

    Args:
        score: The log-odds that it asks for the same: 0 is as likely as not, higher is surer.
        refused: Why it must not be served whatever its score, a code of `stemma.outcome.REASONS`;
            empty where nothing forbids it.
        against: What lowered the score most, such a code; empty where nothing did.
    """

    score: float
    refused: str = ""
    against: str = ""


@runtime_checkable
class Verifier(Protocol):
    """Scores a candidate. Pure: same question and candidate, same score."""

    @property
    def revision(self) -> str:
        """What the scores depend on: another revision, other scores."""
        ...

    def verify(self, asked: str, candidate: Candidate) -> Verified:
        """What is to be thought of a candidate."""
        ...

    def ceiling(self, similarity: float) -> float:
        """No candidate of this similarity scores higher; infinite where that is not known."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FeatureVerifier:
    """Weighs the differences of two texts, and their similarity.

    Args:
        constant: The score of two texts without any difference, at nearness 0.
        weights: What each of `FEATURES` adds; all but `nearness` are 0
            or less, so that the nearness alone bounds the score.
        embedder: The revision of the embedder whose similarities the weights were fitted to.

    Raises:
        UsageError: A weight is missing, unknown, no number, or of the wrong sign.
    """

    constant: float
    weights: Mapping[str, float] = field(repr=False)
    embedder: str = ""
    _row: tuple[float, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if set(self.weights) != set(FEATURES):
            raise UsageError(f"weights must be given for {', '.join(FEATURES)}, and no others")
        row = tuple(_number(name, self.weights[name]) for name in FEATURES)
        if row[0] < 0 or any(weight > 0 for weight in row[1:]):
            raise UsageError("nearness must not lower the score, nor any difference raise it")
        object.__setattr__(self, "constant", _number("constant", self.constant))
        object.__setattr__(self, "_row", row)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> FeatureVerifier:
        """The verifier that a record, such as the one of `verifier.json`, describes.

        Raises:
            UsageError: The record has not the right fields.
        """
        try:
            constant, weights, embedder = (
                record[name] for name in ("constant", "weights", "embedder")
            )
        except (KeyError, TypeError) as error:
            raise UsageError("a verifier's record has constant, weights and embedder") from error
        return cls(constant=constant, weights=weights, embedder=str(embedder))

    @property
    def revision(self) -> str:
        """See `Verifier.revision`."""
        told = json.dumps([self.constant, *self._row, self.embedder])
        return f"features/{digest('verifier/1', told)}"

    def ceiling(self, similarity: float) -> float:
        """See `Verifier.ceiling`."""
        return self.constant + self._row[0] * nearness(similarity)

    def verify(self, asked: str, candidate: Candidate) -> Verified:
        """See `Verifier.verify`."""
        # Their tables take long to load, and whoever only opens a cache needs none.
        from stemma.policies.features import features  # noqa: PLC0415
        from stemma.policies.guards import LONGEST  # noqa: PLC0415

        if max(len(asked), len(candidate.focus)) > LONGEST:
            return Verified(-math.inf, "guard:word", "guard:word")
        values = features(asked, candidate.focus, candidate.similarity)
        score, heaviest, refused, against = self.constant, 0.0, "", ""
        for name, value, weight in zip(FEATURES, values, self._row, strict=True):
            if not value:
                continue
            said = value * weight
            score += said
            if name in CERTAIN:
                refused = refused or CERTAIN[name]
            elif name in SOFT and said < heaviest:
                heaviest, against = said, SOFT[name]
        return Verified(score, refused, against)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise UsageError(f"the weight of {name} must be a number, not {value!r}")
    return float(value)


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Any]:
    """The record that comes with the package, with where it is from: `verifier.json`."""
    text = resources.files("stemma.policies").joinpath("verifier.json").read_text(encoding="utf-8")
    record: Mapping[str, Any] = json.loads(text)
    return record
