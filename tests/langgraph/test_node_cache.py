"""`NodeCache` in graphs that run: whose results they are, what is stored, what goes wrong."""

import asyncio
import copy
import operator
import pickle
import sqlite3
import threading
import warnings
from dataclasses import dataclass
from typing import Annotated, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.types import CachePolicy, Command, Send, interrupt

import stemma
from stemma.testing.clock import ManualClock
from stemma.testing.fakes import Faulty
from stemma_langchain import NodeCache, node_key

POLICY = CachePolicy(key_func=node_key)


class Counting:
    """Makes nodes that note their calls."""

    def __init__(self):
        self.calls = []

    def node(self, name, update=None, channel="out"):
        def function(state):
            self.calls.append(name)
            return {channel: [name] if update is None else update(state)}

        function.__name__ = name
        return function

    def taken(self):
        calls, self.calls = sorted(self.calls), []
        return calls


@pytest.fixture
def counting():
    return Counting()


def invoked(graph, given, config, kind):
    if kind == "sync":
        return graph.invoke(given, config)
    if kind == "async":
        return asyncio.run(graph.ainvoke(given, config))
    chunks = list(graph.stream(given, config, stream_mode="values"))
    return chunks[-1]


KINDS = pytest.mark.parametrize("kind", ["sync", "async", "stream"])


# ------------------------------------------------------------------- whose it is


@KINDS
def test_each_tenant_has_results_of_its_own(nodes, counting, chained, of, kind):
    """Through branches side by side, where LangGraph stores from threads that know nothing."""
    a, b, c, d = map(counting.node, "abcd")
    graph = chained(nodes, a, [b, c], d)
    for tenant in ("acme", "globex"):
        first = invoked(graph, {"question": "q"}, of(tenant), kind)
        assert counting.taken() == ["a", "b", "c", "d"]
        assert invoked(graph, {"question": "q"}, of(tenant), kind) == first
        assert counting.taken() == []
    assert invoked(graph, {"question": "r"}, of("acme"), kind)["question"] == "r"
    assert counting.taken() == ["a", "b", "c", "d"]


def test_results_are_shared_by_sync_async_and_streams(nodes, counting, chained, of):
    graph = chained(nodes, counting.node("a"), [counting.node("b"), counting.node("c")])
    results = [
        invoked(graph, {"question": "q"}, of("acme"), k) for k in ("sync", "async", "stream")
    ]
    assert results[0] == results[1] == results[2]
    assert counting.taken() == ["a", "b", "c"]


def whose(state, config):
    """Gives what nobody but the tenant may see."""
    threading.Event().wait(0.002)  # so that runs overlap
    return {"out": [config["metadata"]["tenant"]]}


def whose_too(state, config):
    return whose(state, config)


def test_runs_in_threads_keep_their_tenants(nodes, chained, of):
    graph = chained(nodes, [whose, whose_too], _again(whose))
    wrong = []

    def run(tenant):
        for n in range(6):
            out = graph.invoke({"question": str(n % 3)}, of(tenant))["out"]
            wrong.extend(one for one in out if one != tenant)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("acme", "globex") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert all(row.exact >= 9 for row in nodes.cache.stats().rows)


def test_runs_in_tasks_keep_their_tenants(nodes, chained, of):
    graph = chained(nodes, [whose, whose_too])
    tenants = [f"t{n % 4}" for n in range(16)]

    async def ask_all():
        return await asyncio.gather(
            *(graph.ainvoke({"question": "q"}, of(tenant)) for tenant in tenants)
        )

    for _ in range(2):
        assert [one["out"] for one in asyncio.run(ask_all())] == [[one] * 2 for one in tenants]
    assert all(row.exact >= 8 for row in nodes.cache.stats().rows)


