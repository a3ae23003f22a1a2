"""`cached_node`: a node's function as a hop, with the lineage that it truly has."""

import asyncio
import dataclasses
import functools
import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

import stemma
from stemma import UsageError
from stemma_langchain import NodeCache, cached_node


class State(TypedDict, total=False):
    question: str
    noise: str
    out: Annotated[list, operator.add]


class Library(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(f"on {query}", id=query, metadata={"source": f"{query}.md"})]


@pytest.fixture
def calls():
    return []


def in_a_row(*functions, state=State, **compiled):
    graph = StateGraph(state, compiled.pop("context_schema", None))
    before = START
    for function in functions:
        graph.add_node(function.__name__, function)
        graph.add_edge(before, function.__name__)
        before = function.__name__
    graph.add_edge(before, END)
    return graph.compile(**compiled)


def invoked(graph, given, config, kind):
    if kind == "sync":
        return graph.invoke(given, config)
    if kind == "async":
        return asyncio.run(graph.ainvoke(given, config))
    if kind == "astream":

        async def last():
            return [one async for one in graph.astream(given, config, stream_mode="values")][-1]

        return asyncio.run(last())
    return list(graph.stream(given, config, stream_mode="values"))[-1]


KINDS = pytest.mark.parametrize("kind", ["sync", "async", "stream", "astream"])


def answering(calls):
    def answer(state):
        calls.append(state["question"])
        return {"out": [f"answer {len(calls)}"]}

    return answer


@KINDS
def test_the_second_run_does_not_run_it(cache, calls, of, kind):
    graph = in_a_row(cached_node(cache, answering(calls)))
    first = invoked(graph, {"question": "q"}, of("acme"), kind)
    assert invoked(graph, {"question": "q"}, of("acme"), kind) == first
    assert len(calls) == 1
    invoked(graph, {"question": "q"}, of("globex"), kind)
    invoked(graph, {"question": "r"}, of("acme"), kind)
    assert len(calls) == 3


@pytest.mark.parametrize("kind", ["async", "astream"])
def test_async_functions(cache, calls, of, kind):
    async def answer(state):
        await asyncio.sleep(0)
        calls.append(1)
        return {"out": ["a"]}

    graph = in_a_row(cached_node(cache, answer))
    for _ in range(2):
        assert invoked(graph, {"question": "q"}, of("acme"), kind)["out"] == ["a"]
    assert len(calls) == 1


def test_only_the_parts_that_are_named_count(cache, calls, of):
    graph = in_a_row(cached_node(cache, answering(calls), arguments=["question"]))
    for noise in ("a", "b"):
        graph.invoke({"question": "q", "noise": noise}, of("acme"))
    assert len(calls) == 1
    everything = in_a_row(cached_node(cache, answering(calls), step="all", version="1"))
    for noise in ("a", "b"):
        everything.invoke({"question": "q", "noise": noise}, of("acme"))
    assert len(calls) == 3


def test_texts_that_are_named_are_compared_by_meaning(calls, of):
    """And all else must be equal."""
    with stemma.open(embedder="hashing", policy="threshold") as cache:
        wrapped = cached_node(
            cache, answering(calls), arguments=["question", "noise"], semantic=["question"]
        )
        graph = in_a_row(wrapped)
        one = "please tell me what a stemma of manuscripts is and where the word comes from"
        two = "tell me please what a stemma of manuscripts is and where the word comes from"
        first = graph.invoke({"question": one, "noise": "a"}, of("acme"))["out"]
        assert graph.invoke({"question": two, "noise": "a"}, of("acme"))["out"] == first
        assert len(calls) == 1
        [row] = cache.stats().rows
        assert row.semantic == 1
        graph.invoke({"question": two, "noise": "b"}, of("acme"))
        graph.invoke({"question": "something else", "noise": "a"}, of("acme"))
        graph.invoke({"question": two, "noise": "a"}, of("globex"))
        assert len(calls) == 4


