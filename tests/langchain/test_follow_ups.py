"""A follow-up hits only where the conversation before it means the same."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda

import stemma
from stemma_langchain import CachedChain, CachedChatModel, LLMCache

SYSTEM = SystemMessage("Be brief.")
ASK = HumanMessage("How old is the founder of the company?")


CALLS: list = []
"""What reached the chain."""


def answer(given):
    CALLS.append(given)
    return "So."


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t", threshold=0.6) as opened:
        yield opened


@pytest.fixture(params=["model", "llm cache", "chain"])
def model(request, cache, scripted):
    """A scripted model behind a face, and the calls that reached it."""
    inner = scripted("native")
    if request.param == "model":
        return CachedChatModel(cache, inner), inner.calls
    if request.param == "llm cache":
        inner.cache = LLMCache(cache)
        return inner, inner.calls
    return CachedChain(cache, inner), inner.calls


def talk(question, answer="Ada did.", last=ASK):
    return [SYSTEM, HumanMessage(question), AIMessage(answer), last]


def tier(reply):
    return reply.response_metadata.get("stemma", {}).get("tier")


STYLES = {
    "invoke": lambda model, said: model.invoke(said),
    "ainvoke": lambda model, said: asyncio.run(model.ainvoke(said)),
    "batch": lambda model, said: model.batch([said])[0],
}


@pytest.mark.parametrize("style", STYLES)
def test_it_hits_after_the_same_conversation_and_one_reworded(model, style):
    face, calls = model
    ask = STYLES[style]
    assert tier(ask(face, talk("Who founded the Acme company?"))) is None
    assert tier(ask(face, talk("Who founded the Acme company?"))) == "exact"
    assert tier(ask(face, talk("who founded the acme company"))) == "semantic"
    again = HumanMessage("how old is the founder of the company")
    assert tier(ask(face, talk("Who founded the Acme company?", last=again))) == "semantic"
    assert len(calls) == 1


def test_it_does_not_after_another_or_none(model):
    face, calls = model
    prompts = [
        talk("Who founded the Acme company?"),
        talk("Who founded the Bolt company?"),
        talk("Who founded the Acme company?", "Max did."),
        talk("Who founded the Acme company?", "Ada did not."),
        [SYSTEM, ASK],
        [SystemMessage("Be long."), *talk("Who founded the Acme company?")[1:]],
        [SYSTEM, HumanMessage("Hi."), AIMessage("Hi."), *talk("Who founded the Acme company?")[1:]],
        [SYSTEM, AIMessage("Who founded the Acme company?"), HumanMessage("Ada did."), ASK],
    ]
    for prompt in prompts:
        face.invoke(prompt)
    assert len(calls) == len(prompts)
    assert [tier(face.invoke(prompt)) for prompt in prompts] == ["exact"] * len(prompts)


def test_what_tools_were_called_with_and_gave_must_be_equal(model):
    face, calls = model

    def said(place, found, question="What is the weather in Rome like?", words="Let me see."):
        call = {"name": "weather", "args": {"place": place}, "id": f"random-{len(calls)}"}
        return [
            HumanMessage(question),
            AIMessage(words, tool_calls=[call]),
            ToolMessage(found, tool_call_id=call["id"]),
            AIMessage("It is mild."),
            HumanMessage("Shall I take a coat with me today?"),
        ]

    face.invoke(said("Rome", "20 degrees"))
    assert tier(face.invoke(said("Rome", "20 degrees", "what is the weather in Rome like"))) == (
        "semantic"
    )
    face.invoke(said("Rome", "21 degrees"))
    face.invoke(said("Oslo", "20 degrees"))
    face.invoke(said("Rome", "20 degrees", words="let me see"))
    assert len(calls) == 4


def test_a_chains_history_in_another_field_must_be_equal(cache):
    CALLS.clear()
    chain = CachedChain(cache, RunnableLambda(answer), focus="question")

    def ask(first):
        history = [HumanMessage(first), AIMessage("Ada did.")]
        return chain.invoke({"question": ASK.content, "history": history})

    ask("Who founded the Acme company?")
    ask("Who founded the Acme company?")
    ask("who founded the acme company")
    assert len(CALLS) == 2
