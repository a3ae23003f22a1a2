"""Whether the tokens of two texts say the same: each looks for its like in the other. Pure.

Decomposable attention (Parikh et al., 2016) over the token vectors of a frozen embedder: each token
attends to the other text, is compared with what it found there, and the comparisons of both texts
are put together by their mean and by the one that stands out most. Symmetric.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from stemma.embedders.protocol import Matrix
from stemma.errors import UsageError
from stemma.keys import digest

__all__ = ["SHAPES", "Aligner", "shipped"]

TOKENS, HIDDEN, LAST = 48, 32, 16
"""Numbers a token is told by, a comparison, and what both texts come to."""

SHAPES: Mapping[str, tuple[int, ...]] = {
    "projection": (384, TOKENS),
    "sharpness": (),
    "compare": (3 * TOKENS + 2, HIDDEN),
    "compare_bias": (HIDDEN,),
    "aggregate": (2 * HIDDEN, LAST),
    "aggregate_bias": (LAST,),
    "decide": (LAST,),
    "decide_bias": (),
}
"""The weights by name, and their shapes."""

_NOTHING = -9.0
"""The log-odds where one text has no token, and the other has."""

_TINY = 1e-6

_total, _highest = np.add.reduce, np.maximum.reduce  # half the time of the methods, on so few rows


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Aligner:
    """Aligns the token vectors of two texts.

    Args:
        weights: The arrays of `SHAPES`, float32.
        embedder: The revision of the embedder whose token vectors they were learnt from.

    Raises:
        UsageError: A weight is missing, unknown, of another shape, or not finite.
    """

    weights: Mapping[str, np.ndarray[Any, np.dtype[np.float32]]] = field(repr=False)
    embedder: str

    def __post_init__(self) -> None:
        if set(self.weights) != set(SHAPES):
            raise UsageError(f"an aligner's weights are {', '.join(SHAPES)}")
        for name, shape in SHAPES.items():
            if self.weights[name].shape != shape or not np.isfinite(self.weights[name]).all():
                raise UsageError(f"an aligner's {name} must be finite numbers of shape {shape}")

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Aligner:
        """The aligner that a record, such as the one of `aligner.json`, describes.

        Raises:
            UsageError: The record has not the right fields.
        """
        try:
            weights = {
                name: np.asarray(value, dtype=np.float32)
                for name, value in record["weights"].items()
            }
            return cls(weights=weights, embedder=str(record["embedder"]))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise UsageError("an aligner's record has weights and embedder") from error

    @property
    def revision(self) -> str:
        """What the log-odds depend on."""
        told = b"".join(self.weights[name].tobytes() for name in SHAPES)
        return f"aligner/{digest('aligner/1', told.hex(), self.embedder)}"

    def projected(self, tokens: Matrix) -> Matrix:
        """The part of a text's token vectors, shape (tokens, 384), that is compared."""
        found: Matrix = np.asarray(tokens, dtype=np.float32) @ self.weights["projection"]
        return found

    def align(self, one: Matrix, other: Matrix) -> float:
        """The log-odds that two texts say the same; the same for the two exchanged.

        Args:
            one: The projected token vectors of one text, shape (tokens, 48).
            other: Those of the other.
        """
        if not len(one) or not len(other):
            return _NOTHING if len(one) or len(other) else -_NOTHING
        compared = self._compared(one, other)
        halves = np.array((0.5 / len(one), 0.5 / len(other)), dtype=np.float32)
        shares = np.repeat(halves, (len(one), len(other)))
        told = np.concatenate((shares @ compared, _highest(compared)))
        weights = self.weights
        last = np.maximum(told @ weights["aggregate"] + weights["aggregate_bias"], 0.0)
        return float(last @ weights["decide"] + weights["decide_bias"])

    def _compared(self, one: Matrix, other: Matrix) -> Matrix:
        """Each token of both texts beside what it found in the other, shape (tokens, 32)."""
        cosines = _unit(one) @ _unit(other).T
        drawn = np.exp(self.weights["sharpness"] * (cosines - 1.0))
        there = drawn / _total(drawn, axis=1)[:, None]
        here = drawn / _total(drawn)
        tokens = np.concatenate((one, other))
        found = np.concatenate((there @ other, here.T @ one))
        best = np.concatenate((_highest(cosines, axis=1), _highest(cosines)))
        own = np.concatenate((_total(there * cosines, axis=1), _total(here * cosines)))
        seen = np.concatenate(
            (tokens - found, tokens * found, tokens, best[:, None], own[:, None]), axis=1
        )
        compared: Matrix = seen @ self.weights["compare"] + self.weights["compare_bias"]
        return np.maximum(compared, 0.0)


def _unit(rows: Matrix) -> Matrix:
    unit: Matrix = rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), _TINY)[:, None]
    return unit


@lru_cache(maxsize=1)
def shipped() -> Aligner:
    """The aligner that comes with the package: `aligner.json` says where it is from."""
    text = resources.files("stemma.policies").joinpath("aligner.json").read_text(encoding="utf-8")
    return Aligner.read(json.loads(text))
