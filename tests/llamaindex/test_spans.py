"""LlamaIndex's spans as frames: true edges, and none between independent runs."""

import asyncio
import gc
import re
import threading

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
    ToolCallBlock,
)
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.tools import FunctionTool
from llama_index_instrumentation.dispatcher import instrument_tags

import stemma
from stemma import Selector, frames
from stemma_llamaindex import CachedLLM, CachedQueryEngine
from stemma_llamaindex.codec import CODEC
from stemma_llamaindex.spans import spans


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", policy="threshold", tenant="t") as opened:
        yield opened


@pytest.fixture(autouse=True)
def _no_span_is_left_behind():
    spans._tidy()
    before = len(spans)
    yield
    spans._tidy()
    if len(spans) != before:
        gc.collect()  # of an abandoned stream it is told when it is collected
        spans._tidy()
    assert len(spans) == before
    assert frames.current() is None


def item_of(text):
    return re.findall(r"item-\w+", text)[-1]


class Shelf(BaseRetriever):
    """One node an item, in a retriever that nobody wrapped; it can be made to wait."""

    def __init__(self, meet=None):
        super().__init__()
        self.meet = meet

    def _retrieve(self, query_bundle):
        item = item_of(query_bundle.query_str)
        whole = RelatedNodeInfo(node_id=f"book of {item}")
        node = TextNode(
            id_=f"node of {item}",
            text=f"the only text there is of {item}",
            relationships={NodeRelationship.SOURCE: whole},
        )
        return [NodeWithScore(node=node, score=1.0)]

    async def _aretrieve(self, query_bundle):
        await asyncio.sleep(0)
        if self.meet is not None:
            await self.meet.wait()
        return self._retrieve(query_bundle)


class Model(CustomLLM):
    """Says who it is, and of which item the prompt spoke."""

    who: str = "m"

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, model_name=self.who)

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(
            text=f"{self.who} says of {item_of(prompt)} what nobody else says"
        )

    def stream_complete(self, prompt, formatted=False, **kwargs):
        words, said = self.complete(prompt).text.split(" "), ""
        for place, word in enumerate(words):
            delta = word if place == 0 else f" {word}"
            said += delta
            yield CompletionResponse(text=said, delta=delta)


def engine(cache, who="m", streaming=False, meet=None):
    llm = CachedLLM(cache, Model(who=who))
    synthesizer = get_response_synthesizer(llm=llm, streaming=streaming)
    return RetrieverQueryEngine(Shelf(meet), response_synthesizer=synthesizer)


def text_of(value):
    if isinstance(value, list):
        return text_of(value[0])
    if isinstance(value, ChatResponse):
        return value.message.content or ""
    return value.text if isinstance(value, CompletionResponse) else str(value)


def edges(cache, **named):
    """Every edge of every entry: from what it says of which item, to what or which node."""
    store = cache.engine.parts.store
    found = {
        entry.id: (entry.node, *said.groups())
        for entry in store.find(Selector(**named or {"tenant": "t"}), limit=1_000)
        if (said := re.match(r"(\S+) says of (\S+)", text_of(CODEC.decode(entry.payload))))
    }
    pairs = set()
    for entry, name in found.items():
        lineage = store.lineage(entry)
        parents = [found[edge.parent] for edge in lineage.parents if edge.parent in found]
        pairs |= {(" ".join(name), " ".join(parent)) for parent in parents}
        pairs |= {(" ".join(name), edge.source.chunk) for edge in lineage.sources}
    return pairs


def one_call(*items):
    return {(f"call m {item}", f"node of {item}") for item in items}


# ------------------------------------------------------------------------- one question


def test_what_a_retriever_gave_is_a_source_of_the_call(cache):
    engine(cache).query("what of item-1?")
    assert edges(cache) == one_call("item-1")
    (entry,) = cache.engine.parts.store.find(Selector(node="call"), limit=10)
    (edge,) = cache.engine.parts.store.lineage(entry.id).sources
    assert (edge.source.document, edge.known) == ("book of item-1", "observed")


