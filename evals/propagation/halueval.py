"""HaluEval's answers: right and hallucinated ones with their sources, and general ones without."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from evals.quality.texts import seen
from evals.rag.texts import rows

__all__ = ["Answered", "General", "answered", "general"]

_GLUED = re.compile(r"(?<=[a-z0-9)\]])\.(?=[A-Z])")
"""The set joins two passages without a space between them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """A question with its sources, a right and a hallucinated answer."""

    question: str
    sources: tuple[str, ...] = field(repr=False)
    right: str
    hallucinated: str


@dataclass(frozen=True, kw_only=True, slots=True)
class General:
    """A prompt, a model's response, and whether people found it hallucinated."""

    query: str
    response: str = field(repr=False)
    hallucinated: bool


def answered(part: int) -> list[Answered]:
    """Half of `grounding_halueval_qa`, by question: the weights were fitted on part 0."""
    return [
        Answered(
            question=row["question"],
            sources=(_GLUED.sub(". ", row["context"]),),
            right=row["right_answer"],
            hallucinated=row["hallucinated_answer"],
        )
        for row in rows("grounding_halueval_qa", "items.jsonl")
        if seen(row["question"]) == part
    ]


def general() -> list[General]:
    """All of `hallucination_general`."""
    return [
        General(query=row["query"], response=row["response"], hallucinated=row["hallucinated"])
        for row in rows("hallucination_general", "items.jsonl")
    ]
