"""What kind of thing a text asks for: a person, a time, a reason, a yes or no."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from stemma.policies.vocabulary import AUXILIARIES, DETERMINERS, FILLERS, STOP

__all__ = ["Kind", "asked_for"]

Kind = Literal[
    "what", "who", "when", "where", "why", "how", "many", "much", "age", "degree", "polar"
]
"""`what` is everything that is named or told: 'what', 'which', and requests without such a word."""

_WH: dict[str, Kind] = {
    "who": "who",
    "whom": "who",
    "whose": "who",
    "when": "when",
    "where": "where",
    "why": "why",
    "how": "how",
    "what": "what",
    "which": "what",
    "what's": "what",
    "how's": "how",
    "who's": "who",
    "where's": "where",
    "why's": "why",
    "when's": "when",
}
_NOUNS: dict[str, Kind] = {
    "person": "who",
    "author": "who",
    "writer": "who",
    "actor": "who",
    "actress": "who",
    "singer": "who",
    "artist": "who",
    "year": "when",
    "date": "when",
    "time": "when",
    "day": "when",
    "place": "where",
    "location": "where",
    "reason": "why",
    "cause": "why",
    "number": "many",
    "way": "how",
    "steps": "how",
    "process": "how",
    "procedure": "how",
    "method": "how",
    "age": "age",
    "price": "much",
    "cost": "much",
}
_KEPT = frozenset(["author", "writer", "actor", "actress", "singer", "artist"])
_HOW: dict[str, Kind] = {"many": "many", "much": "much", "old": "age", "come": "why"}
_MANNER = STOP | {"to", "should", "about"}
_SPAN = 4
_CLAUSE = frozenset(".,;:?!")
_HAN_PATTERNS: tuple[tuple[Kind, str], ...] = (
    ("why", "为什么|为何|为啥|怎么会|什么原因"),
    ("much", "多少钱|什么价|价格是多少"),
    ("when", "什么时候|何时|几点|哪天|哪年|哪一年|什么时间|多久"),
    ("where", "哪里|哪儿|何处|何地|在哪|什么地方"),
    ("many", "多少|几[个天次人条件台本]"),
    ("age", "多大|几岁"),
    ("degree", "多[长远高重快]"),
    ("who", "谁"),
    ("what", "怎么样"),
    ("how", "怎么|如何|怎样|怎么办"),
    ("what", "什么|哪|啥"),
    ("polar", "吗|是否|能不能|可不可以|有没有|是不是|能否|会不会|行不行|对不对"),
)
_HAN: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern)) for kind, pattern in _HAN_PATTERNS
)


def asked_for(words: Sequence[str], text: str) -> tuple[Kind, frozenset[int]]:
    """The kind of thing asked for, and the positions of words that only say so.

    Args:
        words: The case-folded tokens of the text, marks among them.
        text: The text itself.
    """
    if not text.isascii():
        for kind, pattern in _HAN:
            if pattern.search(text):
                return kind, frozenset()
    first = _first(words)
    if first is None:
        return ("polar" if _polar(words) else _by_noun(words)), frozenset()
    if first > 0 and _polar(words[:first]):
        return "polar", frozenset()
    if words[first] == "how":
        return _how(words, first)
    kind = _WH[words[first]]
    return _what(words, first) if kind == "what" else (kind, frozenset())


def _first(words: Sequence[str]) -> int | None:
    """The question word that asks; not a relative pronoun in a statement."""
    found = [at for at, word in enumerate(words) if word in _WH]
    if not found:
        return None
    first = found[0]
    if words[first] == "when" and first == 0 and len(found) > 1 and "," in words[: found[1]]:
        first = found[1]
    leads = all(word in STOP or word in FILLERS or word in _CLAUSE for word in words[:first])
    return first if leads or "?" in words[first:] else None


def _polar(words: Sequence[str]) -> bool:
    """Whether a clause starts like a yes-no question, and not like a request ('can you …')."""
    starts = True
    for at, word in enumerate(words):
        if starts and word in AUXILIARIES:
            rest = [one for one in words[at + 1 : at + 4] if one != "please"]
            asks_for = word in {"can", "could", "would", "will", "may", "do"} and rest[:1] == [
                "you"
            ]
            if asks_for and word == "do":
                asks_for = rest[1:2] == ["know"]
            if asks_for and ":" in words[at:]:  # 'could you tell me: did she leave?'
                return _polar(words[words.index(":", at) + 1 :])
            way = set(words[at + 1 : at + 5]) & {"way"}
            return not (asks_for or way or (word in {"do", "don't"} and rest[:1] == ["not"]))
        starts = (word in _CLAUSE and "?" in words[at:]) or (
            starts and word in {"and", "but", "so", "or", "please"}
        )
    return False


def _by_noun(words: Sequence[str]) -> Kind:
    """The kind of a text without a question word: 'show me the steps for …' asks how."""
    for word in words[: 2 * _SPAN]:
        if word in {"steps", "way"}:
            return "how"
        if word not in STOP and word not in FILLERS:
            break
    return "what"


def _how(words: Sequence[str], at: int) -> tuple[Kind, frozenset[int]]:
    following = words[at + 1] if at + 1 < len(words) else ""
    if following in _HOW:
        return _HOW[following], frozenset([at + 1])
    measured = at + 2 < len(words) and words[at + 2] in AUXILIARIES | {"of", "away"}
    return ("degree" if measured and following not in _MANNER else "how"), frozenset()


def _what(words: Sequence[str], at: int) -> tuple[Kind, frozenset[int]]:
    """'What year' asks when, 'what is the way' asks how: the noun right after tells."""
    for place in range(at + 1, min(at + 1 + _SPAN, len(words))):
        word = words[place]
        if word in _NOUNS:
            kind = _NOUNS[word]
            if kind == "when" and place != at + 1:
                return "what", frozenset()
            return kind, frozenset() if word in _KEPT else frozenset([place])
        if word not in AUXILIARIES and word not in DETERMINERS and word != "s":
            break
    return "what", frozenset()
