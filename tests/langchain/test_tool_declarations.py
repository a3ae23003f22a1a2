"""LangChain's tools carry a declaration, on whichever side of `@tool` it stands."""

import asyncio

import pytest
from langchain_core.tools import StructuredTool, tool

from stemma import UsageError
from stemma.tools import ToolPolicy, ToolRegistry, cacheable, policy_of

POLICY = ToolPolicy(reads=["booking:{id}"])


@pytest.mark.parametrize("native", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("order", ["over", "under"])
def test_over_and_under_the_decorator(native, order):
    def plain(id: str) -> str:
        """Get a booking."""
        return id

    async def aplain(id: str) -> str:
        """Get a booking."""
        return id

    mark, fresh = cacheable(POLICY), aplain if native else plain
    made = mark(tool(fresh)) if order == "over" else tool(mark(fresh))
    assert policy_of(made) == POLICY
    assert policy_of(made.model_copy(update={"description": "another"})) == POLICY
    assert asyncio.run(made.ainvoke({"id": "1"})) == "1"
    assert set(made.tool_call_schema.model_json_schema()["properties"]) == {"id"}


def test_a_tool_that_is_not_marked_has_no_policy():
    @tool
    def get_booking(id: str) -> str:
        """Get a booking."""
        return id

    assert policy_of(get_booking) is None


def test_a_tool_with_a_schema_of_its_own_is_checked_against_that():
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}

    async def call(**arguments):
        return arguments

    remote = StructuredTool(
        name="remote",
        description="as the adapters of MCP make it",
        args_schema=schema,
        coroutine=call,
        metadata={"readOnlyHint": False},
    )
    with pytest.warns(RuntimeWarning, match="says of itself that it writes"):
        ToolRegistry().declare("remote", POLICY, tool=remote)
    with pytest.raises(UsageError, match="no argument booking_id; it has id"):
        cacheable(reads="booking:{booking_id}")(remote)
    assert policy_of(cacheable(POLICY)(remote)) == POLICY
