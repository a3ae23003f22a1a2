"""Regular expressions that others write, bounded before they are used.

Python's `re` cannot be stopped once it searches. So what makes a search slow is refused when the
expression is given: repeats inside repeats, which are exponential, and neighbouring repeats without
an end that can take the same characters, which are a power of the length. What is left costs at
most the square of the length, and lengths are bounded by who searches.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from stemma.errors import UsageError

__all__ = ["bounded"]

WAYS = 1_000
"""In how many ways the repeats of one expression may share out the same characters, at most."""

ENDLESS = 10**9
"""Stands for the ways of a repeat without an end."""

_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")

_CHARACTERS = frozenset(map(chr, range(9, 127))) | frozenset("é你。")
"""What two repeats may both take is looked for among these."""

_PLAIN = ("What is the capital of France?", "wie spät ist es in Rom", "法国的首都是哪里？")

_CLASSES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}

Characters = frozenset[str]
_parser: Any = importlib.import_module("re._parser")


def bounded(name: str, given: str | re.Pattern[str]) -> re.Pattern[str]:
    """The expression, compiled, if a search with it is bounded and it cannot match just anything.

    Args:
        name: What it is called, for errors.
        given: The expression, or one that is compiled.

    Raises:
        UsageError: It is none, it matches the empty text or most of any text, or it could take
            for ever.
    """
    try:
        found = re.compile(given) if isinstance(given, str) else given
        read = _parser.parse(found.pattern, found.flags)
    except (re.error, AttributeError, TypeError, RecursionError, OverflowError) as error:
        raise UsageError(f"the pattern {name!r} is no regular expression: {error}") from error
    if not isinstance(found, re.Pattern) or not isinstance(found.pattern, str):
        raise UsageError(f"the pattern {name!r} must be a regular expression for texts")
    _Reading(name).sequence(read)
    _refuse_anything(name, found)
    return found


def _refuse_anything(name: str, found: re.Pattern[str]) -> None:
    if found.search("") is not None:
        raise UsageError(f"the pattern {name!r} matches the empty text; say what it must hold")
    for text in _PLAIN:
        taken = sum(len(match.group()) for match in found.finditer(text))
        if 2 * taken > len(text):
            raise UsageError(
                f"the pattern {name!r} takes most of any text, such as {text!r}; "
                "name the part that does not shape the answer"
            )


class _Live(NamedTuple):
    """A repeat from which what comes next could take characters, and in how many ways."""

    taken: Characters
    ways: int


class _Reading:
    """One expression, read from left to right.

    Args:
        name: What it is called.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._live: list[_Live] = []
        self._ways = 1

    def sequence(self, items: Iterable[tuple[Any, Any]]) -> None:
        """Read some items, one after the other."""
        for operation, about in items:
            kind = str(operation)
            one = _taken(kind, about)
            if one is not None:
                self._live = [live for live in self._live if live.taken & one]
            elif kind in _REPEATS:
                self._repeat(*about)
            elif kind == "BRANCH":
                self._branch(about[1])
            else:
                for inner in _inside(kind, about):
                    self.sequence(inner)

    def _branch(self, branches: Sequence[Any]) -> None:
        before, ways = self._live, self._ways
        after: list[_Live] = []
        most = ways
        for branch in branches:
            self._live, self._ways = before, ways
            self.sequence(branch)
            after, most = _joined(after, self._live), max(most, self._ways)
        self._live, self._ways = after, most

    def _repeat(self, least: int, most: int, body: Any) -> None:
        within = _ways(body)
        if most > 1 and within > 1:
            self._spread(within ** min(most, 64), "a repeat inside a repeat")
        if least == most:
            self.sequence(body)
            return
        before = self._live
        taken = _all_taken(body)
        own = most - least + 1 if most <= WAYS else ENDLESS
        shared = max((live.ways for live in before if live.taken & taken), default=1)
        if shared > 1:
            self._spread(min(own, shared), "two repeats that can take the same characters")
        if most == 1:
            self.sequence(body)
        self._live = [*_joined(before, self._live), _Live(taken, own)]

    def _spread(self, ways: int, what: str) -> None:
        self._ways *= ways
        if self._ways > WAYS:
            raise UsageError(
                f"the pattern {self._name!r} has {what}, so a search could take for ever; "
                "give the repeats ends, such as {0,9}, or characters that they do not share"
            )


def _joined(some: list[_Live], more: list[_Live]) -> list[_Live]:
    return [*some, *(one for one in more if not any(one is other for other in some))]


def _taken(kind: str, about: Any) -> Characters | None:
    """The characters that an item for one character takes; `None` for another kind of item."""
    if kind == "LITERAL":
        return _either_case({chr(about)})
    if kind == "ANY":
        return _CHARACTERS
    if kind == "NOT_LITERAL":
        return _CHARACTERS - {chr(about)}
    if kind != "IN":
        return None
    taken: set[str] = set()
    for each, held in about:
        if str(each) == "LITERAL":
            taken.add(chr(held))
        elif str(each) == "RANGE":
            taken.update(one for one in _CHARACTERS if held[0] <= ord(one) <= held[1])
            taken.add(chr(held[0]))
        elif str(each) == "CATEGORY":
            is_one = re.compile(_CLASSES.get(str(held), r"[\s\S]")).match
            taken.update(one for one in _CHARACTERS if is_one(one))
    return _CHARACTERS - taken if str(about[0][0]) == "NEGATE" else _either_case(taken)


def _either_case(taken: set[str]) -> Characters:
    return frozenset(taken) | {one.swapcase() for one in taken}


def _inside(kind: str, about: Any) -> tuple[Any, ...]:
    """What an item holds that is read as a sequence."""
    if kind in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        return (about[-1],)
    if kind == "ATOMIC_GROUP":
        return (about,)
    if kind == "POSSESSIVE_REPEAT" or kind in _REPEATS:
        return (about[2],)
    if kind == "GROUPREF_EXISTS":
        return tuple(one for one in about[1:] if one is not None)
    return tuple(about[1]) if kind == "BRANCH" else ()


def _ways(items: Iterable[tuple[Any, Any]]) -> int:
    """In how many ways items can match, `ENDLESS` at most."""
    ways = 1
    for operation, about in items:
        kind = str(operation)
        inner = [_ways(held) for held in _inside(kind, about)]
        if kind in _REPEATS:
            least, most, _ = about
            own = most - least + 1 if most <= WAYS else ENDLESS
            ways *= own if inner[0] == 1 else min(own * inner[0] ** min(most, 64), ENDLESS)
        else:
            ways *= sum(inner) if kind in ("BRANCH", "GROUPREF_EXISTS") else math.prod(inner)
        ways = min(ways, ENDLESS)
    return ways


def _all_taken(items: Iterable[tuple[Any, Any]]) -> Characters:
    """All characters that the items can take."""
    taken: Characters = frozenset()
    for operation, about in items:
        one = _taken(str(operation), about)
        taken |= one if one is not None else frozenset()
        for inner in _inside(str(operation), about):
            taken |= _all_taken(inner)
    return taken
