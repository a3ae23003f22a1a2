"""Vectors as questions have them: some lie close together, most do not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "DIMENSIONS",
    "NEAR",
    "Rows",
    "clustered",
    "like_texts",
    "missed",
    "noisy",
    "units",
]

Rows = np.ndarray[Any, np.dtype[np.float32]]

DIMENSIONS = 384

NEAR = 0.4
"""Noise that leaves a cosine of about 0.93."""

_AROUND = (0.5, 0.7, 0.9, 1.0)
"""Noise that leaves cosines of about 0.9, 0.82, 0.74 and 0.7."""

_CENTRES = 200
"""Vectors by themselves, at least."""

_WORTH_FINDING = 0.7

K = TypeVar("K")


def units(rng: np.random.Generator, count: int, shape: Rows | None = None) -> Rows:
    """Random vectors of length 1; a shape makes them vary in some directions more."""
    return _unit(_normal(rng, count, shape))


def noisy(rng: np.random.Generator, rows: Rows, scale: float, shape: Rows | None = None) -> Rows:
    """Vectors at about the cosine 1/√(1 + scale²) to those given."""
    return _unit(rows + scale / math.sqrt(DIMENSIONS) * _normal(rng, len(rows), shape))


def clustered(rng: np.random.Generator, count: int, shape: Rows | None = None) -> Rows:
    """Every fifth vector by itself, four others around it at cosines of about 0.9 to 0.7."""
    centres = units(rng, max(_CENTRES, -(-count // 5)), shape)
    around = [noisy(rng, centres, scale, shape) for scale in _AROUND]
    rows: Rows = np.concatenate([centres, *around])[:count]
    return rows


def like_texts(rng: np.random.Generator) -> Rows:
    """A shape: normal numbers vary in effect in 75 of the directions, as MiniLM's vectors do.

    That is what the squares of the variances of 7,295 questions' vectors say: (Σλ)² ÷ Σλ².
    """
    variances = np.exp(-np.arange(DIMENSIONS) / 37.5)
    variances *= DIMENSIONS / variances.sum()
    turned, _ = np.linalg.qr(rng.standard_normal((DIMENSIONS, DIMENSIONS)))
    shape: Rows = (np.sqrt(variances)[:, None] * turned).astype(np.float32)
    return shape


def missed(
    rows: Rows, asked: Mapping[K, Any], found: Callable[[K], float | None]
) -> dict[str, int]:
    """How often the most similar entry was not found, where one is at 0.7 or above.

    Args:
        rows: All that is stored.
        asked: The vectors of what is asked.
        found: Gives the highest similarity that was found for one of them.
    """
    stored = _unit(rows.astype(np.float16).astype(np.float32))
    near = wrong = 0
    for one, vector in asked.items():
        highest = float((stored @ vector).max())
        if highest >= _WORTH_FINDING:
            near += 1
            similarity = found(one)
            wrong += similarity is None or similarity < highest - 1e-5
    return {"asked": near, "missed": wrong}


def _normal(rng: np.random.Generator, count: int, shape: Rows | None) -> Rows:
    numbers = rng.standard_normal((count, DIMENSIONS), dtype=np.float32)
    return numbers if shape is None else numbers @ shape


def _unit(rows: Rows) -> Rows:
    unit: Rows = rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return unit
