"""What each feature counts: weights fitted beforehand, and kept with where they are from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

from stemma.errors import UsageError
from stemma.grounding.support import FEATURES
from stemma.keys import digest

__all__ = ["Weights", "shipped"]

_FARTHEST = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """A logistic curve over `FEATURES`.

    Args:
        constant: The log-odds of a sentence that nothing speaks against, at similarity 0.
        weights: What each feature adds: `similarity` 0 or more, the others 0 or less.
        embedder: The revision of the embedder whose similarities they were fitted to; empty where
            they use none.

    Raises:
        UsageError: A weight is missing, unknown, no finite number, or of the wrong sign.
    """

    constant: float
    weights: Mapping[str, float] = field(repr=False)
    embedder: str = ""

    def __post_init__(self) -> None:
        if set(self.weights) != set(FEATURES):
            raise UsageError(f"weights must be given for {', '.join(FEATURES)}, and no others")
        for name, value in {"constant": self.constant, **self.weights}.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not math.isfinite(value):
                raise UsageError(f"the weight of {name} must be a number, not {value!r}")
        if any(self.weights[name] * (1 if name == "similarity" else -1) < 0 for name in FEATURES):
            raise UsageError("similarity must not lower the score, nor any other feature raise it")
        if not self.embedder and self.weights["similarity"] != 0:
            raise UsageError("similarity counts, so embedder must say whose")

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Weights:
        """The weights that a record, such as those of `grounding.json`, describes.

        Raises:
            UsageError: The record has not the right fields.
        """
        try:
            constant, weights, by = (record[name] for name in ("constant", "weights", "embedder"))
        except (KeyError, TypeError) as error:
            raise UsageError("a record of weights has constant, weights and embedder") from error
        return cls(constant=constant, weights=weights, embedder=by)

    @property
    def revision(self) -> str:
        """What the scores depend on."""
        row = [self.weights[name] for name in FEATURES]
        return (
            f"grounding/{digest('grounding/1', json.dumps([self.constant, *row, self.embedder]))}"
        )

    def weighed(self, values: tuple[float, ...]) -> tuple[float, str]:
        """How likely a sentence is supported, 0 to 1, and which feature speaks most against it.

        Args:
            values: Of `FEATURES`, in their order.
        """
        said = {
            name: self.weights[name] * value for name, value in zip(FEATURES, values, strict=True)
        }
        score = max(min(self.constant + math.fsum(said.values()), _FARTHEST), -_FARTHEST)
        against = min(FEATURES[1:], key=said.__getitem__)
        return 1.0 / (1.0 + math.exp(-score)), against if said[against] < 0 else ""


@lru_cache(maxsize=1)
def shipped() -> tuple[Weights, Weights]:
    """The weights that come with the package: without an embedder, and with the local one."""
    text = resources.files("stemma.grounding").joinpath("grounding.json").read_text("utf-8")
    record = json.loads(text)
    return Weights.read(record["plain"]), Weights.read(record["embedded"])
