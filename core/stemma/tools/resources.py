"""Resources: what tools read and write, named by templates over their arguments.

A resource is a path such as `booking:7` or `user:ada:profile`, and stands for everything below it:
what reads `user:ada` is concerned by a write to `user:ada:profile`, and the other way round. Two
resources have something in common where one of the paths begins with the other.

In the lineage of what was read, a resource is a few sources: itself, and each path it lies under.
So what a write concerns is found by recalls of single sources, without a search.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import itertools
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from stemma.entry import Source
from stemma.errors import UnkeyableValue, UsageError
from stemma.keys import canonical, digest
from stemma.worlds import Path

__all__ = ["Named", "Template", "concerned", "kind_of", "source_of", "sources_of"]

MOST = 64
"""Resources that one template may name in one call; beyond that, it stands for what they are in."""

DEEPEST = 6
LONGEST = 40
"""Segments a template may have, and characters of one that stand in a source's id as they are."""

_RESOURCE, _TOOL = canonical(["resource"])[:-1], canonical(["tool"])[:-1]
"""Begin the ids of the sources that stand for resources, and for tools that name none."""

_LITERAL = re.compile(r"[\w.-]+", re.ASCII)
_ARGUMENT = re.compile(r"\{(\w+)((?:\.\w+|\[\w+\])*)\}")
_STEP = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """What a template names in one call.

    Args:
        paths: The resources.
        complete: Whether every argument in it was there; else a resource is cut off where one was
            missing, and stands for all that it could have been.
    """

    paths: tuple[Path, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Template:
    """A resource with arguments in it, such as `booking:{id}` or `flight:{flights.number}`.

    Segments are separated by colons. The first is a name; each other one is a name, or an argument
    in braces: `{id}`, `{payment.id}` or `{flight[number]}` for what is inside of one. A list stands
    for each of its items.

    Args:
        text: The template.

    Raises:
        UsageError: The text is not of this form.
    """

    text: str
    segments: tuple[str | tuple[str, ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise UsageError(f"a resource must be a text, not {type(self.text).__name__}")
        segments = tuple(_segment(one, self.text) for one in self.text.split(":"))
        if not isinstance(segments[0], str):
            raise UsageError(
                f"resource {self.text!r} begins with an argument; "
                "begin with a name, as in booking:{id}"
            )
        if len(segments) > DEEPEST:
            raise UsageError(f"resource {self.text!r} has more than {DEEPEST} segments")
        object.__setattr__(self, "segments", segments)

    @property
    def arguments(self) -> frozenset[str]:
        """The names of the arguments that it speaks of."""
        return frozenset(one[0] for one in self.segments if not isinstance(one, str))

    def named(self, arguments: Mapping[str, Any]) -> Named:
        """The resources that it names in a call with these arguments."""
        choices: list[list[str]] = []
        for segment in self.segments:
            found = [segment] if isinstance(segment, str) else _values(arguments, segment)
            if found is None:
                return Named(paths=_paths(choices), complete=False)
            choices.append(list(dict.fromkeys(found)))
        return Named(paths=_paths(choices), complete=True)


def _segment(text: str, whole: str) -> str | tuple[str, ...]:
    if _LITERAL.fullmatch(text):
        return text
    inner = _ARGUMENT.fullmatch(text)
    if inner is None:
        hint = "; a resource stands for all below it: leave out the star" if text == "*" else ""
        raise UsageError(
            f"resource {whole!r} has a part {text!r} that is neither a name nor one argument in "
            f"braces, as in booking:{{id}}{hint}"
        )
    return (inner[1], *_STEP.findall(inner[2]))


def _paths(choices: Sequence[Sequence[str]]) -> tuple[Path, ...]:
    """All combinations, of as many segments as leaves no more than `MOST`."""
    paths: tuple[Path, ...] = ((),)
    for found in choices:
        if len(paths) * len(found) > MOST:
            break
        paths = tuple((*path, one) for path, one in itertools.product(paths, found))
    return paths


def _values(value: Any, steps: Sequence[str]) -> list[str] | None:
    """The texts found by following the steps, each item of a list for itself; `None`: missing."""
    if isinstance(value, (list, tuple, AbstractSet)):
        found = [_values(item, steps) for item in value]
        return [one for each in found if each for one in each] if found and all(found) else None
    if not steps:
        return _text(value)
    if isinstance(value, Mapping):
        return _values(value.get(steps[0]), steps[1:])
    try:
        inner = getattr(value, steps[0], None)
    except Exception:  # a property of the caller's own class
        return None
    return _values(inner, steps[1:])


def _text(value: Any) -> list[str] | None:
    """A value as the text of a segment.

    Not told apart are texts and what is written alike (7 and "7"): tools often differ in that, and
    to take back too much does no harm.
    """
    if isinstance(value, enum.Enum):
        return _text(value.value)
    if value is None or value == "":
        return None
    if isinstance(value, (str, uuid.UUID, dt.date, PurePath)):
        return [str(value)]
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return [f"{value.normalize():f}"]
    try:
        return [canonical(value)]
    except UnkeyableValue:
        return None


def sources_of(paths: Iterable[Path], tenant: str, owner: str = "") -> tuple[Source, ...]:
    """What a value has in its lineage that was read from these resources.

    Args:
        paths: The resources.
        tenant: Whose they are.
        owner: Whose they are instead, where more than a tenant may know them (`owner_of`).
    """
    whose, found = _whose(tenant, owner), dict[Source, None]()
    for path in paths:
        below, at = _id(whose, "below", path), _id(whose, "at", path)
        found[Source(document=below, chunk=at, content="", owner=owner)] = None
        for depth in range(len(path)):
            above = _id(whose, "below", path[:depth])
            found[Source(document=above, chunk=above, content="", owner=owner)] = None
    return tuple(found)


def source_of(tool: str, owner: str = "") -> Source:
    """What a value has in its lineage that came of a tool which names no resources."""
    name = canonical(["tool", _short(tool)])
    return Source(document=name, chunk=name, content="", owner=owner)


def concerned(paths: Iterable[Path], tenant: str, owner: str = "") -> tuple[str, ...]:
    """The sources that are recalled when these resources change. See `sources_of`."""
    whose, found = _whose(tenant, owner), dict[str, None]()
    for path in paths:
        found[_id(whose, "below", path)] = None
        found.update((_id(whose, "at", path[:depth]), None) for depth in range(1, len(path)))
    return tuple(found)


def kind_of(document: str) -> str | None:
    """The first segment of the resource that a source's document names, such as `booking`.

    Of what names no resource, the tool's name. Empty where it names all resources at once; `None`
    where it is neither.
    """
    if not document.startswith((_RESOURCE, _TOOL)):
        return None
    try:
        match json.loads(document):
            case ["tool", str(name)] | ["tool", [str(name)]]:
                return name
            case [_, _, _, []]:
                return ""
            case [_, _, _, [str(first), *_]] | [_, _, _, [[str(first)], *_]]:
                return first
    except ValueError:
        pass  # somebody's own id that only begins like one
    return None


def _whose(tenant: str, owner: str) -> str | list[str]:
    return _short(tenant) if not owner else ["owner", owner]


def _id(whose: str | list[str], how: str, path: Path) -> str:
    """A source's id: no two tenants or owners, and no two paths, have the same."""
    return canonical(["resource", whose, how, [_short(one) for one in path]])


def _short(text: str) -> str | list[str]:
    return text if len(text) <= LONGEST else [digest(text)]
