"""`CachedTool`: any LlamaIndex tool behind the cache, called as its declaration says."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

from llama_index.core.tools import (
    AsyncBaseTool,
    BaseTool,
    FunctionTool,
    ToolMetadata,
    ToolOutput,
)
from pydantic import BaseModel

from stemma import Cache, UsageError
from stemma.describing import SameAs
from stemma.tools import ToolCaching, ToolRegistry
from stemma_llamaindex.tool_calls import ToolCalls

__all__ = ["CachedAsyncTool", "CachedTool"]


class CachedTool(BaseTool):
    """A tool whose results are kept as it declares (`cacheable`, or a registry).

    It is of the tool's own class, too, with its metadata and attributes, so agents, workflows and
    engines take it as they take the tool. Nothing of a tool that declares nothing is kept; one that
    writes is called every time, and takes back what was read of the resources that it names.

    A hit is a fresh `ToolOutput` with everything in it, `raw_output` included; its `raw_input` is
    that of the present call, with the note of the hit under `"stemma"`. Not stored are errors,
    raised or told by `is_error`; empty answers, and those for which a model's reply was refused or
    cut off; what has no stored form.

    All arguments are part of the key, given or fixed beforehand (`partial_params`), and so is what
    a function is bound to. A `Context` has no key: a tool that is given one is called every time,
    with one warning. Of a tool that is no function (`QueryEngineTool` and the like), all that it
    consists of is part of the key.

    Each call is a hop by the tool's name, and what is stored is built on what was read in it. What
    calls the tool's function itself (`tool.fn`) goes past the cache.

    Args:
        cache: The cache.
        inner: The tool, or a function to make one of.
        registry: Declarations by name, which count before the tool's own.
        identity: What the tool is, as plain values, instead of what it consists of or is bound to.
        output: The class of the objects that it gives, if it gives pydantic objects; by default as
            its function is annotated.

    Raises:
        UsageError: An argument is of another kind, `inner` is cached already or has no name, or a
            declaration is not one of this tool.
    """

    if TYPE_CHECKING:  # else a tool that is a pydantic model would take it for a field
        _calls: ToolCalls

    def __new__(cls, cache: Any = None, inner: Any = None, *rest: Any, **named: Any) -> Self:  # noqa: ARG004
        """A tool that is of the class of the inner one, too."""
        of_its_own = isinstance(inner, BaseTool) and not isinstance(inner, CachedTool)
        kind: Any = type(inner) if of_its_own else FunctionTool
        return cast("Self", object.__new__(_kind(kind) if cls is CachedTool else cls))

    def __init__(
        self,
        cache: Cache,
        inner: BaseTool | Callable[..., Any],
        registry: ToolRegistry | None = None,
        *,
        identity: Any = None,
        output: type[BaseModel] | None = None,
    ) -> None:
        caching = ToolCaching(cache, registry)
        if isinstance(inner, CachedTool) or not callable(inner):
            raise UsageError(
                "the second argument must be a tool that is not cached yet, or a function, "
                f"not {type(inner).__name__}"
            )
        tool = inner if isinstance(inner, BaseTool) else FunctionTool.from_defaults(fn=inner)
        if not tool.metadata.name:
            raise UsageError("a tool without a name cannot be told apart from others: name it")
        calls = ToolCalls(self, tool, caching, identity=identity, output=output)
        object.__setattr__(self, "_calls", calls)
        caching.registry.check(tool.metadata.get_name(), self)

    def __call__(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """What the tool gives, from the cache or from the tool itself."""
        return self._calls.call(self.inner, args, kwargs)

    @property
    def cache(self) -> Cache:
        """The cache."""
        return self._calls.caching.cache

    @property
    def inner(self) -> Any:
        """The tool itself."""
        return self._calls.tool

    @property
    def metadata(self) -> ToolMetadata:
        """The tool's own."""
        return cast("ToolMetadata", self.inner.metadata)

    @property
    def __wrapped__(self) -> Any:
        """The tool: declarations are looked for in it, too."""
        return self.inner

    @property
    def stemma_identity(self) -> Any:
        """It changes nothing of what the tool gives."""
        return SameAs(self.inner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_calls" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.inner, name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        del protocol
        calls = self._calls
        again = functools.partial(CachedTool, identity=calls.identity, output=calls.output)
        return again, (self.cache, self.inner, calls.caching.registry)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.metadata.name!r}>"

    __str__ = __repr__


class CachedAsyncTool(CachedTool, AsyncBaseTool):
    """As `CachedTool`, of a tool that can be awaited."""

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """See `CachedTool.__call__`."""
        return self._calls.call(self.inner.call, args, kwargs)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """As `call`."""
        return await self._calls.acall(args, kwargs)


@functools.lru_cache(maxsize=256)
def _kind(kind: type[BaseTool]) -> type[CachedTool]:
    """The class of the cached tools of a class."""
    face = CachedAsyncTool if issubclass(kind, AsyncBaseTool) else CachedTool

    def placed(namespace: dict[str, Any]) -> None:
        namespace["__module__"] = __name__

    return cast(
        "type[CachedTool]",
        types.new_class(f"Cached{kind.__name__}", (face, kind), exec_body=placed),
    )
