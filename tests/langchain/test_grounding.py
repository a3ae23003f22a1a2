"""What chains and model calls store is checked against the documents they were made from."""

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel

import stemma
from stemma.grounding import Grounded
from stemma_langchain import CachedChain, CachedChatModel, CachedRetriever, LLMCache

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


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(TEXT, id="policy-1", metadata={"source": "policy"})]


@pytest.fixture
def grounder():
    return Counting(0.75)


@pytest.fixture
def cache(grounder):
    with stemma.open(embedder=None, tenant="t", grounding=grounder) as opened:
        yield opened


@pytest.fixture(params=["LLMCache", "CachedChatModel"])
def model(request, cache, scripted):
    """A model behind either face."""

    def make(*replies):
        inner = scripted("streaming", *replies)
        if request.param == "CachedChatModel":
            return CachedChatModel(inner=inner, cache=cache)
        inner.cache = LLMCache(cache)
        return inner

    return make


def rag(cache, model):
    return (
        RunnableParallel(
            context=RunnableLambda(lambda given: given["question"])
            | CachedRetriever(cache, Shelf()),
            question=lambda given: given["question"],
        )
        | ChatPromptTemplate.from_template("{context}\n\n{question}")
        | model
        | StrOutputParser()
    )


async def invoke(chain):
    return chain.invoke({"question": QUESTION})


async def ainvoke(chain):
    return await chain.ainvoke({"question": QUESTION})


async def stream(chain):
    return "".join(chain.stream({"question": QUESTION}))


async def astream(chain):
    return "".join([piece async for piece in chain.astream({"question": QUESTION})])


async def batch(chain):
    return chain.batch([{"question": QUESTION}])[0]


def checked(cache):
    assert cache.engine.parts.checking.wait(30)


@pytest.mark.parametrize("style", [invoke, ainvoke, stream, astream, batch])
async def test_the_documents_reach_the_grounder_for_the_call_and_for_the_chain(
    cache, grounder, model, style
):
    chain = CachedChain(cache, rag(cache, model(AIMessage(TEXT))), focus="question")
    assert await style(chain) == TEXT
    checked(cache)
    stored = [node for node in ("call", "answer") if cache.stats().of(node=node).entries]
    assert "answer" in stored  # LangChain streams past its own cache of model calls
    assert [asked[:2] for asked in grounder.asked] == [(TEXT, [TEXT])] * len(stored)
    assert all(question.endswith(QUESTION) for _, _, question in grounder.asked)
    assert await style(chain) == TEXT
    checked(cache)
    assert len(grounder.asked) == len(stored)
    said = cache.engine.parts.store.judgements()
    found = cache.engine.parts.store.get([one.entry for one in said]).entries.values()
    assert {(one.node, one.confidence) for one in found} == {(node, 0.75) for node in stored}


async def test_documents_from_a_retrieval_that_hit_reach_it_as_well(cache, grounder, model):
    chain = CachedChain(cache, rag(cache, model(AIMessage(TEXT))), focus="question")
    await invoke(chain)
    for node in ("answer", "call"):
        cache.clear(node=node)
    await ainvoke(chain)
    checked(cache)
    assert cache.stats().of(node="retrieval").exact == 1
    assert [asked[:2] for asked in grounder.asked] == [(TEXT, [TEXT])] * 4


async def test_an_answer_that_no_document_supports_is_not_served_again(scripted):
    with stemma.open(embedder=None, tenant="t", grounding="check") as cache:
        inner = scripted("streaming", AIMessage("36 months."), AIMessage("24 months."))
        chain = CachedChain(cache, rag(cache, inner), focus="question")
        assert await invoke(chain) == "36 months."
        checked(cache)
        assert await invoke(chain) == "24 months."
        checked(cache)
        assert await invoke(chain) == "24 months."
        assert len(inner.calls) == 2


async def test_what_calls_tools_is_no_answer_yet(cache, grounder, model):
    call = {"name": "look", "args": {"at": "7"}, "id": "1"}
    chain = rag(cache, model(AIMessage("I shall look.", tool_calls=[call])))
    await invoke(chain)
    checked(cache)
    assert cache.stats().of(node="call").entries == 1
    assert grounder.asked == []
