"""Fit the weights of the grounding check, and write them with where they are from.

    python -m evals.fit_grounding [--out FILE]

They are fitted to one half of the questions of `grounding_halueval_qa`; `python -m evals
propagation` reports on the other. Hallucinated answers of that set are longer than right ones, so
the length stands beside the features while they are fitted, takes what it explains, and is left
out of what is kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from evals.propagation.halueval import Answered, answered
from evals.quality.vectors import vectors
from stemma.embedders import LocalEmbedder
from stemma.entry import Vector
from stemma.grounding import weights as home
from stemma.grounding.check import Read, similarity
from stemma.grounding.support import FEATURES, features
from stemma.grounding.weights import Weights
from stemma.policies.logistic import Floats, fit

__all__ = ["Rows", "fit_weights", "gathered"]

HOME = Path(home.__file__).with_name("grounding.json")

CERTAIN = ("number_missing", "unit_missing", "negated", "opposite")
"""What the guards are certain of between questions. The set has few cases of most."""

HELD = -2.0
"""The weight at which these are held where nothing is known."""

RIDGE, FIRMLY = 1.0, 10.0
"""How firmly weights are held at 0, and these at `HELD`."""


class Rows:
    """The sentences of some answers: features, whether right, how long, how much each counts."""

    def __init__(self) -> None:
        self.values: list[tuple[float, ...]] = []
        self.right: list[float] = []
        self.lengths: list[float] = []
        self.counts: list[float] = []


def gathered(items: Sequence[Answered], embedder: LocalEmbedder) -> Rows:
    """One row a sentence; all sentences of an answer count as one."""
    rows = Rows()
    read = [
        (Read.of(answer, item.sources, item.question), right, len(answer.split()))
        for item in items
        for answer, right in ((item.right, 1.0), (item.hallucinated, 0.0))
    ]
    at: dict[str, Vector] = vectors({text for one, _, _ in read for text in one.texts}, embedder)
    for one, right, length in read:
        for claim, best in one.claims:
            near = similarity(claim, best, at)
            rows.values.append(features(claim, one.sources, best[0], 0.0 if near is None else near))
            rows.right.append(right)
            rows.lengths.append(float(np.log1p(length)))
            rows.counts.append(1.0 / len(one.claims))
    return rows


def fit_weights(rows: Rows, embedder: str) -> Weights:
    """The weights that tell these sentences apart best beside their length, none of a wrong sign.

    Args:
        rows: The sentences.
        embedder: The revision of what made the similarities; empty: they are not used.
    """
    values = np.array(rows.values)
    length = np.array(rows.lengths)
    beside = np.c_[np.ones(len(values)), length - length.mean()]
    used = [name for name in FEATURES if embedder or name != "similarity"]
    while True:  # a weight of the wrong sign is left out, and the others are fitted again
        matrix = np.c_[beside, values[:, [FEATURES.index(name) for name in used]]]
        found = _fitted(matrix, rows, used)
        told = dict(zip(used, (round(float(one), 3) for one in found[2:]), strict=True))
        kept = [name for name in used if told[name] == 0 or _fits(name, told[name])]
        if kept == used:
            weights = {name: told.get(name, 0.0) for name in FEATURES}
            constant = round(float(found[0]), 3)
            return Weights(constant=constant, weights=weights, embedder=embedder)
        used = kept


def _fitted(matrix: np.ndarray[Any, Any], rows: Rows, used: Sequence[str]) -> Floats:
    prior = np.array([0.0, 0.0, *(HELD if name in CERTAIN else 0.0 for name in used)])
    ridge = np.array([RIDGE, RIDGE, *(FIRMLY if name in CERTAIN else RIDGE for name in used)])
    right, counts = np.array(rows.right), np.array(rows.counts)
    return fit(matrix, right, counts, prior=prior, ridge=ridge)


def _fits(name: str, weight: float) -> bool:
    return (weight > 0) == (name == "similarity")


def main(
    out: Annotated[Path, typer.Option(help="Where the record goes.")] = HOME,
) -> None:
    """Fit, and write the record."""
    embedder = LocalEmbedder()
    items = answered(0)
    rows = gathered(items, embedder)
    fitted = {
        "plain": fit_weights(rows, ""),
        "embedded": fit_weights(rows, embedder.revision),
    }
    record = {
        **{
            name: {"embedder": one.embedder, "constant": one.constant, "weights": dict(one.weights)}
            for name, one in fitted.items()
        },
        "made": {
            "by": "python -m evals.fit_grounding",
            "on": datetime.now(UTC).date().isoformat(),
            "of": "HaluEval QA (MIT; questions of HotpotQA, CC BY-SA 4.0)",
            "part": "the questions whose CRC-32 is even",
            "questions": len(items),
            "sentences": len(rows.values),
        },
    }
    out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    typer.echo(f"written to {out.name}")


if __name__ == "__main__":
    typer.run(main)
