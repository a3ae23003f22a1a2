"""Cleaned prompts are one; a follow-up hits where the conversation before it means the same."""

import asyncio

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    CompletionResponse,
    ImageBlock,
    LLMMetadata,
    MessageRole,
    TextBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.memory import ChatMemoryBuffer
from pydantic import PrivateAttr

import stemma
from stemma import Cleaning
from stemma_llamaindex import CachedChatEngine, CachedLLM
from stemma_llamaindex.prompts import read_messages, read_text

RULES = Cleaning(patterns={"ticket": r"\[ref [A-Z]+-\d+\] ?"}, detect=True)
ASK = "How old is the founder of the company?"


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t", threshold=0.6) as opened:
        yield opened


class Speaker(CustomLLM):
    """Says the same each time, and notes what it was asked."""

    _calls: list = PrivateAttr(default_factory=list)

    @property
    def metadata(self):
        return LLMMetadata(model_name="speaker")

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        self._calls.append(prompt)
        return CompletionResponse(text="So.", additional_kwargs={"finish_reason": "stop"})

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        yield CompletionResponse(
            text="So.", delta="So.", additional_kwargs={"finish_reason": "stop"}
        )
        self._calls.append(prompt)


def say(role, text):
    return ChatMessage(role=role, content=text)


def talk(question, answer="Ada did.", system="Be brief.", last=ASK):
    return [
        say("system", system),
        say("user", question),
        say("assistant", answer),
        say("user", last),
    ]


async def _last(stream):
    return [chunk async for chunk in await stream][-1]


CHAT = {
    "chat": lambda llm, said: llm.chat(said),
    "achat": lambda llm, said: asyncio.run(llm.achat(said)),
    "stream_chat": lambda llm, said: list(llm.stream_chat(said))[-1],
    "astream_chat": lambda llm, said: asyncio.run(_last(llm.astream_chat(said))),
}


def tier(reply):
    return reply.additional_kwargs.get("stemma", {}).get("tier")


@pytest.mark.parametrize("style", CHAT)
def test_prompts_that_differ_in_volatile_parts_hit_exactly(cache, style):
    inner = Speaker()
    llm = CachedLLM(cache, inner, cleaning=RULES)
    prompts = [
        [say(role, f"Be brief. Today is {day}."), say("user", f"[ref AB-{number}] {ASK}")]
        for number, (role, day) in enumerate([("system", "2 March 2026"), ("system", "2026-03-03")])
    ]
    assert [tier(CHAT[style](llm, said)) for said in prompts] == [None, "exact"]
    (asked,) = inner._calls
    assert "Today is 2 March 2026." in asked
    assert "[ref AB-0]" in asked
    (entry,) = cache.engine.parts.store.find()
    assert {one.name: one.count for one in entry.left_out} == {"today": 1, "ticket": 1}
    assert entry.focus == ASK


def test_blocks_of_text_are_cleaned_and_others_stay(cache):
    inner = Speaker()
    llm = CachedLLM(cache, inner, cleaning=RULES)

    def ask(day, image):
        blocks = [TextBlock(text=f"Today is {day}."), ImageBlock(image=image)]
        system = ChatMessage(role=MessageRole.SYSTEM, blocks=blocks)
        return tier(llm.chat([system, say("user", ASK)]))

    assert ask("2026-03-03", b"one") is None
    assert ask("2026-03-04", b"one") == "exact"
    assert ask("2026-03-04", b"two") is None


def test_a_completion_prompt_loses_what_is_declared_alone(cache):
    inner = Speaker()
    llm = CachedLLM(cache, inner, cleaning=RULES)
    for prompt in (f"[ref AB-1] {ASK}", f"[ref AB-2] {ASK}", f"Today is 2026-03-03. {ASK}"):
        llm.complete(prompt)
    assert len(inner._calls) == 2
    for said in ("[ref AB-1]", "[ref AB-2]"):
        llm.complete(said)
    assert len(inner._calls) == 4


def test_a_chunk_is_recognised_although_something_was_left_out_of_it():
    """By meaning, the chunk would drown what is asked."""
    chunk = "[ref AB-7] Refunds are made within thirty days of the purchase, without a fee."
    said = f"{chunk}\nAnswer this."
    for read in (
        read_messages([say("user", said)], None, [chunk], meaning=True, cleaning=RULES),
        read_text(said, None, [chunk], meaning=True, cleaning=RULES),
    ):
        assert read.request.focus is None
        assert read.texts == (said,)
        assert [one.texts for one in read.request.left_out] == [("[ref AB-7] ",)]
    question = "What of [ref AB-7] this?"
    found = read_text(f"{chunk}\n{question}", question, [chunk], meaning=True, cleaning=RULES)
    assert found.request.focus == "What of this?"


def test_cleaning_must_be_one(cache):
    with pytest.raises(ValueError, match="Cleaning"):
        CachedLLM(cache, Speaker(), cleaning="today")


@pytest.mark.parametrize("style", CHAT)
def test_a_follow_up_hits_after_the_same_conversation_and_one_reworded(cache, style):
    inner = Speaker()
    llm = CachedLLM(cache, inner)
    ask = CHAT[style]
    assert tier(ask(llm, talk("Who founded the Acme company?"))) is None
    assert tier(ask(llm, talk("Who founded the Acme company?"))) == "exact"
    assert tier(ask(llm, talk("who founded the acme company"))) == "semantic"
    assert len(inner._calls) == 1


def test_it_does_not_after_another_or_none(cache):
    inner = Speaker()
    llm = CachedLLM(cache, inner)
    prompts = [
        talk("Who founded the Acme company?"),
        talk("Who founded the Bolt company?"),
        talk("Who founded the Acme company?", "Max did."),
        talk("Who founded the Acme company?", system="Be long."),
        [say("system", "Be brief."), say("user", ASK)],
        [say("tool", "17"), *talk("Who founded the Acme company?")],
    ]
    for prompt in prompts:
        llm.chat(prompt)
    assert len(inner._calls) == len(prompts)


def test_a_chat_engine_goes_on_from_a_conversation_that_means_the_same(cache):
    inner = Speaker()

    def engine(*history):
        memory = ChatMemoryBuffer.from_defaults(chat_history=list(history), llm=inner)
        made = SimpleChatEngine(llm=inner, memory=memory, prefix_messages=[])
        return CachedChatEngine(cache, made)

    answer = say("assistant", "Ada did.")
    engine(say("user", "Who founded the Acme company?"), answer).chat(ASK)
    found = engine(say("user", "who founded the acme company"), answer).chat(ASK)
    assert found.metadata["stemma"]["tier"] == "semantic"
    other = engine(say("user", "Who founded the Bolt company?"), answer).chat(ASK)
    assert "stemma" not in (other.metadata if other.metadata is not None else {})
    engine().chat(ASK)
    assert len(inner._calls) == 3
