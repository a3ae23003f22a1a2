"""Streams of intents: errors of the learning policies against their bounds, and their hits.

The intent stands in for the answer; each `oos` row is a group of its own. The same with a comparer
of which one in twenty judgements is wrong.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from evals.measuring import Figure, Measured, scaled
from evals.quality.side_by_side import beside, still
from evals.quality.texts import seen, stream
from evals.quality.vectors import vectors
from evals.quality.weights import held_out, shipped_weights
from stemma.embedders import LocalEmbedder
from stemma.replays.alignments import Alignments
from stemma.replays.contenders import orders, put, strict, verified
from stemma.replays.replay import Comparer
from stemma.replays.tally import Interval

__all__ = ["noisy", "run"]

ORDERS = 10
BOUNDS = (0.01, 0.02, 0.05)
FLOORS = {"banking77": (0.33, 0.56, 0.70), "clinc150": (0.40, 0.50, 0.60)}
TIMES_STRICT = (2.5, 2.5, 2.0)
NOISE = 0.05
WORST = 1.4
"""Times the bound that no order may exceed; with the noisy comparer `NOISY` times on average."""

NOISY = 1.5

Rows = dict[str, dict[str, Interval]]


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """Both streams, in shuffled orders."""
    embedder = LocalEmbedder()
    aligned = Alignments(embedder)
    told: dict[str, Any] = {"weights": shipped_weights()}
    figures: list[Figure] = []
    shown: Rows = {}
    for name, floors in FLOORS.items():
        requests = stream(name)
        at = vectors((one.text for one in requests), embedder)
        shuffled = orders(requests, scaled(ORDERS, size, least=2) + 1, seed)[1:]
        streams = [order[: scaled(len(order), size)] for order in shuffled]
        half = [[one for one in order if seen(one.group) == 1] for order in streams]
        unseen = held_out(name, embedder, seed)
        rows = {who: put(one, streams, at) for who, one in still().items()}
        for bound in BOUNDS:
            ours = verified(bound, embedder.revision, aligned=aligned)
            plain = verified(bound, embedder.revision)
            others = verified(bound, embedder.revision, unseen)
            rows |= {
                f"verified-strict {bound:.0%}": put(strict(bound, embedder.revision), streams, at),
                f"verified {bound:.0%}": put(ours, streams, at),
                f"verified {bound:.0%}, no token vectors": put(plain, streams, at),
                f"verified {bound:.0%}, noisy": put(
                    ours, streams, at, comparer=lambda order: noisy(NOISE, order)
                ),
                f"verified {bound:.0%}, other half of the groups": put(ours, half, at),
                f"verified {bound:.0%}, held out": put(others, streams, at),
            }
        told[name] = {**rows, "held out": unseen["made"]}
        shown |= {f"{name}: {who}": rates for who, rates in rows.items()}
        for bound, floor, times in zip(BOUNDS, floors, TIMES_STRICT, strict=True):
            figures += _figures(name, rows, bound, floor, times)
    return Measured(figures=figures, details=told, beside=beside(shown))


def noisy(share: float, seed: int) -> Comparer:
    """A comparer of whose judgements a share is wrong."""
    chosen = random.Random(seed)
    return lambda one, other: (one == other) is not (chosen.random() < share)


def _figures(name: str, rows: Rows, bound: float, floor: float, times: float) -> list[Figure]:
    what = f"{name} at {bound:.0%}"
    ours, published, noise, half, unseen = (
        rows[one]
        for one in (
            f"verified {bound:.0%}",
            f"verified-strict {bound:.0%}",
            f"verified {bound:.0%}, noisy",
            f"verified {bound:.0%}, other half of the groups",
            f"verified {bound:.0%}, held out",
        )
    )
    hits, by_strict = ours["hits"]["mean"], published["hits"]["mean"]
    error = ours["error_decided"]
    return [
        Figure(what=f"{what}: hits", value=hits, unit="", at_least=floor),
        Figure(what="… times verified-strict", value=hits / by_strict, unit="×", at_least=times)
        if by_strict
        else Figure(what="… verified-strict: hits", value=by_strict, unit=""),
        Figure(
            what="… error, upper end of its interval", value=error["high"], unit="", at_most=bound
        ),
        Figure(what="… error, worst order", value=error["worst"], unit="", at_most=WORST * bound),
        Figure(what="… error of a hit", value=ours["error_a_hit"]["mean"], unit=""),
        _error("… noisy comparer: error", noise, NOISY * bound),
        Figure(what="… noisy comparer: hits", value=noise["hits"]["mean"], unit=""),
        Figure(what="… other half of the groups: hits", value=half["hits"]["mean"], unit=""),
        _error("… other half of the groups: error", half, bound),
        Figure(what="… held out: hits", value=unseen["hits"]["mean"], unit=""),
        _error("… held out: error", unseen, bound),
    ]


def _error(what: str, rates: dict[str, Interval], bound: float) -> Figure:
    return Figure(what=what, value=rates["error_decided"]["mean"], unit="", at_most=bound)
