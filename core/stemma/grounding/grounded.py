"""What a grounding check says, and what one is: an answer and its sources in, a score out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from stemma.errors import UsageError

__all__ = ["NO_SOURCE", "Grounded", "Grounder", "Support", "given"]

NO_SOURCE = "no_source"
"""Why a sentence is not supported where there is no text that could."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Support:
    """How far one sentence of an answer is supported.

    Args:
        sentence: The sentence.
        score: How likely the sources support it, 0 to 1.
        source: Which of the sources supports it best, by its place; `None` where none has any of
            it.
        why: What speaks most against it, such as `number_missing` or `negated`, or the name of the
            judge that said so; empty where nothing does.
    """

    sentence: str = field(repr=False)
    score: float
    source: int | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grounded:
    """How far an answer is supported by its sources.

    Args:
        score: How likely they support all of it, 0 to 1: the least of its sentences' scores; 0
            where the answer or the sources are empty.
        sentences: Each sentence with what supports it.
        by: Who says so: the grounder's name.
    """

    score: float
    sentences: tuple[Support, ...] = ()
    by: str

    @classmethod
    def of(cls, sentences: Sequence[Support], by: str) -> Grounded:
        """What follows for an answer of its sentences."""
        score = min((one.score for one in sentences), default=0.0)
        return cls(score=score, sentences=tuple(sentences), by=by)


@runtime_checkable
class Grounder(Protocol):
    """Says how far an answer is supported by its sources. It may be slow: ask it off the path."""

    @property
    def name(self) -> str:
        """What it is called in verdicts."""
        ...

    @property
    def revision(self) -> str:
        """What the scores depend on: another revision, other scores."""
        ...

    def ground(self, answer: str, sources: Sequence[str], question: str = "") -> Grounded:
        """How far the sources support the answer.

        Args:
            answer: The answer's text.
            sources: The texts that it was made from.
            question: What was asked: a short answer says little without it.

        Raises:
            UsageError: An argument is no text, or no list of texts.
        """
        ...

    async def aground(self, answer: str, sources: Sequence[str], question: str = "") -> Grounded:
        """As `ground`."""
        ...


def given(answer: object, sources: object, question: object) -> tuple[str, ...]:
    """The sources, once all three are what they should be.

    Raises:
        UsageError: They are not.
    """
    for name, text in (("answer", answer), ("question", question)):
        if not isinstance(text, str):
            raise UsageError(f"{name} must be a text, not a {type(text).__name__}")
    if isinstance(sources, (str, bytes)) or not isinstance(sources, Sequence):
        raise UsageError(f"sources must be a list of texts, not a {type(sources).__name__}")
    for one in sources:
        if not isinstance(one, str):
            raise UsageError(f"every source must be a text, not a {type(one).__name__}")
    return tuple(sources)