async def test_also_when_asked_asynchronously(cache):
    await engine(cache).aquery("what of item-1?")
    assert edges(cache) == one_call("item-1")


def test_a_stream_that_is_read_after_its_span_has_the_same_edges(cache):
    response = engine(cache, streaming=True).query("what of item-1?")
    assert frames.current() is None
    assert str(response).startswith("m says of item-1")
    assert edges(cache) == one_call("item-1")
    assert len(spans) == 0


async def test_also_an_asynchronous_one(cache):
    response = await engine(cache, streaming=True).aquery("what of item-1?")
    said = "".join([piece async for piece in response.async_response_gen()])
    assert said.startswith("m says of item-1")
    assert edges(cache) == one_call("item-1")


def test_two_streams_read_turn_by_turn_stay_apart(cache):
    one = engine(cache, streaming=True).query("what of item-1?").response_gen
    two = engine(cache, streaming=True).query("what of item-2?").response_gen
    for _ in range(3):
        next(one)
        next(two)
    assert list(one)
    assert list(two)
    assert edges(cache) == one_call("item-1", "item-2")


def test_a_stream_read_in_another_question_stays_apart_from_it(cache):
    response = engine(cache, streaming=True).query("what of item-1?")

    class Reading(CustomQueryEngine):
        llm: CachedLLM

        def custom_query(self, query_str):
            Shelf().retrieve("item-2")
            read = len(str(response))
            return Response(self.llm.complete(f"sum up for item-all: {read}").text)

    Reading(llm=CachedLLM(cache, Model(who="all"))).query("what of all?")
    assert edges(cache) == one_call("item-1") | {("call all item-all", "node of item-2")}


@pytest.mark.parametrize("streaming", [False, True])
def test_the_question_of_a_run_is_known_to_its_calls(cache, streaming):
    found = []
    cache.listen(lambda event: found.append(event.outcome))
    for question in (
        "What does the year say of item-1?",
        "what does the Year say of item-1",
    ):
        assert "item-1" in str(engine(cache, streaming=streaming).query(question))
    assert found == ["cold", "stored", "semantic"]


def test_what_follows_an_abandoned_stream_is_not_built_on_it(cache):
    response = engine(cache, streaming=True).query("what of item-1?")
    begun = next(response.response_gen)
    engine(cache).query("what of item-2?")
    assert begun == "m"
    assert edges(cache) == one_call("item-2")
    del response


def test_a_stream_that_was_never_begun_keeps_no_span(cache):
    response = engine(cache, streaming=True).query("what of item-1?")
    assert len(spans) > 0
    del response
    engine(cache).query("what of item-2?")
    assert len(spans) == 0


class Pieces:
    """A stream that is no generator."""

    def __aiter__(self):
        return self._pieces()

    async def _pieces(self):
        yield "a"
        yield "b"


class OnePiece:
    """A stream that can only be asked for the next."""

    left = 1

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        return "ab"


class Foreign(CustomQueryEngine):
    """An engine with streams of its own kind."""

    stream: object

    def custom_query(self, query_str):
        return StreamingResponse(self.stream)

    async def acustom_query(self, query_str):
        return AsyncStreamingResponse(self.stream)


@pytest.mark.parametrize("stream", [["a", "b"], ("a", "b"), iter(["ab"])])
def test_a_stream_need_not_be_a_generator(stream):
    assert "".join(Foreign(stream=stream).query("what?").response_gen) == "ab"


@pytest.mark.parametrize("stream", [Pieces, OnePiece])
async def test_nor_need_an_asynchronous_one(stream):
    response = await Foreign(stream=stream()).aquery("what?")
    assert "".join([piece async for piece in response.response_gen]) == "ab"