def test_the_way_there_counts_unless_it_does_not(cache, calls, of):
    for path, expected in ((True, 2), (False, 1)):
        calls.clear()
        answer = cached_node(
            cache, answering(calls), arguments=["question"], path=path, version="1", step=str(path)
        )

        def first(state):
            return {"noise": "a"}

        def last(state):
            return {"noise": "b"}

        for before in (first, last):
            in_a_row(cached_node(cache, before), answer).invoke({"question": "q"}, of("acme"))
        assert len(calls) == expected


@dataclasses.dataclass
class Data:
    question: str = ""
    noise: str = ""


class Model(BaseModel):
    question: str = ""
    noise: str = ""


@pytest.mark.parametrize("state", [Data, Model])
def test_states_of_other_kinds(cache, calls, of, state):
    def answer(state):
        calls.append(state.question)
        return {"noise": "answer"}

    graph = in_a_row(cached_node(cache, answer, arguments=["question"]), state=state)
    for _ in range(2):
        assert graph.invoke({"question": "q"}, of("acme"))["noise"] == "answer"
    assert calls == ["q"]


def test_what_a_function_is_given_besides_counts(cache, calls, of):
    @dataclasses.dataclass
    class Context:
        language: str

    def answer(state, config: RunnableConfig, runtime: Runtime[Context]):
        calls.append(1)
        return {"out": [config["configurable"].get("style"), runtime.context.language]}

    graph = in_a_row(
        cached_node(cache, answer), context_schema=Context, checkpointer=InMemorySaver()
    )
    given = [("1", "short", "de"), ("2", "short", "de"), ("3", "long", "de"), ("4", "long", "en")]
    for thread, style, language in given:
        config = {**of("acme"), "configurable": {"thread_id": thread, "style": style}}
        found = graph.invoke({"question": "q"}, config, context=Context(language))
        assert found["out"] == [style, language]
    assert len(calls) == 3


def test_two_functions_with_one_name(cache, calls, of):
    """LangGraph's own cache takes them for one."""

    def made(answer):
        def node(state):
            calls.append(answer)
            return {"out": [answer]}

        return node

    for answer, node in [(one, cached_node(cache, made(one))) for one in "aba"]:
        graph = in_a_row(node)
        assert graph.invoke({"question": "q"}, of("acme"))["out"] == [answer]
    assert calls == ["a", "b"]
    for answer in ("c", "d"):
        graph = in_a_row(cached_node(cache, made(answer), version="1"))
        assert graph.invoke({"question": "q"}, of("acme"))["out"] == ["c"]


def test_partial_functions_and_methods(cache, calls, of):
    class Answers:
        def node(self, state):
            calls.append(1)
            return {"out": ["a"]}

    def answer(prefix, state):
        calls.append(1)
        return {"out": [prefix]}

    method = cached_node(cache, Answers().node)
    partial = cached_node(cache, functools.partial(answer, "b"), step="partial", version="1")
    partial.__name__ = "partial"
    for _ in range(2):
        out = in_a_row(method, partial).invoke({"question": "q"}, of("acme"))["out"]
        assert out == ["a", "b"]
    assert len(calls) == 2


# ---------------------------------------------------------------------- lineage


def test_the_lineage_is_what_was_read_inside(cache, of):
    """In branches side by side, and not more than that."""

    def look(state):
        return {"out": [Library().invoke("stemma")[0].page_content]}

    def peek(state):
        return {"out": [Library().invoke("codex")[0].page_content]}

    graph = StateGraph(State)
    graph.add_node("look", cached_node(cache, look))
    graph.add_node("peek", cached_node(cache, peek))
    graph.add_edge(START, "look")
    graph.add_edge(START, "peek")
    app = graph.compile()
    app.invoke({"question": "q"}, of("acme"))
    for source in ("stemma.md", "codex.md"):
        assert len(cache.recall(source=source, dry_run=True)) == 1
    asyncio.run(app.ainvoke({"question": "r"}, of("acme")))
    for source in ("stemma.md", "codex.md"):
        assert len(cache.recall(source=source, dry_run=True)) == 2


