"""`cached_tool`: any LlamaIndex tool behind the cache, by what is declared of it."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, overload

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

__all__ = ["CachedAsyncTool", "CachedTool", "cached_tool"]

T = TypeVar("T", bound=BaseTool)


@overload
def cached_tool(
    cache: Cache,
    tool: T,
    *,
    registry: ToolRegistry | None = None,
    identity: Any = None,
    output: type[BaseModel] | None = None,
) -> T: ...


@overload
def cached_tool(
    cache: Cache,
    tool: Callable[..., Any],
    *,
    registry: ToolRegistry | None = None,
    identity: Any = None,
    output: type[BaseModel] | None = None,
) -> FunctionTool: ...


def cached_tool(
    cache: Cache,
    tool: Any,
    *,
    registry: ToolRegistry | None = None,
    identity: Any = None,
    output: type[BaseModel] | None = None,
) -> Any:
    """A tool that is called through the cache, by what is declared of it with `cacheable`.

    It is of the tool's own class, with its metadata and everything else of it, so agents,
    workflows and engines take it as they take the tool. Nothing of a tool that declares nothing is
    kept; one that declares what it writes is called every time and takes back what was read of
    that.

    A hit is a fresh `ToolOutput` with everything in it, `raw_output` included; its `raw_input` is
    that of the present call, with the note of the hit under `"stemma"`. Not stored are errors,
    raised or told by `is_error`; empty answers, and those for which a model's reply was refused or
    cut off; what has no stored form.

    All arguments are part of the key, given or fixed beforehand (`partial_params`), and so is what
    a function is bound to. A `Context` has no key: a tool that is given one is called every time,
    with one warning. Of a tool that is no function (`QueryEngineTool` and the like), all that it
    consists of is part of the key.

    Args:
        cache: The cache.
        tool: The tool, or a function to make one of.
        registry: Declarations by name; they count before those that tools carry.
        identity: What the tool is, as plain values, instead of what it consists of or is bound to.
        output: The class of the objects that it gives, if it gives pydantic objects; by default as
            its function is annotated.

    Raises:
        UsageError: An argument is wrong, or the declaration is not of this tool.
    """
    if isinstance(tool, CachedTool):
        raise UsageError(f"{tool.metadata.name} goes through a cache already")
    if not isinstance(tool, BaseTool):
        if not callable(tool):
            raise UsageError(f"tool must be a tool or a function, not {type(tool).__name__}")
        tool = FunctionTool.from_defaults(fn=tool)
    if not tool.metadata.name:
        raise UsageError("a tool without a name cannot be told apart from others: name it")
    made = object.__new__(_kind(type(tool)))  # type: ignore[arg-type]  # a class can be hashed
    caching = ToolCaching(cache, registry)
    own = {
        "cache": cache,
        "inner": tool,
        "_calls": ToolCalls(made, tool, caching, identity=identity, output=output),
        "_said": {"registry": registry, "identity": identity, "output": output},
    }
    for name, held in own.items():
        object.__setattr__(made, name, held)
    caching.registry.check(tool.metadata.get_name(), made)
    return made


class CachedTool(BaseTool):
    """What `cached_tool` gives, besides being of the tool's own class.

    Its attributes are the tool's; `inner` is the tool, `cache` the cache. What calls the tool's
    function itself (`tool.fn`) goes past the cache.
    """

    cache: Cache
    inner: Any
    _calls: ToolCalls
    _said: Mapping[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """What the tool gives, from the cache or from the tool itself."""
        return self._calls.call(self.inner, args, kwargs)

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
        if name.startswith("__") or "inner" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.inner, name, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        del protocol
        return functools.partial(cached_tool, **self._said), (self.cache, self.inner)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.metadata.name!r}>"


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
