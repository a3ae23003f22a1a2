"""A fixed stream of requests: a few questions often, many seldom, half of them reworded."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from evals.rag.rewording import reword
from evals.rag.texts import Question

__all__ = ["Ceilings", "Request", "ceilings", "drawn"]

REWORDED = 0.5
"""The share of requests that are reworded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request.

    Args:
        text: What is asked.
        question: The question's number.
        reworded: Whether the text is another than the question's own.
    """

    text: str
    question: int
    reworded: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Ceilings:
    """What the best cache could save of a stream, as shares of what no cache does.

    Args:
        embeddings: Every text but its first occurrence.
        searches: Every request but the first of its question, if one list served all wordings.
        pairs: Every pair of text and document but its first occurrence.
    """

    embeddings: float
    searches: float
    pairs: float


def drawn(questions: Sequence[Question], count: int, lucky: random.Random) -> list[Request]:
    """Requests for questions drawn by Zipf's law with exponent 1, in an order of their own."""
    order = lucky.sample(range(len(questions)), len(questions))
    weights = list(accumulate(1 / rank for rank in range(1, len(order) + 1)))
    found = []
    for question in lucky.choices(order, cum_weights=weights, k=count):
        own = questions[question].text
        text = reword(own, lucky) if lucky.random() < REWORDED else own
        found.append(Request(text=text, question=question, reworded=text != own))
    return found


def ceilings(requests: Sequence[Request], pairs: Iterable[tuple[str, str]]) -> Ceilings:
    """The ceilings of a stream.

    Args:
        requests: The stream.
        pairs: Every text with every document that was scored for it, request by request.
    """
    scored = list(pairs)
    return Ceilings(
        embeddings=1 - len({request.text for request in requests}) / len(requests),
        searches=1 - len({request.question for request in requests}) / len(requests),
        pairs=1 - len(set(scored)) / len(scored),
    )