def test_a_question_that_fails_keeps_no_span(cache):
    class Failing(Shelf):
        def _retrieve(self, query_bundle):
            raise RuntimeError("no shelf")

    failing = RetrieverQueryEngine(
        Failing(), response_synthesizer=get_response_synthesizer(llm=CachedLLM(cache, Model()))
    )
    with pytest.raises(RuntimeError, match="no shelf"):
        failing.query("what of item-1?")
    assert len(spans) == 0
    assert frames.current() is None


@pytest.mark.parametrize("kind", [ContextChatEngine, CondensePlusContextChatEngine])
def test_a_chat_engine_is_a_frame_streamed_or_not(cache, kind):
    def chat():
        memory = ChatMemoryBuffer.from_defaults(token_limit=10_000, tokenizer_fn=str.split)
        llm = CachedLLM(cache, Model())
        return kind.from_defaults(retriever=Shelf(), llm=llm, memory=memory)

    assert "item-1" in str(chat().chat("what of item-1?"))
    assert "item-2" in "".join(chat().stream_chat("what of item-2?").response_gen)
    assert edges(cache) == one_call("item-1", "item-2")


# ---------------------------------------------------------------------- several questions


async def test_questions_gathered_stay_apart(cache):
    asked = engine(cache)
    items = [f"item-{n}" for n in range(8)]
    await asyncio.gather(*(asked.aquery(f"what of {item}?") for item in items))
    assert edges(cache) == one_call(*items)


def test_questions_in_threads_stay_apart(cache):
    items = [f"item-{n}" for n in range(4)]
    threads = [
        threading.Thread(target=engine(cache).query, args=(f"what of {item}?",)) for item in items
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert edges(cache) == one_call(*items)


def test_questions_one_after_another_stay_apart_even_in_a_trace(cache):
    with cache.trace():
        engine(cache).query("what of item-1?")
        engine(cache).query("what of item-2?")
        ticket = cache.answers.lookup("both").ticket
        both = cache.answers.put(ticket, "both").entry
    assert edges(cache) == one_call("item-1", "item-2")
    lineage = cache.engine.parts.store.lineage(both.id)
    assert {edge.source.chunk for edge in lineage.sources} == {"node of item-1", "node of item-2"}
    assert len(lineage.parents) == 2


def test_a_stream_read_in_a_trace_passes_on_what_it_read(cache):
    with cache.trace():
        assert str(engine(cache, streaming=True).query("what of item-1?"))
        ticket = cache.answers.lookup("after it").ticket
        entry = cache.answers.put(ticket, "after it").entry
    lineage = cache.engine.parts.store.lineage(entry.id)
    assert [edge.source.chunk for edge in lineage.sources] == ["node of item-1"]
    assert len(lineage.parents) == 1


class Asking(CustomQueryEngine):
    """Asks others about several items, side by side or one after the other, then sums up."""

    others: list
    llm: CachedLLM

    def custom_query(self, query_str):
        said = [str(one.query(f"what of item-{n}?")) for n, one in enumerate(self.others)]
        return Response(self.llm.complete(f"sum up for item-all: {len(said)}").text)

    async def acustom_query(self, query_str):
        asked = (one.aquery(f"what of item-{n}?") for n, one in enumerate(self.others))
        said = await asyncio.gather(*asked)
        done = await self.llm.acomplete(f"sum up for item-all: {len(said)}")
        return Response(done.text)


SUMMED = {("call all item-all", f"call m item-{n}") for n in range(3)} | {
    ("call all item-all", f"node of item-{n}") for n in range(3)
}


async def test_sub_questions_side_by_side_stay_apart_and_are_parents_of_the_sum(cache):
    asking = Asking(
        others=[engine(cache) for _ in range(3)], llm=CachedLLM(cache, Model(who="all"))
    )
    await asking.aquery("what of all?")
    assert edges(cache) == SUMMED | one_call(*(f"item-{n}" for n in range(3)))


async def test_sub_questions_side_by_side_stay_apart_even_if_they_take_turns(cache):
    """One has long ended when another begins: it is no parent of it."""

    class InTurns(Asking):
        async def acustom_query(self, query_str):
            turn = asyncio.Semaphore(1)

            async def ask(one, item):
                async with turn:
                    return await one.aquery(f"what of {item}?")

            said = [ask(one, f"item-{n}") for n, one in enumerate(self.others)]
            await asyncio.gather(*said)
            return Response((await self.llm.acomplete("sum up for item-all")).text)

    others = [engine(cache) for _ in range(3)]
    await InTurns(others=others, llm=CachedLLM(cache, Model(who="all"))).aquery("what of all?")
    assert edges(cache) == SUMMED | one_call(*(f"item-{n}" for n in range(3)))


def test_sub_questions_in_a_row_are_parents_of_the_sum(cache):
    asking = Asking(
        others=[engine(cache) for _ in range(3)], llm=CachedLLM(cache, Model(who="all"))
    )
    asking.query("what of all?")
    assert edges(cache) >= SUMMED | one_call(*(f"item-{n}" for n in range(3)))


def test_an_answer_is_built_on_the_call_and_on_the_nodes(cache):
    CachedQueryEngine(cache, engine(cache)).query("what of item-1?")
    assert edges(cache) == one_call("item-1") | {
        ("answer m item-1", "call m item-1"),
        ("answer m item-1", "node of item-1"),
    }


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_streamed_answer_is_as_well(cache, asynchronous):
    cached = CachedQueryEngine(cache, engine(cache, streaming=True))
    if asynchronous:
        response = await cached.aquery("what of item-1?")
        assert [piece async for piece in response.async_response_gen()]
    else:
        assert list(cached.query("what of item-1?").response_gen)
    assert edges(cache) == one_call("item-1") | {
        ("answer m item-1", "call m item-1"),
        ("answer m item-1", "node of item-1"),
    }


# ------------------------------------------------------------------------------- agents


def calling(messages, **kwargs):
    """Looks the item up, then says what it read."""
    asked = next(m.content for m in messages if m.role == MessageRole.USER)
    if messages[-1].role != MessageRole.TOOL:
        call = ToolCallBlock(
            tool_call_id="1", tool_name="look", tool_kwargs={"about": item_of(asked)}
        )
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[call])
    said = f"agent says of {item_of(asked)} {len(messages[-1].content)}"
    return ChatMessage(role=MessageRole.ASSISTANT, content=said)


