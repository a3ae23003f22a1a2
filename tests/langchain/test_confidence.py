"""A reply is believed as far as its model was sure of it, where the provider tells that."""

import asyncio
import math

import pytest
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.outputs import Generation

import stemma
from stemma.policies.learning import Trial
from stemma.policies.threshold import Decision
from stemma_langchain import CachedChatModel, LLMCache

SURE, UNSURE = math.log(0.9), math.log(0.3)


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None, tenant="t") as opened:
        yield opened


def reply(*logprobs):
    content = [{"token": "x", "logprob": one, "top_logprobs": []} for one in logprobs]
    return AIMessage("Rome.", response_metadata={"logprobs": {"content": content}})


ASK = {
    "invoke": lambda m, q: m.invoke(q),
    "ainvoke": lambda m, q: asyncio.run(m.ainvoke(q)),
    "batch": lambda m, q: m.batch([q])[0],
}


@pytest.mark.parametrize("style", ASK)
@pytest.mark.parametrize(
    ("said", "confidence", "calls"),
    [
        (reply(SURE, SURE), 0.9, 1),
        (reply(UNSURE, UNSURE), 0.3, 3),
        (reply(UNSURE, 0.0), math.sqrt(0.3), 1),
        (reply(), 1.0, 1),
        (AIMessage("Rome."), 1.0, 1),
        (AIMessage("Rome.", response_metadata={"logprobs": None}), 1.0, 1),
        (AIMessage("Rome.", response_metadata={"logprobs": "none"}), 1.0, 1),
        (AIMessage("Rome.", response_metadata={"logprobs": {"content": [3, {}]}}), 1.0, 1),
    ],
)
def test_a_model_that_was_unsure_is_asked_again(  # noqa: PLR0917 - fixtures
    cache, scripted, style, said, confidence, calls
):
    """Until two recomputations have come out the same: then the answer is believed."""
    model = scripted("whole", said)
    cached = CachedChatModel(cache, model)
    for _ in range(6):
        assert ASK[style](cached, "Capital of Italy?").text == "Rome."
    assert len(model.calls) == calls
    (entry,) = cache.engine.parts.store.find()
    assert entry.confidence == pytest.approx(confidence)


def test_a_stream_is_believed_as_a_whole_reply_is(cache, scripted):
    model = scripted("streaming", reply(SURE, UNSURE))
    list(CachedChatModel(cache, model).stream("Capital of Italy?"))
    (entry,) = cache.engine.parts.store.find()
    assert 0.0 < entry.confidence < 1.0


def test_completions_tell_it_in_their_own_way(cache):
    llm = LLMCache(cache)
    info = {"logprobs": {"tokens": ["a", "b"], "token_logprobs": [None, UNSURE]}}
    llm.lookup("Capital of Italy?", "m")
    llm.update("Capital of Italy?", "m", [Generation(text="Rome.", generation_info=info)])
    (entry,) = cache.engine.parts.store.find()
    assert entry.confidence == pytest.approx(0.3)
    assert llm.lookup("Capital of Italy?", "m") is None


def test_who_tells_nothing_is_believed(cache):
    model = FakeListLLM(responses=["Rome."], cache=LLMCache(cache))
    model.invoke("Capital of Italy?")
    (entry,) = cache.engine.parts.store.find()
    assert entry.confidence == 1.0


class Audits:
    """Computes everything afresh that has a neighbour, to compare the two answers."""

    name, depth, floor = "audits", 1, 0.0

    def decide(self, asked, candidates):
        if not candidates:
            return Decision(reason="cold")
        trial = Trial(candidate=candidates[0].id, known=(), audit=True)
        return Decision((), "audit", candidates[0].id, candidates[0].similarity, "", trial)


def test_calls_of_tools_are_compared_by_an_audit(scripted):
    """Two replies that call the same tool with the same arguments are the same answer."""
    call = {"name": "weather", "args": {"city": "Rome"}, "id": "1", "type": "tool_call"}
    told = []
    with stemma.open(":memory:", embedder="hashing", tenant="t", policy=Audits()) as cache:
        cache.listen(lambda event: told.append(event) if event.kind == "judgement" else None)
        replies = (
            AIMessage("", tool_calls=[call]),
            AIMessage("Let me see.", tool_calls=[{**call, "id": "2"}]),
            AIMessage("", tool_calls=[{**call, "args": {"city": "Oslo"}, "id": "3"}]),
        )
        model = scripted("whole", *replies)
        cached = CachedChatModel(cache, model)
        for question in ("Weather in Rome?", "How is the weather in Rome?", "Is Rome warm?"):
            cached.invoke(question)
        verdicts = [one.verdict for one in cache.engine.parts.store.judgements()]
    assert len(model.calls) == 3
    assert {(one.outcome, one.detail) for one in told} == {("right", "calls"), ("wrong", "calls")}
    assert sorted(verdicts) == ["agreed", "disagreed"]
