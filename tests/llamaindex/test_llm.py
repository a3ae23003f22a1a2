"""LlamaIndex models behind the cache."""

import base64
import copy
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    ImageBlock,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatStartEvent
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_instrumentation.event_handlers import BaseEventHandler
from pydantic import BaseModel, Field

import stemma
from stemma import UsageError
from stemma_llamaindex import CachedLLM, CacheHitEvent
from stemma_llamaindex.codec import NOTE
from stemma_llamaindex.describing import describe

CALLS: list = []


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", policy="threshold", tenant="t") as opened:
        yield opened


class Speaker(CustomLLM):
    """Answers with how often it was asked; says what its answer has cost, as a provider does."""

    model: str = "speaker"
    temperature: float = 0.0
    api_key: str = "sk-secret"
    finish: str = "stop"
    said: str | None = None
    timeout: float = 1.0

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, model_name=self.model)

    def _answer(self, asked):
        CALLS.append(asked)
        return f"answer {len(CALLS)}" if self.said is None else self.said

    def _raw(self, finish):
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        return {"usage": usage, "choices": [{"finish_reason": finish}]}

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=self._answer(prompt), raw=self._raw(self.finish))

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        text = self._answer(prompt)

        def pieces():
            for place in range(len(text)):
                finish = self.finish if place == len(text) - 1 else None
                yield CompletionResponse(
                    text=text[: place + 1], delta=text[place], raw=self._raw(finish)
                )
            yield CompletionResponse(text=text, delta="", raw={"usage": {"total_tokens": 7}})

        return pieces()

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        message = ChatMessage(role=MessageRole.ASSISTANT, content=self._answer(messages))
        return ChatResponse(message=message, raw=self._raw(self.finish))

    @llm_chat_callback()
    def stream_chat(self, messages, **kwargs):
        def pieces():
            for piece in Speaker.stream_complete.__wrapped__(self, str(messages)):
                message = ChatMessage(role=MessageRole.ASSISTANT, content=piece.text)
                yield ChatResponse(message=message, delta=piece.delta, raw=piece.raw)

        return pieces()


ASKED = [
    ChatMessage(role=MessageRole.SYSTEM, content="Be brief."),
    ChatMessage(role=MessageRole.USER, content="What is a stemma?"),
]


async def chat(llm, asked=ASKED, **kwargs):
    return llm.chat(asked, **kwargs)


async def achat(llm, asked=ASKED, **kwargs):
    return await llm.achat(asked, **kwargs)


async def stream_chat(llm, asked=ASKED, **kwargs):
    return list(llm.stream_chat(asked, **kwargs))[-1]


async def astream_chat(llm, asked=ASKED, **kwargs):
    return [chunk async for chunk in await llm.astream_chat(asked, **kwargs)][-1]


async def complete(llm, asked="What is a stemma?", **kwargs):
    return llm.complete(asked, **kwargs)


async def acomplete(llm, asked="What is a stemma?", **kwargs):
    return await llm.acomplete(asked, **kwargs)


async def stream_complete(llm, asked="What is a stemma?", **kwargs):
    return list(llm.stream_complete(asked, **kwargs))[-1]


async def astream_complete(llm, asked="What is a stemma?", **kwargs):
    return [chunk async for chunk in await llm.astream_complete(asked, **kwargs)][-1]


CHATS = (chat, achat, stream_chat, astream_chat)
COMPLETIONS = (complete, acomplete, stream_complete, astream_complete)
PAIRS = [(a, b) for styles in (CHATS, COMPLETIONS) for a in styles for b in styles]


def text(reply):
    return reply.message.content if isinstance(reply, ChatResponse) else reply.text


# ------------------------------------------------------------------------------ hits


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda style: style.__name__)
async def test_the_second_call_in_any_style_does_not_reach_the_model(cache, first, second):
    llm = CachedLLM(cache, Speaker())
    made = await first(llm)
    found = await second(llm)
    assert (text(made), text(found), len(CALLS)) == ("answer 1", "answer 1", 1)
    note = found.additional_kwargs[NOTE]
    assert (note["hit"], note["tier"], note["saved_tokens"]) == (True, "exact", 7)
    assert note["saved_usage"]["total_tokens"] == 7
    assert found.additional_kwargs["total_tokens"] == 0
    assert found.raw is None
    assert NOTE not in made.additional_kwargs


@pytest.mark.parametrize("style", CHATS + COMPLETIONS, ids=lambda style: style.__name__)
async def test_a_miss_gives_just_what_the_model_gave(cache, style):
    plain = await style(Speaker())
    CALLS.clear()
    assert await style(CachedLLM(cache, Speaker())) == plain


