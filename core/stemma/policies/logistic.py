"""Logistic regression with a ridge towards weights that are known beforehand. Pure."""

from __future__ import annotations

import numpy as np

from stemma.embedders.protocol import Matrix

__all__ = ["Floats", "fit"]

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

_STEPS = 30
_SMALL = 1e-6
_FARTHEST = 30.0


def fit(
    rows: Matrix | np.ndarray[tuple[int, int], np.dtype[np.float64]],
    right: Floats,
    weights: Floats,
    *,
    prior: Floats,
    ridge: float | Floats,
) -> Floats:
    """The coefficients that say best which rows are right.

    They maximise the weighted likelihood, less half the ridge times the squared distance to the
    prior, by Newton's method.

    Args:
        rows: What is known of each, shape (n, d); a column of ones for the constant.
        right: 1 for right and 0 for wrong, shape (n,).
        weights: How much each row counts, 0 or more, shape (n,).
        prior: The coefficients without any row, shape (d,).
        ridge: How strongly they are held there, above 0; one number, or one for each.
    """
    held = np.broadcast_to(np.asarray(ridge, dtype=np.float64), prior.shape)

    def cost(tried: Floats) -> float:
        z = rows @ tried
        missed = np.logaddexp(0.0, z) - right * z
        return float(weights @ missed + 0.5 * held @ (tried - prior) ** 2)

    found, least = np.array(prior, dtype=np.float64), cost(prior)
    for _ in range(_STEPS):
        guess = _curve(rows @ found)
        slope = rows.T @ (weights * (guess - right)) + held * (found - prior)
        bend = (rows.T * (weights * guess * (1.0 - guess))) @ rows + np.diag(held)
        step, size = np.linalg.solve(bend, slope), 1.0
        while size > _SMALL and cost(found - size * step) > least:
            size /= 2
        if size <= _SMALL:
            break
        found = found - size * step
        gained, least = least - cost(found), cost(found)
        if gained <= _SMALL:
            break
    return found


def _curve(z: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(z, -_FARTHEST, _FARTHEST))))
