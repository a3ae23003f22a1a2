"""Small marks and words that the similarity hardly sees: '>', '!=', 'must', 'his', 'Polish'."""

from __future__ import annotations

import re
from typing import NamedTuple

from stemma.policies.remembering import remembered
from stemma.policies.vocabulary import listed

__all__ = ["clash"]

_SIGN = re.compile(
    r"<=>|<>|<<|>>|=>|->|<-|[<>!=]==?|[<>=≤≥≠∧∨¬]|&&|\|\|?|\[\^"
    r"|(?<!\w)[~!](?=\w)|(?<=\w)\+\+|(?<=\w)--(?!\w)"
)
_SAME = {"≤": "<=", "≥": ">=", "≠": "!=", "<>": "!="}
_WORD = re.compile(r"[^\W\d_]+")
_NOT_FIRST = re.compile(r"(?<=[\w,;)\"'])\s+([^\W\d_]+)")

_MODALS = listed("must may should")
_OF_MODAL = {"mustn": "must", "shouldn": "should"}
_PERSONS = (
    ("my", "your"),
    ("mine", "yours"),
    ("he", "she"),
    ("his", "her"),
    ("his", "hers"),
    ("him", "her"),
    ("himself", "herself"),
)
_CAPITONYMS = listed("polish turkey china japan reading nice mobile job")
"""Words that mean something else with a capital; others are often typed without theirs."""


class _Marks(NamedTuple):
    """What of a text is compared here."""

    signs: frozenset[str]
    words: frozenset[str]
    capitals: frozenset[str]


def clash(one: str, other: str) -> str:
    """What kind of sign or small word tells two normalised texts apart; empty where none does."""
    ours, theirs = _marks(one), _marks(other)
    if ours.signs != theirs.signs:
        return "another sign of comparison or logic"
    modals = ours.words & _MODALS, theirs.words & _MODALS
    if len(modals[0]) == len(modals[1]) == 1 and modals[0] != modals[1]:
        return "another modal verb"
    here, there = ours.words - theirs.words, theirs.words - ours.words
    if any((a in here and b in there) or (b in here and a in there) for a, b in _PERSONS):
        return "another person"
    if any(word.swapcase() in theirs.capitals for word in ours.capitals - theirs.capitals):
        return "a word with a capital that makes it another one"
    return ""


@remembered(4_096)
def _marks(text: str) -> _Marks:
    """As `symbols`: those of short texts are remembered."""
    return _Marks(_signs(text), _words(text), _capitals(text))


def _signs(text: str) -> frozenset[str]:
    return frozenset(_SAME.get(sign, sign) for sign in _SIGN.findall(text))


def _words(text: str) -> frozenset[str]:
    words = _WORD.findall(text.casefold())
    return frozenset(_OF_MODAL.get(word, word) for word in words)


def _capitals(text: str) -> frozenset[str]:
    """The words inside a sentence whose capital counts: lower case as `polish`, else `POLISH`."""
    inside = [word for word in _NOT_FIRST.findall(text) if word.casefold() in _CAPITONYMS]
    return frozenset(word if word.islower() else word.upper() for word in inside)
