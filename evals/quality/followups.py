"""Follow-ups in their own conversation, reworded, and in conversations they do not belong to.

Each follow-up of the data that needs its context is stored with the conversation before it, by the
engine as it is. Then it is asked again: in its own conversation; there with the user's turns
reworded by rule; in another conversation of the same length, drawn at random and the one whose
context is nearest; and alone. The data holds the same conversation twice here and there: a hit
there is counted apart, since both dialogues are equal up to the question.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.rag.rewording import RULES, reword
from evals.rag.texts import rows
from stemma.embedders import LocalEmbedder
from stemma.embedders.protocol import Matrix
from stemma.entry import Vector
from stemma.policies.context import beside, parted

__all__ = ["run"]

LIGHT = ("polite", "suffix", "contraction", "lower_no_punctuation")
"""The rules of `evals.rag.rewording` that change no word of a question."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowUp:
    """A question that needs the conversation before it."""

    dialogue: str
    question: str
    history: tuple[str, ...] = field(repr=False)


class Remembered:
    """An embedder that embeds each text once."""

    def __init__(self) -> None:
        self._inner = LocalEmbedder()
        self.revision = self._inner.revision
        self._known: dict[str, Vector] = {}

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            self._known.update(zip(missing, self._inner.embed(missing), strict=True))
        matrix: Matrix = np.stack([self._known[text] for text in texts])
        return matrix

    def fits(self, text: str) -> bool:
        """See `Embedder.fits`."""
        return self._inner.fits(text)


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001 - as of every part
    """Measure how often each kind of asking again is a hit."""
    found = [
        FollowUp(dialogue=row["dialog_id"], question=row["question"], history=tuple(row["history"]))
        for row in rows("followups_canard", "turns.jsonl")
        if row["needs_context"] and row["history"]
    ]
    asked = found[: scaled(len(found), size, least=20)]
    lucky, embedder = random.Random(seed), Remembered()
    others = _others(asked, embedder)
    ways: Mapping[str, Callable[[FollowUp], tuple[str, ...] | None]] = {
        "own": lambda one: one.history,
        "reworded": lambda one: _reworded(one, lucky, LIGHT),
        "reworded by every rule": lambda one: _reworded(one, lucky, tuple(RULES)),
        "foreign": lambda one: lucky.choice(others[one]).history if others[one] else None,
        "nearest foreign": lambda one: others[one][0].history if others[one] else None,
        "alone": lambda _: (),
    }
    with stemma.open(":memory:", tenant="all", embedder=embedder) as cache:
        for one in asked:
            ticket = cache.answers.ticket(one.question, before=one.history)
            cache.answers.put(ticket, list(one.history))
        counts = {name: _counted(cache, asked, way) for name, way in ways.items()}
    return Measured(figures=_figures(counts), details={"follow-ups": len(asked), **counts})


def _reworded(one: FollowUp, lucky: random.Random, rules: Sequence[str]) -> tuple[str, ...]:
    """Its conversation, with what the user said put otherwise."""
    return tuple(
        turn if place % 2 else reword(turn, lucky, rules=rules)
        for place, turn in enumerate(one.history)
    )


def _others(asked: Sequence[FollowUp], embedder: Remembered) -> dict[FollowUp, list[FollowUp]]:
    """For each, those of other dialogues after as many turns, the nearest context first."""
    nothing = np.zeros_like(embedder.embed([asked[0].question])[0])
    contexts = {one: beside(nothing, embedder.embed(one.history)) for one in asked}
    by_length: dict[int, list[FollowUp]] = defaultdict(list)
    for one in asked:
        by_length[len(one.history)].append(one)
    return {
        one: sorted(
            (two for two in by_length[len(one.history)] if two.dialogue != one.dialogue),
            key=lambda two, here=contexts[one]: -parted(here, contexts[two])[1],  # type: ignore[misc]
        )
        for one in asked
    }


def _counted(
    cache: stemma.Cache,
    asked: Sequence[FollowUp],
    way: Callable[[FollowUp], tuple[str, ...] | None],
) -> dict[str, Any]:
    """How many were asked and hit, how many of the hits had an equal conversation; misses."""
    hits, equal, total = 0, 0, 0
    reasons: Counter[str] = Counter()
    for one in asked:
        before = way(one)
        if before is None:
            continue
        total += 1
        outcome = cache.answers.lookup(one.question, before=before)
        if isinstance(outcome, stemma.Hit):
            hits += 1
            equal += outcome.value == list(before)
        else:
            reasons[outcome.reason] += 1
    return {"asked": total, "hits": hits, "equal": equal, "misses": dict(reasons)}


def _figures(counts: Mapping[str, Mapping[str, Any]]) -> list[Figure]:
    def share(name: str, *, less: int = 0) -> float:
        found = counts[name]
        return (int(found["hits"]) - less) / int(found["asked"]) if found["asked"] else 0.0

    twice = int(counts["nearest foreign"]["equal"])
    return [
        Figure(what="repeated in their own conversation, hits", value=share("own"), unit="",
               at_least=0.8),
        Figure(what="… with the user's turns lightly reworded", value=share("reworded"), unit=""),
        Figure(what="… reworded by every rule, slips and small talk among them",
               value=share("reworded by every rule"), unit=""),
        Figure(what="in another conversation, hits", value=share("foreign"), unit="",
               at_most=0.005),
        Figure(what="… in the nearest one", value=share("nearest foreign"), unit=""),
        Figure(what="… without conversations that are twice in the data",
               value=share("nearest foreign", less=twice), unit="", at_most=0.005),
        Figure(what="alone, hits", value=share("alone"), unit="", at_most=0.0),
    ]  # fmt: skip
