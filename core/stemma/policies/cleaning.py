"""Cleaning: what changes in a prompt from call to call and does not shape the answer. Pure.

What is left out of a prompt's key and focus is told to nobody but the cache: the model is called
with the prompt as it is.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from stemma.errors import UsageError
from stemma.policies.patterns import bounded
from stemma.request import LeftOut

__all__ = ["DETECTED", "LINE", "Cleaning", "Spans", "Sweep", "checked"]

LINE = 4_000
"""Lines longer than this, in characters, are left as they are: a search costs up to its square."""

KEPT = 16
"""How many texts of one name are kept, to be shown."""

LONGEST = 200
"""How much of each is kept, in characters."""

_DEPTH = 60
_SYSTEM = ("system", "developer")

Spans = Callable[[str], Iterable[tuple[int, int]]]
"""Says which parts of a line are volatile: pairs of a start and an end."""

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_CLOCK = (
    r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?: ?[ap]\.?m\b\.?)?"
    r"(?: ?(?:z|utc|gmt)\b| ?[+-]\d{2}:?\d{2})?"
)
_DAY = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH},? \d{{4}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}})"
)
_MOMENT = rf"(?:(?:{_WEEKDAY},? )?{_DAY}(?:(?:,| at|t)? ?{_CLOCK})?|{_WEEKDAY}|{_CLOCK})"
_IS = r" ?(?:is|:|=|：) ?"
_ABOUT = r"(?:request|trace|span|correlation|session|conversation|message|run)"

DETECTED: Mapping[str, str] = MappingProxyType(
    {
        "today": rf"\b(?:today(?:['’]s date)?|(?:the )?current (?:date|day)(?: and time)?"
        rf"|the date(?: today)?){_IS}{_MOMENT}(?!\w)\.?"
        r"|(?:今天是|(?:当前|今天的?)日期(?:是|为|：|:)) ?"
        r"\d{4}[年/.-] ?\d{1,2}[月/.-] ?\d{1,2}日?。?",
        "time": rf"\b(?:the )?(?:current|local) time{_IS}{_MOMENT}(?!\w)\.?"
        rf"|(?:现在|当前)(?:时间)?(?:是|为|：|:) ?{_CLOCK}",
        "timestamp": rf"\b(?:timestamp|generated at|sent at){_IS}(?:{_MOMENT}|\d{{10,19}})(?!\w)",
        "request_id": rf"\b(?:x-)?{_ABOUT}[-_ ]?id ?[:=] ?(?=[\w.:-]{{0,40}}\d)[\w.:-]{{4,128}}",
        "trace_header": r"^(?:traceparent|tracestate|b3|x-b3-\w{1,20}|x-amzn-trace-id"
        r"|x-cloud-trace-context) ?[:=] ?\S.{0,512}$",
        "uuid": r"^\W{0,3}(?:(?:uu|gu)?id ?[:=] ?)?\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
        r"\b\W{0,3}$",
    }
)
"""The built-in rules, by name. Each wants a label beside the value, or the line for itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleaning:
    """Which parts of prompts do not shape the answer.

    They are left out of key and focus, so that two prompts which differ in nothing else are one.
    The model still gets each prompt as it is. Everything is looked for within a line, and lines of
    more than `LINE` characters are left as they are.

    Args:
        patterns: Regular expressions by name. They count in every turn, the question included.
        functions: Functions by name, which give the spans of what is volatile in a line. One that
            raises leaves nothing out.
        detect: Whether the built-in rules (`DETECTED`) are applied as well: to system messages
            alone, since the same words in a question may be what it asks about. Leave it off where
            answers depend on the date, the time or an id that the system message names.

    Raises:
        UsageError: A name is empty, given twice or a built-in rule's; a pattern is none, matches
            nearly everything, or could take for ever (see `stemma.policies.patterns`).
    """

    patterns: Mapping[str, str | re.Pattern[str]] = field(default_factory=dict)
    functions: Mapping[str, Spans] = field(default_factory=dict)
    detect: bool = False
    _rules: tuple[tuple[str, Spans], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.detect, bool):
            raise UsageError(f"detect must be True or False, not {self.detect!r}")
        for given in (self.patterns, self.functions):
            if not isinstance(given, Mapping):
                raise UsageError(f"rules are given by name, not as {type(given).__name__}")
        for name in (*self.patterns, *self.functions):
            self._check(name)
        rules = [(name, _spans(bounded(name, one))) for name, one in self.patterns.items()]
        rules += self.functions.items()
        object.__setattr__(self, "_rules", tuple(rules))

    def _check(self, name: object) -> None:
        if not isinstance(name, str) or name == "":
            raise UsageError(f"a rule's name must be a text that is not empty, not {name!r}")
        if name in DETECTED or (name in self.patterns and name in self.functions):
            raise UsageError(f"the name {name!r} is taken by another rule")
        if name in self.functions and not callable(self.functions[name]):
            raise UsageError(f"the rule {name!r} must be a function from a line to spans")

    def rules(self, *, system: bool) -> tuple[tuple[str, Spans], ...]:
        """The rules for a system message, or for another turn, by name and in their order."""
        return self._rules + _built_in() if system and self.detect else self._rules


