"""`CachedTool`: any LangChain tool behind the cache, called as its declaration says."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from langchain_core.tools import BaseTool, StructuredTool, Tool
from pydantic import ConfigDict, Field, PrivateAttr

from stemma import Cache, Frame, Hit, Served, UsageError
from stemma.tools import ToolCaching, ToolRegistry
from stemma_langchain.codec import NOTE
from stemma_langchain.graph_codec import GraphCodec
from stemma_langchain.injected import Injected
from stemma_langchain.node_results import inner_parts, refused_part
from stemma_langchain.replies import mark
from stemma_langchain.runs import runs
from stemma_langchain.tool_stand_in import KeptResult, ToolStandIn, taken_over

__all__ = ["CachedTool"]


class CachedTool(ToolStandIn):
    """A tool whose results are kept as it declares (`cacheable`, or a registry).

    It can be used wherever the tool could: in `create_agent`, `ToolNode` and `bind_tools`, in
    pipes, or called itself, sync or async. To the model it is the same tool. Nothing of a tool
    that declares nothing is kept; a tool that writes is called every time, and takes back what was
    read of the resources it names.

    All its arguments count, checked and completed with their defaults as the tool does it, and so
    does what LangGraph injects: parts of the state, a runtime, the configurable values of a config;
    and what the tool holds, the object that a method is bound to or the fields of a class of yours.
    What a tool reads in other ways (a global, `get_config`) is not seen: say it with `cache.using`.

    A hit is a fresh copy. Where the tool was called by a model's tool call, it is a `ToolMessage`
    with the id of that call, the artifact, and the note of the hit under
    `response_metadata["stemma"]`. Callbacks and traces see a run of the tool, on a hit as well.

    Not stored: errors, raised or with the status of one; `Command`s; interrupts, and all of a run
    that goes on after one; what came of a model's reply that was cut off or refused; values and
    artifacts of classes that the codec does not know.

    Each call is a hop by the tool's name, and what is stored is built on what was read in it.

    Args:
        cache: The cache.
        inner: The tool.
        registry: Declarations by name, which count before the tool's own.
        allowed: The user's own classes that results and artifacts may hold (see `GraphCodec`).

    Raises:
        UsageError: An argument is of another kind, `inner` is cached already, or a declaration is
            not one of this tool.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    stemma: Cache = Field(exclude=True, repr=False)

    _calling: ToolCaching = PrivateAttr()
    _codec: GraphCodec = PrivateAttr()
    _injected: Injected = PrivateAttr()

    def __init__(
        self,
        cache: Cache,
        inner: BaseTool,
        registry: ToolRegistry | None = None,
        *,
        allowed: Iterable[type] = (),
    ) -> None:
        calling = ToolCaching(cache, registry)
        if not isinstance(inner, BaseTool) or isinstance(inner, CachedTool):
            raise UsageError(
                "the second argument must be a tool that is not cached yet, "
                f"not {type(inner).__name__}"
            )
        calling.registry.check(inner.name, inner)
        super().__init__(**{**taken_over(inner), "stemma": cache})
        self._calling = calling
        self._codec = GraphCodec(allowed)
        self._injected = Injected(inner)

    def run(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """See LangChain's `BaseTool.run`."""
        compute = functools.partial(self.inner.run, tool_input, *args, **kwargs)
        with self.stemma.hop(self.inner.name) as frame:
            call = self._call(tool_input, kwargs, frame)
            served = self._calling.call(compute=compute, **self._asked(call))
        kept = call.kept(self.inner, served)
        return served.value if kept is None else kept.run(tool_input, *args, **kwargs)

    async def arun(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """See LangChain's `BaseTool.arun`."""
        way = self.inner.run if self._writes_in_thread() else self.inner.arun
        compute = functools.partial(way, tool_input, *args, **kwargs)
        with self.stemma.hop(self.inner.name) as frame:
            call = self._call(tool_input, kwargs, frame)
            served = await self._calling.acall(compute=compute, **self._asked(call))
        kept = call.kept(self.inner, served)
        return served.value if kept is None else await kept.arun(tool_input, *args, **kwargs)

    def _writes_in_thread(self) -> bool:
        """Whether it writes, and all that awaiting it does is to wait for a thread.

        Then the thread is ours, too: it goes on where who awaits it is cancelled, and what it
        writes is taken back when it has.
        """
        registry = self._calling.registry
        policy = registry.policy(self.inner.name, self.inner)
        writes = policy.writes if policy is not None else registry.unknown == "clear"
        function = getattr(self.inner, "coroutine", None)
        return bool(writes) and function is None and type(self.inner)._arun in _WAITING  # noqa: SLF001

    def _call(self, given: Any, named: Mapping[str, Any], frame: Frame) -> _Call:
        call_id, metadata = named.get("tool_call_id"), named.get("metadata")
        own = dict(given) if isinstance(given, dict) else given
        try:
            read = self.inner._parse_input(own, call_id)  # noqa: SLF001 - as LangChain does it
        except Exception:
            read = given  # what the tool refuses, it refuses itself
        offered = _offered(self.inner)
        arguments = read if isinstance(read, dict) else {next(iter(offered), ""): read}
        others = {name: one for name, one in arguments.items() if name not in offered}
        agent = metadata.get("lc_agent_name") if metadata else None
        return _Call(
            frame=frame,
            id=call_id,
            arguments={name: one for name, one in arguments.items() if name in offered},
            injected=self._injected.among(others, named.get("config")),
            agent=agent if isinstance(agent, str) else "",
        )

    def _asked(self, call: _Call) -> dict[str, Any]:
        name = self.inner.name  # it may have been renamed
        declared = self._calling.registry.policy(name, self.inner) is not None
        held = self._injected.held() if declared else None
        # A message and a plain value are two results. No parameter can have these names.
        besides = {"a message": call.id is not None, "what it holds": held}
        return {
            "name": name,
            "arguments": call.arguments,
            "injected": {**call.injected, **besides},
            "agent": call.agent,
            "tool": self.inner,
            "codec": self._codec,
            "admit": call.refusal,
        }


_WAITING = (BaseTool._arun, StructuredTool._arun, Tool._arun)  # noqa: SLF001 - LangChain's own
"""What runs a tool's function in a thread, where it is no coroutine function."""


def _offered(tool: BaseTool) -> Collection[str]:
    """The names of the arguments that a model knows of."""
    try:
        return tool.args.keys()
    except KeyError:  # a schema that lists none
        return ()


class _Call(NamedTuple):
    """One call of a tool, in its hop."""

    frame: Frame
    id: str | None
    arguments: dict[str, Any]
    injected: dict[str, Any]
    agent: str

    def refusal(self, result: Any) -> str | None:
        """Why a result must not be stored, or `None`."""
        if runs.resumed(self.frame):
            return "the run goes on after an interrupt: somebody's answer is no argument"
        reason = runs.refused(self.frame)
        if reason is not None:
            return reason
        if self.id is not None and getattr(result, "tool_call_id", None) != self.id:
            return "it is not the answer to this call alone"
        return next(filter(None, (refused_part(one, None) for one in inner_parts(result))), None)

    def kept(self, tool: BaseTool, served: Served) -> KeptResult | None:
        """What hands out a hit, with its note; `None` where there was none."""
        if not isinstance(served.outcome, Hit):
            return None
        note, result = served.outcome.note(), served.value
        if self.id is None:
            return KeptResult(tool, mark(result, note))
        noted = {**result.response_metadata, NOTE: note}
        return KeptResult(
            tool,
            result.model_copy(
                update={
                    "id": None,
                    "tool_call_id": self.id,
                    "response_metadata": noted,
                    "artifact": mark(result.artifact, note),
                }
            ),
        )
