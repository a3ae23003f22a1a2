"""Right and hallucinated answers, told apart by the grounding check and by barer means.

HaluEval's hallucinated answers are longer than its right ones, so that length alone tells them
apart almost always. It stands beside the others for that, and each is measured twice more: where
the two answers of a question differ by `LIKE` words at most, and with each right answer put after
the words of its question, which makes it longer and no worse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evals.measuring import Figure, Measured, scaled
from evals.propagation.halueval import Answered, General, answered, general
from evals.propagation.telling import Scores, auc, bar, interval
from stemma.embedders import LocalEmbedder
from stemma.errors import EmbedderError
from stemma.grounding import GroundingCheck
from stemma.policies.admission import refusal
from stemma.policies.confidence import ConfidencePolicy
from stemma.policies.symbols import symbols
from stemma.rerankers import MaxSimReranker

__all__ = ["CHECKS", "LIKE", "Score", "on_every_put", "run", "scorers", "told", "without_sources"]

LIKE = 2
"""Two answers are alike in length if they differ by so many words at most."""

CHECKS = ("check", "check, embedder")
"""The scorers whose scores are probabilities."""

KEPT = 0.9
"""The share of the right answers that a pool has to keep."""

_WORD = re.compile(r"\w+")

T = TypeVar("T")

Score = Callable[[str, Answered], float]
"""Of an answer to a question with its sources: higher is better supported."""

Scored = tuple[Scores, Scores]
"""Of right and of hallucinated answers."""


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001 - nothing is written
    """Measure on the half of the questions that no weight has seen."""
    fitted, held = (_some(answered(part), size) for part in (0, 1))
    scored = scorers(_embedder())
    found = {name: told(score, fitted, held, seed=seed) for name, score in scored.items()}
    best = "check, embedder" if "check, embedder" in found else "check"
    refused = {name: on_every_put(scored[name], held) for name in CHECKS if name in scored}
    elsewhere = without_sources(_some(general(), size), seed=seed)
    return Measured(
        figures=(
            Figure(what=f"AUC of the {best}", value=found[best]["auc"], unit=""),
            Figure(what="AUC of the length alone", value=found["length alone"]["auc"], unit=""),
            Figure(
                what=f"hallucinated answers that the {best} lets into a pool",
                value=100 * found[best]["let_through"],
                unit="% of them",
            ),
            Figure(
                what="checked on every put: hallucinated answers that the default floor refuses",
                value=100 * refused["check"]["hallucinated"],
                unit="% of them",
            ),
            Figure(
                what="checked on every put: right answers that the default floor refuses",
                value=100 * refused["check"]["right"],
                unit="% of them",
            ),
            Figure(
                what="no sources: AUC of the check against the prompt",
                value=elsewhere["auc_against_the_prompt"],
                unit="",
            ),
        ),
        details={
            "questions": len(held),
            "told": found,
            "on_every_put": refused,
            "without_sources": elsewhere,
        },
        beside={name: _row(one) for name, one in found.items()},
    )


def _some(items: Sequence[T], size: float) -> Sequence[T]:
    return items[: scaled(len(items), size, least=min(20, len(items)))]


def _embedder() -> LocalEmbedder | None:
    try:
        return LocalEmbedder()
    except EmbedderError:
        return None


def scorers(embedder: LocalEmbedder | None) -> dict[str, Score]:
    """The checks and the baselines, by name; those with a model only where it is there."""
    plain = GroundingCheck()
    found: dict[str, Score] = {"check": _checked(plain)}
    if embedder is not None:
        maxsim = MaxSimReranker(embedder)
        found["check, embedder"] = _checked(GroundingCheck(embedder))
        found["embedding similarity"] = lambda answer, of: _similar(embedder, answer, of)
        found["MaxSim"] = lambda answer, of: maxsim.score(answer, ["\n".join(of.sources)])[0]
    found["token overlap"] = _overlap
    found["length alone"] = lambda answer, _: -float(len(answer.split()))
    return found


def _checked(check: GroundingCheck) -> Score:
    return lambda answer, of: check.ground(answer, of.sources, of.question).score


def _similar(embedder: LocalEmbedder, answer: str, of: Answered) -> float:
    mine, theirs = embedder.embed([answer, "\n".join(of.sources)])
    return float(mine @ theirs)


def _overlap(answer: str, of: Answered) -> float:
    words = _WORD.findall(answer.casefold())
    there = set(_WORD.findall(" ".join(of.sources).casefold()))
    return sum(word in there for word in words) / len(words) if words else 0.0


def told(
    score: Score, fitted: Sequence[Answered], held: Sequence[Answered], *, seed: int
) -> dict[str, Any]:
    """How well a score tells held-out answers apart.

    Args:
        score: What is measured.
        fitted: Questions from which the bar is taken that keeps `KEPT` of the right answers.
        held: Those that are reported on.
        seed: Of the intervals.
    """
    lowest = bar(np.array([score(one.right, one) for one in fitted]), KEPT)
    right = np.array([score(one.right, one) for one in held])
    wrong = np.array([score(one.hallucinated, one) for one in held])
    alike = np.array([_alike(one) for one in held])
    restated = np.array([score(_restated(one), one) for one in held])
    both: Scored = (right[alike], wrong[alike])
    return {
        "auc": auc(right, wrong),
        "auc_interval": interval(right, wrong, seed=seed),
        "questions_alike": int(alike.sum()),
        "auc_alike": auc(*both) if alike.any() else None,
        "auc_alike_interval": interval(*both, seed=seed) if alike.any() else None,
        "auc_restated": auc(restated, wrong),
        "auc_restated_interval": interval(restated, wrong, seed=seed),
        "kept": float(np.mean(right >= lowest)),
        "let_through": float(np.mean(wrong >= lowest)),
    }


def on_every_put(score: Score, held: Sequence[Answered]) -> dict[str, float]:
    """Which held-out answers are refused at the default floor, once their score is known.

    A refused answer is computed afresh; where the same comes out, an audit has agreed with it.
    `…_said_again` are the shares that are refused then, too.

    Args:
        score: A check's, which is a probability.
        held: The questions.

    Returns:
        Shares, 0 to 1, of the right, the right ones restated, and the hallucinated.
    """
    policy = ConfidencePolicy()
    answers: Mapping[str, Callable[[Answered], str]] = {
        "right": lambda one: one.right,
        "restated": _restated,
        "hallucinated": lambda one: one.hallucinated,
    }
    refused = {}
    for name, answer in answers.items():
        scores = [score(answer(one), one) for one in held]
        for agreed, when in ((0, name), (1, f"{name}_said_again")):
            out = [policy.refuses(each, agreed=agreed) for each in scores]
            refused[when] = float(np.mean(out))
    return refused


def _restated(one: Answered) -> str:
    """The right answer after the question's own words, as a model may say it: as well grounded."""
    return f"{one.question.rstrip(' ?')}: {one.right}"


