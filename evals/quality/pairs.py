"""Pairs of questions at one setting: by cross-validation, and contrasts that nothing was fitted to.

A pair counts as accepted where it is near enough, nothing certain speaks against it, and a verifier
that was fitted without its tool or source reaches `BAR`. The similarity is MiniLM's. Once with what
token vectors say (by nets that were trained without that tool or source), once without.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evals.fit_verifier import Given, crossed, fit_aligned, fit_verifier, scored
from evals.measuring import Figure, Measured, scaled
from evals.quality.texts import PAIRS, Pair, contrasts, pairs
from evals.quality.vectors import vectors
from evals.quality.weights import shipped_weights
from stemma.embedders import LocalEmbedder
from stemma.entry import Vector
from stemma.policies.aligned import AlignedVerifier
from stemma.policies.verifier import FeatureVerifier, Verifier, shipped

__all__ = ["part", "run", "share"]

BAR = 0.0
"""The one setting: as likely as not, among pairs of which many are near misses."""

NEAR = 0.6
BARS = (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
TARGETS: dict[tuple[str, bool], tuple[float | None, float | None]] = {
    ("hard_negatives en", False): (None, 0.005),
    ("hard_negatives en", True): (0.9, None),
    ("tool_args", False): (None, 0.03),
    ("tool_args", True): (0.4, None),
    ("gptcache", True): (0.9, None),
    ("contrasts", False): (None, 0.1),
}
"""By set and whether the answers are the same: the least and the greatest share accepted."""

_Z = 1.96


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """All sets, at `BAR`, and the shares at other bars beside."""
    embedder = LocalEmbedder()
    sets = {name: part(pairs(name), size) for name in PAIRS}
    ours = contrasts()
    texts = [text for all_of in (*sets.values(), ours) for pair in all_of for text in _both(pair)]
    at = vectors(texts, embedder)
    record, revision = shipped(), embedder.revision
    fits: dict[str, tuple[Callable[[Given], Verifier], Verifier]] = {
        "aligned": (lambda one: fit_aligned(one, at, revision), AlignedVerifier.read(record)),
        "without": (lambda one: fit_verifier(one, at, revision), FeatureVerifier.read(record)),
    }
    told: dict[str, Any] = {
        "weights": "each pair's are fitted to the parts of tools and sources it is not of; those "
        "of the contrasts come with the package and saw none of them",
        "shipped": shipped_weights(),
    }
    figures: list[Figure] = []
    for how, (fitted, verifier) in fits.items():
        scores = {**crossed(sets, fitted, at), "contrasts": scored(verifier, ours, at)}
        told[how], found = _told({**sets, "contrasts": ours}, scores, at, targets=how == "aligned")
        figures += [replace(one, what=f"{how}: {one.what}") for one in found]
    return Measured(figures=figures, details=told)


def _told(
    sets: Mapping[str, Sequence[Pair]],
    scores: Mapping[str, Sequence[float]],
    at: Mapping[str, Vector],
    *,
    targets: bool,
) -> tuple[dict[str, Any], list[Figure]]:
    """The shares of each set at all bars, and as figures those at `BAR`."""
    told: dict[str, Any] = {}
    figures = []
    for name, all_of in sets.items():
        near_enough = [
            score if at[pair.one] @ at[pair.other] >= NEAR else -math.inf
            for score, pair in zip(scores[name], all_of, strict=True)
        ]
        for same in (True, False):
            of_kind = [
                one for one, pair in zip(near_enough, all_of, strict=True) if pair.same is same
            ]
            if not of_kind:
                continue
            what = f"{name}, {'same' if same else 'another'}"
            told[what] = {f"{bar:g}": share(of_kind, bar) for bar in BARS}
            least, most = TARGETS.get((name, same), (None, None)) if targets else (None, None)
            accepted = told[what][f"{BAR:g}"]
            figures.append(
                Figure(
                    what=f"{what}: accepted of {len(of_kind):,} "
                    f"({accepted['low']:.3f} to {accepted['high']:.3f})",
                    value=accepted["share"],
                    unit="",
                    at_least=least,
                    at_most=most,
                )
            )
    return told, figures


def share(scores: Sequence[float], bar: float) -> dict[str, float]:
    """The share that reaches a bar, with Wilson's 95 % interval."""
    number = len(scores)
    reached = sum(one >= bar for one in scores) / number
    middle = (reached + _Z**2 / (2 * number)) / (1 + _Z**2 / number)
    spread = reached * (1 - reached) / number + _Z**2 / (4 * number**2)
    half = _Z * math.sqrt(spread) / (1 + _Z**2 / number)
    return {"share": reached, "low": middle - half, "high": middle + half}


def part(all_of: list[Pair], size: float) -> list[Pair]:
    """Every n-th, so that all kinds remain; n is odd, since they come in twos."""
    return all_of[:: max(1, len(all_of) // scaled(len(all_of), size, least=50)) | 1]


def _both(pair: Pair) -> tuple[str, str]:
    return pair.one, pair.other
