"""Guards: whether two texts, however near, ask for different things. Pure, and symmetric.

A guard refuses; it never vouches. What it cannot read it leaves to the similarity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from stemma.policies.signs import clash
from stemma.policies.symbols import Symbols, symbols
from stemma.policies.vocabulary import GENERIC, ROLES, canonical, listed, opposites

__all__ = ["FEW", "GUARDS", "UNGUARDED", "Guarded", "guard", "guarded", "small_words"]

DIRECTIONS = listed("to from into than before after over under against not without")
"""Roles whose exchange turns a question round, whatever else is said."""

SHARE = 0.25
"""Up to this share of differing content words, a difference is an edit and not a rewording."""

FEW = 5
"""Up to this many content words, a text says too little for the similarity to vouch for a word."""


UNGUARDED = 0.97
"""The least similarity of two texts of which one is in a language that the guards do not know."""

LONGEST = 10_000
"""Texts longer than this, in characters, are compared for equality only."""

_TYPO = 7
"""The least length of a word in which two exchanged letters count as a slip."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A refusal.

    Args:
        reason: One of the `guard:…` codes of `stemma.outcome.REASONS`.
        detail: The kind of difference, without any of the texts' words.
    """

    reason: str
    detail: str


def guard(asked: str, stored: str, similarity: float = 1.0) -> Guarded | None:
    """Why the stored question's answer must not answer this one, or `None` if no guard objects.

    Args:
        asked: What is asked now.
        stored: What was asked then.
        similarity: Theirs, −1 to 1; in a language that the guards do not know, nothing else speaks.
    """
    if asked == stored:
        return None
    if max(len(asked), len(stored)) > LONGEST:
        return Guarded("guard:word", f"texts of more than {LONGEST} characters must be equal")
    one, other = symbols(asked), symbols(stored)
    for reason, check in GUARDS.items():
        detail = check(one, other)
        if detail:
            return Guarded(reason, detail)
    if similarity < UNGUARDED and not (one.guarded and other.guarded):
        return Guarded("guard:language", f"there {UNGUARDED:g} is the least similarity")
    return None


def guarded(asked: str, stored: str) -> bool:
    """Whether both texts are in a language that the guards know."""
    return max(len(asked), len(stored)) <= LONGEST and (
        symbols(asked).guarded and symbols(stored).guarded
    )


def _numbers(one: Symbols, other: Symbols) -> str:
    ours = one.numbers - other.numbers - other.loose_numbers
    theirs = other.numbers - one.numbers - one.loose_numbers
    if ours or theirs:
        return _counts("number", len(ours), len(theirs))
    if (one.loose_numbers - other.loose_numbers - other.numbers) and (
        other.loose_numbers - one.loose_numbers - one.numbers
    ):
        return "another number word"
    return ""


def _units(one: Symbols, other: Symbols) -> str:
    if one.units != other.units:
        return _counts("unit", len(one.units - other.units), len(other.units - one.units))
    return "numbers and units are paired otherwise" if one.quantities != other.quantities else ""


def _negation(one: Symbols, other: Symbols) -> str:
    if one.negations == other.negations:
        return ""
    low, high = sorted((one.negations, other.negations))
    return f"{low} negating words against {high}"


def _antonyms(one: Symbols, other: Symbols) -> str:
    ours, theirs = _differing(one, other)
    pairs = opposites(ours, theirs) or opposites(
        one.function - other.function, other.function - one.function
    )
    return f"{pairs} pair{'s' if pairs != 1 else ''} of opposite words" if pairs else ""


def _names(one: Symbols, other: Symbols) -> str:
    ours, theirs = _missing(one, other), _missing(other, one)
    return _counts("name or literal", ours, theirs) if ours or theirs else ""


def _missing(one: Symbols, other: Symbols) -> int:
    names = one.names.difference(other.words)
    return sum(not any(name in literal for literal in other.literals) for name in names) + sum(
        literal not in other.text and literal not in other.folded for literal in one.literals
    )


def _question(one: Symbols, other: Symbols) -> str:
    if one.question == other.question:
        return ""
    low, high = sorted((one.question, other.question))
    return f"'{low}' against '{high}'"


def _order(one: Symbols, other: Symbols) -> str:
    if _reversed(one, other) or _exchanged(one, other, DIRECTIONS):
        return "two words have exchanged their parts"
    if sorted(one.words) != sorted(other.words):
        return ""
    if _exchanged(one, other, ROLES):
        return "two words have exchanged their parts"
    passive = _by(one, other) != _by(other, one)
    if one.words == other.words:
        return "the same words, once with 'by'" if passive else ""
    return "" if passive or _moved(one, other) else "the same words in another order"


def _by(one: Symbols, other: Symbols) -> bool:
    """Whether a word stands behind 'by' here, and behind no such word there."""
    governed = {word for _, word in other.roles}
    return any(role == "by" and word not in governed for role, word in one.roles)


def _reversed(one: Symbols, other: Symbols) -> bool:
    """Whether a word stands behind 'to' in one text and behind 'from' in the other."""
    theirs = other.roles - one.roles
    return any((_REVERSED.get(role), word) in theirs for role, word in one.roles - other.roles)


def _exchanged(one: Symbols, other: Symbols, roles: frozenset[str]) -> bool:
    """Whether a role and the places of two words were exchanged: 'X to Y' and 'Y to X'."""
    here = {word: at for at, word in enumerate(one.words)}
    there = {word: at for at, word in enumerate(other.words)}
    ours = [(r, w) for r, w in one.roles - other.roles if r in roles and w in there]
    theirs = [(r, w) for r, w in other.roles - one.roles if r in roles and w in here]
    return any(
        mine == their and (here[word] < here[now]) != (there[word] < there[now])
        for mine, word in ours
        for their, now in theirs
        if word != now
    )


def _moved(one: Symbols, other: Symbols) -> bool:
    """Whether one block moved, and a preposition says which: 'a list in Python', 'a Python list'.

    In Chinese the object may come first without one.
    """
    ours, theirs = list(one.words), list(other.words)
    while ours and ours[-1] == theirs[-1]:
        ours.pop(), theirs.pop()
    while ours[0] == theirs[0]:
        del ours[0], theirs[0]
    led = {word for role, word in one.roles | other.roles if role in _SOFT}
    return (one.script == "han" or not led.isdisjoint(ours)) and any(
        ours[at:] + ours[:at] == theirs for at in range(1, len(ours))
    )


_SOFT = listed("of in for on at with from via")
_REVERSED = {"to": "from", "into": "from", "from": "to", "before": "after", "after": "before"}


def _words(one: Symbols, other: Symbols) -> str:
    if one.script != other.script:
        return "another script"
    marked = clash(one.text, other.text)
    if marked:
        return marked
    ours, theirs = _differing(one, other)
    if ours.isdisjoint(_GENERIC) or theirs.isdisjoint(_GENERIC):
        ours, theirs = ours - _GENERIC, theirs - _GENERIC
    ours |= (one.function - other.function) & _WEIGHTY
    theirs |= (other.function - one.function) & _WEIGHTY
    size = max(len(one.words), len(other.words))
    differing = max(len(ours), len(theirs))
    known = one.guarded and other.guarded and one.script == "latin"
    vouched = known and size > FEW and differing > SHARE * size
    if differing and not vouched:
        if len(ours) == len(theirs) == 1 and _misspelt(*ours, *theirs):
            return ""
        return _counts("content word", len(ours), len(theirs))
    return "another tense" if {_past(one), _past(other)} == {True, False} else ""


def small_words(one: Symbols, other: Symbols) -> bool:
    """Whether the tense of the copula differs, or a function word that carries meaning."""
    return not _WEIGHTY.isdisjoint(one.function ^ other.function) or (
        {_past(one), _past(other)} == {True, False}
    )


def _past(text: Symbols) -> bool | None:
    """Whether the copula is in the past; `None` where there is none, or both."""
    past = not text.function.isdisjoint(_WAS)
    return past if past != (not text.function.isdisjoint(_IS)) else None


def _misspelt(one: str, other: str) -> bool:
    """Whether two neighbouring letters inside a long word have changed places."""
    if len(one) != len(other) or len(one) < _TYPO or one[0] != other[0]:
        return False
    at = next(at for at in range(len(one)) if one[at] != other[at])
    return one[:at] + one[at + 1 : at + 2] + one[at] + one[at + 2 :] == other


_WAS = frozenset(map(canonical, ("was", "were")))
_IS = frozenset(map(canonical, ("is", "are", "am")))
_WEIGHTY = frozenset(
    map(canonical, listed("before after off out under over against until since up down"))
)
_GENERIC = frozenset(map(canonical, GENERIC))


def _differing(one: Symbols, other: Symbols) -> tuple[frozenset[str], frozenset[str]]:
    ours, theirs = Counter(one.words), Counter(other.words)
    return (
        frozenset(word for word in ours if word not in theirs and word[0] != "#"),
        frozenset(word for word in theirs if word not in ours and word[0] != "#"),
    )


def _counts(what: str, ours: int, theirs: int) -> str:
    low, high = sorted((ours, theirs))
    return f"{what}s on one side only: {low} and {high}"


GUARDS: dict[str, Callable[[Symbols, Symbols], str]] = {
    "guard:number": _numbers,
    "guard:unit": _units,
    "guard:negation": _negation,
    "guard:antonym": _antonyms,
    "guard:question": _question,
    "guard:name": _names,
    "guard:order": _order,
    "guard:word": _words,
}
"""The guards in the order in which they are asked, by their reason code."""
