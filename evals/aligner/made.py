"""Pairs for training the aligner, made out of questions that no figure is reported on.

Both sides of a label are made the same way, a word or two exchanged, and half of both are then
reworded by rule: how much was changed says nothing, only what was put for what.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evals.aligner.wordnet import Word, WordNet
from evals.quality.texts import PAIRS, Pair, contrasts, pairs, seen, stream
from evals.rag.rewording import reword
from evals.rag.texts import rows
from stemma.policies.vocabulary import STOP

__all__ = ["made", "questions", "spoilt"]

LONGEST = 220
"""Characters; longer questions are left out, as training looks at all tokens of a pair."""

_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w.-]*(?: [A-Z][\w.-]*)*")
_NUMBER = re.compile(r"\b\d+\b")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|should|would|will|do|does|did)\b(?! not\b|n't)"
)
_FRONTS: Sequence[tuple[re.Pattern[str], Sequence[str]]] = tuple(
    (re.compile(front, re.IGNORECASE), others)
    for front, others in (
        (
            r"^(how do i|how can i|how to|how do you|what is the way to|what's the best way to)\b",
            ("How do I", "How can I", "How to", "What is the way to", "Tell me how to", "Steps to"),
        ),
        (
            r"^(what is|what's|what are|what was|what were|tell me)\b(?= the\b)",
            ("What is", "What's", "Tell me", "I want to know", "Could you tell me", "Name"),
        ),
        (
            r"^(can i|may i|am i able to|is it possible to)\b",
            ("Can I", "May I", "Am I able to", "Is it possible to", "Am I allowed to"),
        ),
        (
            r"^(can you|could you|please|would you)\b(?= (?:please )?[a-z]+ )",
            ("Can you", "Could you", "Please", "I'd like you to", "I need you to", "Would you"),
        ),
        (
            r"^(i want to|i need to|i would like to|i'd like to|help me)\b",
            ("I want to", "I need to", "I would like to", "Help me", "Let me", "How do I"),
        ),
    )
)
_OF = re.compile(r"\bthe ([a-z]+) of ((?:the )?[A-Za-z]+)\b(?=[?.,]|$)")
_NOUN = re.compile(r"\b(?:the|a|my|new)\b(?= [a-z]{3,})")
_LONG = re.compile(r"\b[a-z]{5,}\b")
_STEPS = (-10, -3, -2, -1, 1, 2, 3, 10)
_SMALL = re.compile(r"\b(the|a|an|please|my|of|is|are|do|does|did|was|were) ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Supply:
    """What is put in the place of words, and the chance that says which."""

    wordnet: WordNet
    usual: Mapping[str, Sequence[str]]
    names: Sequence[str]
    lucky: random.Random


Change = Callable[[str, _Supply], str]
"""Gives the text as it was where it finds nothing to change."""


def questions() -> list[str]:
    """English questions and requests of several sources, without any that figures are about."""
    reported = {text for name in PAIRS for pair in pairs(name) for text in (pair.one, pair.other)}
    reported |= {text for pair in contrasts() for text in (pair.one, pair.other)}
    reported |= {request.text for request in stream("zipf")}
    found = [
        *(row["question"] for row in rows("multihop_hotpot", "questions.jsonl")),
        *(
            row["text"]
            for row in rows("retrieval_xquad_en", "queries.jsonl")
            if not row["answerable"]
        ),
        *(
            row["messages"][0]["content"]
            for row in rows("prompts_oasst", "prompts.jsonl")
            if row["lang"] == "en"
        ),
        *(
            one.text
            for name in ("clinc150", "banking77")
            for one in stream(name)
            if not seen(one.group)
        ),
    ]
    return sorted(
        {one for one in found if len(one) <= LONGEST and one.isascii() and one not in reported}
    )


def made(number: int, wordnet: WordNet, seed: int) -> list[Pair]:
    """So many pairs, about as many with the same answer as with others."""
    supply = _supplied(wordnet, seed)
    lucky, asked = supply.lucky, questions()
    found: dict[tuple[str, str], Pair] = {}
    while len(found) < number:
        one = lucky.choice(asked)
        same = lucky.random() < 0.5
        other = _some(one, _ALIKE, supply, lucky.choice((1, 2, 3) if same else (0, 0, 1, 2)))
        if not same:
            apart = _some(other, _APART, supply, 1)
            if apart == other:
                continue
            other = apart
        if other != one:
            found[one, other] = Pair(one=one, other=other, same=same, part=one, kind="made")
    return list(found.values())


def spoilt(same: Sequence[Pair], wordnet: WordNet, seed: int) -> list[Pair]:
    """Pairs with other answers, out of pairs with the same: one side of each is changed.

    Real paraphrases come from few sources, some of which know no other answers: without these the
    source would give the label away.
    """
    supply = _supplied(wordnet, seed)
    found = []
    for pair in same:
        kept, changed = supply.lucky.sample((pair.one, pair.other), 2)
        for stored in (changed, kept):
            other = _some(stored, _APART, supply, 1)
            if other != stored:
                found.append(Pair(one=kept, other=other, same=False, part=pair.part, kind="spoilt"))
    return found


def _supplied(wordnet: WordNet, seed: int) -> _Supply:
    names = sorted({name for one in questions() for name in _NAME.findall(one)})
    usual = {part: wordnet.usual(part) for part in "nva"}
    return _Supply(wordnet, usual, names, random.Random(seed))


def _some(text: str, changes: Sequence[Change], supply: _Supply, number: int) -> str:
    """The text after so many changes, each of another kind, as far as they find something."""
    for change in supply.lucky.sample(changes, len(changes)):
        if number == 0:
            break
        changed = change(text, supply)
        number -= changed != text
        text = changed
    return text


def _exchanged(text: str, supply: _Supply, put: Callable[[Word], Sequence[str]]) -> str:
    """One word that WordNet is sure of, for one of those that `put` gives."""
    places = list(_WORD.finditer(text))
    for place in supply.lucky.sample(places, len(places)):
        own = place.group()
        for lemma, ending in ((own, ""), (own.removesuffix("s"), "s")):
            word = (
                supply.wordnet.word(lemma)
                if lemma.islower() and len(lemma) > 2 and lemma not in STOP
                else None
            )
            others = put(word) if word is not None else ()
            if others and (not ending or (lemma != own and word is not None and word.part != "a")):
                new = supply.lucky.choice(others).replace("_", " ") + ending
                return text[: place.start()] + new + text[place.end() :]
    return text


def _synonym(text: str, supply: _Supply) -> str:
    return _exchanged(text, supply, lambda word: word.same)


def _opposite(text: str, supply: _Supply) -> str:
    return _exchanged(text, supply, lambda word: word.opposite)


def _alike(text: str, supply: _Supply) -> str:
    return _exchanged(text, supply, lambda word: word.alike)


def _any_word(text: str, supply: _Supply) -> str:
    return _exchanged(text, supply, lambda word: supply.usual[word.part])


def _front(text: str, supply: _Supply) -> str:
    for front, others in _FRONTS:
        found = front.match(text)
        if found:
            return supply.lucky.choice(others) + text[found.end() :]
    return text


def _owned(text: str, _: _Supply) -> str:
    """'the price of gold' as 'gold's price'."""
    return _OF.sub(lambda found: f"{found[2]}'s {found[1]}", text, count=1)


