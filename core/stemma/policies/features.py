"""What tells two texts apart, or ties them, as a few numbers: what a verifier weighs. Pure.

Where a guard refuses, a feature only counts: the verifier learns from examples how much each says.
All are 0 where the texts agree, except `nearness`, so that without any difference the nearness
alone speaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from stemma.policies.guards import FEW, GUARDS, small_words
from stemma.policies.nearness import nearness
from stemma.policies.symbols import STEM, Symbols, symbols
from stemma.policies.vocabulary import opposites

__all__ = ["features"]

_STRANGEST = 1.5
"""Where `strange`, the distance by each exchanged word, ends: it no longer matters how far."""

_COUNTED = frozenset({"many", "much", "age", "degree", "polar"})
"""Kinds of questions that a mere 'which' does not ask for."""


def features(asked: str, stored: str, similarity: float) -> tuple[float, ...]:
    """The values of `stemma.policies.verifier.FEATURES` for two texts.

    Args:
        asked: What is asked now.
        stored: What the candidate was asked with.
        similarity: Their cosine similarity, −1 to 1.
    """
    one, other = symbols(asked), symbols(stored)
    ours, theirs = _apart(one, other), _apart(other, one)
    exchanged = min(len(ours), len(theirs))
    size = max(len(one.words), len(other.words), 1)
    numbers = _numbers(one, other)
    names = _both(one.names.difference(other.words), other.names.difference(one.words))
    kinds = {one.question, other.question}
    loose = "what" in kinds and not kinds & _COUNTED
    same = not ours and not theirs
    negated = (one.negations - other.negations) % 2 == 1
    differs = len(kinds) == 2 and not loose  # noqa: PLR2004 - two kinds
    alone = exchanged == 0
    only_names = one.names.issuperset(ours) and other.names.issuperset(theirs)
    return (
        nearness(similarity),
        float(numbers == 2),  # noqa: PLR2004 - both sides
        float(numbers == 1),
        float(one.units != other.units or one.quantities != other.quantities),
        float(negated and alone),
        float(negated and not alone),
        float(_opposite(one, other, ours, theirs)),
        float(differs and alone),
        float(differs and not alone),
        float(len(kinds) == 2 and loose),  # noqa: PLR2004
        float(names == 2 and only_names),  # noqa: PLR2004
        float(names == 2 and not only_names),  # noqa: PLR2004
        float(names == 1),
        float(_literals(one, other) or _literals(other, one)),
        float(same and bool(GUARDS["guard:order"](one, other))),
        float(small_words(one, other)),
        float(exchanged > 0 and size <= FEW),
        min((1.0 - similarity) * size / exchanged, _STRANGEST) if exchanged else 0.0,
        float(one.script != "latin" and not same),
        float(one.script != other.script),
    )


def _numbers(one: Symbols, other: Symbols) -> int:
    """How many of the two have a number of their own, or one that the other has less often."""
    sides = _both(
        one.numbers - other.numbers - other.loose_numbers,
        other.numbers - one.numbers - one.loose_numbers,
    )
    if sides != 1:
        return sides
    # A number that stands twice hides an exchange: '2 users' / '3 users' of a 'two-factor login'.
    ours, theirs = _counted(one), _counted(other)
    return max(sides, _both(ours - theirs, theirs - ours))


def _counted(text: Symbols) -> Counter[str]:
    return Counter(word for word in text.words if word[:1] == "#" and word[1:] in text.numbers)


def _both(ours: Collection[str], theirs: Collection[str]) -> int:
    """How many of two sides have something of their own."""
    return bool(ours) + bool(theirs)


def _apart(one: Symbols, other: Symbols) -> frozenset[str]:
    """The words that the other text has in no form."""
    apart = one.content - other.content
    stems = other.stems
    if not apart or not stems:
        return apart
    return frozenset(word for word in apart if not (len(word) > STEM and word[:STEM] in stems))


def _opposite(one: Symbols, other: Symbols, ours: frozenset[str], theirs: frozenset[str]) -> bool:
    return bool(
        opposites(ours, theirs)
        or opposites(one.function - other.function, other.function - one.function)
    )


def _literals(one: Symbols, other: Symbols) -> bool:
    return any(text not in other.text and text not in other.folded for text in one.literals)
