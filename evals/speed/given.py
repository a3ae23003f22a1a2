"""Questions whose vectors are given: what is measured is everything but embedding."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.speed.vectors import NEAR, Rows, clustered, noisy, units
from stemma import Cache

__all__ = [
    "WORDS",
    "Given",
    "Questions",
    "answer",
    "fill",
    "in_batches",
    "question",
    "questions",
    "reworded",
]

BATCH = 2_000
WORDS = (  # a block of words is easier to read than a column of quoted ones
    "account balance booking card change city cloud column contract data delivery device error "
    "export file graph index invoice key letter limit market message model network node order "
    "page password payment plan price question record region report result route rule schema "
    "server session signal source table team ticket token tool track transfer update user value"
).split()


class Given:
    """An embedder that looks the vector of a text up; another text gets one of a few.

    Args:
        vectors: By text; may be changed later.
    """

    revision = "given/1"
    quick = frozenset({"fits", "embed"})

    def __init__(self, vectors: Mapping[str, Any]) -> None:
        self._vectors = vectors
        self._others = units(np.random.default_rng(0), 256)

    def embed(self, texts: Sequence[str]) -> Rows:
        """The given vectors."""
        rows = [self._vectors.get(text) for text in texts]
        return np.stack(
            [self._other(t) if row is None else row for t, row in zip(texts, rows, strict=True)]
        )

    def fits(self, text: str) -> bool:  # noqa: ARG002 - of the protocol
        """Always."""
        return True

    def _other(self, text: str) -> Any:
        return self._others[zlib.crc32(text.encode()) % len(self._others)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Questions:
    """Questions that are stored, and others that are asked.

    Args:
        stored: The texts that are stored.
        rows: Their vectors.
        near: Texts that mean what one of the stored does.
        far: Texts that mean what none does.
        asked: The vectors of both, by text.
    """

    stored: Sequence[str]
    rows: Rows
    near: Sequence[str]
    far: Sequence[str]
    asked: Mapping[str, Any]

    @property
    def vectors(self) -> dict[str, Any]:
        """All vectors, by text."""
        return {**dict(zip(self.stored, self.rows, strict=True)), **self.asked}


def questions(count: int, *, asked: int, seed: int) -> Questions:
    """So many stored questions, about a fifth of them with others around them.

    Args:
        count: How many are stored.
        asked: How many are asked that are near to one that is stored, and how many that are not;
            at most `count`.
        seed: Of the vectors, and of what is asked.
    """
    rng = np.random.default_rng(seed)
    rows = clustered(rng, count)
    stored = [question(number) for number in range(count)]
    chosen = rng.permutation(count)[:asked].tolist()
    near = [reworded(stored[number]) for number in chosen]
    far = [f"where do I find {question(number)}" for number in range(asked)]
    vectors = np.concatenate([noisy(rng, rows[chosen], NEAR), units(rng, asked)])
    return Questions(
        stored=stored,
        rows=rows,
        near=near,
        far=far,
        asked=dict(zip((*near, *far), vectors, strict=True)),
    )


def question(number: int) -> str:
    """A question of its own for each number: guards compare words, digits would never differ."""
    letters, rest = "", number
    while rest >= 0:
        letters = chr(ord("a") + rest % 26) + letters
        rest = rest // 26 - 1
    first, second = WORDS[number % len(WORDS)], WORDS[number // len(WORDS) % len(WORDS)]
    return f"how do I reset the {first} of my {second} zone {letters}q?"


def reworded(text: str) -> str:
    """The same question in other words."""
    return f"please tell: {text}"


def answer(number: int) -> str:
    """About 500 bytes."""
    return f"{number}: " + " ".join(WORDS[(number + n) % len(WORDS)] for n in range(75))


def fill(cache: Cache, texts: Sequence[str]) -> None:
    """Store an answer to each question, a batch in one transaction."""
    for batch in in_batches(len(texts)):
        cache.answers.put_all(
            [(cache.answers.ticket(texts[number]), answer(number)) for number in batch]
        )


def in_batches(end: int, start: int = 0) -> Iterator[range]:
    """The numbers from `start` to below `end`, a batch at a time."""
    for first in range(start, end, BATCH):
        yield range(first, min(first + BATCH, end))