async def test_a_streamed_hit_is_cumulative_and_its_deltas_add_up(cache):
    llm = CachedLLM(cache, Speaker())
    llm.chat(ASKED)
    (chunk,) = llm.stream_chat(ASKED)
    assert (chunk.delta, chunk.message.content) == ("answer 1", "answer 1")


def test_every_hit_is_a_copy_of_its_own(cache):
    llm = CachedLLM(cache, Speaker())
    made = llm.chat(ASKED)
    made.message.blocks.append(TextBlock(text="scribble"))
    one = llm.chat(ASKED)
    one.message.blocks[0].text = "scribble"
    one.additional_kwargs["scribble"] = True
    two = llm.chat(ASKED)
    assert text(two) == "answer 1"
    assert "scribble" not in two.additional_kwargs


def test_a_hit_on_a_hit_still_tells_the_first_cost(cache):
    llm = CachedLLM(cache, Speaker())
    llm.chat(ASKED)
    outer = CachedLLM(cache, llm, tags="outer")
    outer.chat(ASKED)
    assert outer.chat(ASKED).additional_kwargs[NOTE]["saved_usage"]["total_tokens"] == 7


# ------------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "other",
    [
        {"model": "another"},
        {"temperature": 0.5},
        {"api_key": "sk-other"},
        {"finish": "end"},
    ],
    ids=str,
)
def test_another_setting_is_another_model(cache, other):
    CachedLLM(cache, Speaker()).chat(ASKED)
    CachedLLM(cache, Speaker(**other)).chat(ASKED)
    assert len(CALLS) == 2


def test_what_shapes_no_answer_is_not_in_the_key(cache):
    CachedLLM(cache, Speaker()).chat(ASKED)
    CachedLLM(cache, Speaker(timeout=9.0, callback_manager=CallbackManager())).chat(ASKED)
    assert len(CALLS) == 1


def test_the_settings_are_those_of_the_moment(cache):
    inner = Speaker()
    llm = CachedLLM(cache, inner)
    llm.chat(ASKED)
    inner.model = "another"
    llm.chat(ASKED)
    assert len(CALLS) == 2


@pytest.mark.parametrize(
    "other",
    [{"tools": [{"name": "a"}]}, {"response_format": {"type": "json"}}, {"new": 1}, {"new": None}],
    ids=str,
)
def test_every_argument_is_in_the_key(cache, other):
    llm = CachedLLM(cache, Speaker())
    llm.chat(ASKED)
    llm.chat(ASKED, **other)
    llm.chat(ASKED, **other)
    assert len(CALLS) == 2


def test_absent_and_zero_and_a_number_are_three_arguments(cache):
    llm = CachedLLM(cache, Speaker())
    for named in ({}, {"top_p": 0}, {"top_p": 0.0}, {"top_p": 0.7}):
        llm.chat(ASKED, **named)
    assert len(CALLS) == 3


def test_no_secret_can_be_read_in_what_the_key_is_made_of():
    assert "sk-secret" not in str(describe(Speaker()))
    assert describe(Speaker()) != describe(Speaker(api_key="sk-other"))


def pictured(data):
    blocks = [TextBlock(text="What is this?"), ImageBlock(image=base64.b64encode(data))]
    return [ChatMessage(role=MessageRole.USER, blocks=blocks)]


def test_an_image_is_in_the_key(cache):
    llm = CachedLLM(cache, Speaker())
    for data in (b"\x89PNG one", b"\x89PNG one", b"\x89PNG two"):
        llm.chat(pictured(data))
    assert len(CALLS) == 2


def test_an_image_on_the_disk_counts_by_its_content(cache, tmp_path):
    file = tmp_path / "a.png"
    llm = CachedLLM(cache, Speaker())
    for data in (b"one", b"one", b"two"):
        file.write_bytes(data)
        block = ImageBlock(path=file, image_mimetype="image/png")
        llm.chat([ChatMessage(role=MessageRole.USER, blocks=[block])])
    assert len(CALLS) == 2


def test_what_has_no_key_goes_past_the_cache_with_one_warning(cache, tmp_path):
    gone = tmp_path / "gone.png"
    gone.write_bytes(b"x")
    unreadable = ImageBlock(path=gone, image_mimetype="image/png")
    gone.unlink()
    llm = CachedLLM(cache, Speaker())
    with pytest.warns(RuntimeWarning, match="bypassed"):
        llm.chat(ASKED, handle=(n for n in ()))
    llm.chat(ASKED, handle=(n for n in ()))  # warned of once: a second warning would be an error
    for _ in range(2):
        llm.chat([ChatMessage(role=MessageRole.USER, blocks=[unreadable])])
    assert len(CALLS) == 4


