"""LangChain's and LangGraph's runs as frames: true edges, and none between independent runs."""

import asyncio
import gc
import operator
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    ChatResult,
    Generation,
    LLMResult,
)
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

import stemma
from stemma import Selector
from stemma_langchain import LLMCache
from stemma_langchain.codec import CODEC
from stemma_langchain.runs import runs


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_run_is_left_behind():
    before = len(runs)
    yield
    if len(runs) != before:
        gc.collect()  # of an abandoned stream it is told when it is collected
    assert len(runs) == before


class Model(BaseChatModel):
    """Says who it is, of which item the prompt spoke, and something long enough to be found."""

    who: str
    meet: Any = None

    @property
    def _llm_type(self):
        return "naming"

    @property
    def _identifying_params(self):
        return {"who": self.who}

    def _said(self, prompt):
        if self.meet is not None:
            self.meet.wait(30)
        item = re.findall(r"item-\w+", prompt)[-1]
        return f"{self.who} says of {item} what nobody else says of it"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        said = self._said("\n".join(m.text for m in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])


class Streaming(Model):
    """A model that streams, word by word."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for word in self._said("\n".join(m.text for m in messages)).split():
            yield ChatGenerationChunk(message=AIMessageChunk(f"{word} "))


class Completing(BaseLLM):
    """A completion model that does as `Model` does."""

    who: str

    @property
    def _llm_type(self):
        return "completing"

    @property
    def _identifying_params(self):
        return {"who": self.who}

    def _generate(self, prompts, stop=None, run_manager=None, **kwargs):
        items = (re.findall(r"item-\w+", prompt)[-1] for prompt in prompts)
        said = (f"{self.who} says of {item} what nobody else says of it" for item in items)
        return LLMResult(generations=[[Generation(text=text)] for text in said])


class Shelf(BaseRetriever):
    """One document an item, in a retriever that nobody wrapped."""

    def _get_relevant_documents(self, query, *, run_manager):
        (item,) = re.findall(r"item-\w+", query)
        return [Document(f"the only text there is of {item}", id=f"doc of {item}")]


def say(cache, who, *, silent=False, kind=Model, **named):
    """A chain that asks a model about what it is given, or (silent) only about the item."""
    model = kind(who=who, cache=LLMCache(cache), **named)
    shown = RunnableLambda(lambda x: re.findall(r"item-\w+", str(x))[-1]) if silent else _as_text
    return shown | ChatPromptTemplate.from_template("{x}") | model | StrOutputParser()


_as_text = RunnableLambda(str)


def entries(cache, **named):
    """Stored model calls, by who was asked and the item."""
    found = {}
    for entry in cache.engine.parts.store.find(Selector(node="call", **named), limit=10_000):
        said = CODEC.decode(entry.payload)[0].text
        who, item = re.match(r"(\S+) says of (\S+)", said).groups()
        found[entry.id] = (f"{who} {item}", entry)
    return found


def edges(cache):
    """Every edge of every stored call: from whom to whom (or which document), and how known."""
    named = entries(cache)
    found = {}
    for entry, (name, _) in named.items():
        lineage = cache.engine.parts.store.lineage(entry)
        for edge in lineage.parents:
            found[name, named[edge.parent][0]] = edge.known
        for edge in lineage.sources:
            found[name, edge.source.chunk] = edge.known
    return found


def of_item(pairs, *items):
    return {(f"{a} {i}", f"{b} {i}") for a, b in pairs for i in items}


ITEMS = tuple(f"item-{n}" for n in range(6))


# ------------------------------------------------------------------------- inside one run


def sequence(cache):
    return say(cache, "a") | say(cache, "b"), [("b", "a")]


def silent_sequence(cache):
    """The second prompt does not show the first answer: read before it all the same."""
    keep = RunnablePassthrough.assign(first=lambda d: "done")
    first = RunnablePassthrough.assign(a=say(cache, "a"))
    return _keyed | first | keep | say(cache, "b", silent=True), [("b", "a")]


def parallel(cache):
    gate = threading.Barrier(2)
    branches = RunnableParallel(a=say(cache, "a", meet=gate), b=say(cache, "b", meet=gate))
    return branches | say(cache, "c"), [("c", "a"), ("c", "b")]


def parallel_after_parallel(cache):
    """In a stream, the branches of both steps begin before any of them has its input."""
    first = RunnableParallel(a=say(cache, "a"), b=say(cache, "b"))
    second = RunnableParallel(c=say(cache, "c", silent=True), d=say(cache, "d", silent=True))
    return first | second, [("c", "a"), ("c", "b"), ("d", "a"), ("d", "b")]


def one_after_another_in_parallel(cache):
    """One branch has long ended when the other stores: it is no parent of it."""
    done = threading.Event()

    def tell(said):
        done.set()
        return said

    branches = RunnableParallel(a=say(cache, "a") | tell, b=say(cache, "b", meet=done) | tell)
    return branches | say(cache, "c", silent=True), [("c", "a"), ("c", "b")]


def assigned(cache):
    chain = RunnablePassthrough.assign(a=say(cache, "a")) | RunnablePassthrough.assign(
        b=say(cache, "b")
    )
    return _keyed | chain | say(cache, "c"), [("b", "a"), ("c", "a"), ("c", "b")]


def in_a_lambda(cache):
    a, b = say(cache, "a"), say(cache, "b")
    return RunnableLambda(lambda x: b.invoke(a.invoke(x))), [("b", "a")]


def nested(cache):
    inner = (say(cache, "a") | say(cache, "b")).with_config(run_name="inner", tags=["mine"])
    outer = RunnableLambda(lambda x: inner) | say(cache, "c")
    return outer, [("b", "a"), ("c", "a"), ("c", "b")]


def branched(cache):
    way = RunnableBranch((lambda x: "item" in x, say(cache, "b")), say(cache, "never"))
    return say(cache, "a") | way | say(cache, "c"), [("b", "a"), ("c", "a"), ("c", "b")]


def fallen_back(cache):
    def fail(_):
        raise ConnectionError("gone")

    failing = say(cache, "a") | RunnableLambda(fail)
    return failing.with_fallbacks([say(cache, "b")]) | say(cache, "c"), [("c", "b")]


def by_tool(cache):
    asked = say(cache, "a")

    @tool
    def ask(item: str) -> str:
        """Ask."""
        return asked.invoke(item)

    return RunnableLambda(lambda x: {"item": x}) | ask | say(cache, "b"), [("b", "a")]


def retrieved(cache):
    gathered = RunnableParallel(docs=Shelf(), question=RunnablePassthrough())
    return gathered | say(cache, "a") | say(cache, "b", silent=True), [
        ("a", "doc of"), ("b", "doc of"), ("b", "a"),
    ]  # fmt: skip


class State(TypedDict):
    item: str
    said: Annotated[list, operator.add]


def graph(cache):
    """Two nodes side by side, between one before and one after."""
    gate = threading.Barrier(2)

    def node(who, **named):
        step = say(cache, who, **named)
        return lambda state: {"said": [step.invoke(f"{state['said']} {state['item']}")]}

    def silent(who, **named):
        step = say(cache, who, silent=True, **named)
        return lambda state: {"said": [step.invoke(state["item"])]}

    builder = StateGraph(State)
    builder.add_node("a", node("a"))
    builder.add_node("b", silent("b", meet=gate))
    builder.add_node("c", node("c", meet=gate))
    builder.add_node("d", node("d"))
    for one, other in ((START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", END)):
        builder.add_edge(one, other)
    app = RunnableLambda(lambda x: {"item": x, "said": []}) | builder.compile()
    return app, [("b", "a"), ("c", "a"), ("d", "a"), ("d", "b"), ("d", "c")]


_keyed = RunnableLambda(lambda x: {"x": x})
CHAINS = [sequence, silent_sequence, parallel, parallel_after_parallel, one_after_another_in_parallel, assigned, in_a_lambda,
          nested, branched, by_tool, retrieved, graph]  # fmt: skip


def ids(function):
    return function.__name__


def run(chain, style, *items):
    if style == "invoke":
        return [chain.invoke(item) for item in items]
    if style == "batch":
        return chain.batch(list(items))
    if style == "stream":
        return [list(chain.stream(item))[-1] for item in items]

    async def each():
        if style == "ainvoke":
            return [await chain.ainvoke(item) for item in items]
        return [[c async for c in chain.astream(item)][-1] for item in items]

    return asyncio.run(each())


@pytest.mark.parametrize("style", ["invoke", "ainvoke", "batch", "stream", "astream"])
@pytest.mark.parametrize("made", CHAINS, ids=ids)
def test_inside_a_run_the_edges_are_the_true_ones(cache, made, style):
    """Each item is a run of its own, one after the other: nothing joins them."""
    chain, pairs = made(cache)
    run(chain, style, *ITEMS[:2])
    assert set(edges(cache)) == of_item(pairs, *ITEMS[:2])


@pytest.mark.parametrize("style", ["invoke", "ainvoke", "batch", "stream", "astream"])
def test_what_a_failed_attempt_read_may_count_and_what_came_after_does(cache, style):
    chain, pairs = fallen_back(cache)
    run(chain, style, *ITEMS[:2])
    certain, found = of_item(pairs, *ITEMS[:2]), set(edges(cache))
    assert certain <= found <= certain | of_item([("b", "a"), ("c", "a")], *ITEMS[:2])


def test_a_value_that_is_shown_is_observed_and_one_that_was_only_read_is_ambient(cache):
    sequence(cache)[0].invoke("item-1")
    silent_sequence(cache)[0].invoke("item-2")
    retrieved(cache)[0].invoke("item-3")
    found = edges(cache)
    assert found["b item-1", "a item-1"] == "observed"
    assert found["b item-2", "a item-2"] == "ambient"
    assert found["a item-3", "doc of item-3"] == "observed"
    assert found["b item-3", "doc of item-3"] == "ambient"


@pytest.mark.parametrize(
    "made", [sequence, silent_sequence, assigned, in_a_lambda, nested, by_tool], ids=ids
)
def test_a_hit_is_a_parent_as_what_was_computed_is(cache, made):
    """The first step is served by the cache; what is built on it is built on the same entry."""
    chain, pairs = made(cache)
    say(cache, "a").invoke("item-1")
    chain.invoke("item-1")
    assert of_item(pairs, "item-1") == set(edges(cache))


# -------------------------------------------------------------------- between independent runs

WAYS = {
    "batch": lambda chain: chain.batch(list(ITEMS)),
    "batch, one at a time": lambda chain: chain.batch(list(ITEMS), {"max_concurrency": 1}),
    "batch in a lambda": lambda chain: RunnableLambda(chain.batch).invoke(list(ITEMS)),
    "batch in a lambda, one at a time": lambda chain: RunnableLambda(
        lambda items: chain.batch(items, {"max_concurrency": 1})
    ).invoke(list(ITEMS)),
    "batch as completed": lambda chain: list(chain.batch_as_completed(list(ITEMS))),
    "map": lambda chain: chain.map().invoke(list(ITEMS)),
    "abatch": lambda chain: asyncio.run(chain.abatch(list(ITEMS))),
    "abatch, one at a time": lambda chain: asyncio.run(
        chain.abatch(list(ITEMS), {"max_concurrency": 1})
    ),
    "gather": lambda chain: asyncio.run(_gathered(chain)),
    "threads": lambda chain: _in_threads(chain),  # noqa: PLW0108 - it is defined below
    "a loop": lambda chain: [chain.invoke(item) for item in ITEMS],
}


async def _gathered(chain):
    return await asyncio.gather(*(chain.ainvoke(item) for item in ITEMS))


def _in_threads(chain):
    with ThreadPoolExecutor(6) as pool:
        return list(pool.map(chain.invoke, ITEMS))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("made", [sequence, silent_sequence, assigned, in_a_lambda, retrieved],
                         ids=ids)  # fmt: skip
def test_items_side_by_side_are_not_joined(cache, made, way):
    chain, pairs = made(cache)
    WAYS[way](chain)
    found, expected = set(edges(cache)), of_item(pairs, *ITEMS)
    false = {(child, parent) for child, parent in found if child[-6:] != parent[-6:]}
    assert false == set()
    assert found == expected


def test_over_everything_at_once_all_true_edges_are_found_and_no_false_one(cache):
    """Every chain in every style, with every item at once."""
    expected: set = set()
    with ThreadPoolExecutor(8) as pool:
        jobs = []
        for number, made in enumerate(CHAINS):
            if made in (parallel, one_after_another_in_parallel, graph):
                continue  # their gates open for one run at a time
            for style in ("invoke", "ainvoke", "batch", "stream"):
                item = f"item-{style}{number}"
                chain, pairs = made(cache)
                expected |= of_item(pairs, item)
                jobs.append(pool.submit(run, chain, style, item))
        for job in jobs:
            job.result()
    found = set(edges(cache))
    assert len(found & expected) >= 0.99 * len(expected)
    assert {(c, p) for c, p in found if c.split("item-")[1] != p.split("item-")[1]} == set()
    assert found == expected


def test_generate_with_several_prompts_has_a_run_for_each(cache):
    model = Model(who="a", cache=LLMCache(cache))
    for _ in range(2):
        model.generate([[HumanMessage(item)] for item in ITEMS])
    assert len(entries(cache)) == len(ITEMS)
    assert edges(cache) == {}


def test_two_caches_in_one_run_have_no_edges_to_each_other(cache):
    with stemma.open(":memory:", embedder=None, tenant="t") as other:
        chain = say(cache, "a") | say(other, "b") | say(cache, "c")
        chain.invoke("item-1")
        assert set(edges(cache)) == {("c item-1", "a item-1")}
        assert edges(other) == {}


def test_a_model_called_alone_is_a_run_of_its_own(cache):
    for who in "ab":
        Model(who=who, cache=LLMCache(cache)).invoke("item-1")
    assert edges(cache) == {}


def test_workers_sent_to_side_by_side_are_not_joined_but_what_collects_them_is(cache):
    worker, collect = say(cache, "w", silent=True), say(cache, "c", silent=True)
    builder = StateGraph(State)
    builder.add_node("w", lambda state: {"said": [worker.invoke(state["item"])]})
    builder.add_node("c", lambda state: {"said": [collect.invoke("item-end")]})
    builder.add_conditional_edges(START, lambda _: [Send("w", {"item": i}) for i in ITEMS], ["w"])
    builder.add_edge("w", "c")
    builder.compile().invoke({"item": "", "said": []})
    assert set(edges(cache)) == {("c item-end", f"w {item}") for item in ITEMS}


# ------------------------------------------------------------------------- traces and hops


def test_runs_in_a_trace_are_siblings_joined_only_by_text(cache):
    a, b, silent = say(cache, "a"), say(cache, "b"), say(cache, "c", silent=True)
    with cache.trace():
        first = a.invoke("item-1")
        silent.invoke("item-1")
        b.invoke(first)
    assert edges(cache) == {("b item-1", "a item-1"): "observed"}


def test_without_a_trace_even_text_joins_nothing(cache):
    say(cache, "b").invoke(say(cache, "a").invoke("item-1"))
    assert edges(cache) == {}


@pytest.mark.parametrize("where", ["around runs", "in a run", "in a graph"])
def test_hops_are_numbered_and_each_is_built_on_those_before(cache, where):
    steps = {who: say(cache, who, silent=True) for who in "abc"}

    def step(who):
        def taken(item):
            with cache.hop(who):
                return steps[who].invoke(item) and item

        return taken

    def all_of(item):
        for who in "abc":
            step(who)(item)

    if where == "around runs":
        with cache.trace():
            all_of("item-1")
    elif where == "in a run":
        (RunnableLambda(step("a")) | step("b") | RunnableLambda(step("c"))).invoke("item-1")
    else:
        builder = StateGraph(State)
        for who in "abc":
            builder.add_node(who, lambda s, who=who: step(who)(s["item"]) and {"said": []})
        for one, other in ((START, "a"), ("a", "b"), ("b", "c"), ("c", END)):
            builder.add_edge(one, other)
        builder.compile().invoke({"item": "item-1", "said": []})
    assert {name: entry.hop for name, entry in entries(cache).values()} == {
        "a item-1": 1, "b item-1": 2, "c item-1": 3,
    }  # fmt: skip
    assert set(edges(cache)) == of_item([("b", "a"), ("c", "a"), ("c", "b")], "item-1")


# ------------------------------------------------------------------- runs that do not end well


def failing(_):
    raise ConnectionError("gone")


@pytest.mark.parametrize("chain", [
    lambda cache: say(cache, "a") | RunnableLambda(failing),
    lambda cache: RunnableParallel(x=say(cache, "a"), y=failing),
    lambda cache: RunnableLambda(lambda x: say(cache, "a").invoke(failing(x))),
])  # fmt: skip
@pytest.mark.parametrize("style", ["invoke", "ainvoke", "batch", "stream", "astream"])
def test_a_run_that_fails_leaves_nothing_open(cache, chain, style):
    made = chain(cache)
    with pytest.raises(ConnectionError):
        run(made, style, "item-1")
    say(cache, "b").invoke("item-1")
    assert edges(cache) == {}
    if isinstance(made, RunnableParallel) and style in ("ainvoke", "astream"):
        runs._runs.clear()  # LangChain does not always tell the end of a sibling that it cancels


@pytest.mark.parametrize("fails", [0, 1, 2])
def test_a_generate_that_fails_midway_leaves_nothing_open(cache, fails):
    model = Model(who="a", cache=LLMCache(cache))
    prompts = [[HumanMessage(f"item-{n}" if n != fails else "nothing")] for n in range(3)]
    with pytest.raises(IndexError):
        model.generate(prompts)
    with pytest.raises(IndexError):
        asyncio.run(model.agenerate(prompts))


@pytest.mark.parametrize("kind", [Model, Streaming])
def test_an_abandoned_stream_leaves_nothing_open(cache, kind):
    chain = say(cache, "a", kind=kind) | say(cache, "b", kind=kind)
    for _ in chain.stream("item-1"):
        break
    next(iter(kind(who="a", cache=LLMCache(cache)).stream("item-2")))

    async def some():
        async for _ in chain.astream("item-1"):
            break

    asyncio.run(some())
    assert edges(cache).keys() <= of_item([("b", "a")], "item-1")


def test_a_stream_that_waits_to_be_read_joins_nothing_to_what_runs_meanwhile(cache):
    waiting = (say(cache, "a") | say(cache, "b", kind=Streaming)).stream("item-1")
    next(waiting)
    say(cache, "c", silent=True).invoke("item-1")
    Model(who="d", cache=LLMCache(cache)).invoke("item-1")
    list(waiting)
    assert edges(cache) == {}


# ------------------------------------------------------------- the tenant that a run names


def named(tenant):
    return {"metadata": {"tenant": tenant}}


def test_a_stream_that_waits_lends_its_tenant_to_nobody(cache):
    """A model that streams starts but never asks the cache: its start is not the next call's."""
    streaming = Streaming(who="a", cache=LLMCache(cache))
    waiting = streaming.stream("item-1", named("secret"))
    next(waiting)
    Model(who="b", cache=LLMCache(cache)).invoke("item-1")
    Completing(who="c", cache=LLMCache(cache)).invoke("item-1")
    assert {entry.tenant for _, entry in entries(cache).values()} == {"t"}
    list(waiting)


