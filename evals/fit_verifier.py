"""Fit the weights that come with the package, and write them with where they are from.

    python -m evals.fit_verifier [--out FILE]

Two fits. The verifier's weights say of two texts, by their differences, whether they ask for the
same; they are fitted to all pairs of `evals.quality.texts.PAIRS`, after a cross-validation that
keeps tools and sources apart. The weights of a candidate's standing say how far verifier,
similarity and neighbours are to be believed; they are fitted to the same pairs and to the half of
the groups of each stream that `evals.quality.texts.seen` sets aside for it.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from evals.quality.texts import PAIRS, STREAMS, Pair, pairs, seen, stream
from evals.quality.vectors import vectors
from stemma.embedders import LocalEmbedder
from stemma.entry import Vector
from stemma.policies import verifier as home
from stemma.policies.features import FEATURES, features
from stemma.policies.guards import guard
from stemma.policies.logistic import fit
from stemma.policies.standing import KNOWN, known, standings
from stemma.policies.threshold import Candidate
from stemma.policies.verifier import FeatureVerifier
from stemma.replays.log import Request

__all__ = ["crossed", "fit_standing", "fit_verifier", "scored"]

WEIGHTS = {
    "hard_negatives en": 0.4,
    "hard_negatives zh": 0.2,
    "tool_args": 1.0,
    "gptcache": 1.0,
    "own": 4.0,
}
"""How much a pair of each set counts: those made by rule are many, and say the least."""

FOLDS = 5
RIDGE = 1.0
STORED = 0.6
"""The share of a stream that is stored while standings are gathered, as with 40 % hits."""

FLOOR = 0.4
HOME = Path(home.__file__).with_name("verifier.json")

Vectors = Mapping[str, Vector]


def fit_verifier(
    given: Sequence[tuple[Pair, float]], at: Vectors, embedder: str
) -> FeatureVerifier:
    """The verifier that tells these pairs apart best; no difference raises its score.

    Args:
        given: The pairs, and how much each counts.
        at: The texts' vectors.
        embedder: The revision of what made them.
    """
    rows = np.array([(1.0, *features(one.one, one.other, _near(one, at))) for one, _ in given])
    right = np.array([float(one.same) for one, _ in given])
    counts = np.array([weight for _, weight in given])
    found, held = np.zeros(rows.shape[1]), np.ones(rows.shape[1], dtype=bool)
    while True:  # a weight of the wrong sign is left out, and the others are fitted again
        found[:] = 0.0
        prior = np.zeros(int(held.sum()))
        found[held] = fit(rows[:, held], right, counts, prior=prior, ridge=RIDGE)
        wrong = np.concatenate(([False, found[1] < 0], found[2:] > 0))
        if not wrong.any():
            break
        held &= ~wrong
    rounded = [round(float(weight), 3) for weight in found]
    weights = dict(zip(FEATURES, rounded[1:], strict=True))
    return FeatureVerifier(constant=rounded[0], weights=weights, embedder=embedder)


def crossed(
    sets: Mapping[str, Sequence[Pair]], at: Vectors, embedder: str
) -> dict[str, list[float]]:
    """The score of every pair by a verifier that has not seen its part; −inf where refused."""
    scores: dict[str, list[float]] = {name: [0.0] * len(all_of) for name, all_of in sets.items()}
    for fold in range(FOLDS):
        given = [
            (pair, WEIGHTS[name])
            for name, all_of in sets.items()
            for pair in all_of
            if seen(pair.part, FOLDS) != fold
        ]
        verifier = fit_verifier(given, at, embedder)
        for name, all_of in sets.items():
            for number, score in enumerate(scored(verifier, all_of, at)):
                if seen(all_of[number].part, FOLDS) == fold:
                    scores[name][number] = score
    return scores


def scored(verifier: FeatureVerifier, all_of: Sequence[Pair], at: Vectors) -> list[float]:
    """A verifier's score of each pair; −inf where it refuses."""
    said = (verifier.verify(one.one, Candidate("", one.other, _near(one, at))) for one in all_of)
    return [-math.inf if one.refused else one.score for one in said]


def fit_standing(
    verifier: FeatureVerifier,
    streams: Sequence[Sequence[Request]],
    sets: Sequence[Sequence[Pair]],
    at: Vectors,
    seed: int,
) -> dict[str, float]:
    """The weights of `KNOWN` that say best which candidates are right."""
    rows: list[tuple[float, ...]] = []
    right: list[float] = []
    counts: list[float] = []
    for requests in streams:
        found = _gathered(verifier, requests, at, seed)
        _taken(found, rows, right, counts)
    alone = [
        [(row, same)]
        for all_of in sets
        for pair in all_of
        for row, same in _ranked(verifier, pair.one, [(pair.other, "", pair.same)], at)
    ]
    _taken(alone, rows, right, counts)
    weights = fit(
        np.array(rows),
        np.array(right),
        np.array(counts),
        prior=np.zeros(len(KNOWN)),
        ridge=RIDGE / 2,
    )
    return dict(zip(KNOWN, (round(float(one), 3) for one in weights), strict=True))


