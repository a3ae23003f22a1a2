"""Calls of a tool: what they are called with, made through the cache, given as what they were."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, cast

from llama_index.core.tools import BaseTool, FunctionTool, ToolOutput
from llama_index.core.tools.function_tool import sync_to_async
from pydantic import BaseModel

from stemma import Frame, Hit, Served, frames
from stemma.tools import ToolCaching
from stemma.tools.binding import bound, held_by
from stemma_llamaindex.codec import NOTE
from stemma_llamaindex.describing import describe
from stemma_llamaindex.events import tell_hit
from stemma_llamaindex.sources import note_read
from stemma_llamaindex.tool_outputs import codec_of_tools, nodes_in, output_class, refused_output

__all__ = ["ToolCalls"]

_CALLED = {"args", "kwargs"}
"""What a function's tool says of its input: how it was called."""


class _Arguments(NamedTuple):
    """What a tool is called with.

    `named` are its arguments; `injected` is what it is given or holds besides; `told` is what the
    output of a function's tool tells as the arguments by name.
    """

    named: dict[str, Any]
    injected: dict[str, Any]
    told: dict[str, Any]


class ToolCalls:
    """How one tool is called through the cache.

    Args:
        face: The cached tool, which may carry a declaration as well.
        tool: The tool itself.
        caching: Calls tools by their declarations.
        identity: What the tool is, instead of what it consists of or is bound to.
        output: The class of the objects that it gives; by default as its function is annotated.
    """

    def __init__(
        self,
        face: BaseTool,
        tool: Any,
        caching: ToolCaching,
        *,
        identity: Any,
        output: type[BaseModel] | None,
    ) -> None:
        self.tool = tool
        self.caching = caching
        self.identity = identity
        self.output = output
        if output is None and isinstance(tool, FunctionTool):
            output = output_class(tool.real_fn)
        self._face = face
        self._codec = codec_of_tools(output)

    def call(
        self, way: Callable[..., ToolOutput], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> ToolOutput:
        """The tool's output.

        Args:
            way: How the tool itself is called.
            args: Arguments by place.
            kwargs: Arguments by name.
        """
        call = _Call(self.tool, args, self._arguments(args, kwargs))

        def compute() -> ToolOutput:
            call.begins()
            return call.ended(way(*args, **kwargs))

        with self._hop():
            return call.given(self.caching.call(compute=compute, **self._asked(call)))

    async def acall(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolOutput:
        """As `call`."""
        call = _Call(self.tool, args, self._arguments(args, kwargs))

        async def compute() -> ToolOutput:
            call.begins()
            return call.ended(await self.tool.acall(*args, **kwargs))

        def compute_in_thread() -> ToolOutput:
            call.begins()
            return call.ended(self.tool.call(*args, **kwargs))

        how = compute_in_thread if _runs_in_thread(self.tool) else compute
        with self._hop():
            return call.given(await self.caching.acall(compute=how, **self._asked(call)))

    def _hop(self) -> AbstractContextManager[Frame]:
        return self.caching.cache.hop(self.tool.metadata.get_name())

    def _asked(self, call: _Call) -> dict[str, Any]:
        return {
            "name": self.tool.metadata.get_name(),
            "arguments": call.arguments.named,
            "tool": self._face,
            "injected": call.arguments.injected,
            "codec": self._codec,
            "admit": call.refusal,
            "result": _raw,
        }

    def _arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Arguments:
        tool = self.tool
        if not isinstance(tool, FunctionTool):
            held = {"tool": describe(tool)} if self._is_cached() else {}
            injected = {**self._holding(held), "by place": len(args)}
            return _Arguments(_by_schema(tool, args, kwargs), injected, dict(kwargs))
        defaults = tool._field_defaults
        told = {**defaults, **tool.partial_params, **kwargs}
        try:
            named = bound(inspect.signature(tool.real_fn), args, told)
        except TypeError:  # the call itself will tell, if it is one
            named = _by_schema(tool, args, told)
        injected = self._holding(held_by(tool.real_fn))
        context = tool.ctx_param_name
        if context is not None:
            told.pop(context, None)
            injected[context] = named.pop(context, None)
        return _Arguments(named, injected, told)

    def _is_cached(self) -> bool:
        name = self.tool.metadata.get_name()
        policy = self.caching.registry.policy(name, self._face)
        return policy is not None and policy.cached

    def _holding(self, held: dict[str, Any]) -> dict[str, Any]:
        return held if self.identity is None else {"identity": self.identity}


class _Call:
    """One call of a tool.

    Args:
        tool: The tool itself.
        args: The arguments that it is given by place.
        arguments: What it is called with.
    """

    def __init__(self, tool: Any, args: tuple[Any, ...], arguments: _Arguments) -> None:
        self.arguments = arguments
        self._tool = tool
        self._args = args
        self._frame: Frame | None = None
        self._marks: Mapping[int, int] = {}

    def begins(self) -> None:
        """The tool itself is called."""
        self._frame, self._marks = frames.current(), frames.marks()

    def ended(self, output: ToolOutput) -> ToolOutput:
        """It has given its output, and what an engine in it has read is noted."""
        if self._frame is not None and not isinstance(self._tool, FunctionTool):
            note_read(self._tool, nodes_in(output), self._frame, self._marks)
        return output

    def refusal(self, output: Any) -> str | None:
        """Why the output must not be stored."""
        return refused_output(output, self._frame)

    def given(self, served: Served) -> ToolOutput:
        """What the caller gets: of a hit, a copy that was called as it was now, and says so."""
        output, hit = cast("ToolOutput", served.value), served.outcome
        if isinstance(hit, Hit):
            said = self._input(output.raw_input, exact=hit.tier == "exact")
            output.raw_input = {**said, NOTE: tell_hit(hit)}
        return output

    def _input(self, stored: Mapping[str, Any], *, exact: bool) -> Mapping[str, Any]:
        if isinstance(self._tool, FunctionTool) and stored.keys() <= _CALLED:
            return {"args": self._args, "kwargs": self.arguments.told}
        if exact:
            return stored
        return {name: self.arguments.named.get(name, held) for name, held in stored.items()}


def _by_schema(tool: BaseTool, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by the names that the tool's schema has for them."""
    properties = tool.metadata.get_parameters_dict().get("properties", {})
    free = [name for name in properties if name not in kwargs]
    named = {**dict(zip(free, args, strict=False)), **kwargs}
    if len(args) > len(free):
        named["args"] = list(args[len(free) :])
    return named


def _runs_in_thread(tool: BaseTool) -> bool:
    """Whether all that awaiting a tool does is to wait for a thread that it runs in.

    Then the thread is ours, too: it goes on where who awaits it is cancelled, and what it writes
    is taken back when it has.
    """
    if not isinstance(tool, FunctionTool):
        return False
    callback = tool._async_callback  # noqa: SLF001 - it has no other name
    return _is_made_async(tool.async_fn) and (callback is None or _is_made_async(callback))


def _is_made_async(function: Any) -> bool:
    return getattr(function, "__code__", None) is _MADE_ASYNC


_MADE_ASYNC = sync_to_async(print).__code__
"""The code of all functions that LlamaIndex has made async by running others in a thread."""


def _raw(output: Any) -> Any:
    return output.raw_output if isinstance(output, ToolOutput) else output
