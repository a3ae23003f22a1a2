"""A chat model where a pool is named: what others agreed on, in every way of calling."""

import asyncio

import pytest
from langchain_core.messages import AIMessage

import stemma
from stemma import PoolPolicy
from stemma_langchain import CachedChatModel

ASKED, POOL = "May a gift card be returned?", "support"


@pytest.fixture
def cache():
    with stemma.open(
        ":memory:", embedder=None, tenant="t", pools={POOL: PoolPolicy(witnesses=2)}
    ) as opened:
        yield opened


async def _astreamed(model):
    return [chunk async for chunk in model.astream(ASKED)]


def _joined(chunks):
    first, *rest = chunks
    return sum(rest, first)


WAYS = {
    "invoke": lambda model: model.invoke(ASKED),
    "ainvoke": lambda model: asyncio.run(model.ainvoke(ASKED)),
    "stream": lambda model: _joined(list(model.stream(ASKED))),
    "astream": lambda model: _joined(asyncio.run(_astreamed(model))),
    "batch": lambda model: model.batch([ASKED, ASKED])[1],
    "abatch": lambda model: asyncio.run(model.abatch([ASKED, ASKED]))[1],
}


def _same(_):

    return AIMessage("No.")


@pytest.mark.parametrize("kind", ["whole", "streaming", "native"])
@pytest.mark.parametrize("way", WAYS)
def test_a_hit_out_of_a_pool_says_so_however_it_is_asked_for(cache, scripted, way, kind):
    inner = scripted(kind, _same)
    model = CachedChatModel(cache, inner)
    for tenant in ("ann", "bob"):
        with cache.using(tenant=tenant, pool=POOL):
            WAYS["stream"](model)
    assert len(inner.calls) == 2
    with cache.using(tenant="eve", pool=POOL):
        served = WAYS[way](model)
    note = served.response_metadata["stemma"]
    assert (served.text, note["pool"], len(inner.calls)) == ("No.", POOL, 2)
    with cache.using(tenant="mal"):  # names no pool
        WAYS[way](model)
    assert len(inner.calls) > 2


@pytest.mark.parametrize("way", WAYS)
def test_what_is_held_or_called_wrong_is_served_in_no_way(cache, scripted, way):
    inner = scripted("native", _same)
    model = CachedChatModel(cache, inner)
    for tenant in ("ann", "bob"):
        with cache.using(tenant=tenant, pool=POOL):
            model.invoke(ASKED)
    (copy,) = cache.pools.entries(POOL)
    cache.quarantine(copy.id, by="pam")
    with cache.using(tenant="eve", pool=POOL):
        served = WAYS[way](model)
    assert len(inner.calls) > 2
    assert served.response_metadata.get("stemma", {}).get("entry") != copy.id