@pytest.mark.parametrize(
    "content",
    [
        "item-1",
        [{"type": "text", "text": "item-1"}],
        [{"type": "text", "text": "item-1"}, {"type": "text", "text": " x"}],
    ],
)
def test_the_tenant_is_found_whatever_the_form_of_the_prompt(cache, content):
    model = Model(who="a", cache=LLMCache(cache))
    for tenant in ("x", "y"):
        model.generate(
            [[HumanMessage(content)], [HumanMessage("item-2")]], metadata={"tenant": tenant}
        )
    assert {(name, e.tenant) for name, e in entries(cache).values()} == {
        (f"a item-{n}", tenant) for n in (1, 2) for tenant in ("x", "y")
    }


@pytest.mark.parametrize("kind", [Model, Completing])
@pytest.mark.parametrize("style", ["batch", "abatch", "batch in a lambda", "abatch in a lambda"])
def test_each_item_of_a_batch_has_its_own_tenant(cache, kind, style):
    """LangChain asks for all prompts of a batch of completions at once, before their runs start."""
    chain = say(cache, "a", kind=kind) | say(cache, "b", kind=kind, silent=True)
    configs = [named(tenant) for tenant in "xyz"]
    batch = RunnableLambda(
        lambda items: chain.batch(items, configs), afunc=lambda items: chain.abatch(items, configs)
    )
    for _ in range(2):
        if style == "batch":
            chain.batch(["item-1"] * 3, configs)
        elif style == "abatch":
            asyncio.run(chain.abatch(["item-1"] * 3, configs))
        elif style == "batch in a lambda":
            batch.invoke(["item-1"] * 3)
        else:
            asyncio.run(batch.ainvoke(["item-1"] * 3))
    stored = [(name, entry.tenant) for name, entry in entries(cache).values()]
    assert sorted(stored) == [(f"{who} item-1", tenant) for who in "ab" for tenant in "xyz"]
    for _, entry in entries(cache).values():
        for edge in cache.engine.parts.store.lineage(entry.id).parents:
            joined = entries(cache)[edge.parent][1].tenant == entry.tenant
            assert joined or edge.known == "observed"  # they all say the same, and it is seen


