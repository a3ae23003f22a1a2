"""Streams of a cached chat model: what is stored of them, and what a hit streams."""

import asyncio
import contextlib
import threading

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import stemma
from stemma_langchain import CachedChatModel

ASKED = "What is a stemma codicum?"
USAGE = {"input_tokens": 30, "output_tokens": 12, "total_tokens": 42}
ZERO = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
TEXT = "A family tree\n\n  of copies. "


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


def stored(cache):
    return cache.engine.parts.store.sizes().get(("t", "call"), 0)


def summed(chunks):
    first, *rest = chunks
    return message_chunk_to_message(sum(rest, first))


def chunks_of(model, way, asked=ASKED):
    if way == "stream":
        return list(model.stream(asked))

    async def read():
        return [chunk async for chunk in model.astream(asked)]

    return asyncio.run(read())


def call(name, id, **args):
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


REPLIES = {
    "a text": AIMessage(TEXT, response_metadata={"finish_reason": "stop"}),
    "a text without spaces": AIMessage("文" * 100),
    "spaces first": AIMessage("  so it is"),
    "two calls of tools": AIMessage(
        "", tool_calls=[call("f", "a", x=1, y={"z": [1, None, "é"]}), call("f", "b")]
    ),
    "text and a call": AIMessage("Let me see.", tool_calls=[call("look", "c", at="it")]),
    "blocks": AIMessage(
        [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
        additional_kwargs={"reasoning_content": "thus"},
    ),
    "blocks with an index": AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "s", "index": 0},
            {"type": "text", "text": "one", "index": 1},
            {"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}, "index": 2},
        ],
        tool_calls=[call("f", "c", x=1)],
    ),
    "a call that cannot be read, beside one that can": AIMessage(
        "",
        tool_calls=[call("f", "a", x=1)],
        invalid_tool_calls=[
            {"name": "f", "args": '{"x": 1', "id": "b", "error": "cut", "type": "invalid_tool_call"}
        ],
    ),
    "several spent": AIMessage("well", usage_metadata=USAGE, additional_kwargs={"k": {"l": [1]}}),
}


@pytest.mark.parametrize("what", REPLIES)
@pytest.mark.parametrize("way", ["stream", "astream"])
def test_the_chunks_of_a_hit_add_up_to_the_message_that_was_stored(cache, scripted, what, way):
    model = CachedChatModel(cache, scripted("native", REPLIES[what]))
    model.invoke(ASKED)
    expected = model.invoke(ASKED)
    chunks = chunks_of(model, way)
    assert all(isinstance(chunk, AIMessageChunk) for chunk in chunks)
    assert [chunk.chunk_position for chunk in chunks] == [None] * (len(chunks) - 1) + ["last"]
    assert len({chunk.id for chunk in chunks}) == 1
    again = summed(chunks)
    for message in (again, expected):
        message.id = None
        message.response_metadata["stemma"].pop("age")
    assert again == expected
    assert again.tool_calls == REPLIES[what].tool_calls
    assert again.usage_metadata == ZERO


@pytest.mark.parametrize("what", [what for what in REPLIES if "cannot be read" not in what])
@pytest.mark.parametrize("way", ["stream", "astream"])
def test_what_was_streamed_is_what_invoke_gives(cache, scripted, what, way):
    inner = scripted("native", REPLIES[what])
    model = CachedChatModel(cache, inner)
    first = summed(chunks_of(model, way))
    hit = model.invoke(ASKED)
    assert hit.response_metadata.pop("stemma")["saved_usage"] == REPLIES[what].usage_metadata
    for name in ("content", "tool_calls", "additional_kwargs", "response_metadata"):
        assert getattr(hit, name) == getattr(first, name), name
    assert hit.tool_calls == REPLIES[what].tool_calls
    assert len(inner.calls) == 1


