"""`CacheMiddleware`: LangChain's agents with their model calls and tools behind the cache."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, get_args

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain.agents.structured_output import StructuredOutputError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from stemma import Cache, Cleaning, Frame, StoreError, UsageError
from stemma.tools import ToolCaching, ToolRegistry
from stemma_langchain.asking import Sampling
from stemma_langchain.cached_tool import CachedTool
from stemma_langchain.chat_model import CachedChatModel
from stemma_langchain.checking import checked_life
from stemma_langchain.graph_codec import GraphCodec

__all__ = ["CacheMiddleware"]

Response = ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]
Result = ToolMessage | Command[Any]

MOST = 1_000
"""Models and tools that are remembered with what stands for them."""


class CacheMiddleware(AgentMiddleware[Any, Any, Any]):
    """Serves what equal model calls and declared tools of an agent gave before.

    Use it as `create_agent(model, tools, middleware=[…, CacheMiddleware(cache)])`, last in the
    list: then the requests that it sees are those that the others have made of them. Its
    `wrap_tool_call` and `awrap_tool_call` go with LangGraph's `ToolNode` as well.

    For the call, the model is replaced by a `CachedChatModel` and the tool by a `CachedTool`: what
    counts, what is stored and what a hit looks like is said there. So a reply depends on the model
    and its settings, the tools and the response format offered, the system prompt and the messages;
    of tools, nothing is kept but what they declare.

    Each model call and each tool call is a hop of the run. What a tool returned is a parent of the
    replies that came after it.

    The tenant is the one that the run names in `metadata["tenant"]`, else the one of
    `cache.using`, else the cache's default; without one the agent runs as without this, with one
    warning.

    Args:
        cache: The cache.
        registry: Declarations of tools by name, which count before the tools' own.
        models: Whether model calls are cached.
        tools: Whether tools are called by their declarations. Without, writes take nothing back.
        sampling: See `CachedChatModel`.
        life: Base life of replies, seconds; by default as the cache's policy says.
        cleaning: See `CachedChatModel`.
        allowed: See `CachedTool`.

    Raises:
        UsageError: An argument is wrong. In a run, before its first model call: a declaration is
            not one of its tool.
    """

    def __init__(
        self,
        cache: Cache,
        registry: ToolRegistry | None = None,
        *,
        models: bool = True,
        tools: bool = True,
        sampling: Sampling = "exact",
        life: float | None = None,
        cleaning: Cleaning | None = None,
        allowed: Iterable[type] = (),
    ) -> None:
        super().__init__()
        if sampling not in get_args(Sampling):
            raise UsageError(f"sampling must be one of {get_args(Sampling)}, not {sampling!r}")
        checked_life(life)
        self.cache = cache
        self.registry = registry if registry is not None else ToolRegistry()
        self._models = models
        self._tools = tools
        self._replies = {"sampling": sampling, "life": life, "cleaning": cleaning}
        self._allowed = tuple(allowed)
        # What is wrong with them is told here, and not first in a run.
        ToolCaching(cache, self.registry), GraphCodec(self._allowed)
        self._behind: dict[int, CachedChatModel | CachedTool] = {}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Response:
        """See LangChain's `AgentMiddleware`."""
        request = self._asking(request)
        with self.cache.hop("model") as frame:
            try:
                return handler(request)
            except StructuredOutputError:
                self._take_back(frame)
                raise

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> Response:
        """See LangChain's `AgentMiddleware`."""
        request = self._asking(request)
        with self.cache.hop("model") as frame:
            try:
                return await handler(request)
            except StructuredOutputError:
                await self._atake_back(frame)
                raise

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        """See LangChain's `AgentMiddleware`."""
        return handler(self._calling(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """See LangChain's `AgentMiddleware`."""
        return await handler(self._calling(request))

    # ------------------------------------------------------------------------

    def _asking(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request with its model behind the cache; its tools are seen to be as declared."""
        for tool in request.tools if self._tools else ():
            if isinstance(tool, BaseTool):
                self._tool(tool)
        return request.override(model=self._model(request.model)) if self._models else request

    def _calling(self, request: ToolCallRequest) -> ToolCallRequest:
        if request.tool is None or not self._tools:
            return request
        return request.override(tool=self._tool(request.tool))

    def _model(self, model: Any) -> Any:
        if isinstance(model, CachedChatModel):
            return model
        if not isinstance(model, BaseChatModel):
            words = f"calls of a {type(model).__name__} are not cached: it is no chat model itself"
            self.cache.calls.warn_once(f"model {type(model).__name__}", words)
            return model
        known = self._behind.get(id(model))
        if known is None or known.inner is not model:
            known = CachedChatModel(self.cache, model, **self._replies)
            self._remember(model, known)
        return known

    def _tool(self, tool: BaseTool) -> BaseTool:
        if isinstance(tool, CachedTool):
            return tool
        known = self._behind.get(id(tool))
        if known is None or known.inner is not tool:
            known = CachedTool(self.cache, tool, self.registry, allowed=self._allowed)
            self._remember(tool, known)
        return known

    def _remember(self, inner: object, behind: CachedChatModel | CachedTool) -> None:
        if len(self._behind) >= MOST:
            self._behind.clear()
        self._behind[id(inner)] = behind

    def _take_back(self, frame: Frame) -> None:
        """A reply that does not fit the response format must not be met again."""
        for one in _entries(frame):
            try:
                self.cache.clear(entry=one)
            except StoreError as error:
                self.cache.engine.parts.fault("recall", error)

    async def _atake_back(self, frame: Frame) -> None:
        for one in _entries(frame):
            try:
                await self.cache.aclear(entry=one)
            except StoreError as error:
                self.cache.engine.parts.fault("recall", error)


def _entries(frame: Frame) -> list[str]:
    return [read.id for read in frame.reads if read.kind == "entry"]