def tooled(id_):
    call = ToolCallBlock(tool_call_id=id_, tool_name="look", tool_kwargs={"about": "x"})
    return [
        *ASKED,
        ChatMessage(role=MessageRole.ASSISTANT, blocks=[call]),
        ChatMessage(role=MessageRole.TOOL, content="seen", additional_kwargs={"tool_call_id": id_}),
    ]


def test_ids_of_tool_calls_are_not_in_the_key(cache):
    llm = CachedLLM(cache, Speaker())
    llm.chat(tooled("call_1"))
    llm.chat(tooled("call_2"))
    mixed = tooled("call_3")
    mixed[-1].additional_kwargs["tool_call_id"] = "another"
    llm.chat(mixed)
    assert len(CALLS) == 2


def test_a_system_prompt_of_the_model_is_applied_and_counts(cache):
    CachedLLM(cache, Speaker(system_prompt="Be kind.")).predict(PromptTemplate("hello"))
    CachedLLM(cache, Speaker(system_prompt="Be curt.")).predict(PromptTemplate("hello"))
    assert [asked[0].content for asked in CALLS] == ["Be kind.", "Be curt."]


# ---------------------------------------------------------------------------- meaning


def test_a_rewording_may_be_served_and_another_number_is_not(cache):
    llm = CachedLLM(cache, Speaker())
    llm.complete("What does invoice 7 of the year say?")
    near = llm.complete("what does Invoice 7 of the year say")
    assert near.additional_kwargs[NOTE]["tier"] == "semantic"
    llm.complete("What does invoice 8 of the year say?")
    assert len(CALLS) == 2


def test_draws_are_reused_only_for_the_very_same_call(cache):
    llm = CachedLLM(cache, Speaker(temperature=0.7))
    llm.complete("What does invoice 7 of the year say?")
    llm.complete("what does Invoice 7 of the year say")
    llm.complete("What does invoice 7 of the year say?")
    assert len(CALLS) == 2


@pytest.mark.parametrize(
    ("sampling", "named", "calls"),
    [("never", {"temperature": 0.7}, 2), ("meaning", {"temperature": 0.7}, 1), ("never", {}, 1)],
)
def test_how_draws_are_treated_can_be_said(cache, sampling, named, calls):
    llm = CachedLLM(cache, Speaker(), sampling=sampling)
    llm.complete("What does invoice 7 of the year say?", **named)
    llm.complete("what does Invoice 7 of the year say", **named)
    assert len(CALLS) == calls


# ------------------------------------------------------------------------- not stored


@pytest.mark.parametrize("style", CHATS + COMPLETIONS, ids=lambda style: style.__name__)
@pytest.mark.parametrize("bad", [{"finish": "length"}, {"finish": "content_filter"}, {"said": " "}])
async def test_replies_cut_off_filtered_or_empty_are_not_stored(cache, style, bad):
    llm = CachedLLM(cache, Speaker(**bad))
    await style(llm)
    await style(llm)
    assert len(CALLS) == 2


def test_what_the_model_raises_passes_through_and_is_not_stored(cache):
    class Failing(Speaker):
        def chat(self, messages, **kwargs):
            CALLS.append(messages)
            raise OSError("no network")

    llm = CachedLLM(cache, Failing())
    for _ in range(2):
        with pytest.raises(OSError, match="no network"):
            llm.chat(ASKED)
    assert len(CALLS) == 2


async def test_a_stream_that_is_abandoned_or_breaks_is_not_stored(cache):
    class Breaking(Speaker):
        def stream_chat(self, messages, **kwargs):
            yield from list(super().stream_chat(messages, **kwargs))[:3]
            raise OSError("broken")

    llm = CachedLLM(cache, Speaker())
    next(llm.stream_chat(ASKED))
    abandoned = await llm.astream_chat(ASKED)
    await anext(abandoned)
    await abandoned.aclose()
    with pytest.raises(OSError, match="broken"):
        list(CachedLLM(cache, Breaking()).stream_chat(ASKED))
    llm.chat(ASKED)
    assert len(CALLS) == 4


def test_a_stream_whose_deltas_are_not_its_text_is_not_stored(cache):
    class Odd(Speaker):
        def stream_complete(self, prompt, formatted=False, **kwargs):
            CALLS.append(prompt)
            yield CompletionResponse(text="one", delta="one")
            yield CompletionResponse(text="two", delta="two")

    llm = CachedLLM(cache, Odd())
    told = []
    cache.listen(lambda event: told.append(event.detail))
    for _ in range(2):
        assert [chunk.text for chunk in llm.stream_complete("hello")] == ["one", "two"]
    assert len(CALLS) == 2
    assert any("do not add up" in detail for detail in told)