@pytest.mark.parametrize("style", ["batch", "batch in a lambda"])
def test_a_batch_of_completions_is_served_nothing_of_another_tenant(cache, style):
    """Whose each of them is cannot be told when the cache is asked: so it gives nothing."""
    chain = say(cache, "a", kind=Completing)
    chain.invoke("item-1")
    configs = [named(tenant) for tenant in "xyz"]
    batch = RunnableLambda(lambda items: chain.batch(items, configs))
    if style == "batch":
        chain.batch(["item-1"] * 3, configs)
    else:
        batch.invoke(["item-1"] * 3)
    assert {entry.tenant for _, entry in entries(cache).values()} == set("txyz")


def test_a_completion_model_called_alone_stores_for_the_tenant_its_run_names(cache):
    """LangChain asks the cache before such a run starts, so that only `using` can say whose."""
    model = Completing(who="a", cache=LLMCache(cache))
    for _ in range(2):
        model.invoke("item-1", named("x"))
        model.batch(["item-1"] * 2, [named("y"), named("z")])
        asyncio.run(model.ainvoke("item-1", named("w")))
    assert {entry.tenant for _, entry in entries(cache).values()} == set("wxyz")


def test_a_completion_model_in_a_chain_has_the_chains_tenant_and_edges(cache):
    chain = say(cache, "a") | say(cache, "b", kind=Completing)
    for tenant in ("x", "y"):
        chain.invoke("item-1", named(tenant))
    assert sorted(entry.tenant for _, entry in entries(cache).values()) == ["x", "x", "y", "y"]
    assert set(edges(cache)) == of_item([("b", "a")], "item-1")


def test_an_inner_runs_own_tenant_is_its_own_alone(cache):
    inner = say(cache, "a", silent=True).with_config(named("shared"))
    chain = RunnablePassthrough() | inner | say(cache, "b", silent=True)
    chain.invoke("item-1")
    assert {name: e.tenant for name, e in entries(cache).values()} == {
        "a item-1": "shared", "b item-1": "t",
    }  # fmt: skip
