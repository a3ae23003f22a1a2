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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from evals.aligner.crossed import aligned, unseen_first
from evals.quality.texts import PAIRS, STREAMS, Pair, pairs, seen, stream
from evals.quality.vectors import vectors
from stemma.embedders import LocalEmbedder
from stemma.entry import Vector
from stemma.policies import alignment
from stemma.policies import verifier as home
from stemma.policies.aligned import AlignedVerifier, alignable, misaligned
from stemma.policies.features import features
from stemma.policies.guards import guard
from stemma.policies.logistic import fit
from stemma.policies.standing import KNOWN, known, standings
from stemma.policies.threshold import Candidate
from stemma.policies.verifier import FEATURES, FeatureVerifier, Verifier
from stemma.replays.alignments import Align, Alignments
from stemma.replays.log import Request

__all__ = ["Given", "crossed", "fit_aligned", "fit_standing", "fit_verifier", "scored"]

WEIGHTS = {
    "hard_negatives en": 0.4,
    "hard_negatives zh": 0.2,
    "tool_args": 1.0,
    "gptcache": 1.0,
    "own": 4.0,
}
"""How much a pair of each set counts: those made by rule are many, and say the least."""

FOLDS = 3
RIDGE = 1.0
STORED = 0.6
"""The share of a stream that is stored while standings are gathered, as with 40 % hits."""

FLOOR = 0.4
LOOKED_AT = 4
"""Of how many of the nearest the tokens are aligned while standings are gathered."""

HOME = Path(home.__file__).with_name("verifier.json")

Vectors = Mapping[str, Vector]


Given = Sequence[tuple[Pair, float]]
"""Pairs, and how much each counts."""


def fit_verifier(given: Given, at: Vectors, embedder: str) -> FeatureVerifier:
    """The verifier that tells these pairs apart best; no difference raises its score.

    Args:
        given: The pairs, and how much each counts.
        at: The texts' vectors.
        embedder: The revision of what made them.
    """
    rows = [(1.0, *features(one.one, one.other, _near(one, at))) for one, _ in given]
    constant, *weights = _weights(rows, given)
    return FeatureVerifier(
        constant=constant, weights=dict(zip(FEATURES, weights, strict=True)), embedder=embedder
    )


def fit_aligned(given: Given, at: Vectors, embedder: str) -> AlignedVerifier:
    """The same with what the tokens say; pairs in other scripts have weights of their own.

    What they say of a pair is said by a net that has not seen it: see `evals.aligner.crossed`.
    """
    said = [(pair, weight, aligned(pair.one, pair.other)) for pair, weight in given]
    known = [(pair, weight, log_odds) for pair, weight, log_odds in said if log_odds is not None]
    rows = [
        (1.0, *features(one.one, one.other, _near(one, at)), misaligned(log_odds))
        for one, _, log_odds in known
    ]
    constant, *weights, weight = _weights(rows, [(pair, counts) for pair, counts, _ in known])
    beside = FeatureVerifier(
        constant=constant, weights=dict(zip(FEATURES, weights, strict=True)), embedder=embedder
    )
    left = [(pair, weight) for pair, weight, log_odds in said if log_odds is None]
    return AlignedVerifier(
        plain=fit_verifier(left, at, embedder),
        features=beside,
        weight=weight,
        aligner=alignment.shipped().revision,
    )


def _weights(rows: Sequence[tuple[float, ...]], given: Given) -> list[float]:
    """Those of the constant, of nearness and of all differences, none of the wrong sign."""
    matrix = np.array(rows)
    right = np.array([float(one.same) for one, _ in given])
    counts = np.array([weight for _, weight in given])
    found, held = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1], dtype=bool)
    while True:  # a weight of the wrong sign is left out, and the others are fitted again
        found[:] = 0.0
        prior = np.zeros(int(held.sum()))
        found[held] = fit(matrix[:, held], right, counts, prior=prior, ridge=RIDGE)
        wrong = np.concatenate(([False, found[1] < 0], found[2:] > 0))
        if not wrong.any():
            return [round(float(weight), 3) for weight in found]
        held &= ~wrong


def crossed(
    sets: Mapping[str, Sequence[Pair]], fitted: Callable[[Given], Verifier], at: Vectors
) -> dict[str, list[float]]:
    """The score of every pair by a verifier that has not seen its part; −inf where refused."""
    scores: dict[str, list[float]] = {name: [0.0] * len(all_of) for name, all_of in sets.items()}
    for fold in range(FOLDS):
        verifier = fitted(
            [
                (pair, WEIGHTS[name])
                for name, all_of in sets.items()
                for pair in all_of
                if seen(pair.part, FOLDS) != fold
            ]
        )
        for name, all_of in sets.items():
            for number, score in enumerate(scored(verifier, all_of, at)):
                if seen(all_of[number].part, FOLDS) == fold:
                    scores[name][number] = score
    return scores