def test_a_text_is_streamed_word_by_word_and_tools_one_by_one(cache, scripted):
    model = CachedChatModel(cache, scripted("streaming", REPLIES["text and a call"]))
    model.invoke(ASKED)
    *said, called, last = model.stream(ASKED)
    assert [chunk.text for chunk in said] == ["Let", " me", " see."]
    assert [(part["name"], part["index"], part["id"]) for part in called.tool_call_chunks] == [
        ("look", 0, "c")
    ]
    assert last.response_metadata["stemma"]["hit"] is True
    model = CachedChatModel(cache, scripted("streaming", REPLIES["two calls of tools"]))
    model.invoke(ASKED)
    parts = [part for chunk in model.stream(ASKED) for part in chunk.tool_call_chunks]
    assert [(part["index"], part["id"]) for part in parts] == [(0, "a"), (1, "b")]


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_breaks_is_not_stored(cache, scripted, way):
    inner = scripted("native", [AIMessage("half a"), ConnectionError("reset")], AIMessage("well"))
    model = CachedChatModel(cache, inner)
    with pytest.raises(ConnectionError, match="reset"):
        chunks_of(model, way)
    assert stored(cache) == 0
    assert summed(chunks_of(model, way)).text == "well"
    assert len(inner.calls) == 2


def test_a_stream_that_its_reader_leaves_is_not_stored(cache, scripted):
    inner = scripted("native", AIMessage("three words long"))
    model = CachedChatModel(cache, inner)
    with contextlib.closing(model.stream(ASKED)) as stream:
        next(stream)

    async def leave():
        async with contextlib.aclosing(model.astream(ASKED)) as stream:
            await anext(stream)

    asyncio.run(leave())
    assert stored(cache) == 0
    assert summed(chunks_of(model, "stream")).text == "three words long"
    assert len(inner.calls) == 3
    assert stored(cache) == 1


def test_a_hit_that_its_reader_leaves_stays(cache, scripted):
    inner = scripted("streaming", AIMessage("three words long"))
    model = CachedChatModel(cache, inner)
    model.invoke(ASKED)
    with contextlib.closing(model.stream(ASKED)) as stream:
        assert next(stream).text == "three"
    assert summed(chunks_of(model, "stream")).text == "three words long"
    assert len(inner.calls) == 1


def test_a_stream_may_go_on_while_another_asks_the_same(cache, scripted):
    inner = scripted("streaming", AIMessage("one"), AIMessage("two"))
    model = CachedChatModel(cache, inner)
    first = model.stream(ASKED)
    begun = next(first)
    other = summed(chunks_of(model, "stream"))
    assert summed([begun, *first]).text == "one"
    assert other.text == "two"
    assert (len(inner.calls), stored(cache)) == (2, 1)


def test_a_providers_own_objects_are_passed_on_and_left_out_of_what_is_stored(cache, scripted):
    lock = threading.Lock()
    inner = scripted("streaming", AIMessage("well", response_metadata={"odd": lock}))
    model = CachedChatModel(cache, inner)
    assert summed(chunks_of(model, "stream")).response_metadata["odd"] is lock
    assert "odd" not in model.invoke(ASKED).response_metadata


def test_chunks_that_do_not_add_up_are_passed_on_and_not_stored(cache, scripted):
    class Odd(type(scripted())):
        def chunks(self, said):
            for odd in (1, "one"):
                message = AIMessageChunk("x", additional_kwargs={"odd": odd})
                yield ChatGenerationChunk(message=message)

    events = []
    cache.listen(events.append)
    model = CachedChatModel(cache, Odd())
    given = [chunk.text for chunk in model._stream([HumanMessage(ASKED)])]
    assert given == ["x", "x"]
    assert stored(cache) == 0
    assert [event.detail for event in events if event.kind == "warning"] == [
        "a streamed reply was not stored: its chunks do not add up to one reply"
    ]


@pytest.mark.parametrize("where", ["inner", "wrapper"])
def test_streaming_that_is_switched_off_comes_as_one_message(cache, scripted, where):
    off = {"disable_streaming": True}
    inner = scripted("native", **(off if where == "inner" else {}))
    model = CachedChatModel(cache, inner, **(off if where == "wrapper" else {}))
    for way in ("stream", "astream"):
        assert len(chunks_of(model, way)) == 1
    assert [way for way, *_ in inner.calls] == ["generate"]


