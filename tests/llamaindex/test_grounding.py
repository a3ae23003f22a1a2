"""What query engines, chat engines and model calls store is checked against their nodes."""

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import stemma
from stemma.grounding import Grounded
from stemma_llamaindex import CachedChatEngine, CachedLLM, CachedQueryEngine, CachedRetriever

QUESTION = "How long is the warranty?"
TEXT = "The warranty lasts 24 months."


class Counting:
    """A grounder that gives one score, and notes what it got."""

    name, revision = "counting", "counting/1"

    def __init__(self, score):
        self.score, self.asked = score, []

    def ground(self, answer, sources, question=""):
        self.asked.append((answer, list(sources), question))
        return Grounded(score=self.score, by=self.name)

    async def aground(self, answer, sources, question=""):
        raise AssertionError("the background has no loop")


class Speaker(CustomLLM):
    """Says one thing."""

    said: str = TEXT

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, model_name="speaker")

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=self.said, raw={"finish_reason": "stop"})

    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield CompletionResponse(text=self.said, delta=self.said, raw={"finish_reason": "stop"})


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(id_="policy-1", text=TEXT), score=0.5)]


@pytest.fixture
def grounder():
    return Counting(0.75)


@pytest.fixture
def cache(grounder):
    with stemma.open(embedder=None, tenant="t", grounding=grounder) as opened:
        yield opened


def engine(cache, llm, *, streaming=False):
    synthesizer = get_response_synthesizer(llm=llm, streaming=streaming)
    retriever = CachedRetriever(cache, Shelf(), index="shelf")
    inner = RetrieverQueryEngine(retriever, response_synthesizer=synthesizer)
    return CachedQueryEngine(cache, inner)


async def query(cached):
    return str(cached.query(QUESTION))


async def aquery(cached):
    return str(await cached.aquery(QUESTION))


async def stream(cached):
    return "".join(cached.query(QUESTION).response_gen)


async def astream(cached):
    response = await cached.aquery(QUESTION)
    return "".join([piece async for piece in response.async_response_gen()])


def checked(cache):
    assert cache.engine.parts.checking.wait(30)


@pytest.mark.parametrize("style", [query, aquery, stream, astream])
async def test_the_nodes_reach_the_grounder_for_the_call_and_for_the_engine(cache, grounder, style):
    streaming = style in (stream, astream)
    made = engine(cache, CachedLLM(cache, Speaker()), streaming=streaming)
    assert await style(made) == TEXT
    checked(cache)
    assert [asked[:2] for asked in grounder.asked] == [(TEXT, [TEXT])] * 2
    assert QUESTION in {question for _, _, question in grounder.asked}
    assert await style(made) == TEXT
    checked(cache)
    assert len(grounder.asked) == 2
    said = cache.engine.parts.store.judgements()
    found = cache.engine.parts.store.get([one.entry for one in said]).entries.values()
    assert {(one.node, one.confidence) for one in found} == {("call", 0.75), ("answer", 0.75)}


async def test_nodes_from_a_retrieval_that_hit_reach_it_as_well(cache, grounder):
    made = engine(cache, CachedLLM(cache, Speaker()))
    await query(made)
    for node in ("answer", "call"):
        cache.clear(node=node)
    await aquery(made)
    checked(cache)
    assert cache.stats().of(node="retrieval").exact == 1
    assert [asked[:2] for asked in grounder.asked] == [(TEXT, [TEXT])] * 4


async def test_a_chat_engine_s_nodes_reach_it(cache, grounder):
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000, tokenizer_fn=str.split)
    inner = ContextChatEngine.from_defaults(retriever=Shelf(), llm=Speaker(), memory=memory)
    CachedChatEngine(cache, inner).chat(QUESTION)
    checked(cache)
    assert grounder.asked == [(TEXT, [TEXT], QUESTION)]


async def test_an_answer_that_no_node_supports_is_not_served_again():
    with stemma.open(embedder=None, tenant="t", grounding="check") as cache:
        speaker = Speaker(said="36 months.")
        made = engine(cache, speaker)
        assert await query(made) == "36 months."
        checked(cache)
        miss = cache.stats().of(node="answer").misses
        assert await aquery(made) == "36 months."
        checked(cache)
        assert cache.stats().of(node="answer").misses == {**miss, "low_confidence": 1}
