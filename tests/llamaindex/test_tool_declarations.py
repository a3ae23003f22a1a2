"""LlamaIndex's tools carry a declaration, given to the function or to the tool."""

import asyncio

import pytest
from llama_index.core.tools import FunctionTool

from stemma import UsageError
from stemma.tools import ToolPolicy, cacheable, policy_of

POLICY = ToolPolicy(reads=["booking:{id}"])


@pytest.mark.parametrize("native", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("order", ["tool", "function"])
def test_on_the_function_and_on_the_tool(native, order):
    def plain(id: str) -> str:
        return id

    async def aplain(id: str) -> str:
        return id

    mark, named = cacheable(POLICY), {"async_fn": aplain} if native else {"fn": plain}
    if order == "function":
        named = {name: mark(function) for name, function in named.items()}
    made = FunctionTool.from_defaults(**named)
    made = mark(made) if order == "tool" else made
    assert policy_of(made) == POLICY
    assert asyncio.run(made.acall(id="1")).raw_output == "1"


def test_a_declaration_that_is_not_of_the_tool_is_refused():
    def get_booking(id: str) -> str:
        return id

    made = FunctionTool.from_defaults(fn=get_booking)
    assert policy_of(made) is None
    with pytest.raises(UsageError, match="no argument booking_id; it has id"):
        cacheable(reads="booking:{booking_id}")(made)
