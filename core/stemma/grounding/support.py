"""How a sentence stands to the sources: what they lack of it, as a few numbers. Pure.

Words that the question has need no support: an answer that repeats it says nothing more by that,
and a longer answer is not less grounded for being longer. All values are shares or signs.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from stemma.grounding.sentences import sentences
from stemma.policies.symbols import STEM, Symbols, symbols
from stemma.policies.vocabulary import opposites

__all__ = ["FEATURES", "LOOKED_AT", "Claim", "Passage", "Sources", "claims", "features"]

FEATURES = (
    "similarity",
    "bare",
    "word_missing",
    "name_missing",
    "number_missing",
    "unit_missing",
    "literal_missing",
    "negated",
    "opposite",
    "scattered",
    "reworded",
)
"""The names, in the order in which `features` gives the values.

All but `similarity` speak against the sentence: `bare` that it has nothing of its own that a source
could have (yes, no, the question's words again); `…_missing` the share of its own words, names,
numbers, quantities and literals that no source has, words weighted by rarity; `negated` and
`opposite` that the passage which has most of it says it the other way round; `scattered` the share
of its words that this passage lacks and others have; `reworded` the share of its neighbouring
words, both of them in the sources, that stand together in no passage.
"""

LOOKED_AT = 8
"""With how many passages a sentence is compared by meaning: those that share most with it."""

_ASSENT = frozenset({"yes"})
"""Says nothing that could stand in a source; "no" and "not" are negations, and no words."""

_BRIEF = 4
"""A sentence with fewer words is read together with the question."""

_NO = re.compile(r"no\s*[,;:.!–—-]\s*(?=(?:\S+\s+){3})", re.IGNORECASE)
"""Answers the question, and denies nothing of what the sentence goes on to say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A sentence of a source.

    Args:
        place: Its place among all passages.
        source: Which source it is of, by its place.
        text: The sentence.
        symbols: What it says.
        beside: The pairs of content words that stand side by side in it.
    """

    place: int
    source: int
    text: str = field(repr=False)
    symbols: Symbols = field(repr=False)
    beside: frozenset[tuple[str, str]] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A sentence of an answer.

    Args:
        text: The sentence.
        stated: The same, after the question where it is short.
        symbols: What it says.
        asked: What the question says.
        own: Its content words that the question has not.
    """

    text: str = field(repr=False)
    stated: str = field(repr=False)
    symbols: Symbols = field(repr=False)
    asked: Symbols = field(repr=False)
    own: tuple[str, ...] = field(repr=False)


class Sources:
    """The sources, read once.

    Args:
        texts: The sources.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        cut = [(source, one) for source, text in enumerate(texts) for one in sentences(text)]
        self.passages = [_passage(place, *one) for place, one in enumerate(cut)]
        every = [one.symbols for one in self.passages]
        self._counts = Counter(word for one in every for word in {*one.content, *one.stems})
        self.numbers = frozenset().union(*(one.numbers | one.loose_numbers for one in every))
        self.quantities = frozenset().union(*(one.quantities for one in every))
        self._text = "\n".join(texts)
        self._folded = self._text.casefold()

    def have(self, word: str) -> bool:
        """Whether a word is in any source, in some form."""
        return word in self._counts or (len(word) > STEM and word[:STEM] in self._counts)

    def say(self, literal: str) -> bool:
        """Whether a literal is in any source as it is written, or case-folded."""
        return literal in self._text or literal in self._folded

    def rarity(self, word: str) -> float:
        """How much a word tells, 1 or more: the fewer passages have it, the more."""
        return 1.0 + math.log((1.0 + len(self.passages)) / (1.0 + self._counts[word]))

    def weight(self, words: Iterable[str]) -> float:
        """The sum of the words' rarities."""
        return math.fsum(self.rarity(word) for word in words)

    def best(self, claim: Claim) -> list[Passage]:
        """The passages that share most with a claim, the best first; its own words count double."""

        def shared(passage: Passage) -> float:
            held = self.weight(word for word in claim.own if _has(passage.symbols, word))
            numbers = len(claim.symbols.numbers & passage.symbols.numbers)
            asked = self.weight(claim.asked.content & passage.symbols.content)
            return 2.0 * (held + numbers) + asked

        return sorted(self.passages, key=shared, reverse=True)[:LOOKED_AT]


def claims(answer: str, question: str) -> list[Claim]:
    """What an answer claims, sentence by sentence."""
    asked = symbols(question)
    found = []
    for text in sentences(answer):
        said = symbols(text[no.end() :] if (no := _NO.match(text)) else text)
        own = (
            word
            for word in said.words
            if word[0] not in "#&" and word not in _ASSENT and not _has(asked, word)
        )
        stated = f"{question} {text}" if question and len(said.words) < _BRIEF else text
        found.append(
            Claim(
                text=text, stated=stated, symbols=said, asked=asked, own=tuple(dict.fromkeys(own))
            )
        )
    return found


def features(
    claim: Claim, sources: Sources, best: Passage, similarity: float = 0.0
) -> tuple[float, ...]:
    """The values of `FEATURES`, similarity −1 to 1 and the others 0 to 1.

    Args:
        claim: The sentence.
        sources: Where it should be from.
        best: The passage that shares most with it.
        similarity: The highest cosine similarity of `claim.stated` with a passage; 0 where it is
            not known.
    """
    said, asked, there = claim.symbols, claim.asked, best.symbols
    own = frozenset(claim.own)
    numbers = said.numbers - asked.numbers
    literals = said.literals - asked.literals
    quantities = said.quantities - asked.quantities
    held = frozenset(word for word in own if sources.have(word))
    near = frozenset(word for word in held if _has(there, word))
    same = said.content & there.content
    return (
        similarity,
        float(not own and not numbers and not literals),
        _share(sources.weight(own - held), sources.weight(own)),
        _share(len((said.names & own) - held), len(said.names & own)),
        _share(len(numbers - sources.numbers), len(numbers)),
        _share(len(quantities - sources.quantities), len(quantities)),
        _share(sum(not sources.say(one) for one in literals), len(literals)),
        float(bool(same) and (said.negations - there.negations) % 2 == 1),
        float(bool(same) and bool(opposites(said.content - same, there.content - same))),
        _share(sources.weight(held - near), sources.weight(held)),
        _reworded(held, claim, sources),
    )


def _passage(place: int, source: int, text: str) -> Passage:
    said = symbols(text)
    beside = frozenset(pairwise(said.words))
    return Passage(place=place, source=source, text=text, symbols=said, beside=beside)


def _has(text: Symbols, word: str) -> bool:
    return word in text.content or (len(word) > STEM and word[:STEM] in text.stems)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _reworded(held: frozenset[str], claim: Claim, sources: Sources) -> float:
    pairs = [pair for pair in pairwise(claim.symbols.words) if held.issuperset(pair)]
    apart = sum(not any(pair in one.beside for one in sources.passages) for pair in pairs)
    return _share(apart, len(pairs))