def test_streams_that_are_read_in_turns_are_not_confused(nodes, chained, of, events):
    """In one thread they share a context: which of them asks cannot be told, so nothing is kept."""
    graph = chained(nodes, whose, _again(whose), _again(whose_too))
    for _ in range(2):
        tenants = ("acme", "globex")
        streams = [
            graph.stream({"question": "q"}, of(one), stream_mode="values") for one in tenants
        ]
        last = list(zip(*streams, strict=True))[-1]
        assert [one["out"] for one in last] == [[tenant] * 3 for tenant in tenants]
    assert any("two runs stand open" in event.detail for event in events)
    for tenant in tenants:
        assert graph.invoke({"question": "q"}, of(tenant))["out"] == [tenant] * 3


def _again(function):
    """The same node under another name."""

    def again(state, config):
        return function(state, config)

    again.__name__ = f"{function.__name__}_again"
    return again


def test_a_tenant_is_said_by_using_or_by_the_default(cache, nodes, counting, chained, of):
    graph = chained(nodes, [counting.node("a"), counting.node("b")])
    with cache.using(tenant="acme"):
        graph.invoke({"question": "q"})
        graph.invoke({"question": "q"})
    assert counting.taken() == ["a", "b"]
    graph.invoke({"question": "q"}, of("acme"))
    with cache.using(tenant="acme", language="de"):
        graph.invoke({"question": "q"})
        graph.invoke({"question": "q"})
    assert counting.taken() == ["a", "a", "b", "b"]


def test_the_default_never_stands_in_for_one_that_is_named(counting, chained, of):
    with stemma.open(tenant="me", embedder=None) as cache:
        graph = chained(NodeCache(cache), [counting.node("a"), counting.node("b")])
        graph.invoke({"question": "q"}, of("acme"))
        graph.invoke({"question": "q"})
        assert counting.taken() == ["a", "a", "b", "b"]
        graph.invoke({"question": "q"})
        graph.invoke({"question": "q"}, of("acme"))
        assert counting.taken() == []
        assert {one.tenant for one in cache.stats().rows} == {"acme", "me"}


def test_without_a_tenant_nothing_is_cached_and_one_warning_said(nodes, counting, chained):
    graph = chained(nodes, [counting.node("a"), counting.node("b")])
    with pytest.warns(RuntimeWarning, match="no tenant"):
        graph.invoke({"question": "q"})
    graph.invoke({"question": "q"})  # a second warning would be an error
    assert counting.taken() == ["a", "a", "b", "b"]
    assert nodes.cache.engine.parts.store.sizes() == {}


def test_other_key_functions_do_while_only_the_default_tenant_is_meant(counting, chained, of):
    with stemma.open(tenant="me", embedder=None) as cache:
        nodes = NodeCache(cache)
        a, b = counting.node("a"), counting.node("b")
        graph = chained(nodes, [a, b], policy=CachePolicy())
        graph.invoke({"question": "q"})
        graph.invoke({"question": "q"})
        assert counting.taken() == ["a", "b"]
        with pytest.warns(RuntimeWarning, match="node_key"):
            graph.invoke({"question": "q"}, of("acme"))
        graph.invoke({"question": "q"}, of("acme"))
        graph.invoke({"question": "r"})
        graph.invoke({"question": "r"})
        assert counting.taken() == ["a"] * 4 + ["b"] * 4
        assert {one.tenant for one in cache.stats().rows} == {"me"}


def me_or_whose(state, config):
    """Gives what nobody but the tenant may see; the default tenant's run can be made to wait."""
    tenant = config["metadata"].get("tenant", "me")
    if tenant == "me" and not me_or_whose.go_on.is_set():
        me_or_whose.waits.set()
        assert me_or_whose.go_on.wait(timeout=10)
    threading.Event().wait(0.05)  # a slow one is stored from a thread that knows nothing
    return {"out": [tenant]}


def and_beside(state):
    return {"out": []}


