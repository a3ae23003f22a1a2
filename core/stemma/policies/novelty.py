"""Admission by novelty: whether what is like nothing asked before is worth an entry. Pure.

Most of what is asked once is never asked again. So a request is compared with those before it, and
goes into one of three bands: known, near, or new.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from stemma.entry import Vector
from stemma.errors import UsageError

__all__ = ["ADMITTED", "Admission", "Novelty", "Traits", "alike", "traits"]

TOKENS = 0.3
PHRASES = 0.4
INTENT = 0.3
"""What the three similarities of two requests weigh."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """Whether a value may be stored.

    Args:
        admitted: Whether it may.
        longer: By what its base life is multiplied, from 1.
        why: Why it may not, in words.
    """

    admitted: bool = True
    longer: float = 1.0
    why: str = ""


ADMITTED = Admission()


@dataclass(frozen=True, kw_only=True, slots=True)
class Novelty:
    """Stores what resembles known traffic, and what is new only once it is asked again.

    The similarity to a known request is 0.3 times that of the tokens, 0.4 times that of the
    phrases (pairs of neighbouring tokens) and 0.3 times that of the intent (the embeddings);
    without embeddings, the first two alone. Known is what was computed for the same tenant by the
    same model or chain since the cache was opened in this process; the last few hundred requests
    are remembered, whether they were stored or not.

    Args:
        known: From this similarity on, 0 to 1, a request is always stored, and kept longer.
        near: From this one on, it is stored while there is room.
        room: How many entries of a tenant's node leave room for more.
        longer: By what the base life of a known request is multiplied, from 1.

    Raises:
        UsageError: A number is out of its range.
    """

    known: float = 0.85
    near: float = 0.6
    room: int = 10_000
    longer: float = 2.0

    def __post_init__(self) -> None:
        for name, low, high in (("known", 0.0, 1.0), ("near", 0.0, 1.0), ("longer", 1.0, 1e6)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise UsageError(f"{name} must be a number, not {type(value).__name__}")
            if not low <= value <= high:
                raise UsageError(f"{name} must be a number from {low:g} to {high:g}, not {value}")
        if self.near > self.known:
            raise UsageError(f"near ({self.near}) must not be above known ({self.known})")
        if isinstance(self.room, bool) or not isinstance(self.room, int) or self.room < 0:
            raise UsageError(f"room must be a whole number from 0, not {self.room!r}")

    def wants_room(self, similarity: float) -> bool:
        """Whether it depends on the room if a request so similar to known ones is stored."""
        return self.near <= similarity < self.known

    def admit(self, similarity: float, stored: int) -> Admission:
        """Whether a request is stored.

        Args:
            similarity: To the most similar of the known requests, 0 to 1; 0 where there is none.
            stored: How many entries there are; only read where `wants_room` says so.
        """
        if similarity >= self.known:
            return Admission(longer=self.longer)
        if self.wants_room(similarity):
            if stored < self.room:
                return ADMITTED
            return Admission(admitted=False, why=f"no room: {stored} entries, and it is not known")
        why = f"new: its similarity to known requests is {similarity:.2f}; once asked again"
        return Admission(admitted=False, why=why)


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """What of a request is compared.

    Args:
        text: The text.
        tokens: Its words, numbers and Chinese characters.
        phrases: Pairs of neighbours among them.
        vector: Its embedding, of length 1, where there is one.
    """

    text: str = field(repr=False)
    tokens: frozenset[str] = field(repr=False)
    phrases: frozenset[tuple[str, str]] = field(repr=False)
    vector: Vector | None = field(default=None, repr=False)


def traits(text: str, vector: Vector | None) -> Traits:
    """What of a text is compared."""
    words = tuple(_words(text))
    return Traits(
        text=text, tokens=frozenset(words), phrases=frozenset(pairwise(words)), vector=vector
    )


def alike(one: Traits, other: Traits) -> float:
    """How similar two requests are, 0 to 1; 1 for the same text."""
    if one.text == other.text:
        return 1.0
    words = TOKENS * _shared(one.tokens, other.tokens)
    words += PHRASES * _shared(one.phrases, other.phrases)
    if one.vector is None or other.vector is None or one.vector.shape != other.vector.shape:
        return words / (TOKENS + PHRASES)
    cosine = float(np.dot(one.vector, other.vector))
    intent = min(max(cosine, 0.0), 1.0) if math.isfinite(cosine) else 0.0
    return words + INTENT * intent


def _shared(some: frozenset[Hashable], others: frozenset[Hashable]) -> float:
    """The share that two sets have in common, by Dice; two empty ones have nothing to say."""
    together = len(some) + len(others)
    return 2 * len(some & others) / together if together else 0.0


def _words(text: str) -> Iterator[str]:
    from stemma.policies.tokens import tokens  # noqa: PLC0415 - its tables take long to load

    for token in tokens(unicodedata.normalize("NFKC", text)):
        if token.kind == "han":
            yield from token.low
        elif token.kind != "mark":
            yield token.low