def checked(cleaning: Cleaning | None) -> Cleaning | None:
    """The same, if it is one.

    Raises:
        UsageError: It is something else.
    """
    if cleaning is not None and not isinstance(cleaning, Cleaning):
        raise UsageError(f"cleaning must be a Cleaning, not {type(cleaning).__name__}")
    return cleaning


class Sweep:
    """One prompt being cleaned: gives its texts without what is left out, and remembers that.

    Args:
        cleaning: The rules; `None`: nothing is left out.

    Raises:
        UsageError: `cleaning` is something else.
    """

    __slots__ = ("_found", "_rules", "_system")

    def __init__(self, cleaning: Cleaning | None) -> None:
        checked(cleaning)
        self._rules = () if cleaning is None else cleaning.rules(system=False)
        self._system = () if cleaning is None else cleaning.rules(system=True)
        self._found: dict[str, list[str]] = {}

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What was left out so far, by rule."""
        return tuple(
            LeftOut(
                name=name,
                count=len(texts),
                texts=tuple(text[:LONGEST] for text in texts[:KEPT]),
            )
            for name, texts in self._found.items()
        )

    def text(self, text: str, *, system: bool = False) -> str:
        """A text without what is left out.

        A turn other than a system message stays as it is where no letter and no digit would be
        left: then what looks volatile is what it says.
        """
        rules = self._system if system else self._rules
        if not rules:
            return text
        kept: list[str] = []
        found: list[tuple[str, str]] = []
        for line in text.splitlines(keepends=True):
            end = 0
            for start, stop, name in _merged(line, rules):
                kept.append(line[end:start])
                found.append((name, line[start:stop]))
                end = stop
            kept.append(line[end:])
        left = "".join(kept)
        if not found or not (system or any(map(str.isalnum, left))):
            return text
        for name, part in found:
            self._found.setdefault(name, []).append(part)
        return left

    def said(self, content: Any, *, system: bool = False) -> Any:
        """What a message says, cleaned: a text, or the texts among its blocks."""
        if type(content) is str:
            return self.text(content, system=system)
        if type(content) is not list:
            return content
        return [self._block(block, system=system) for block in content]

    def _block(self, block: Any, *, system: bool) -> Any:
        if type(block) is str:
            return self.text(block, system=system)
        if type(block) is dict and type(block.get("text")) is str:
            return {**block, "text": self.text(block["text"], system=system)}
        return block

    def value(self, value: Any) -> Any:
        """A value with every text in it cleaned; what is no text stays as it is.

        A text by itself counts as a system message; in mappings and lists, texts under the name
        `"system"` or `"developer"` do, and those beside such a `"role"`.
        """
        return self._value(value, system=type(value) is str, depth=0) if self._system else value

    def _value(self, value: Any, *, system: bool, depth: int) -> Any:
        if depth > _DEPTH:
            return value
        if type(value) is str:
            return self.text(value, system=system)
        if isinstance(value, Mapping):
            told = value["role"] in _SYSTEM if "role" in value else system
            return {
                name: self._value(held, system=told or name in _SYSTEM, depth=depth + 1)
                for name, held in value.items()
            }
        if type(value) in (list, tuple):
            return [self._value(held, system=system, depth=depth + 1) for held in value]
        return value


def _spans(pattern: re.Pattern[str]) -> Spans:
    return partial(_matches, pattern)  # not a closure, which could not be pickled


def _matches(pattern: re.Pattern[str], line: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(line))


@cache
def _built_in() -> tuple[tuple[str, Spans], ...]:
    return tuple(
        (name, _spans(re.compile(pattern, re.IGNORECASE))) for name, pattern in DETECTED.items()
    )


def _merged(line: str, rules: Iterable[tuple[str, Spans]]) -> list[tuple[int, int, str]]:
    """The parts of a line that rules name, in order; those that overlap as one part.

    It goes by the name of the rule that begins it, of two that begin together the first.
    """
    bare = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
    if len(bare) > LINE:
        return []
    parts: list[tuple[int, int, str]] = []
    named = ((start, stop, name) for name, rule in rules for start, stop in _told(name, rule, bare))
    for start, stop, name in sorted(named, key=lambda one: one[0]):
        if parts and start < parts[-1][1]:
            first, end, by = parts[-1]
            parts[-1] = (first, max(end, stop), by)
        else:
            parts.append((start, stop, name))
    return parts


def _told(name: str, rule: Spans, line: str) -> list[tuple[int, int]]:
    """What a rule says of a line; nothing where it fails, since the prompt is not its to break."""
    try:
        return [(start, stop) for start, stop in rule(line) if 0 <= start < stop <= len(line)]
    except Exception as error:
        warnings.warn(
            f"the cleaning rule {name!r} failed and leaves nothing out: {type(error).__name__}",
            RuntimeWarning,
            stacklevel=2,
        )
        return []