@KINDS
def test_what_follows_is_built_on_it(cache, calls, of, kind):
    """On a hit as well: a document that is taken back takes all of the run back."""

    def look(state):
        calls.append("look")
        return {"out": [Library().invoke(state["question"])[0].page_content]}

    def answer(state):
        calls.append("answer")
        return {"out": [f"so: {state['out'][0]}"]}

    graph = in_a_row(cached_node(cache, look), cached_node(cache, answer))
    for question in ("stemma", "stemma", "codex"):
        invoked(graph, {"question": question}, of("acme"), kind)
    assert calls == ["look", "answer"] * 2
    recall = cache.recall(source="stemma.md")
    assert recall.by_hop == {1: 1, 2: 1}
    for question in ("stemma", "codex"):
        invoked(graph, {"question": question}, of("acme"), kind)
    assert calls == ["look", "answer"] * 3


def test_what_is_recalled_while_it_runs_is_not_stored(cache, calls, of):
    def look(state):
        calls.append(1)
        found = Library().invoke("stemma")[0].page_content
        if len(calls) == 1:
            cache.recall(source="stemma.md")
        return {"out": [found]}

    graph = in_a_row(cached_node(cache, look))
    for _ in range(3):
        graph.invoke({"question": "q"}, of("acme"))
    assert len(calls) == 2


# --------------------------------------------------------------------- messages


def test_a_reply_is_fresh_and_says_that_it_is_a_hit(cache, calls, of):
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}

    def model(state):
        calls.append(1)
        return {"messages": [AIMessage("a", id="run-1", usage_metadata=usage)]}

    graph = in_a_row(cached_node(cache, model), state=MessagesState)
    replies = [
        graph.invoke({"messages": [HumanMessage("q")]}, of("acme"))["messages"][-1]
        for _ in range(3)
    ]
    assert len(calls) == 1
    assert len({one.id for one in replies}) == 3
    note = replies[1].response_metadata["stemma"]
    assert (note["node"], note["saved_usage"]) == ("hop", usage)
    assert replies[1].usage_metadata["total_tokens"] == 0
    replies[1].content = "changed"
    assert replies[2].content == "a"
    [message] = [
        one
        for one, _ in graph.stream(
            {"messages": [HumanMessage("q")]}, of("acme"), stream_mode="messages"
        )
    ]
    assert message.response_metadata["stemma"]["hit"] is True


NOT_STORED = {
    "nothing": lambda _: None,
    "an empty update": lambda _: {},
    "a command": lambda _: Command(update={"messages": [AIMessage("a")]}),
    "a command among others": lambda _: [Command(update={"messages": [AIMessage("a")]})],
    "a reply cut off": lambda _: {
        "messages": [AIMessage("a", response_metadata={"finish_reason": "length"})]
    },
    "an empty reply": lambda _: {"messages": [AIMessage("")]},
    "a tool that failed": lambda _: {
        "messages": [ToolMessage("a", tool_call_id="1", status="error")]
    },
    "a message that is replaced": lambda state: {
        "messages": [HumanMessage("b", id=state["messages"][0].id)]
    },
    "a message that is removed": lambda state: {
        "messages": [RemoveMessage(id=state["messages"][0].id)]
    },
}


@pytest.mark.parametrize("arguments", [None, []])
@pytest.mark.parametrize("result", NOT_STORED.values(), ids=NOT_STORED)
def test_what_is_not_stored(cache, calls, of, result, arguments):
    def node(state):
        calls.append(1)
        return result(state)

    wrapped = cached_node(cache, node, arguments=arguments, version="1")
    graph = in_a_row(wrapped, state=MessagesState)
    for _ in range(2):
        graph.invoke({"messages": [HumanMessage("q")]}, of("acme"))
    assert len(calls) == 2


def test_a_reply_that_was_cut_off_inside_counts(cache, calls, of, scripted_reply):
    """The node gives only its text: what was said of its end is remembered."""
    model = scripted_reply(AIMessage("half an ans", response_metadata={"finish_reason": "length"}))

    def node(state):
        calls.append(1)
        return {"out": [model.invoke("q").content]}

    graph = in_a_row(cached_node(cache, node, version="1"))
    for _ in range(2):
        graph.invoke({"question": "q"}, of("acme"))
    assert len(calls) == 2


