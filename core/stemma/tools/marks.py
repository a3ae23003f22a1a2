"""Declarations on the tools themselves: plain functions, or a framework's tool objects."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from stemma.errors import UsageError
from stemma.tools.policy import ToolPolicy

__all__ = ["arguments_of", "cacheable", "contradicted", "policy_of", "unfit"]

T = TypeVar("T")

_MARK = "__stemma_tool__"

_INSIDE = ("__wrapped__", "__func__", "func", "coroutine", "_real_fn", "_fn", "_async_fn")
"""Where functions, methods, LangChain's tools and LlamaIndex's hold the function they call."""


def cacheable(policy: ToolPolicy | None = None, /, **declared: Any) -> Callable[[T], T]:
    """Declare how results of a tool are kept, or what the tool writes. Returns the tool itself.

    Goes on a function, a coroutine function or a framework's tool object, over or under the
    framework's own decorator.

    Args:
        policy: The declaration, if it is made already.
        **declared: Else the arguments of `ToolPolicy`.

    Raises:
        UsageError: The declaration is wrong, or not of this tool; or the tool cannot carry it.
    """
    if not (policy is None or isinstance(policy, ToolPolicy)):
        raise UsageError("say what is declared, as in @cacheable(ttl=60)")
    if policy is not None and declared:
        raise UsageError("give either a ToolPolicy or its arguments, not both")
    known = inspect.signature(ToolPolicy).parameters
    if unknown := sorted(set(declared) - set(known)):
        raise UsageError(f"unknown {', '.join(unknown)}; a ToolPolicy takes {', '.join(known)}")
    said = policy if policy is not None else ToolPolicy(**declared)

    def mark(tool: T) -> T:
        if wrong := unfit(said, tool):
            raise UsageError(f"{_name(tool)}: {wrong}")
        try:
            object.__setattr__(tool, _MARK, said)
        except (AttributeError, TypeError):
            raise UsageError(
                f"{_name(tool)} cannot carry a declaration: decorate the function that it calls, "
                "or declare it with a ToolRegistry"
            ) from None
        return tool

    return mark


def policy_of(tool: object) -> ToolPolicy | None:
    """What was declared of a tool with `cacheable`, on it or on the function that it calls."""
    for layer in _layers(tool):
        found = getattr(layer, "__dict__", {}).get(_MARK)
        if isinstance(found, ToolPolicy):
            return found
    return None


def unfit(policy: ToolPolicy, tool: object) -> str | None:
    """Why a declaration cannot be one of this tool; `None` if it can."""
    if (policy.cached or policy.writes) and any(
        inspect.isgeneratorfunction(layer) or inspect.isasyncgenfunction(layer)
        for layer in _layers(tool)
    ):
        return (
            "what a generator gives cannot be kept, nor can be seen when it writes; "
            "declare a function that goes through it"
        )
    arguments = arguments_of(tool)
    if arguments is None or policy.arguments <= arguments:
        return None
    unknown = ", ".join(sorted(policy.arguments - arguments))
    return f"it has no argument {unknown}; it has {', '.join(sorted(arguments)) or 'none'}"


def arguments_of(tool: object) -> frozenset[str] | None:
    """The names of a tool's arguments; `None` where any may be given, or they are not known."""
    try:
        listed = getattr(tool, "args", None)
    except Exception:  # a framework's own property: LangChain's, where a schema lists nothing
        listed = None
    names = set(listed) if isinstance(listed, Mapping) else None
    for layer in _layers(tool):
        if not inspect.isroutine(layer):
            continue
        found = _parameters(layer)
        if found is None:
            continue
        names = found if names is None else names | found
    return None if names is None else frozenset(names)


def contradicted(policy: ToolPolicy, tool: object) -> str | None:
    """What MCP's annotations of a tool say against its declaration: a hint, never a permission."""
    told = getattr(tool, "metadata", None)
    hints = told if isinstance(told, Mapping) else {}
    reads = hints.get("readOnlyHint")
    if policy.writes and reads is True:
        return "it is declared as one that writes, and says of itself readOnlyHint=True"
    if not policy.writes and (reads is False or (hints.get("destructiveHint") and not reads)):
        return "it is declared as one that writes nothing, and says of itself that it writes"
    return None


def _layers(tool: object) -> Iterator[object]:
    """The tool, and the functions that it calls in the end, outermost first."""
    waiting, seen = [tool], set[int]()
    while waiting:
        layer = waiting.pop(0)
        if layer is None or id(layer) in seen:
            continue
        seen.add(id(layer))
        yield layer
        if not isinstance(layer, functools.partial):  # it has arguments that nobody would see
            waiting += [getattr(layer, name, None) for name in _INSIDE]


def _parameters(function: Callable[..., Any]) -> set[str] | None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return None
    return {one.name for one in parameters}


def _name(tool: object) -> str:
    named = getattr(tool, "__name__", None) or getattr(tool, "name", None)
    return named if isinstance(named, str) else type(tool).__name__
