"""Streams of intents: errors of the learning policies against their bounds, and their hits.

The intent stands in for the answer. The same table with a comparer of which one in twenty
judgements is wrong.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from evals.measuring import Figure, Measured, scaled
from evals.quality.texts import seen, stream
from evals.quality.vectors import vectors
from stemma.embedders import LocalEmbedder
from stemma.replays.alignments import Alignments
from stemma.replays.contenders import orders, put, strict, verified
from stemma.replays.replay import Comparer

__all__ = ["noisy", "run"]

ORDERS = 10
BOUNDS = (0.01, 0.02, 0.05)
FLOORS = {"banking77": (0.33, 0.56, 0.70), "clinc150": (0.40, 0.50, 0.60)}
TIMES_STRICT = (2.5, 2.5, 2.0)
NOISE = 0.05
WORST = 1.4
"""Times the bound that no order may exceed; with the noisy comparer `NOISY` times on average."""

NOISY = 1.5


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """Both streams, in shuffled orders."""
    embedder = LocalEmbedder()
    aligned = Alignments(embedder)
    told: dict[str, Any] = {}
    figures: list[Figure] = []
    for name, floors in FLOORS.items():
        requests = stream(name)
        at = vectors((one.text for one in requests), embedder)
        shuffled = orders(requests, scaled(ORDERS, size, least=2) + 1, seed)[1:]
        streams = [order[: scaled(len(order), size)] for order in shuffled]
        unseen = [[one for one in order if seen(one.group) == 1] for order in streams]
        told[name] = {}
        for bound, floor, times in zip(BOUNDS, floors, TIMES_STRICT, strict=True):
            ours = verified(bound, embedder.revision, aligned=aligned)
            found = {
                "verified": put(ours, streams, at),
                "noisy": put(ours, streams, at, comparer=lambda order: noisy(NOISE, order)),
                "unseen": put(ours, unseen, at),
                "strict": put(strict(bound, embedder.revision), streams, at),
            }
            told[name][f"{bound:g}"] = found
            figures += _figures(f"{name} at {bound:.0%}", found, bound, floor, times)
    return Measured(figures=figures, details=told)


def noisy(share: float, seed: int) -> Comparer:
    """A comparer of whose judgements a share is wrong."""
    chosen = random.Random(seed)
    return lambda one, other: (one == other) is not (chosen.random() < share)


def _figures(
    what: str, found: dict[str, Any], bound: float, floor: float, times: float
) -> list[Figure]:
    error, hits = found["verified"]["error_decided"], found["verified"]["hits"]["mean"]
    published = found["strict"]["hits"]["mean"]
    return [
        Figure(what=f"{what}: hits", value=hits, unit="", at_least=floor),
        Figure(what="… times verified-strict", value=hits / published, unit="×", at_least=times)
        if published
        else Figure(what="… verified-strict: hits", value=published, unit=""),
        Figure(
            what="… error, upper end of its interval", value=error["high"], unit="", at_most=bound
        ),
        Figure(what="… error, worst order", value=error["worst"], unit="", at_most=WORST * bound),
        Figure(what="… error of a hit", value=found["verified"]["error_a_hit"]["mean"], unit=""),
        Figure(
            what="… noisy comparer: error",
            value=found["noisy"]["error_decided"]["mean"],
            unit="",
            at_most=NOISY * bound,
        ),
        Figure(what="… noisy comparer: hits", value=found["noisy"]["hits"]["mean"], unit=""),
        Figure(
            what="… groups never fitted to: hits",
            value=found["unseen"]["hits"]["mean"],
            unit="",
        ),
        Figure(
            what="… groups never fitted to: error",
            value=found["unseen"]["error_decided"]["mean"],
            unit="",
            at_most=bound,
        ),
    ]
