"""What a function is called with besides what a model said, as far as it counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolRuntime

from stemma.tools.binding import held_by
from stemma_langchain.fingerprint import describe
from stemma_langchain.node_keys import InputWalk

__all__ = ["Injected", "configured"]

_OF_THE_RUN = ("__", "checkpoint_", "thread_id", "langgraph_")
"""How the names of those configurable values begin that only tell one run from another."""

_ADAPTERS = "langchain_mcp_adapters.tools"


def configured(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The configurable values of a run, less those that only tell runs apart."""
    values = config.get("configurable", {}) if config is not None else {}
    return {name: value for name, value in values.items() if not name.startswith(_OF_THE_RUN)}


class Injected:
    """What a tool is called with that no model has said: what it holds, and what is handed to it.

    Of the messages of a state the ids do not count. A runtime counts as state, context, the
    configurable values, who is signed in, and the store if there is one, of which no key can be
    made. The config of the run counts if the tool takes it.

    Args:
        tool: The tool.
    """

    def __init__(self, tool: BaseTool) -> None:
        self._tool = tool
        self._unread = frozenset({"runtime"} if _unread_runtime(tool) else ())
        self._config = any(map(_takes_config, _functions(tool)))

    def among(self, given: Mapping[str, Any], config: Mapping[str, Any] | None) -> dict[str, Any]:
        """What of it counts, by name.

        Args:
            given: The arguments that the model does not know of.
            config: The config of the run.
        """
        found = {name: _counted(one) for name, one in given.items() if name not in self._unread}
        return {**found, "config": configured(config)} if self._config else found

    def held(self) -> Any:
        """What its functions are bound to; of a tool that has none, all that it consists of."""
        functions = _given(self._tool)
        if not functions:
            return describe(self._tool)
        held = [held_by(one) for one in functions]
        return describe(held) if any(held) else None


def _counted(value: Any) -> Any:
    if not isinstance(value, ToolRuntime):
        return _without_ids(value)
    server = value.server_info
    runtime = {
        "state": _without_ids(value.state),
        "context": value.context,
        "configurable": configured(value.config),
        "user": None if server is None or server.user is None else server.user.identity,
    }
    return runtime if value.store is None else {**runtime, "store": value.store}


def _without_ids(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return InputWalk().describe(value)
    if isinstance(value, Mapping):
        return {name: _without_ids(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_ids(item) for item in value]
    return value


def _functions(tool: BaseTool) -> Iterator[Callable[..., Any]]:
    """The functions in which a tool does its work."""
    yield from _given(tool) or (tool._run, tool._arun)  # noqa: SLF001 - those of a subclass


def _given(tool: BaseTool) -> list[Callable[..., Any]]:
    """The functions that it was made of; none for a subclass that is one itself."""
    found = [getattr(tool, name, None) for name in ("func", "coroutine")]
    return [one for one in found if one is not None]


def _takes_config(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return False
    return any("RunnableConfig" in str(one.annotation) for one in parameters)


def _unread_runtime(tool: BaseTool) -> bool:
    """Whether MCP's adapters ask for a runtime that nobody reads.

    Each of their tools takes one, for the interceptors it was made with: mostly none.
    """
    function = getattr(tool, "coroutine", None)
    if not inspect.isfunction(function) or function.__module__ != _ADAPTERS:
        return False
    held = inspect.getclosurevars(function).nonlocals
    return "tool_interceptors" in held and not held["tool_interceptors"]