def test_errors_pass_and_are_not_stored(cache, calls, of):
    def node(state):
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not now")
        return {"out": ["a"]}

    graph = in_a_row(cached_node(cache, node, version="1"))
    with pytest.raises(ValueError, match="not now"):
        graph.invoke({"question": "q"}, of("acme"))
    assert [graph.invoke({"question": "q"}, of("acme"))["out"] for _ in range(2)] == [["a"]] * 2
    assert len(calls) == 2


def test_somebodys_answer_is_asked_for_each_time(cache, of):
    def approve(state):
        return {"out": [interrupt("may I?")]}

    graph = in_a_row(cached_node(cache, approve), checkpointer=InMemorySaver())
    for thread, answer in (("1", "yes"), ("2", "no"), ("3", "yes")):
        config = {**of("acme"), "configurable": {"thread_id": thread}}
        assert "__interrupt__" in graph.invoke({"question": "q"}, config)
        assert graph.invoke(Command(resume=answer), config)["out"] == [answer]


def test_sends_among_results_are_not_stored(cache, calls):
    def node(state):
        calls.append(1)
        return [Send("other", {})]

    wrapped = cached_node(cache, node, version="1")
    with cache.using(tenant="acme"):
        assert [wrapped({}) for _ in range(2)] == [[Send("other", {})]] * 2
    assert len(calls) == 2


# ------------------------------------------------------------------- surroundings


def test_without_a_tenant_it_is_called_as_ever(cache, calls):
    graph = in_a_row(cached_node(cache, answering(calls)))
    with pytest.warns(RuntimeWarning, match="no tenant"):
        graph.invoke({"question": "q"})
    graph.invoke({"question": "q"})
    assert len(calls) == 2


@pytest.mark.filterwarnings("ignore:the cache is bypassed")
def test_without_a_key_it_is_called_as_ever(cache, calls, of, tmp_path):
    with (tmp_path / "file").open("w") as file:

        def node(state):
            calls.append(file.name)
            return {"out": ["a"]}

        for version, expected in ((None, 2), ("1", 3)):
            graph = in_a_row(cached_node(cache, node, version=version))
            for _ in range(2):
                graph.invoke({"question": "q"}, of("acme"))
            assert len(calls) == expected


def test_tags_and_lives(events, calls, of):
    with stemma.open(tenant="me", embedder=None) as cache:
        node = cached_node(cache, answering(calls), tags=["plans"], life=50)
        node({"question": "q"})
        [entry] = cache.engine.parts.store.find(stemma.Selector(tag="plans"))
        assert 45 <= entry.expires - entry.made <= 50


class Callable:
    def __call__(self, state):
        return state


def taking_a_store(state, *, store: BaseStore):
    return {}


def taking_what_was_before(state, *, previous):
    return {}


BAD = {
    "a runnable": (RunnableLambda(len), {}),
    "an object": (Callable(), {}),
    "a text": ("node", {}),
    "a store": (taking_a_store, {}),
    "what was before": (taking_what_was_before, {}),
    "one text as arguments": (len, {"arguments": "question"}),
    "one text as semantic": (len, {"semantic": "question"}),
    "semantic ones that are no arguments": (len, {"arguments": ["a"], "semantic": ["b"]}),
    "no name": (functools.partial(len), {}),
    "an empty name": (len, {"step": ""}),
    "a class that is none": (len, {"allowed": ["Plan"]}),
}


@pytest.mark.parametrize(("function", "named"), BAD.values(), ids=BAD)
def test_what_cannot_be_wrapped(cache, function, named):
    with pytest.raises(stemma.UsageError):
        cached_node(cache, function, **named)


@pytest.mark.parametrize("wrong", ["no cache", None])
def test_what_is_no_cache_is_refused_at_once(wrong):
    with pytest.raises(UsageError, match=r"stemma\.open"):
        cached_node(wrong, lambda state: {}, step="x")
    with pytest.raises(UsageError, match=r"stemma\.open"):
        NodeCache(wrong)


@pytest.mark.parametrize("life", [-1, float("nan")])
def test_a_life_that_is_none_is_refused_at_once(cache, life):
    with pytest.raises(UsageError, match="life"):
        cached_node(cache, lambda state: {}, step="x", life=life)
    with pytest.raises(UsageError, match="life"):
        NodeCache(cache, life=life)
