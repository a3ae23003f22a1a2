"""Live objects as plain values, whatever framework they are of.

What an object is described by is what a key can be made of: equal for equal objects in every
process, and with nothing in it that is only an address. A framework's package makes a `LiveWalk` of
its own that knows the framework's classes. Needs pydantic, which the frameworks bring.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import datetime as dt
import decimal
import enum
import functools
import inspect
import itertools
import logging
import pathlib
import re
import secrets
import threading
import types
import typing
import uuid
import weakref
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, SecretBytes, SecretStr

from stemma import forking
from stemma.callables import CALLABLES, describe_callable, describe_reduced
from stemma.classes import declared, holds_more, name_of, slots_of, top_package
from stemma.keys import digest

__all__ = [
    "FORMS",
    "MAX_DEPTH",
    "MAX_PARTS",
    "PROCESS",
    "Described",
    "LiveWalk",
    "RemembersConversations",
    "SameAs",
    "ask",
    "is_plain",
    "name_for_now",
    "own_identity",
]

_PLAIN = (
    *(str, bytes, bool, int, float, complex, type(None)),
    *(enum.Enum, dt.date, dt.time, dt.timedelta, decimal.Decimal),
    *(uuid.UUID, pathlib.PurePath, np.generic),
)

MAX_DEPTH = 40
MAX_PARTS = 50_000
"""Beyond these, a chain has no fingerprint, and the cache is bypassed for it."""

PROCESS = secrets.token_hex(8)
"""A name for this process, for what lives no longer than it."""

_numbers = itertools.count(1)
_unnamed: dict[int, tuple[weakref.ref[Any], str]] = {}


class _Beyond:
    """Stands for what cannot be told, or not within the limits; has no key."""


@dataclass(frozen=True, slots=True)
class Described:
    """What answers, as plain values.

    Args:
        value: The values.
        model: The name of the one model in it; empty where there are several, or none with a name.
    """

    value: Any = field(repr=False)
    model: str


class RemembersConversations:
    """Stands for what answers by what was said before; has no key."""


@dataclass(frozen=True, slots=True)
class SameAs:
    """As `stemma_identity`: for whatever changes nothing of what it wraps, and is taken for it."""

    other: Any


def own_identity(thing: Any) -> Any:
    """What an object says of itself as `stemma_identity`, or `None`."""
    held = getattr(thing, "__dict__", {})
    kind: Any = type(thing)
    if isinstance(thing, type) or not (_says_itself(kind) or "stemma_identity" in held):
        return None  # not asked with `getattr`: a proxy would answer for another
    return thing.stemma_identity


@functools.lru_cache(maxsize=4_096)
def _says_itself(kind: type) -> bool:
    return any("stemma_identity" in base.__dict__ for base in kind.__mro__)


def ask(thing: Any, name: str) -> Any:
    """An attribute; `None` too where it is a property that raises."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def name_for_now(thing: Any) -> str:
    """A name for an object that has none, which lasts as long as the object."""
    place = id(thing)  # not by its hash: a pydantic model has none
    held = _unnamed.get(place)
    if held is None or held[0]() is not thing:
        gone = weakref.ref(thing, lambda _: _unnamed.pop(place, None))
        held = _unnamed[place] = (gone, f"{PROCESS}-{next(_numbers)}")
    return held[1]