def test_a_key_that_does_not_tell_is_never_taken_for_the_defaults(chained, of):
    """Not while a run of the default's waits under the same key, not in another cache later."""
    me_or_whose.waits, me_or_whose.go_on = threading.Event(), threading.Event()
    with stemma.open(tenant="me", embedder=None) as cache:
        nodes = [me_or_whose, and_beside]  # side by side, so that LangGraph stores from anywhere
        graph = chained(NodeCache(cache), nodes, policy=CachePolicy())
        waiting = threading.Thread(target=graph.invoke, args=({"question": "q"},))
        waiting.start()
        assert me_or_whose.waits.wait(timeout=10)
        with pytest.warns(RuntimeWarning, match="node_key"):
            graph.invoke({"question": "q"}, of("acme"))
        graph.invoke({"question": "r"}, of("acme"))
        for question in "qr":
            later = chained(NodeCache(cache), nodes, policy=CachePolicy())
            me_or_whose.go_on.set()
            assert later.invoke({"question": question})["out"] == ["me"]
        waiting.join()


# -------------------------------------------------------------- kinds of graphs


@KINDS
def test_a_loop_is_gone_through_without_its_nodes(nodes, counting, of, kind):
    graph = StateGraph(TypedDict("Count", {"n": int}))
    graph.add_node(
        "add", counted := counting.node("add", lambda s: s["n"] + 1, "n"), cache_policy=POLICY
    )
    graph.add_edge(START, "add")
    graph.add_conditional_edges("add", lambda state: END if state["n"] >= 3 else "add")
    app = graph.compile(cache=nodes)
    assert counted.__name__ == "add"
    assert invoked(app, {"n": 0}, of("acme"), kind) == {"n": 3}
    assert invoked(app, {"n": 0}, of("acme"), kind) == {"n": 3}
    assert counting.taken() == ["add"] * 3
    assert invoked(app, {"n": 1}, of("acme"), kind) == {"n": 3}
    assert counting.taken() == []


@KINDS
def test_a_subgraph_and_the_nodes_in_it(nodes, counting, chained, of, kind):
    inner = chained(nodes, [counting.node("b"), counting.node("c")])  # it inherits none
    graph = StateGraph(inner.builder.state_schema)
    graph.add_node("a", counting.node("a"), cache_policy=POLICY)
    graph.add_node("inner", inner)
    graph.add_edge(START, "a")
    graph.add_edge("a", "inner")
    app = graph.compile(cache=nodes)
    first = invoked(app, {"question": "q"}, of("acme"), kind)
    assert counting.taken() == ["a", "b", "c"]
    assert invoked(app, {"question": "q"}, of("acme"), kind) == first
    assert counting.taken() == []
    invoked(app, {"question": "q"}, of("globex"), kind)
    assert counting.taken() == ["a", "b", "c"]


@KINDS
def test_a_map_of_sends(nodes, counting, of, kind):
    """Both who sends and who is sent to are cached; where to send is part of a stored result."""

    def plan(state):
        counting.calls.append("plan")
        return {"out": []}

    def joke(state):
        counting.calls.append(state["about"])
        return {"out": [f"about {state['about']}"]}

    graph = StateGraph(TypedDict("S", {"question": str, "out": Annotated[list, operator.add]}))
    graph.add_node("plan", plan, cache_policy=POLICY)
    graph.add_node("joke", joke, cache_policy=POLICY)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan", lambda s: [Send("joke", {"about": w}) for w in s["question"]]
    )
    app = graph.compile(cache=nodes)
    first = invoked(app, {"question": "xyx"}, of("acme"), kind)
    assert first["out"] == ["about x", "about y", "about x"]
    counting.taken()
    assert invoked(app, {"question": "xyx"}, of("acme"), kind) == first
    assert counting.taken() == ["x"]  # LangGraph looks for one of two equal tasks only


