"""What does not shape an answer is left out of keys, and reaches the model all the same."""

import asyncio
import pickle

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

import stemma
from stemma import Cleaning, UsageError
from stemma_langchain import CachedChain, CachedChatModel, LLMCache

RULES = Cleaning(patterns={"ticket": r"\[ref [A-Z]+-\d+\] ?"}, detect=True)
ASK = "What is the refund window?"


CALLS: list = []
"""What reached the chain."""


def answer(given):
    CALLS.append(given)
    return "So."


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


@pytest.fixture(params=["model", "llm cache"])
def model(request, cache, scripted):
    """A scripted model behind either face, and the calls that reached it."""
    inner = scripted("native")
    if request.param == "model":
        return CachedChatModel(cache, inner, cleaning=RULES), inner.calls
    inner.cache = LLMCache(cache, cleaning=RULES)
    return inner, inner.calls


def told(day, question=ASK):
    return [SystemMessage(f"Be brief. Today is {day}."), HumanMessage(question)]


def left_out(cache):
    (entry,) = cache.engine.parts.store.find()
    return {one.name: one.count for one in entry.left_out}


STYLES = {
    "invoke": lambda model, said: model.invoke(said),
    "ainvoke": lambda model, said: asyncio.run(model.ainvoke(said)),
    "batch": lambda model, said: model.batch([said])[0],
    "abatch": lambda model, said: asyncio.run(model.abatch([said]))[0],
}


@pytest.mark.parametrize("style", STYLES)
def test_prompts_that_differ_in_volatile_parts_hit_exactly(cache, model, style):
    face, calls = model
    first = told("Monday, 2 March 2026", f"[ref AB-1] {ASK}")
    STYLES[style](face, first)
    for day, question in (("3 March 2026", f"[ref AB-2] {ASK}"), ("2026-03-04", ASK)):
        found = STYLES[style](face, told(day, question))
        assert found.response_metadata["stemma"]["tier"] == "exact"
    ((_, messages, _),) = calls
    assert [one.content for one in messages] == [one.content for one in first]
    assert left_out(cache) == {"today": 1, "ticket": 1}


@pytest.mark.parametrize("streams", ["stream", "astream"])
def test_streams_are_cleaned_alike(cache, scripted, streams):
    inner = scripted("native")
    face = CachedChatModel(cache, inner, cleaning=RULES)

    async def astream(said):
        return [chunk async for chunk in face.astream(said)]

    for day in ("2 March 2026", "3 March 2026"):
        said = told(day)
        chunks = list(face.stream(said)) if streams == "stream" else asyncio.run(astream(said))
    assert chunks[-1].response_metadata or chunks[0].response_metadata
    assert len(inner.calls) == 1


def test_without_cleaning_a_date_is_part_of_the_key(cache, scripted):
    inner = scripted()
    face = CachedChatModel(cache, inner)
    for day in ("2 March 2026", "3 March 2026"):
        face.invoke(told(day))
    assert len(inner.calls) == 2


def test_a_prompt_without_anything_volatile_has_the_key_it_always_had(cache, scripted):
    inner = scripted()
    said = [SystemMessage("Be brief."), HumanMessage(ASK)]
    CachedChatModel(cache, inner).invoke(said)
    found = CachedChatModel(cache, inner, cleaning=RULES).invoke(said)
    assert found.response_metadata["stemma"]["tier"] == "exact"


def test_what_a_user_says_is_never_detected_away(model):
    face, calls = model
    for said in (
        "Today is 2026-03-03.",
        "Today is 2026-03-04.",
        "request id: 17",
        "request id: 18",
    ):
        face.invoke(said)
    assert len(calls) == 4
    for said in ("[ref AB-1]", "[ref AB-2]"):
        face.invoke(said)
    assert len(calls) == 6


def test_blocks_of_text_are_cleaned_and_others_stay(model):
    face, calls = model

    def ask(day, image):
        text = {"type": "text", "text": f"Today is {day}. Describe."}
        return face.invoke(
            [
                SystemMessage([text, {"type": "text", "text": "Be brief."}]),
                ChatMessage(role="developer", content=f"current date: {day}"),
                HumanMessage([{"type": "image_url", "image_url": {"url": image}}, "What is it?"]),
            ]
        )

    ask("2026-03-03", "data:image/png;base64,AAAA")
    assert ask("2026-03-04", "data:image/png;base64,AAAA").response_metadata["stemma"]
    ask("2026-03-04", "data:image/png;base64,AAAB")
    assert len(calls) == 2
    assert calls[0][1][0].content[0]["text"] == "Today is 2026-03-03. Describe."


