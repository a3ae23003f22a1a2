"""Model calls in private worlds: a write moves them on, in every style of calling."""

import asyncio

import pytest

import stemma
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry
from stemma_langchain import CachedChatModel, node_key

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
