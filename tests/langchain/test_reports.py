"""A wrong hit is reported by the note that came with it, in every call style."""

import asyncio
import json

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

import stemma
from stemma_langchain import CachedChain, CachedChatModel

QUESTION, AGAIN = "How do I cancel my order?", "How can I cancel my order?"


def whole(chunks):
    first, *rest = chunks
    return sum(rest, first)


async def awhole(stream):
    return whole([chunk async for chunk in stream])


ASK = {
    "invoke": lambda m, q: m.invoke(q),
    "ainvoke": lambda m, q: asyncio.run(m.ainvoke(q)),
    "batch": lambda m, q: m.batch([q])[0],
    "stream": lambda m, q: whole(m.stream(q)),
    "astream": lambda m, q: asyncio.run(awhole(m.astream(q))),
}


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t", threshold=0.6) as opened:
        yield opened


@pytest.mark.parametrize("style", ASK)
def test_a_reported_reply_never_comes_back_for_that_question(cache, scripted, style):
    model = scripted("streaming", AIMessage("Press Cancel."))
    cached = CachedChatModel(cache, model)
    ASK[style](cached, QUESTION)
    hit = ASK[style](cached, AGAIN)
    note = json.loads(json.dumps(hit.response_metadata["stemma"]))
    assert (len(model.calls), note["tier"]) == (1, "semantic")
    cache.report(note, "wrong_hit", by="user")
    assert "stemma" not in ASK[style](cached, AGAIN).response_metadata
    assert len(model.calls) == 2
    cache.report(note["entry"], "supported", by="reviewer")
    own = ASK[style](cached, AGAIN).response_metadata["stemma"]
    assert own["entry"] == own["question"] == note["question"]
    cache.clear(entry=own["entry"])
    ASK[style](cached, AGAIN)
    assert len(model.calls) == 3


@pytest.mark.parametrize("style", ASK)
def test_a_chain_s_answer_is_reported_likewise(cache, scripted, style):
    model = scripted("streaming", AIMessage("Press Cancel."))
    chain = CachedChain(cache, RunnableLambda(str) | model, name="answers")
    ASK[style](chain, QUESTION)
    hit = ASK[style](chain, AGAIN)
    assert len(model.calls) == 1
    cache.report(hit.response_metadata["stemma"], "wrong_hit", by="user")
    ASK[style](chain, AGAIN)
    assert len(model.calls) == 2