def test_a_completion_prompt_loses_what_is_declared_alone(cache):
    model = FakeListLLM(responses=["one", "two"], cache=LLMCache(cache, cleaning=RULES))
    assert model.invoke(f"[ref AB-1] {ASK}") == model.invoke(f"[ref AB-2] {ASK}") == "one"
    assert model.invoke(f"Today is 2026-03-03. {ASK}") == "two"


def test_a_chunk_is_recognised_although_something_was_left_out_of_it(cache, scripted):
    chunk = "[ref AB-7] Refunds are made within thirty days of the purchase, without a fee."
    inner = scripted()
    face = CachedChatModel(cache, inner, cleaning=RULES)
    with cache.trace() as frame:
        source = stemma.Source(document="d", chunk="d#1", content=stemma.content_digest(chunk))
        frame.read_sources([(source, chunk)], stemma.frames.marks())
        (RunnableLambda(lambda given: f"{chunk}\nAnswer {given['n']}.") | face).invoke({"n": 1})
    (entry,) = cache.engine.parts.store.find()
    assert entry.focus is None  # by meaning, the chunk would drown what is asked
    lineage = cache.engine.parts.store.lineage(entry.id)
    assert [edge.known for edge in lineage.sources] == ["observed"]


@pytest.mark.parametrize("style", [*STYLES, "stream"])
def test_a_chain_cleans_its_question_and_is_given_it_whole(cache, style):
    chain = CachedChain(cache, RunnableLambda(answer), focus="question", cleaning=RULES)
    styles = {**STYLES, "stream": lambda face, given: "".join(face.stream(given))}
    for number in (1, 2):
        assert styles[style](chain, {"question": f"[ref AB-{number}] {ASK}"}) == "So."
    assert [{"question": f"[ref AB-1] {ASK}"}] == CALLS
    assert left_out(cache) == {"ticket": 1}


def test_messages_in_the_place_of_a_chains_question_are_cleaned(cache, scripted):
    inner = scripted()
    chain = CachedChain(cache, inner, cleaning=RULES)
    for day in ("2 March 2026", "3 March 2026"):
        found = chain.invoke([*told(day)[:1], HumanMessage("Hi"), AIMessage("Hm"), *told(day)[1:]])
    assert found.response_metadata["stemma"]["tier"] == "exact"
    assert len(inner.calls) == 1


def test_inside_a_chain_its_question_is_found_in_the_cleaned_prompt(cache, scripted):
    inner = scripted()
    face = CachedChatModel(cache, inner, cleaning=RULES)
    prompt = ChatPromptTemplate.from_template("Document: {text}\nQuestion: {question}")

    def ask(question, text):
        return (RunnableLambda(lambda q: {"question": q, "text": text}) | prompt | face).invoke(
            question
        )

    ask(f"{ASK} [ref AB-1]", Document("Thirty days.").page_content)
    assert {one.focus for one in cache.engine.parts.store.find()} == {f"{ASK} "}
    assert ask(f"{ASK} [ref AB-2]", "Thirty days.").response_metadata["stemma"]["tier"] == "exact"
    assert "stemma" not in ask(f"{ASK} [ref AB-2]", "Forty days.").response_metadata


def test_a_model_in_a_cleaned_chain_is_told_the_question_as_it_was_asked(cache, scripted):
    inner = scripted(cache=LLMCache(cache))
    prompt = ChatPromptTemplate.from_template("Question: {question}")
    asked = f"[ref AB-1] {ASK}"
    CachedChain(cache, prompt | inner, "question", cleaning=RULES).invoke({"question": asked})
    stored = {one.node: one.focus for one in cache.engine.parts.store.find()}
    assert stored == {"answer": ASK, "call": asked}


def test_cleaning_must_be_one_and_a_face_can_be_carried_on(cache, scripted, tmp_path):
    with pytest.raises(UsageError, match="Cleaning"):
        LLMCache(cache, cleaning="today")
    with pytest.raises(UsageError, match="Cleaning"):
        CachedChain(cache, RunnableLambda(str), cleaning={"a": "b"})
    with pytest.raises(ValueError, match="Cleaning"):
        CachedChatModel(cache, scripted(), cleaning="today")
    with stemma.open(tmp_path / "a.db", tenant="t", embedder=None) as kept:
        face = LLMCache(kept, cleaning=Cleaning(patterns={"ticket": "ref \\d+"}))
        assert pickle.loads(pickle.dumps(face)).cleaning == face.cleaning