def test_tasks_of_the_functional_api(nodes, of):
    calls = []

    @task(cache_policy=POLICY)
    def double(n, *, by=2):
        calls.append(n)
        return {"n": n * by}

    @task(cache_policy=POLICY)
    async def adouble(n):
        calls.append(n)
        return {"n": n * 2}

    @entrypoint(cache=nodes)
    def flow(n):
        found = [double(n), double(n + 1)]
        return [one.result() for one in found] + [double(n, by=3).result()]

    @entrypoint(cache=nodes)
    async def aflow(n):
        return await asyncio.gather(adouble(n), adouble(n + 1))

    for _ in range(2):
        assert flow.invoke(1, of("acme")) == [{"n": 2}, {"n": 4}, {"n": 3}]
        assert asyncio.run(aflow.ainvoke(1, of("acme"))) == [{"n": 2}, {"n": 4}]
    assert sorted(calls) == [1, 1, 1, 2, 2]
    flow.invoke(1, of("globex"))
    assert len(calls) == 8


def test_a_whole_workflow(nodes, of):
    calls = []

    @entrypoint(cache=nodes, cache_policy=POLICY)
    def flow(n):
        calls.append(n)
        return n + 1

    assert [flow.invoke(1, of("acme")) for _ in range(2)] == [2, 2]
    assert calls == [1]


def test_a_tool_node(nodes, of):
    calls = []

    @tool
    def weather(city: str) -> str:
        """The weather."""
        calls.append(city)
        if city == "nowhere":
            raise ValueError("no such city")
        return f"sunny in {city}"

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([weather], handle_tool_errors=True), cache_policy=POLICY)
    graph.add_edge(START, "tools")
    app = graph.compile(cache=nodes)

    def ask(city, call):
        asked = AIMessage("", tool_calls=[{"name": "weather", "args": {"city": city}, "id": call}])
        return app.invoke({"messages": [asked]}, of("acme"))["messages"][-1]

    first, again = ask("Bonn", "1"), ask("Bonn", "1")
    assert (again.content, again.tool_call_id, again.name) == ("sunny in Bonn", "1", "weather")
    assert again.id != first.id
    assert calls == ["Bonn"]
    assert ask("Bonn", "2").tool_call_id == "2"  # another call: the tool is asked again
    assert [ask("nowhere", "3").status for _ in range(2)] == ["error", "error"]
    assert calls == ["Bonn", "Bonn", "nowhere", "nowhere"]


def test_what_langgraph_says_of_a_hit(nodes, counting, chained, of):
    graph = chained(nodes, counting.node("a"))
    graph.invoke({"question": "q"}, of("acme"))
    [update] = graph.stream({"question": "q"}, of("acme"), stream_mode="updates")
    assert update == {"a": {"out": ["a"]}, "__metadata__": {"cached": True}}


# --------------------------------------------------------------------- messages


def model_node(reply):
    def model(state):
        model.calls += 1
        return {"messages": [reply(state)]}

    model.calls = 0
    return model


def test_a_reply_comes_back_fresh_with_the_note_of_the_hit(nodes, chained, of):
    """Though the ids of the messages before it are others each time."""
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    model = model_node(lambda _: AIMessage("a", id="run-1", usage_metadata=usage))
    graph = chained(nodes, model, state=MessagesState)
    first, again, third = (
        graph.invoke({"messages": [HumanMessage("q")]}, of("acme"))["messages"] for _ in range(3)
    )
    assert model.calls == 1
    assert len({first[-1].id, again[-1].id, third[-1].id}) == 3
    assert len(again) == 2
    note = again[-1].response_metadata["stemma"]
    assert (note["hit"], note["node"], note["tier"]) == (True, "hop", "exact")
    assert note["saved_usage"] == usage
    assert again[-1].usage_metadata["total_tokens"] == 0
    assert "stemma" not in first[-1].response_metadata
    assert third[-1].response_metadata["stemma"]["saved_usage"] == usage


def test_a_hit_in_a_thread_with_a_past_is_appended(nodes, chained, of):
    """A message with the id of an earlier one would take its place."""
    model = model_node(lambda state: AIMessage("a", id=f"run-{len(state['messages'])}"))
    graph = chained(nodes, model, state=MessagesState, checkpointer=InMemorySaver())
    for thread in ("1", "2"):
        config = {**of("acme"), "configurable": {"thread_id": thread}}
        for length in (2, 4, 6):
            assert (
                len(graph.invoke({"messages": [HumanMessage("q")]}, config)["messages"]) == length
            )
    assert model.calls == 3