# --------------------------------------------------------------- events and graphs


async def events_of(model, version):
    if version == "v2":
        return [event async for event in model.astream_events(ASKED, version="v2")]
    return [event async for event in await model.astream_events(ASKED, version="v3")]


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
@pytest.mark.parametrize("version", ["v2", "v3"])
@pytest.mark.parametrize("kind", ["streaming", "native"])
def test_events_are_streamed_cold_and_warm(cache, scripted, version, kind):
    inner = scripted(kind, AIMessage(TEXT, usage_metadata=USAGE))
    model = CachedChatModel(cache, inner)
    cold, warm = (asyncio.run(events_of(model, version)) for _ in range(2))
    assert len(inner.calls) == 1
    for events in (cold, warm):
        if version == "v2":
            kinds = [event["event"] for event in events]
            parts = [
                e["data"]["chunk"].text for e in events if e["event"] == "on_chat_model_stream"
            ]
            ends = (kinds[0], kinds[-1])
            assert ends == ("on_chat_model_start", "on_chat_model_end")
            assert {event["name"] for event in events} == {type(inner).__name__}
        else:
            parts = [
                event["delta"]["text"]
                for event in events
                if event["event"] == "content-block-delta"
            ]
        assert "".join(parts) == TEXT
        assert len(parts) > 3
    note = warm[-1]["data"]["output"].response_metadata if version == "v2" else warm[-1]["metadata"]
    assert note["stemma"]["saved_usage"] == USAGE


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_events_are_streamed_sync(cache, scripted):
    inner = scripted("streaming", AIMessage(TEXT))
    model = CachedChatModel(cache, inner)
    for _ in range(2):
        stream = model.stream_events(ASKED, version="v3")
        assert "".join(stream.text) == TEXT
    assert len(inner.calls) == 1


def graph(model, *, is_async=False):
    def answer(state):
        return {"messages": [model.invoke(state["messages"])]}

    async def aanswer(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    made = StateGraph(MessagesState).add_node("answer", aanswer if is_async else answer)
    return made.add_edge(START, "answer")


@pytest.mark.parametrize("kind", ["whole", "streaming", "native"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_graph_streams_messages_cold_and_warm(cache, scripted, kind, is_async):
    inner = scripted(kind, AIMessage(TEXT))
    built = graph(CachedChatModel(cache, inner), is_async=is_async).compile()
    given = {"messages": [HumanMessage(ASKED)]}

    async def read():
        return [part async for part in built.astream(given, stream_mode=["messages", "values"])]

    seen = []
    for _ in range(2):
        parts = (
            asyncio.run(read())
            if is_async
            else list(built.stream(given, stream_mode=["messages", "values"]))
        )
        chunks = [message for mode, part in parts if mode == "messages" for message in part[:1]]
        final = parts[-1][1]["messages"][-1]
        assert "".join(chunk.text for chunk in chunks) == TEXT == final.text
        assert {chunk.id for chunk in chunks} == {final.id}
        assert (len(chunks) > 3) is (kind != "whole")
        seen.append(final)
    assert seen[0].id != seen[1].id
    assert seen[1].response_metadata["stemma"]["hit"] is True
    assert len(inner.calls) == 1


def test_asking_twice_in_one_thread_keeps_both_answers(cache, scripted):
    inner = scripted("native", AIMessage("one"))
    model = CachedChatModel(cache, inner)

    def answer(state):
        return {"messages": [model.invoke(state["messages"][-1:])]}

    built = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    thread = {"configurable": {"thread_id": "1"}}
    compiled = built.compile(checkpointer=InMemorySaver())
    for _ in range(2):
        state = compiled.invoke({"messages": [HumanMessage(ASKED)]}, thread)
    assert [message.text for message in state["messages"]] == [ASKED, "one", ASKED, "one"]
    assert len(inner.calls) == 1