def _terse(text: str, _: _Supply) -> str:
    return _SMALL.sub("", text)


def _reworded(text: str, supply: _Supply) -> str:
    return reword(text, supply.lucky)


def _name(text: str, supply: _Supply) -> str:
    return _at_one(_NAME, text, supply, lambda _: supply.lucky.choice(supply.names))


def _number(text: str, supply: _Supply) -> str:
    return _at_one(
        _NUMBER, text, supply, lambda own: str(max(0, int(own) + supply.lucky.choice(_STEPS)))
    )


def _negated(text: str, supply: _Supply) -> str:
    return _at_one(_AUXILIARY, text, supply, lambda own: own + " not")


def _narrowed(text: str, supply: _Supply) -> str:
    """With an adjective before a noun."""
    return _at_one(
        _NOUN, text, supply, lambda own: f"{own} {supply.lucky.choice(supply.usual['a'])}"
    )


def _turned(text: str, supply: _Supply) -> str:
    """Two names, or two longer words, in each other's place."""
    for what in (_NAME, _LONG):
        places = list(what.finditer(text))
        if len(places) > 1:
            first, last = sorted(supply.lucky.sample(places, 2), key=lambda one: one.start())
            between = text[first.end() : last.start()]
            return "".join(
                (text[: first.start()], last.group(), between, first.group(), text[last.end() :])
            )
    return text


def _left_out(text: str, supply: _Supply) -> str:
    """Without one of its names or longer words."""
    what = _NAME if _NAME.search(text) else _LONG
    return " ".join(_at_one(what, text, supply, lambda _: "").split())


def _at_one(what: re.Pattern[str], text: str, supply: _Supply, put: Callable[[str], str]) -> str:
    places = list(what.finditer(text))
    if not places:
        return text
    place = supply.lucky.choice(places)
    return text[: place.start()] + put(place.group()) + text[place.end() :]


_ALIKE: Sequence[Change] = (_synonym, _synonym, _front, _owned, _terse, _reworded)
_APART: Sequence[Change] = (
    _alike,
    _alike,
    _alike,
    _any_word,
    _opposite,
    _opposite,
    _name,
    _number,
    _negated,
    _narrowed,
    _turned,
    _left_out,
)