def _alike(one: Answered) -> bool:
    return abs(len(one.right.split()) - len(one.hallucinated.split())) <= LIKE


def without_sources(items: Sequence[General], *, seed: int) -> dict[str, Any]:
    """What could be kept out where there are no sources.

    The set has no log-probabilities, so admission by a model's own confidence cannot be measured
    on it. What can: what admission refuses as it is, and the check with the prompt as the source.
    """
    check = GroundingCheck()
    scores = [check.ground(one.response, [one.query], one.query).score for one in items]
    lengths = [-float(len(symbols(one.response).words)) for one in items]
    refused = [refusal(None, one.response, has_tool_calls=False) is not None for one in items]
    wrong = [one.hallucinated for one in items]
    return {
        "responses": len(items),
        "hallucinated": sum(wrong),
        "hallucinated_refused_by_admission": sum(
            bad and out for bad, out in zip(wrong, refused, strict=True)
        ),
        "auc_against_the_prompt": auc(*_split(scores, wrong)),
        "auc_interval": interval(*_split(scores, wrong), seed=seed),
        "auc_of_length_alone": auc(*_split(lengths, wrong)),
    }


def _split(scores: Sequence[float], wrong: Sequence[bool]) -> Scored:
    both = list(zip(scores, wrong, strict=True))
    right = np.array([score for score, bad in both if not bad])
    return right, np.array([score for score, bad in both if bad])


def _row(found: Mapping[str, Any]) -> dict[str, str]:
    return {
        "AUC": _with_interval(found["auc"], found["auc_interval"]),
        f"AUC, {found['questions_alike']} alike in length": _with_interval(
            found["auc_alike"], found["auc_alike_interval"]
        ),
        "AUC, right ones restated": _with_interval(
            found["auc_restated"], found["auc_restated_interval"]
        ),
        "right kept": f"{found['kept']:.1%}",
        "hallucinated let through": f"{found['let_through']:.1%}",
    }


def _with_interval(value: float | None, bounds: tuple[float, float] | None) -> str:
    if value is None or bounds is None:
        return "none"
    return f"{value:.3f} ({bounds[0]:.3f} to {bounds[1]:.3f})"