class LiveWalk:
    """One walk over an object and what it is made of.

    `forms` are the kinds of objects that have a form of their own, in the order in which they are
    tried; `counting` are the framework's classes whose objects count wherever they are held.
    """

    forms: ClassVar[tuple[tuple[Any, Callable[[Any, Any], Any]], ...]] = ()
    counting: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._path: dict[int, int] = {}
        self._parts = 0

    # ------------------------------------- what a framework's own walk knows better

    def is_library(self, kind: type) -> bool:
        """Whether the framework, or Stemma, defines a class: its code is not told apart."""
        return _is_stemmas(kind)

    def noise(self, kind: type) -> frozenset[str]:  # noqa: ARG002 - for those who know better
        """The names of fields and attributes of a class that shape no answer."""
        return frozenset()

    def fields_of(self, kind: type[BaseModel], noise: frozenset[str]) -> tuple[str, ...]:
        """The fields of a pydantic class that count."""
        return tuple(name for name in kind.model_fields if name not in noise)

    def private_counts(self, kind: type) -> bool:
        """Whether private attributes of objects of a pydantic class count."""
        return not self.is_library(kind)

    def remembers(self, thing: Any) -> bool:  # noqa: ARG002 - as above
        """Whether it, or what it answers from, holds earlier conversations."""
        return False

    def met(self, thing: Any, described: Any) -> None:
        """Told of every object with its description, for walks that collect some."""

    # ---------------------------------------------------------------------- the walk

    def describe(self, thing: Any) -> Any:
        """The object as plain values; a part beyond the limits has no key."""
        if type(thing) in _PLAIN:
            return thing
        if id(thing) in self._path:
            return {"again": len(self._path) - self._path[id(thing)]}
        self._parts += 1
        if self._parts > MAX_PARTS or len(self._path) > MAX_DEPTH:
            return _Beyond()
        self._path[id(thing)] = len(self._path)
        try:
            described = self._described(thing)
            self.met(thing, described)
        except Exception:  # a property, or a proxy, that cannot be asked just now
            return _Beyond()
        else:
            return described
        finally:
            del self._path[id(thing)]

    def _described(self, thing: Any) -> Any:
        if isinstance(thing, _PLAIN):
            return thing
        if (own := own_identity(thing)) is not None:
            if isinstance(own, SameAs):
                return self.describe(own.other)
            return {"identity": [name_of(type(thing)), own]}
        if self.remembers(thing):
            return RemembersConversations()
        for kind, form in self.forms:
            if isinstance(thing, kind):
                return form(self, thing)
        return self.plain_object(thing)

    def plain_object(self, thing: Any) -> Any:
        """An object by its class, its fields or attributes, and the code it runs when called."""
        kind: Any = type(thing)
        described = {"class": name_of(kind), "fields": self.fields(thing, self.noise(kind))}
        if not self.is_library(kind):
            called = declared(kind, "__call__")
            if isinstance(called, types.FunctionType):
                described["called"] = self.describe(called)
        if holds_more(kind):
            described["state"] = describe_reduced(thing, self.describe)
        return described

    def fields(self, thing: Any, noise: frozenset[str]) -> Any:
        """The fields of a model or other object, less the noise."""
        if isinstance(thing, BaseModel):
            values = {name: getattr(thing, name) for name in self.fields_of(type(thing), noise)}
            private = thing.__pydantic_private__ if self.private_counts(type(thing)) else None
            for more in (thing.model_extra, private):
                if more is not None:
                    values |= {name: value for name, value in more.items() if name not in noise}
        else:
            values = self._state(thing, noise)
        return self.describe(values)

    def _state(self, thing: Any, noise: frozenset[str]) -> dict[str, Any]:
        """The attributes of an object, private ones too; of Stemma's own, public that count."""
        kind: Any = type(thing)
        found = {**getattr(thing, "__dict__", {})}
        for base in kind.__mro__:
            for name in slots_of(base):
                slot = base.__dict__.get(name)
                if isinstance(slot, types.MemberDescriptorType):
                    with contextlib.suppress(AttributeError):  # never set
                        found[name] = slot.__get__(thing)
        told = {
            name: value
            for name, value in found.items()
            if name not in noise and not _is_derived(thing, name)
        }
        if not _is_stemmas(kind):
            return told
        return {name: v for name, v in told.items() if name[0] != "_" and self._counts(v)}

    def _counts(self, value: Any) -> bool:
        return (
            is_plain(value)
            or isinstance(value, (*CALLABLES, *self.counting, BaseModel, SecretStr))
            or (isinstance(value, (list, tuple)) and all(map(self._counts, value)))
            or (isinstance(value, dict) and all(map(self._counts, value.values())))
        )

    def counts_as_global(self, value: Any) -> bool:
        """Plain values, mappings and fixed collections of them, functions, framework objects.

        A list of a module is taken for something that collects as the program runs.
        """
        if isinstance(value, self.counting) or inspect.isfunction(value):
            return True
        return not isinstance(value, list) and is_plain(value)


def _is_stemmas(kind: type) -> bool:
    return top_package(kind) in ("stemma", "stemma_langchain", "stemma_llamaindex")


def _is_derived(thing: Any, name: str) -> bool:
    """Whether an attribute is there only because it was looked at before."""
    return isinstance(declared(type(thing), name), functools.cached_property)


def is_plain(value: Any) -> bool:
    """Whether it is a plain value, or a collection of plain values."""
    if isinstance(value, (list, tuple, AbstractSet)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    return isinstance(value, (*_PLAIN, np.ndarray))


def _mapping(walk: LiveWalk, thing: Mapping[Any, Any]) -> Any:
    items = list(thing.items())
    if all(isinstance(key, str) for key in thing):
        items.sort()  # who put what in first does not count
    return {"map": [[walk.describe(key), walk.describe(value)] for key, value in items]}


def _list(walk: LiveWalk, thing: Any) -> Any:
    return [walk.describe(item) for item in thing]


def _set(walk: LiveWalk, thing: AbstractSet[Any]) -> Any:
    return {"set": sorted(digest(walk.describe(item)) for item in thing)}


def _secret(_: LiveWalk, thing: SecretStr | SecretBytes) -> Any:
    return {"secret": digest("secret/1", thing.get_secret_value())}


def _callable(walk: LiveWalk, thing: Any) -> Any:
    return describe_callable(thing, walk.describe, walk.counts_as_global)


def _class(walk: LiveWalk, kind: type) -> Any:
    if issubclass(kind, BaseModel):
        try:
            return {"class": name_of(kind), "schema": walk.describe(kind.model_json_schema())}
        except Exception:
            return {"class": name_of(kind), "fields": sorted(kind.model_fields)}
    return {"class": name_of(kind)}


def _generic(walk: LiveWalk, thing: Any) -> Any:
    return {"generic": walk.describe([typing.get_origin(thing), *typing.get_args(thing)])}


_LOCKS = (
    type(threading.Lock()),
    type(threading.RLock()),
    forking.Lock,
    threading.Condition,
    threading.Event,
    threading.Semaphore,
    threading.Barrier,
    asyncio.Lock,
    asyncio.Event,
    asyncio.Condition,
    asyncio.Semaphore,
)
_GENERICS = (type(list[int]), type(int | str), type(typing.List[int]), type(typing.Union[int, str]))  # noqa: UP006, UP007 - the old forms are meant

FORMS: tuple[tuple[Any, Callable[[Any, Any], Any]], ...] = (
    (Mapping, _mapping),
    ((list, tuple, collections.deque), _list),
    (AbstractSet, _set),
    ((SecretStr, SecretBytes), _secret),
    (re.Pattern, lambda _, thing: {"pattern": [thing.pattern, thing.flags]}),
    (np.ndarray, lambda _, thing: thing),
    (type, _class),
    (types.ModuleType, lambda _, thing: {"module": thing.__name__}),
    (logging.Logger, lambda _, thing: {"logger": thing.name}),
    (_LOCKS, lambda _, thing: {"class": name_of(type(thing))}),
    (_GENERICS, _generic),
    (CALLABLES, _callable),
)
"""The forms of what is of no framework."""

LiveWalk.forms = FORMS
