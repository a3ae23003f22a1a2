"""What brings a manual into an index and up to date, and answers from it: one record a way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from evals.rag.sections import Section
from stemma import Cache, Embedder, content_digest

__all__ = ["Opened", "Sections", "Way", "answer_from", "cited", "shown"]

Sections = Mapping[str, Section]

_CITED = re.compile(r"\[([0-9a-f]{32})\]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """An index with a cached chain over it.

    Args:
        show: Makes the index hold these sections and no others.
        ask: The answer to a question, as the chain gives it.
        work: How many searches and model calls there were so far.
    """

    show: Callable[[Sections], None]
    ask: Callable[[str], str]
    work: Callable[[], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way of updating.

    Args:
        opened: Makes it of a cache, what gives the vectors of all texts, and how many sections a
            prompt holds.
        told: Whether the cache is told of the changes.
        precise: Whether it is told the vectors of new documents.
    """

    opened: Callable[[Cache, Embedder, int], Opened]
    told: bool = True
    precise: bool = True


def shown(texts: Iterable[str]) -> str:
    """Texts as a prompt holds them: each with the hash of its content, to be cited by."""
    return "\n\n".join(f"[{content_digest(text)}] {text}" for text in texts)


def answer_from(prompt: str) -> str:
    """What a scripted model answers: it cites all that it was shown."""
    return "It is as said in " + ", ".join(f"[{one}]" for one in cited(prompt))


def cited(text: str) -> list[str]:
    """The hashes of the contents that a text cites, or that a prompt shows."""
    return _CITED.findall(text)
