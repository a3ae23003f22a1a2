"""Model calls in private worlds: a write moves them on, in every style of calling."""

import asyncio
import itertools

import pytest
from langchain_core.tools import tool

import stemma
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry, cacheable
from stemma_langchain import CachedChatModel, CachedTool, node_key

ASKED = "Where do I sit?"


async def awhole(stream):
    return [chunk async for chunk in stream][-1]


ASK = {
    "invoke": lambda m: m.invoke(ASKED),
    "ainvoke": lambda m: asyncio.run(m.ainvoke(ASKED)),
    "batch": lambda m: m.batch([ASKED])[0],
    "abatch": lambda m: asyncio.run(m.abatch([ASKED]))[0],
    "stream": lambda m: list(m.stream(ASKED))[-1],
    "astream": lambda m: asyncio.run(awhole(m.astream(ASKED))),
}


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


@pytest.fixture
def move(cache):
    registry = ToolRegistry()
    registry.declare("move", ToolPolicy(writes=["booking:{id}"]))
    tools = ToolCaching(cache, registry)
    return lambda seat: tools.call("move", {"id": "1", "seat": seat}, lambda: "done")


@pytest.mark.parametrize("style", ASK)
@pytest.mark.parametrize("kind", ["whole", "streaming", "native"])
def test_a_model_is_asked_anew_after_a_write_and_not_by_who_wrote_the_same(
    cache, move, scripted, kind, style
):
    inner = scripted(kind)
    model, ask = CachedChatModel(cache, inner), ASK[style]
    for seat, calls in (("14B", 2), ("14B", 2), ("9C", 3)):
        with cache.world():
            ask(model), ask(model)
            move(seat)
            ask(model), ask(model)
        assert len(inner.calls) == calls
    ask(model)
    assert len(inner.calls) == 4  # what was said in a world is not served outside


@pytest.mark.parametrize("style", ["invoke", "ainvoke"])
def test_tools_that_an_agent_calls_find_what_a_run_that_wrote_the_same_has_read(cache, style):
    """Whatever ids the model gave to its calls."""
    seats, calls, ids = {}, [], itertools.count()

    @tool
    @cacheable(ttl=600, reads=["booking:{id}"])
    def get_booking(id: str) -> str:
        """A booking's seat."""
        calls.append("get")
        return seats[id]

    @tool
    @cacheable(writes=["booking:{id}"])
    def move(id: str, seat: str) -> str:
        """Change a booking's seat."""
        calls.append("move")
        seats[id] = seat
        return "done"

    def ask(called, **arguments):
        call = {"name": called.name, "args": arguments, "id": f"{next(ids)}", "type": "tool_call"}
        if style == "invoke":
            return called.invoke(call).content
        return asyncio.run(called.ainvoke(call)).content

    get_booking, move = CachedTool(cache, get_booking), CachedTool(cache, move)
    for made in (["get", "move", "get"], ["move"]):
        calls.clear()
        seats["1"] = "12A"
        with cache.world(), cache.trace():
            assert ask(get_booking, id="1") == "12A"
            assert ask(move, id="1", seat="14B") == "done"
            assert ask(get_booking, id="1") == "14B"
        assert calls == made


def test_a_node_has_another_key_after_a_write(cache, move):
    outside, keys = node_key("x"), []
    for seat in ("14B", "14B", "9C"):
        with cache.world():
            before = node_key("x")
            move(seat)
            keys.append((before, node_key("x")))
    assert keys[0] == keys[1]
    assert keys[0][0] == keys[2][0]
    assert len({outside, *keys[0], *keys[2]}) == 4