def agent(cache, kind=FunctionAgent):
    def look(about: str) -> str:
        """Look something up."""
        return " ".join(found.text for found in Shelf().retrieve(about))

    llm = CachedLLM(cache, MockFunctionCallingLLM(response_generator=calling, is_chat_model=True))
    one = FunctionAgent(tools=[FunctionTool.from_defaults(look)], llm=llm)
    return one if kind is FunctionAgent else AgentWorkflow(agents=[one])


@pytest.mark.parametrize("kind", [FunctionAgent, AgentWorkflow])
async def test_what_an_agents_tool_retrieved_is_a_source_of_its_answer(cache, kind):
    items = [f"item-{n}" for n in range(3)]
    said = await asyncio.gather(*(agent(cache, kind).run(f"tell of {item}") for item in items))
    assert [str(one).split()[3] for one in said] == items
    found = edges(cache)
    assert {pair for pair in found if pair[1].startswith("node")} == {
        (f"call agent {item}", f"node of {item}") for item in items
    }


async def test_a_react_agent_is_a_frame(cache):
    class Reasoning(Model):
        def complete(self, prompt, formatted=False, **kwargs):
            item = item_of(prompt)
            if "Observation" not in prompt.split(item, 1)[1]:
                text = f'Thought: I look.\nAction: look\nAction Input: {{"about": "{item}"}}'
            else:
                text = f"Thought: I can answer without any more tools.\nAnswer: of {item}"
            return CompletionResponse(text=text)

    def look(about: str) -> str:
        """Look something up."""
        return " ".join(found.text for found in Shelf().retrieve(about))

    llm = CachedLLM(cache, Reasoning())
    said = await ReActAgent(tools=[FunctionTool.from_defaults(look)], llm=llm).run("tell of item-1")
    assert str(said) == "of item-1"
    stored = cache.engine.parts.store.find(Selector(node="call"), limit=10)
    sources = [cache.engine.parts.store.lineage(entry.id).sources for entry in stored]
    assert sorted(len(found) for found in sources) == [0, 1]