REFUSED = {
    "cut off": AIMessage("a", response_metadata={"finish_reason": "length"}),
    "filtered": AIMessage("a", response_metadata={"finish_reason": "content_filter"}),
    "empty": AIMessage(""),
    "a tool that failed": ToolMessage("a", tool_call_id="1", status="error"),
}


@pytest.mark.parametrize("reply", REFUSED.values(), ids=REFUSED)
def test_what_must_not_be_stored(nodes, chained, of, events, reply):
    model = model_node(lambda _: reply.model_copy())
    graph = chained(nodes, model, state=MessagesState)
    for _ in range(2):
        graph.invoke({"messages": [HumanMessage("q")]}, of("acme"))
    assert model.calls == 2
    assert [event.outcome for event in events if event.kind == "put"] == ["not_admitted"] * 2


def test_results_that_mean_messages_of_their_own_run_are_not_stored(nodes, chained, of):
    """Another run has other ids: the message would not be found, or not be replaced."""
    replacing = model_node(lambda state: HumanMessage("Q", id=state["messages"][0].id))
    removing = model_node(lambda state: RemoveMessage(id=state["messages"][0].id))
    emptying = model_node(lambda _: RemoveMessage(id=REMOVE_ALL_MESSAGES))
    expected = ((replacing, 2, ["Q"]), (removing, 2, []), (emptying, 1, []))
    for place, (model, calls, left) in enumerate(expected):
        model.__name__ = f"model_{place}"
        graph = chained(nodes, model, state=MessagesState)
        for _ in range(2):
            messages = graph.invoke({"messages": [HumanMessage("q")]}, of("acme"))["messages"]
            assert [one.content for one in messages] == left
        assert model.calls == calls


def test_an_error_is_not_stored(nodes, chained, of):
    calls = []

    def fails(state):
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not now")
        return {"out": ["a"]}

    graph = chained(nodes, fails)
    with pytest.raises(ValueError, match="not now"):
        graph.invoke({"question": "q"}, of("acme"))
    assert [graph.invoke({"question": "q"}, of("acme"))["out"] for _ in range(2)] == [["a"], ["a"]]
    assert len(calls) == 2


# ------------------------------------------------------------------- interrupts


@pytest.mark.parametrize("nested", [False, True])
def test_an_answer_is_never_given_for_another(nodes, counting, chained, of, nested):
    """What somebody answered is no part of the input: each run must be asked."""

    def approve(state):
        return {"out": [interrupt("may I?")]}

    after = counting.node("after")
    if nested:
        inner = chained(None, approve)
        graph = StateGraph(inner.builder.state_schema)
        graph.add_node("inner", inner, cache_policy=POLICY)
        graph.add_node("after", after, cache_policy=POLICY)
        graph.add_edge(START, "inner")
        graph.add_edge("inner", "after")
        app = graph.compile(cache=nodes, checkpointer=InMemorySaver())
    else:
        app = chained(nodes, approve, after, checkpointer=InMemorySaver())
    for thread, answer in (("1", "yes"), ("2", "no"), ("3", "yes")):
        config = {**of("acme"), "configurable": {"thread_id": thread}}
        asked = app.invoke({"question": "q"}, config)
        assert [one.value for one in asked["__interrupt__"]] == ["may I?"]
        assert app.invoke(Command(resume=answer), config)["out"] == [answer, "after"]


# --------------------------------------------------------------- lives, clearing