# --------------------------------------------------------------------------- tenants


def test_tenants_do_not_share(cache):
    llm = CachedLLM(cache, Speaker())
    for tenant in ("acme", "bolt", "acme"):
        with instrument_tags({"tenant": tenant}):
            llm.chat(ASKED)
    assert len(CALLS) == 2


async def test_without_a_tenant_the_cache_is_bypassed_with_one_warning():
    with stemma.open(":memory:", embedder=None) as nobody:
        llm = CachedLLM(nobody, Speaker())
        with pytest.warns(RuntimeWarning, match="tenant"):
            llm.complete("hello")
        for style in (*CHATS, *CHATS):  # a second warning would be an error
            assert text(await style(llm)).startswith("answer")
    assert len(CALLS) == 9


# ----------------------------------------------------------------------------- events


class Hearing(BaseEventHandler):
    heard: list[Any] = Field(default_factory=list)

    @classmethod
    def class_name(cls):
        return "Hearing"

    def handle(self, event, **kwargs):
        self.heard.append(event)


@pytest.fixture
def heard():
    handler = Hearing(heard=[])
    get_dispatcher().event_handlers.append(handler)
    yield handler.heard
    get_dispatcher().event_handlers.remove(handler)


@pytest.mark.parametrize("style", CHATS, ids=lambda style: style.__name__)
async def test_a_miss_tells_what_the_model_tells_and_a_hit_only_that_it_is_one(cache, heard, style):
    await style(Speaker())
    alone = [type(event) for event in heard]
    assert {LLMChatStartEvent, LLMChatEndEvent} <= set(alone)
    heard.clear()
    llm = CachedLLM(cache, Speaker())
    await style(llm)
    assert [type(event) for event in heard] == alone
    heard.clear()
    with instrument_tags({"run": "7"}):
        found = await style(llm)
    (hit,) = heard
    assert isinstance(hit, CacheHitEvent)
    assert (hit.node, hit.tier, hit.similarity) == ("call", "exact", 1.0)
    assert hit.entry == found.additional_kwargs[NOTE]["entry"]
    assert (hit.tags, hit.class_name(), hit.saved_tokens) == ({"run": "7"}, "CacheHitEvent", 7)


def test_a_hit_waits_for_no_rate_limiter(cache):
    class Limiter:
        asked = 0

        def acquire(self):
            Limiter.asked += 1

    llm = CachedLLM(cache, Speaker(rate_limiter=Limiter()))
    for _ in range(3):
        llm.chat(ASKED)
    assert llm.rate_limiter is None
    assert Limiter.asked == 1


# ------------------------------------------------------------- where the model is used


class Tooling(MockFunctionCallingLLM):
    """Calls the first tool it is offered, once, then says what it saw; counts its calls."""

    arguments: dict[str, Any] = Field(default_factory=lambda: {"about": "x"})

    def __init__(self, **named):
        super().__init__(response_generator=self._say, is_chat_model=True, **named)

    def _say(self, messages, **kwargs):
        CALLS.append(list(messages))
        tools = kwargs.get("tools")
        if not tools or messages[-1].role == MessageRole.TOOL:
            return ChatMessage(role=MessageRole.ASSISTANT, content=f"saw {messages[-1].content}")
        call = ToolCallBlock(
            tool_call_id=f"call_{len(CALLS)}",
            tool_name=tools[0].metadata.get_name(),
            tool_kwargs=self.arguments,
        )
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[call])


LOOKED: list = []


def look(about: str) -> str:
    """Look something up."""
    LOOKED.append(about)
    return f"all there is of {about}"


def agents(llm):
    tools = [FunctionTool.from_defaults(look)]
    yield FunctionAgent(tools=tools, llm=llm)
    yield FunctionAgent(tools=tools, llm=llm, streaming=False)
    yield AgentWorkflow(agents=[FunctionAgent(tools=tools, llm=llm)])


async def test_agents_run_again_without_the_model_and_with_their_tools(cache):
    LOOKED.clear()
    llm = CachedLLM(cache, Tooling())
    for place, agent in enumerate(agents(llm)):
        said = str(await agent.run(user_msg="Tell me of x"))
        again = str(await agent.run(user_msg="Tell me of x"))
        assert said == again == "saw all there is of x"
        assert len(LOOKED) == 2 * (place + 1)
    assert len(CALLS) == 2


