"""What a function is, apart from where it lies in memory: its name, its code, what it captured."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from stemma.keys import digest

__all__ = ["CALLABLES", "describe_callable", "describe_reduced", "is_async"]

CALLABLES = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    functools.partial,
    type(functools.lru_cache(len)),
)
"""Functions, methods, built-ins, partials, and functions that remember what they returned."""

Describe = Callable[[Any], Any]


def is_async(function: Callable[..., Any]) -> bool:
    """Whether what a function gives is to be awaited, as far as can be told without calling it."""
    called = getattr(function, "__call__", None)  # noqa: B004 - an object's own method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def describe_callable(thing: Any, describe: Describe, is_value: Callable[[Any], bool]) -> Any:
    """A function as plain values.

    Counted are its qualified name, its code (not its line numbers), its defaults, what it captured
    from the function around it, and the plain values, functions of its own module and framework
    objects that it names among its globals. What lies behind other names (a database, a file, an
    imported function) is not seen.

    Args:
        thing: The function.
        describe: How to describe what it refers to.
        is_value: Tells which globals count.
    """
    if isinstance(thing, functools.partial):
        return {
            "partial": describe(thing.func),
            "args": describe(list(thing.args)),
            "keywords": describe(thing.keywords),
        }
    if isinstance(thing, types.MethodType):
        return {"method": describe(thing.__func__), "of": describe(thing.__self__)}
    if not isinstance(thing, types.FunctionType):
        return _builtin(thing, describe)
    described: dict[str, Any] = {
        "function": f"{thing.__module__}.{thing.__qualname__}",
        "code": _code(thing.__code__),
    }
    if thing.__defaults__:
        described["defaults"] = describe(list(thing.__defaults__))
    if thing.__kwdefaults__:
        described["keyword defaults"] = describe(thing.__kwdefaults__)
    if captured := _captured(thing):
        described["captured"] = describe(captured)
    named = {name: value for name, value in _named_globals(thing) if is_value(value)}
    if named:
        described["globals"] = describe(named)
    if vars(thing):  # the function it wraps among them
        described["attributes"] = describe(dict(vars(thing)))
    return described


def _builtin(thing: Any, describe: Describe) -> Any:
    if hasattr(thing, "cache_parameters"):
        return {"cached": describe(thing.__wrapped__)}
    described = {"builtin": [str(getattr(thing, "__module__", "")), thing.__qualname__]}
    of = getattr(thing, "__self__", getattr(thing, "__objclass__", None))
    if of is not None and not isinstance(of, types.ModuleType):
        described["of"] = describe(of)
    return described


def describe_reduced(thing: Any, describe: Describe) -> Any:
    """An object that C keeps the values of, by what it would be made again from.

    Raises:
        TypeError: It cannot be made again, as a connection or a generator.
    """
    made = thing.__reduce_ex__(2)
    if isinstance(made, str):
        return {"global": made}
    maker, given, *state = made
    return {
        "made by": describe(maker),
        "of": describe(list(given)),
        "then": [describe(list(part) if isinstance(part, Iterator) else part) for part in state],
    }


@functools.lru_cache(maxsize=4_096)
def _code(code: types.CodeType) -> str:
    constants = [
        _code(item) if isinstance(item, types.CodeType) else _constant(item)
        for item in code.co_consts
    ]
    return digest(
        "code/1",
        code.co_code,
        constants,
        list(code.co_names),
        list(code.co_freevars),
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
    )


def _constant(item: Any) -> Any:
    return "..." if item is Ellipsis else [type(item).__name__, item]


def _captured(function: types.FunctionType) -> dict[str, Any]:
    captured: dict[str, Any] = {}
    cells = function.__closure__ if function.__closure__ is not None else ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            captured[name] = cell.cell_contents
        except ValueError:  # not bound yet
            captured[name] = None
    return captured


def _named_globals(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            value = function.__globals__[name]
            if not inspect.isfunction(value) or value.__module__ == function.__module__:
                yield name, value


@functools.lru_cache(maxsize=4_096)
def _names(code: types.CodeType) -> frozenset[str]:
    inner = (_names(item) for item in code.co_consts if isinstance(item, types.CodeType))
    return frozenset(code.co_names).union(*inner)
