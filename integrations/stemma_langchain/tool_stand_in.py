"""Tools that stand for another one, which answers all that LangChain asks a tool about."""

# ruff: noqa: SLF001 - what begins with an underscore is what LangChain has a tool say

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_core.tools.base import ArgsSchema

from stemma.describing import SameAs

__all__ = ["KeptResult", "ToolStandIn", "taken_over"]


def taken_over(inner: BaseTool) -> dict[str, Any]:
    """The fields of a stand-in for this tool: its name, description, schema and all the rest."""
    return {**{name: getattr(inner, name) for name in BaseTool.model_fields}, "inner": inner}


class ToolStandIn(BaseTool):
    """Is to models, agents and tracers what the inner tool is.

    Args:
        inner: The tool it stands for.
    """

    inner: BaseTool

    @property
    def stemma_identity(self) -> SameAs:
        """What has it is what has the inner tool."""
        return SameAs(self.inner)

    @property
    def args(self) -> dict[str, Any]:
        """The inner tool's own."""
        return self.inner.args

    @property
    def tool_call_schema(self) -> ArgsSchema:
        """The inner tool's own."""
        return self.inner.tool_call_schema

    def get_input_schema(self, config: RunnableConfig | None = None) -> Any:
        """The inner tool's own."""
        return self.inner.get_input_schema(config)

    @property
    def _injected_args_keys(self) -> frozenset[str]:
        return self.inner._injected_args_keys

    def __getattr__(self, name: str) -> Any:
        """The inner tool's fields can be read here: LangGraph looks at the function for types."""
        inner = self.__dict__.get("inner")
        if inner is not None and name in type(inner).model_fields:
            return getattr(inner, name)
        return super().__getattr__(name)  # type: ignore[misc]

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner._run(*args, **kwargs)

    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        return await self.inner._arun(*args, **kwargs)


class KeptResult(ToolStandIn):
    """Gives a stored result, in a run that callbacks and traces see as one of the inner tool.

    Args:
        result: What is given: a message, or the value itself where no message is asked for.
    """

    result: Any

    def __init__(self, inner: BaseTool, result: Any) -> None:
        fields = {**taken_over(inner), "response_format": "content", "result": result}
        super().__init__(**fields)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        return self.result

    async def _arun(self, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        return self.result