def scored(verifier: Verifier, all_of: Sequence[Pair], at: Vectors) -> list[float]:
    """A verifier's score of each pair; −inf where it refuses."""
    said = (
        verifier.verify(
            one.one, Candidate("", one.other, _near(one, at), aligned=aligned(one.one, one.other))
        )
        for one in all_of
    )
    return [-math.inf if one.refused else one.score for one in said]


def fit_standing(
    verifier: Verifier,
    streams: Sequence[Sequence[Request]],
    sets: Sequence[Sequence[Pair]],
    at: Vectors,
    aligner: Align | None,
    *,
    seed: int,
) -> dict[str, float]:
    """The weights of `KNOWN` that say best which candidates are right.

    Args:
        verifier: What scores the candidates.
        streams: Of each, the part that may be learnt from.
        sets: Pairs, each a request with one candidate.
        at: The texts' vectors.
        aligner: What aligns two texts, where the verifier asks for it.
        seed: Of the order, and of what is stored.
    """
    rows: list[tuple[float, ...]] = []
    right: list[float] = []
    counts: list[float] = []
    for requests in streams:
        found = _gathered(verifier, requests, at, aligner, seed)
        _taken(found, rows, right, counts)
    alone = [
        [(row, same)]
        for all_of in sets
        for pair in all_of
        for row, same in _ranked(verifier, pair.one, [(pair.other, "", pair.same)], at, aligner)
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
    verifier: Verifier,
    requests: Sequence[Request],
    at: Vectors,
    aligner: Align | None,
    seed: int,
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
        judged = _ranked(verifier, request.text, candidates, at, aligner)
        if judged:
            found.append(judged)
        if chosen.random() < STORED:
            matrix[len(stored)] = at[request.text]
            stored[request.text] = request
    return found


def _ranked(
    verifier: Verifier,
    asked: str,
    stored: Sequence[tuple[str, str, bool]],
    at: Vectors,
    aligner: Align | None,
) -> Judged:
    ranked = [
        Candidate(text, text, float(at[asked] @ at[text]), group) for text, group, _ in stored
    ]
    found = []
    stood = list(zip(ranked, standings(ranked), stored, strict=True))
    for candidate, standing, (_, _, same) in stood[: None if aligner is None else LOOKED_AT]:
        said = verifier.verify(asked, candidate)
        if said.refused or candidate.similarity < FLOOR:
            continue
        clear = guard(asked, candidate.focus) is None
        if aligner is not None and alignable(asked, candidate.focus):
            log_odds = aligner(asked, candidate.focus)
            said = verifier.verify(asked, replace(candidate, aligned=log_odds))
            clear = clear and log_odds >= 0
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


def _frontier(
    sets: Mapping[str, Sequence[Pair]], fitted: Callable[[Given], Verifier], at: Vectors
) -> dict[str, dict[str, dict[str, float]]]:
    """What is accepted at several bars, by cross-validation; printed as well."""
    scores = crossed(sets, fitted, at)
    found = {
        f"{bar:g}": {name: accepted(scores[name], sets[name], bar) for name in PAIRS}
        for bar in (-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0)
    }
    for bar, said in found.items():
        typer.echo(f"{bar:>5}  {said}")
    return found


def _told(verifier: FeatureVerifier) -> dict[str, Any]:
    return {"constant": verifier.constant, "weights": dict(verifier.weights)}


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
    given = [(pair, WEIGHTS[name]) for name, all_of in sets.items() for pair in all_of]
    alone = list(sets.values())
    plain = fit_verifier(given, at, embedder.revision)
    with_tokens = fit_aligned(given, at, embedder.revision)
    frontiers = {
        "without": _frontier(sets, lambda some: fit_verifier(some, at, embedder.revision), at),
        "aligned": _frontier(sets, lambda some: fit_aligned(some, at, embedder.revision), at),
    }
    record: dict[str, Any] = {
        "embedder": embedder.revision,
        **_told(plain),
        "standing": fit_standing(plain, streams, alone, at, None, seed=seed),
        "aligned": {
            "aligner": with_tokens.aligner,
            **_told(with_tokens.features),
            "misaligned": with_tokens.weight,
            "other_scripts": _told(with_tokens.plain),
            "standing": fit_standing(
                with_tokens, streams, alone, at, unseen_first(Alignments(embedder)), seed=seed
            ),
        },
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
            "accepted_by_cross_validation": frontiers,
        },
    }
    out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    typer.echo(f"written to {out.name}")


if __name__ == "__main__":
    typer.run(main)
