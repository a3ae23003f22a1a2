"""A completion model's call is its own tenant's, although it asks before its run begins."""

import pytest
from langchain_core.language_models import FakeListLLM
from langchain_core.runnables import RunnableLambda

import stemma
from stemma_langchain import LLMCache

A, B = ({"metadata": {"tenant": tenant}} for tenant in ("a", "b"))


@pytest.fixture
def cache():
    with stemma.open(":memory:", tenant="default", embedder=None) as opened:
        yield opened


@pytest.fixture
def model(cache):
    """Gives another answer each time it is reached."""
    return FakeListLLM(responses=[str(n) for n in range(100)], cache=LLMCache(cache))


def stored(cache):
    return {(e.tenant, e.payload) for e in cache.engine.parts.store.find(limit=100)}


def test_a_bare_call_is_looked_up_for_the_tenant_that_it_names(model):
    assert model.invoke("q") == "0"
    assert model.invoke("q", A) == "1"
    assert model.invoke("q", B) == "2"
    assert [model.invoke("q", one) for one in (A, B, {})] == ["1", "2", "0"]


async def test_so_is_an_async_one(model):
    assert await model.ainvoke("q") == "0"
    assert await model.ainvoke("q", A) == "1"
    assert [await model.ainvoke("q", one) for one in (A, B, {})] == ["1", "2", "0"]


def test_each_item_of_a_batch_names_its_own(model):
    first = model.batch(["q", "q", "r"], [A, B, A])
    assert len(set(first)) == 3
    assert model.batch(["q", "q", "r"], [A, B, A]) == first
    assert model.batch(["q", "q", "r"], [B, A, B])[:2] == [first[1], first[0]]


async def test_each_item_of_an_async_batch_names_its_own(model):
    first = await model.abatch(["q", "q", "r"], [A, B, A])
    assert len(set(first)) == 3
    assert await model.abatch(["q", "q", "r"], [A, B, A]) == first


def test_inside_a_chain_the_runs_tenant_holds(cache, model):
    chain = RunnableLambda(lambda text: text + "?") | model
    answers = chain.batch(["q", "q"], [A, B])
    assert len(set(answers)) == 2
    assert chain.batch(["q", "q"], [A, B]) == answers
    assert {tenant for tenant, _ in stored(cache)} == {"a", "b"}