def test_a_ttl_is_the_longest_life(counting, chained, of):
    clock = ManualClock()
    with stemma.open(embedder=None, clock=clock) as cache:
        policy = CachePolicy(key_func=node_key, ttl=120)
        graph = chained(NodeCache(cache), counting.node("a"), policy=policy)
        graph.invoke({"question": "q"}, of("acme"))
        clock.advance(100)
        graph.invoke({"question": "q"}, of("acme"))
        assert counting.taken() == ["a"]
        clock.advance(20)
        graph.invoke({"question": "q"}, of("acme"))
        assert counting.taken() == ["a"]


def test_without_a_ttl_it_lives_as_the_cache_says(counting, chained, of):
    clock = ManualClock()
    with stemma.open(embedder=None, clock=clock) as cache:
        graph = chained(NodeCache(cache, life=500), counting.node("a"))
        for advance, calls in ((0, ["a"]), (440, []), (60, ["a"])):
            clock.advance(advance)
            graph.invoke({"question": "q"}, of("acme"))
            assert counting.taken() == calls


def test_clearing_a_graphs_nodes_clears_the_tenants_own(cache, nodes, counting, chained, of):
    graph = chained(nodes, counting.node("a"), counting.node("b"))
    for tenant in ("acme", "globex"):
        graph.invoke({"question": "q"}, of(tenant))
    counting.taken()
    with pytest.raises(stemma.TenantRequired):
        graph.clear_cache()
    with cache.using(tenant="acme"):
        graph.clear_cache(["b"])
    for tenant in ("acme", "globex"):
        graph.invoke({"question": "q"}, of(tenant))
    assert counting.taken() == ["b"]
    cache.clear(tag="langgraph")
    assert cache.engine.parts.store.sizes() == {}


def test_another_version_is_another_graph(cache, counting, chained, of):
    for version in ("1", "1", "2"):
        graph = chained(NodeCache(cache, version=version), counting.node("a"))
        graph.invoke({"question": "q"}, of("acme"))
    assert counting.taken() == ["a", "a"]


# ---------------------------------------------------------------------- lineage


class Library(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(f"on {query}", id=query, metadata={"source": f"{query}.md"})]


@KINDS
def test_what_was_built_on_a_document_goes_with_it(cache, nodes, of, kind):
    """Also what was built on that; in graphs with branches side by side."""
    calls = []

    def look(state):
        calls.append("look")
        return {"out": [Library().invoke(state["question"])[0].page_content]}

    def think(state):
        calls.append("think")
        return {"out": ["thought"]}

    def answer(state):
        calls.append("answer")
        return {"out": [" and ".join(state["out"])]}

    graph = StateGraph(TypedDict("S", {"question": str, "out": Annotated[list, operator.add]}))
    for node in (look, think, answer):
        graph.add_node(node.__name__, node, cache_policy=POLICY)
    graph.add_edge(START, "look")
    graph.add_edge(START, "think")
    graph.add_edge(["look", "think"], "answer")
    app = graph.compile(cache=nodes)
    for question in ("stemma", "codex"):
        invoked(app, {"question": question}, of("acme"), kind)
    calls.clear()
    assert cache.recall(source="stemma.md").by_node["hop"] >= 2
    for question in ("stemma", "codex"):
        invoked(app, {"question": question}, of("acme"), kind)
    assert {"look", "answer"} <= set(calls)
    assert len(calls) <= 3


def test_a_hit_is_a_parent_of_what_follows():
    calls = []

    def look(state):
        calls.append("look")
        return {"out": [Library().invoke("stemma")[0].page_content]}

    def answer(state):
        calls.append("answer")
        return {"out": [state["question"]]}

    graph = StateGraph(TypedDict("S", {"question": str, "out": Annotated[list, operator.add]}))
    graph.add_node("look", look, cache_policy=CachePolicy(key_func=lambda _: "always"))
    graph.add_node("answer", answer, cache_policy=POLICY)
    graph.add_edge(START, "look")
    graph.add_edge("look", "answer")
    with stemma.open(tenant="me", embedder=None) as cache:
        app = graph.compile(cache=NodeCache(cache))
        app.invoke({"question": "1"})
        app.invoke({"question": "2"})  # its first step is a hit: no document is read
        assert calls == ["look", "answer", "answer"]
        assert len(cache.recall(source="stemma.md")) == 3


