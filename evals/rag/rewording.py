"""Surface rewordings of a question, by the rules of the positives of `hard_negatives`.

They change how a question is put, never what it asks. A rule that has nothing to change in a
question (no long word for a slip, nothing to contract) does not apply to it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

__all__ = ["RULES", "Rule", "reword"]

Rule = Callable[[str, random.Random], str]

_OPENINGS = frozenset(
    "a an are at can did do does has have how in is on the was were what when where which who "
    "why".split()
)
"""First words that lose their capital after an introduction; another one may be a name."""

_CONTRACTED = re.compile(r"^(What|Where|Who|When|How) is\b")
_STRAY = re.compile(r"\s+(?=\?$)")
_LONG = re.compile(r"\b[a-z]{6,}\b")


def _flat(question: str) -> str:
    """Without the mark at its end."""
    return question.rstrip(" ?")


def _after(introduction: str, question: str) -> str:
    first = question.split(maxsplit=1)[0] if question.strip() else ""
    if first.lower() in _OPENINGS:
        question = question[0].lower() + question[1:]
    return introduction + question


def _slip(question: str, lucky: random.Random) -> str:
    """Two neighbouring letters of a long word change places, its first and last two stay."""
    places = [
        place
        for word in _LONG.finditer(question)
        for place in range(word.start() + 1, word.end() - 2)
        if question[place] != question[place + 1]
    ]
    if not places:
        return question
    at = lucky.choice(places)
    return question[:at] + question[at + 1] + question[at] + question[at + 2 :]


RULES: Mapping[str, Rule] = {
    "polite": lambda question, _: _after("Could you please tell me: ", question),
    "prefix": lambda question, _: _after("Quick question - ", question),
    "suffix": lambda question, _: f"{_flat(question)}, please?",
    "context_noise": lambda question, _: (
        _after("Hi! I was reading about this and wondered: ", question) + " Thanks!"
    ),
    "contraction": lambda question, _: _CONTRACTED.sub(r"\1's", question),
    "lower_no_punctuation": lambda question, _: _flat(question).lower(),
    "shout": lambda question, _: _STRAY.sub("", question).upper(),
    "typo": _slip,
}
"""The rules, by the names of their kinds in `hard_negatives`."""


def reword(question: str, lucky: random.Random, *, rules: Sequence[str] = tuple(RULES)) -> str:
    """The question by one of the rules that apply to it, drawn evenly; itself if none does."""
    for rule in lucky.sample(list(rules), len(rules)):
        changed = RULES[rule](question, lucky)
        if changed != question:
            return changed
    return question
