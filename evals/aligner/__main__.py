"""Train the aligner that comes with the package, and say what it makes of pairs it has not seen.

    python -m evals.aligner WORDNET

`WORDNET` is the folder of WordNet 3.0's files (`data.noun` and the like; Debian's package
`wordnet-base` has it). Written are `core/stemma/policies/aligner.json`, trained on all pairs, and
`evals/aligner/crossed.json`: what nets that have not seen a pair's part say of it, as the
verifier's weights and every reported figure need it. Nothing is trained on the labels of a stream,
nor on `evals/quality/contrasts.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from evals.aligner.crossed import HOME as CROSSED
from evals.aligner.crossed import name_of
from evals.aligner.made import made, spoilt
from evals.aligner.token_vectors import token_vectors
from evals.aligner.training import DIGITS, basis, train
from evals.aligner.wordnet import WordNet
from evals.fit_verifier import FOLDS
from evals.quality.texts import PAIRS, Pair, contrasts, graded, pairs, seen
from stemma.embedders import LocalEmbedder, Matrix
from stemma.policies import alignment as home
from stemma.policies.alignment import SHAPES, Aligner
from stemma.policies.symbols import symbols

WEIGHTS = {
    "hard_negatives en": 0.4,
    "tool_args": 1.0,
    "gptcache": 1.0,
    "own": 3.0,
    "spoilt": 1.0,
    "made": 0.5,
    "graded": 0.5,
}
"""How much a pair of each set counts."""

MADE = 8_000
HOME = Path(home.__file__).with_name("aligner.json")


def main(
    wordnet: Annotated[Path, typer.Argument(help="The folder of WordNet 3.0's files.")],
    out: Annotated[Path, typer.Option(help="Where the weights go.")] = HOME,
    crossed: Annotated[Path, typer.Option(help="Where the cross-validation goes.")] = CROSSED,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
) -> None:
    """Train, and write both files."""
    embedder = LocalEmbedder()
    words = WordNet(wordnet)
    sets = {name: _latin(pairs(name)) for name in PAIRS if name in WEIGHTS}
    same = [pair for name, of in sets.items() if "hard" not in name for pair in of if pair.same]
    asked = {name: list(of) for name, of in sets.items()}
    sets |= {"spoilt": spoilt(same, words, seed), "made": made(MADE, words, seed)}
    sets["graded"] = graded()
    ours = _latin(contrasts())
    full = token_vectors([pair for of in (*sets.values(), ours) for pair in of], embedder)
    within = basis(full, seed)
    low = {text: rows @ within for text, rows in full.items()}
    found: dict[str, float] = {}
    for fold in range(FOLDS):
        given = _given(sets, fold)
        aligner = train(given, low, within, embedder=embedder.revision, seed=seed + fold)
        left = [pair for of in asked.values() for pair in of if seen(pair.part, FOLDS) == fold]
        found |= _aligned(aligner, left, full)
        typer.echo(f"{len(given):,} pairs without part {fold}, {len(left):,} of it")
    aligner = train(_given(sets, None), low, within, embedder=embedder.revision, seed=seed)
    found |= _aligned(aligner, ours, full)
    made_how = {
        "by": "python -m evals.aligner",
        "on": datetime.now(UTC).date().isoformat(),
        "seed": seed,
        "pairs": {name: len(of) for name, of in sets.items()},
        "counting": WEIGHTS,
        "words": "WordNet 3.0, Copyright 2006 by Princeton University",
    }
    out.write_text(_line(_record(aligner, made_how)), encoding="utf-8")
    told = {"aligner": aligner.revision, "aligned": found}
    crossed.write_text(json.dumps(told, indent=0) + "\n", encoding="utf-8")
    typer.echo(f"written to {out.name} and {crossed.name}")


def _latin(all_of: Sequence[Pair]) -> list[Pair]:
    """Those in Latin script: the embedder's tokens tell little of any other."""
    return [
        pair
        for pair in all_of
        if {symbols(pair.one).script, symbols(pair.other).script} == {"latin"}
    ]


def _given(sets: Mapping[str, Sequence[Pair]], without: int | None) -> list[tuple[Pair, float]]:
    return [
        (pair, WEIGHTS[name])
        for name, of in sets.items()
        for pair in of
        if name in {"made", "graded"} or seen(pair.part, FOLDS) != without
    ]


def _aligned(
    aligner: Aligner, of: Sequence[Pair], tokens: Mapping[str, Matrix]
) -> dict[str, float]:
    return {
        name_of(pair.one, pair.other): round(
            aligner.align(
                aligner.projected(tokens[pair.one]), aligner.projected(tokens[pair.other])
            ),
            3,
        )
        for pair in of
    }


def _record(aligner: Aligner, made_how: Mapping[str, Any]) -> dict[str, Any]:
    weights = {name: aligner.weights[name].astype(float).round(DIGITS).tolist() for name in SHAPES}
    return {"embedder": aligner.embedder, "made": made_how, "weights": weights}


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    typer.run(main)
