"""What a function is called with: its arguments by name, and what it holds besides."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from stemma.classes import name_of

__all__ = ["bound", "held_by"]


def bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, with defaults.

    Raises:
        TypeError: The function cannot be called with them.
    """
    found = signature.bind(*args, **kwargs)
    found.apply_defaults()
    given = dict(found.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            given.update(given.pop(name))
    return given


def held_by(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function is called with that no caller gives: the object that it is bound to.

    A class is told by its name. What is no function (a partial, an object that can be called) is
    itself what it holds.
    """
    if not inspect.isroutine(function):
        return {"self": function}
    of = getattr(function, "__self__", None)
    if isinstance(of, type):
        return {"class": name_of(of)}
    return {} if of is None or inspect.ismodule(of) else {"self": of}