def test_what_is_recalled_while_a_node_runs_is_not_stored(cache, nodes, chained, of):
    calls = []

    def look(state):
        calls.append(1)
        found = Library().invoke("stemma")[0].page_content
        if len(calls) == 1:
            cache.recall(source="stemma.md")
        return {"out": [found]}

    graph = chained(nodes, look)
    for _ in range(3):
        graph.invoke({"question": "q"}, of("acme"))
    assert len(calls) == 2


def test_equal_runs_at_once_lose_nothing(cache, nodes, of):
    """Which of them stores cannot be told in LangGraph's threads: what either has read counts."""
    together = threading.Barrier(2)

    def look(state):
        question = "stemma" if state["question"] else "codex"
        found = Library().invoke(question)[0].page_content
        together.wait(timeout=10)
        return {"out": [found]}

    def think(state):
        together.wait(timeout=10)
        return {"out": ["thought"]}

    def answer(state):
        return {"out": [" and ".join(state["out"])]}

    graph = StateGraph(TypedDict("S", {"question": str, "out": Annotated[list, operator.add]}))
    for node in (look, think, answer):
        graph.add_node(node.__name__, node, cache_policy=POLICY)
    graph.add_edge(START, "look")
    graph.add_edge(START, "think")
    graph.add_edge(["look", "think"], "answer")
    app = graph.compile(cache=nodes)
    threads = [
        threading.Thread(target=app.invoke, args=({"question": "q"}, of("acme"))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache.recall(tenant="acme", dry_run=True)) == 3
    found = cache.engine.parts.store.find(stemma.Selector(tenant="acme"))
    of_look = (b"on stemma" in one.payload and b" and " not in one.payload for one in found)
    [looked] = [one.id for one, told in zip(found, of_look, strict=True) if told]
    assert len(cache.recall(entry=looked, dry_run=True)) >= 2  # the answer goes with it
    assert len(cache.recall(source="stemma.md")) >= 2


def test_equal_runs_that_read_different_documents(cache, nodes, chained, of):
    """What is stored goes with what it was made of, whichever of them is stored last."""
    together, shelf = threading.Barrier(2), ["stemma", "codex"]

    def look(state):
        found = Library().invoke(shelf.pop())[0].page_content
        together.wait(timeout=10)
        threading.Event().wait(0.05)  # a slow one is stored from a thread that knows nothing
        return {"out": [found]}

    graph = chained(nodes, [look, and_beside])
    threads = [
        threading.Thread(target=graph.invoke, args=({"question": "q"}, of("acme")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = cache.engine.parts.store.find(stemma.Selector(tenant="acme"))
    [looked] = [entry.id for entry in found if b'"on ' in entry.payload]
    payload = next(entry.payload for entry in found if entry.id == looked)
    [read] = [name for name in ("stemma", "codex") if f"on {name}".encode() in payload]
    assert looked in {one.entry for one in cache.recall(source=f"{read}.md", dry_run=True).entries}


# ------------------------------------------------------------- what goes wrong


@KINDS
def test_a_broken_store_never_reaches_the_graph(counting, chained, of, events, kind):
    store = Faulty()
    with stemma.open(store, embedder=None) as cache:
        cache.listen(events.append)
        graph = chained(
            NodeCache(cache), counting.node("a"), [counting.node("b"), counting.node("c")]
        )
        store.mode = sqlite3.OperationalError("disk I/O error")
        for _ in range(2):
            assert invoked(graph, {"question": "q"}, of("acme"), kind)["out"][0] == "a"
        assert counting.taken() == ["a", "a", "b", "b", "c", "c"]
        assert any(event.kind == "fault" for event in events)
        store.mode = "well"


@pytest.mark.parametrize("method", ["look_all", "put_all", "alook_all", "aput_all"])
def test_nor_does_anything_else_that_is_raised(nodes, chained, of, events, method):
    def fail(*_):
        raise RuntimeError("a defect")

    setattr(nodes.cache.hops, method, fail)
    graph = chained(nodes, Counting().node("a"))
    kind = "async" if method.startswith("a") else "sync"
    assert invoked(graph, {"question": "q"}, of("acme"), kind)["out"] == ["a"]
    assert [event.detail for event in events if event.kind == "fault"] == ["RuntimeError"]


def test_who_asked_for_it_is_told(counting, chained, of):
    store = Faulty()
    with stemma.open(store, embedder=None, fail="closed") as cache:
        graph = chained(NodeCache(cache), counting.node("a"))
        store.mode = sqlite3.OperationalError("disk I/O error")
        with pytest.raises(stemma.CacheFault):
            graph.invoke({"question": "q"}, of("acme"))
        store.mode = "well"


@pytest.mark.filterwarnings("ignore:the cache is bypassed")
def test_an_input_without_a_key_is_a_miss_each_time(nodes, of, events, tmp_path):
    class Open(TypedDict):
        file: object

    calls = []

    def read(state):
        calls.append(1)
        return {}

    graph = StateGraph(Open)
    graph.add_node("read", read, cache_policy=POLICY)
    graph.add_edge(START, "read")
    app = graph.compile(cache=nodes)
    with (tmp_path / "file").open("w") as file:
        for _ in range(2):
            app.invoke({"file": file}, of("acme"))
    assert len(calls) == 2
    assert "unkeyable" in {event.outcome for event in events}


@dataclass
class Plan:
    steps: list


def test_values_of_classes_that_are_not_named_are_not_stored(cache, of, events):
    calls = []

    def plan(state):
        calls.append(1)
        return {"plan": Plan(["a"])}

    graph = StateGraph(TypedDict("S", {"plan": object}))
    graph.add_node("plan", plan, cache_policy=POLICY)
    graph.add_edge(START, "plan")
    for allowed, total in (((), 2), ((Plan,), 3)):
        app = graph.compile(cache=NodeCache(cache, allowed=allowed))
        for _ in range(2):
            assert app.invoke({}, of("acme"))["plan"] == Plan(["a"])
        assert len(calls) == total
    assert "unstorable" in {event.outcome for event in events}
    graph.compile(cache=NodeCache(cache)).invoke({}, of("acme"))
    assert len(calls) == 4  # stored, but of a class that is not named here
    assert "unreadable" in {event.outcome for event in events}


def test_another_process_is_served(tmp_path, counting, chained, of):
    """Here: another connection to the same file."""
    for _ in range(2):
        with stemma.open(tmp_path / "cache.db", embedder=None) as cache:
            graph = chained(NodeCache(cache), counting.node("a"))
            assert graph.invoke({"question": "q"}, of("acme"))["out"] == ["a"]
    assert counting.taken() == ["a"]


def test_it_is_a_handle(cache, nodes):
    assert copy.deepcopy(nodes) is nodes
    again = pickle.loads(pickle.dumps(NodeCache(cache, version="2", life=5, allowed=[Plan])))
    assert (again.cache, again.version, again.life, again.allowed) == (cache, "2", 5, (Plan,))


def test_what_runs_in_each_mode(cache, nodes, counting, chained, of):
    graph = chained(nodes, [counting.node("a"), counting.node("b")])
    with cache.bypass():
        graph.invoke({"question": "q"}, of("acme"))
    graph.invoke({"question": "q"}, of("acme"))
    assert counting.taken() == ["a", "a", "b", "b"]
    with cache.refresh():
        graph.invoke({"question": "q"}, of("acme"))
    graph.invoke({"question": "q"}, of("acme"))
    assert counting.taken() == ["a", "b"]


def test_nothing_is_warned_of_in_a_sound_graph(nodes, counting, chained, of):
    graph = chained(nodes, counting.node("a"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.invoke({"question": "q"}, of("acme"))