# ------------------------------------------------------------------------------- tenants


def test_the_tenant_is_the_one_in_the_tags_of_the_run(cache):
    with instrument_tags({"tenant": "acme"}):
        engine(cache).query("what of item-1?")
    assert [
        entry.tenant for entry in cache.engine.parts.store.find(Selector(node="call"), limit=10)
    ] == ["acme"]
    assert edges(cache, tenant="acme") == one_call("item-1")


async def test_the_tags_reach_a_stream_and_an_agent(cache):
    with instrument_tags({"tenant": "acme"}):
        response = engine(cache, streaming=True).query("what of item-1?")
    assert list(response.response_gen)
    with instrument_tags({"tenant": "bolt"}):
        await agent(cache).run("tell of item-2")
    tenants = [
        entry.tenant for entry in cache.engine.parts.store.find(Selector(node="call"), limit=10)
    ]
    assert sorted(tenants) == ["acme", "bolt", "bolt"]


def test_using_names_the_tenant_where_the_tags_do_not(cache):
    with cache.using(tenant="bolt"):
        engine(cache).query("what of item-1?")
    with cache.using(tenant="bolt"), instrument_tags({"tenant": "acme"}):
        engine(cache).query("what of item-1?")
    tenants = [
        entry.tenant for entry in cache.engine.parts.store.find(Selector(node="call"), limit=10)
    ]
    assert sorted(tenants) == ["acme", "bolt"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_stream_is_whose_question_it_was_wherever_it_is_read(cache, asynchronous):
    with cache.using(tenant="bolt", permissions=["hr"]):
        asked = engine(cache, streaming=True)
        if asynchronous:
            response = await asked.aquery("what of item-1?")
        else:
            response = asked.query("what of item-1?")
    if asynchronous:
        assert [piece async for piece in response.response_gen]
    else:
        assert list(response.response_gen)
    (entry,) = cache.engine.parts.store.find(Selector(node="call"), limit=10)
    assert entry.tenant == "bolt"
    engine(cache).query("what of item-1?")
    with cache.using(tenant="bolt"):
        engine(cache).query("what of item-1?")
    assert len(cache.engine.parts.store.find(Selector(node="call"), limit=10)) == 3


def test_what_else_is_said_where_a_stream_is_read_leaves_it_whose_it_was(cache):
    with cache.using(tenant="bolt", permissions=["hr"]):
        responses = [engine(cache, streaming=True).query("what of item-1?") for _ in range(2)]
    with cache.using(tags=["read"]):
        assert list(responses[0].response_gen)
    with cache.bypass():
        assert list(responses[1].response_gen)
    (entry,) = cache.engine.parts.store.find(Selector(node="call"), limit=10)
    assert (entry.tenant, entry.labels.tags) == ("bolt", ("read",))


def test_who_reads_a_stream_may_say_whose_it_is(cache):
    with cache.using(tenant="bolt"):
        response = engine(cache, streaming=True).query("what of item-1?")
    with cache.using(tenant="acme"):
        assert list(response.response_gen)
    (entry,) = cache.engine.parts.store.find(Selector(node="call"), limit=10)
    assert entry.tenant == "acme"


@pytest.mark.parametrize("named", [7, "", ["acme"]])
def test_a_tenant_that_is_no_name_is_nobody(cache, named):
    with instrument_tags({"tenant": named}), pytest.warns(RuntimeWarning, match="bypassed"):
        assert "item-1" in str(engine(cache).query("what of item-1?"))
    assert cache.engine.parts.store.find(Selector(node="call"), limit=10) == ()