async def test_a_react_agent_runs_again_without_the_model(cache):
    class Reasoning(Speaker):
        def _answer(self, asked):
            super()._answer(asked)
            return "Thought: I can answer without any more tools.\nAnswer: forty"

    llm = CachedLLM(cache, Reasoning())
    for _ in range(2):
        agent = ReActAgent(tools=[FunctionTool.from_defaults(look)], llm=llm)
        assert str(await agent.run("What?")) == "forty"
    assert len(CALLS) == 1


class Book(BaseModel):
    """A book."""

    title: str


async def test_structured_prediction_of_both_kinds_of_model(cache):
    calling = CachedLLM(cache, Tooling(arguments={"title": "Emma"}))
    writing = CachedLLM(cache, Speaker(said='{"title": "Emma"}'))
    for llm in (calling, writing):
        CALLS.clear()
        prompt = PromptTemplate("Name a book of {who}")
        assert llm.structured_predict(Book, prompt, who="Austen") == Book(title="Emma")
        assert await llm.astructured_predict(Book, prompt, who="Austen") == Book(title="Emma")
        assert len(CALLS) == 1
        bound = llm.as_structured_llm(Book)
        assert [bound.chat(ASKED).raw for _ in range(2)] == [Book(title="Emma")] * 2
        assert len(CALLS) == 2


async def test_predicting_and_streaming_a_prompt(cache):
    llm = CachedLLM(cache, Speaker())
    prompt = PromptTemplate("Name a book of {who}")
    said = llm.predict(prompt, who="Austen")
    assert await llm.apredict(prompt, who="Austen") == said
    assert "".join(llm.stream(prompt, who="Austen")) == said
    assert "".join([one async for one in await llm.astream(prompt, who="Austen")]) == said
    assert len(CALLS) == 1


def test_tool_calls_come_back_and_can_be_predicted_and_called(cache):
    llm = CachedLLM(cache, Tooling())
    tools = [FunctionTool.from_defaults(look)]
    for _ in range(2):
        reply = llm.chat_with_tools(tools, "Tell me of x")
        (call,) = llm.get_tool_calls_from_response(reply)
        assert (call.tool_name, call.tool_kwargs) == ("look", {"about": "x"})
        assert llm.predict_and_call(tools, "Tell me of x").response == "all there is of x"
    assert len(CALLS) == 1


def test_tool_calls_that_would_not_come_back_are_not_stored(cache):
    class Live:
        """A provider's own object, which no codec knows."""

        name, arguments = "look", "{}"

    class Older(Tooling):
        def chat(self, messages, **kwargs):
            CALLS.append(messages)
            message = ChatMessage(
                role="assistant", content="", additional_kwargs={"tool_calls": [Live()]}
            )
            return ChatResponse(message=message)

        def get_tool_calls_from_response(self, response, error_on_no_tool_call=True, **kwargs):
            held = response.message.additional_kwargs["tool_calls"]
            return [ToolSelection(tool_id="1", tool_name=one.name, tool_kwargs={}) for one in held]

    llm = CachedLLM(cache, Older())
    for _ in range(2):
        assert len(llm.get_tool_calls_from_response(llm.chat(ASKED))) == 1
    assert len(CALLS) == 2


def test_it_is_what_the_model_is(cache):
    plain, calling = CachedLLM(cache, Speaker()), CachedLLM(cache, Tooling())
    assert isinstance(plain, CachedLLM)
    assert isinstance(calling, CachedLLM)
    assert isinstance(calling, FunctionCallingLLM)
    assert not isinstance(plain, FunctionCallingLLM)
    assert plain.metadata == plain.inner.metadata
    assert calling.metadata.is_function_calling_model
    assert "sk-secret" not in str(plain.to_payload())
    assert isinstance(copy.copy(calling), FunctionCallingLLM)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda llm: llm.model_copy()])
def test_a_copy_goes_on_using_the_same_cache(cache, copied):
    llm = CachedLLM(cache, Speaker())
    llm.chat(ASKED)
    assert copied(llm).chat(ASKED).additional_kwargs[NOTE]["hit"]
    assert len(CALLS) == 1


def test_an_engines_callbacks_reach_the_model(cache):
    manager = CallbackManager()
    llm = CachedLLM(cache, Speaker())
    llm.callback_manager = manager
    assert llm.inner.callback_manager is manager


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda cache: CachedLLM("cache", Speaker()), "stemma.Cache"),
        (lambda cache: CachedLLM(cache, "gpt"), "must be an LLM"),
        (lambda cache: CachedLLM(cache, Speaker().as_structured_llm(Book)), "as_structured_llm"),
    ],
)
def test_wrong_arguments_are_errors(cache, wrong, words):
    with pytest.raises(UsageError, match=words):
        wrong(cache)