Judged = list[tuple[tuple[float, ...], bool]]


def _taken(
    found: Sequence[Judged], rows: list[tuple[float, ...]], right: list[float], counts: list[float]
) -> None:
    """Every set counts as 1,000 requests; of one request, as many as two candidates."""
    for judged in found:
        for row, same in judged:
            rows.append(row)
            right.append(float(same))
            counts.append(min(1.0, 2.0 / len(judged)) * 1_000 / len(found))


def _gathered(
    verifier: FeatureVerifier, requests: Sequence[Request], at: Vectors, seed: int
) -> list[Judged]:
    """For each request, what is known of its neighbours, and which are right."""
    chosen = random.Random(seed)
    order = list(requests)
    chosen.shuffle(order)
    stored: dict[str, Request] = {}
    matrix = np.empty((len(order), len(next(iter(at.values())))), dtype=np.float32)
    found = []
    for request in order:
        if request.text in stored:
            continue
        texts = list(stored)
        near = matrix[: len(texts)] @ at[request.text]
        nearest = [texts[n] for n in np.argsort(-near)[:16] if near[n] >= FLOOR]
        candidates = [
            (text, stored[text].group, stored[text].group == request.group) for text in nearest
        ]
        judged = _ranked(verifier, request.text, candidates, at)
        if judged:
            found.append(judged)
        if chosen.random() < STORED:
            matrix[len(stored)] = at[request.text]
            stored[request.text] = request
    return found


def _ranked(
    verifier: FeatureVerifier, asked: str, stored: Sequence[tuple[str, str, bool]], at: Vectors
) -> Judged:
    ranked = [
        Candidate(text, text, float(at[asked] @ at[text]), group) for text, group, _ in stored
    ]
    found = []
    for candidate, standing, (_, _, same) in zip(ranked, standings(ranked), stored, strict=True):
        said = verifier.verify(asked, candidate)
        if not said.refused and candidate.similarity >= FLOOR:
            clear = guard(asked, candidate.focus) is None
            found.append((known(said.score, standing, clear=clear), same))
    return found


def _near(pair: Pair, at: Vectors) -> float:
    return float(at[pair.one] @ at[pair.other])


def accepted(scores: Sequence[float], all_of: Sequence[Pair], bar: float) -> dict[str, float]:
    """The share of the same and of other pairs whose score reaches a bar."""
    said: dict[str, float] = {}
    for name, same in (("same", True), ("other", False)):
        of_kind = [score for score, pair in zip(scores, all_of, strict=True) if pair.same is same]
        if of_kind:
            said[name] = round(float(np.mean(np.array(of_kind) >= bar)), 4)
    return said


def main(
    out: Annotated[Path, typer.Option(help="Where the record goes.")] = HOME,
    seed: Annotated[int, typer.Option(help="Of the order of the streams.")] = 7,
) -> None:
    """Fit, print what a cross-validation says, and write the record."""
    embedder = LocalEmbedder()
    sets = {name: pairs(name) for name in PAIRS}
    streams = [[one for one in stream(name) if seen(one.group) == 0] for name in STREAMS]
    texts = {text for all_of in sets.values() for pair in all_of for text in (pair.one, pair.other)}
    texts |= {request.text for requests in streams for request in requests}
    at = vectors(texts, embedder)
    scores = crossed(sets, at, embedder.revision)
    frontier = {
        f"{bar:g}": {name: accepted(scores[name], sets[name], bar) for name in PAIRS}
        for bar in (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
    }
    for bar, said in frontier.items():
        typer.echo(f"{bar:>5}  {said}")
    given = [(pair, WEIGHTS[name]) for name, all_of in sets.items() for pair in all_of]
    verifier = fit_verifier(given, at, embedder.revision)
    standing = fit_standing(verifier, streams, list(sets.values()), at, seed)
    record: dict[str, Any] = {
        "embedder": embedder.revision,
        "constant": verifier.constant,
        "weights": dict(verifier.weights),
        "standing": standing,
        "made": {
            "by": "python -m evals.fit_verifier",
            "on": datetime.now(UTC).date().isoformat(),
            "seed": seed,
            "pairs": {name: len(all_of) for name, all_of in sets.items()},
            "counting": WEIGHTS,
            "streams": {
                name: len(requests) for name, requests in zip(STREAMS, streams, strict=True)
            },
            "of_the_streams": "the groups whose CRC-32 is even",
            "accepted_by_cross_validation": frontier,
        },
    }
    out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    typer.echo(f"written to {out.name}")


if __name__ == "__main__":
    typer.run(main)
