"""Model calls behind LangChain's own cache interface: who reaches the model, what a hit is."""

import asyncio
import contextvars
import json
import pickle
import subprocess
import sys
import textwrap
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult, Generation, LLMResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, Field

import stemma
from stemma.stores.memory import MemoryStore
from stemma_langchain import CachedChain, LLMCache

CALLS: list = []
"""What reached the models: the model's name, the messages, the arguments."""

ASKED, REWORDED = "What is a stemma codicum?", "what is a stemma codicum"
ZERO = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", policy="threshold", tenant="t") as opened:
        yield opened


class Model(BaseChatModel):
    """Counts its calls. Its string for the cache is JSON, and is computed once."""

    name_of_it: str = "m"
    temperature: float | None = None
    stop_at: list[str] | None = None
    n: int = 1
    replies: tuple[Any, ...] = Field(default=(), exclude=True)
    during: Any = Field(default=None, exclude=True)

    @property
    def _llm_type(self):
        return "counting"

    @classmethod
    def is_lc_serializable(cls):
        return True

    @property
    def _identifying_params(self):
        names = ("name_of_it", "temperature", "stop_at", "n")
        return {name: getattr(self, name) for name in names}

    def bind_tools(self, tools, **kwargs):
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        CALLS.append((self.name_of_it, messages, kwargs))
        if self.during is not None:
            self.during(run_manager)
        if not self.replies:
            said = AIMessage(f"{self.name_of_it} to {messages[-1].text}, call {len(CALLS)}")
        else:
            said = self.replies[(len(CALLS) - 1) % len(self.replies)]
        if isinstance(said, Exception):
            raise said
        said = said(run_manager) if callable(said) else said
        several = said if isinstance(said, list) else [said] * self.n
        return ChatResult(
            generations=[ChatGeneration(message=m.model_copy(deep=True)) for m in several]
        )


class Unserializable(Model):
    """Its string for the cache is the Python form of its parameters."""

    @classmethod
    def is_lc_serializable(cls):
        return False


class Completing(BaseLLM):
    """A completion model."""

    @property
    def _llm_type(self):
        return "completing"

    def _generate(self, prompts, stop=None, run_manager=None, **kwargs):
        CALLS.extend(("completing", prompt, kwargs) for prompt in prompts)
        return LLMResult(generations=[[Generation(text=f"after {p}")] for p in prompts])


def reply(content="forty-two", **named):
    usage = {"input_tokens": 30, "output_tokens": 12, "total_tokens": 42}
    return AIMessage(content, **{"usage_metadata": usage, **named})


def ask(model, style, *questions):
    """The replies' first messages, or texts, in the order of the questions."""
    turns = [[HumanMessage(q)] if isinstance(model, BaseChatModel) else q for q in questions]
    if style == "invoke":
        return [model.invoke(turn) for turn in turns]
    if style == "batch":
        return model.batch(turns)
    if style == "generate":
        return [getattr(g[0], "message", g[0].text) for g in model.generate(turns).generations]
    if style == "ainvoke":

        async def each():
            return [await model.ainvoke(turn) for turn in turns]

        return asyncio.run(each())
    if style == "abatch":
        return asyncio.run(model.abatch(turns))
    found = asyncio.run(model.agenerate(turns)).generations
    return [getattr(g[0], "message", g[0].text) for g in found]


STYLES = ("invoke", "ainvoke", "batch", "abatch", "generate", "agenerate")
QUESTIONS = ("Who leads Acme?", "How far is the moon?", "Why is the sky blue?")


# ------------------------------------------------------------- who reaches the model


@pytest.mark.parametrize("cold", STYLES)
@pytest.mark.parametrize("kind", [Model, Unserializable, Completing])
def test_the_second_call_in_any_style_does_not_reach_the_model(cache, kind, cold):
    model = kind(cache=LLMCache(cache))
    first = [getattr(r, "content", r) for r in ask(model, cold, *QUESTIONS)]
    assert len(CALLS) == 3
    assert all(q in said for q, said in zip(QUESTIONS, first, strict=True))
    for warm in STYLES:
        again = ask(model, warm, *reversed(QUESTIONS))
        assert [getattr(r, "content", r) for r in again] == first[::-1]
    assert len(CALLS) == 3


def test_equal_prompts_in_one_generate_are_asked_once(cache):
    model = Model(cache=LLMCache(cache))
    one, two = ask(model, "generate", ASKED, ASKED)
    assert one.content == two.content
    assert len(CALLS) == 1


def test_a_model_without_a_cache_of_its_own_uses_the_one_set_for_all(cache):
    set_llm_cache(LLMCache(cache))
    try:
        ask(Model(), "invoke", ASKED, ASKED)
        ask(Model(cache=False), "invoke", ASKED)
    finally:
        set_llm_cache(None)
    assert len(CALLS) == 2


def test_a_stream_passes_by_where_the_model_streams_and_is_one_chunk_where_not(cache):
    model = Model(cache=LLMCache(cache))
    for _ in range(2):
        assert "".join(chunk.content for chunk in model.stream(ASKED)) == f"m to {ASKED}, call 1"


@pytest.mark.parametrize("kind", [Model, Unserializable])
def test_the_same_meaning_is_answered_too(cache, kind):
    model = kind(cache=LLMCache(cache))
    first, again = ask(model, "invoke", ASKED, REWORDED)
    assert again.content == first.content
    assert again.response_metadata["stemma"]["tier"] == "semantic"
    assert ask(model, "invoke", "What is a stemma?")[0].content != first.content


# ------------------------------------------------------------------- what a hit gives


def test_a_hit_is_a_list_of_copies(cache):
    """LangChain takes a tuple for a miss, and changes in place what it is given."""
    face = LLMCache(cache)
    given = [ChatGeneration(message=reply(), generation_info={"finish_reason": "stop"})]
    assert face.lookup(ASKED, "m") is None
    face.update(ASKED, "m", given)
    given[0].message.content = "changed by the first caller"
    first = face.lookup(ASKED, "m")
    assert type(first) is list
    assert first[0].message.content == "forty-two"
    first[0].message.content = "changed by the second"
    first[0].generation_info.clear()
    first.clear()
    (third,) = face.lookup(ASKED, "m")
    assert third.message.content == third.text == "forty-two"
    assert third.generation_info == {"finish_reason": "stop"}


def test_a_tuple_of_generations_comes_back_as_a_list(cache):
    face = LLMCache(cache)
    face.lookup(ASKED, "m")
    face.update(ASKED, "m", (Generation(text="forty-two"),))
    assert face.lookup(ASKED, "m") == [Generation(text="forty-two")]


def test_each_hit_has_an_id_of_its_own_and_no_usage(cache):
    model = Model(cache=LLMCache(cache), replies=(reply(id="given-by-the-provider"),))
    first, *hits = ask(model, "invoke", ASKED, ASKED, ASKED)
    assert first.usage_metadata["total_tokens"] == 42
    assert len({m.id for m in (first, *hits)}) == 3
    for hit in hits:
        assert hit.usage_metadata == {**ZERO, "total_cost": 0}
        note = hit.response_metadata["stemma"]
        assert note["saved_usage"]["total_tokens"] == note["saved_tokens"] == 42
        assert AIMessage(**json.loads(dumps(hit))["kwargs"]) == hit  # complete enough to reload


def test_a_hit_says_so_alike_in_all_styles(cache):
    model = Model(cache=LLMCache(cache), replies=(reply(),))
    ask(model, "invoke", ASKED)
    hits = [ask(model, style, ASKED)[0] for style in STYLES]
    notes = [{**hit.response_metadata["stemma"], "age": 0} for hit in hits]
    assert notes == [notes[0]] * len(STYLES)
    assert (notes[0]["hit"], notes[0]["tier"], notes[0]["similarity"]) == (True, "exact", 1.0)
    assert len(CALLS) == 1


def test_asking_twice_in_one_graph_thread_keeps_both_turns(cache):
    """The reducer replaces messages with equal ids: a stored id would delete the first answer."""
    model = Model(cache=LLMCache(cache))
    graph = StateGraph(MessagesState)
    graph.add_node("say", lambda state: {"messages": [model.invoke(state["messages"][-1:])]})
    graph.add_edge(START, "say")
    app = graph.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    for _ in range(3):
        state = app.invoke({"messages": [HumanMessage(ASKED)]}, thread)
    assert [m.type for m in state["messages"]] == ["human", "ai"] * 3
    assert len(CALLS) == 1


def test_all_generations_of_a_call_come_back(cache):
    model = Model(cache=LLMCache(cache), n=3, replies=([AIMessage(c) for c in "abc"],))
    for _ in range(2):
        (several,) = model.generate([[HumanMessage(ASKED)]]).generations
        assert [g.message.content for g in several] == ["a", "b", "c"]
    assert len(CALLS) == 1


def test_tool_calls_come_back_whole(cache):
    calls = [
        {"name": "search", "args": {"q": "moon", "k": 2}, "id": "call_1", "type": "tool_call"},
        {"name": "search", "args": {"q": "sun"}, "id": "call_2", "type": "tool_call"},
    ]
    bad = {"name": "x", "args": "{", "id": "3", "error": "no JSON", "type": "invalid_tool_call"}
    said = AIMessage("", tool_calls=calls, invalid_tool_calls=[bad])
    model = Model(cache=LLMCache(cache), replies=(said,))
    first, hit = ask(model, "invoke", ASKED, ASKED)
    assert hit.tool_calls == first.tool_calls == calls
    assert hit.invalid_tool_calls == first.invalid_tool_calls == [bad]
    assert len(CALLS) == 1


def test_content_blocks_and_the_providers_extras_come_back_whole(cache):
    blocks = [
        {"type": "reasoning", "reasoning": "well", "extras": {"signature": "s"}},
        {"type": "text", "text": "forty-two", "annotations": [{"url": "u", "start": 0}]},
    ]
    said = reply(
        blocks,
        additional_kwargs={"k": [1, None, 2.5]},
        response_metadata={"model_name": "m-1", "finish_reason": "stop", "logprobs": None},
        name="ann",
    )
    model = Model(cache=LLMCache(cache), replies=(said,))
    first, hit = ask(model, "invoke", ASKED, ASKED)
    hit.response_metadata.pop("stemma")
    for part in ("content", "additional_kwargs", "response_metadata", "name", "text"):
        assert getattr(hit, part) == getattr(first, part)
    assert hit.content == blocks


# -------------------------------------------------------------------- structured output


class Person(BaseModel):
    """Somebody."""

    who: str
    age: int


SCHEMA = {
    "title": "Person",
    "description": "Somebody.",
    "type": "object",
    "properties": {"who": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["who", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (SCHEMA, {"who": "Ann", "age": 47}),
        (Person, Person(who="Ann", age=47)),
    ],
)
@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
def test_structured_output_is_typed_from_a_reopened_store(tmp_path, schema, expected, method):
    arguments = json.dumps({"who": "Ann", "age": 47})
    calling = {
        "id": "c",
        "type": "function",
        "function": {"name": "Person", "arguments": arguments},
    }
    said = {"content": arguments} if method == "json_schema" else {"tool_calls": [calling]}

    def serve(request):
        CALLS.append(json.loads(request.content))
        return httpx.Response(
            200,
            json={
                "id": "r",
                "object": "chat.completion",
                "created": 1,
                "model": "gpt-x",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": None, **said},
                    }
                ],
                "usage": {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42},
            },
        )

    for _ in range(2):
        with (
            stemma.open(
                tmp_path / "calls.db", embedder="hashing", policy="threshold", tenant="t"
            ) as cache,
            httpx.Client(transport=httpx.MockTransport(serve)) as client,
        ):
            model = ChatOpenAI(
                model="gpt-x", api_key="none", http_client=client, cache=LLMCache(cache)
            )
            typed = model.with_structured_output(schema, method=method)
            found = typed.invoke("Who leads Acme, and how old is she?")
            assert type(found) is type(expected)
            assert found == expected
    assert len(CALLS) == 1


def test_an_object_that_the_provider_parsed_is_kept_as_plain_values(cache):
    said = AIMessage(
        "{}", additional_kwargs={"parsed": Person(who="Ann", age=47), "live": object()}
    )
    model = Model(cache=LLMCache(cache), replies=(said,))
    _, hit = ask(model, "invoke", ASKED, ASKED)
    assert hit.additional_kwargs == {"parsed": {"who": "Ann", "age": 47}}


def test_another_process_is_served_the_same_object(tmp_path):
    script = textwrap.dedent(
        """
        import sys
        import stemma
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult
        from langchain_core.utils.function_calling import convert_to_openai_tool
        from stemma_langchain import LLMCache

        class Model(BaseChatModel):
            @property
            def _llm_type(self):
                return "asking"
            def bind_tools(self, tools, **kwargs):
                return self.bind(tools=[convert_to_openai_tool(t) for t in tools], **kwargs)
            def _generate(self, messages, stop=None, run_manager=None, **kwargs):
                print("the model ran")
                call = {"name": "Person", "args": {"who": "Ann"}, "id": "c", "type": "tool_call"}
                return ChatResult(
                    generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))]
                )

        schema = {"title": "Person", "description": "Somebody.", "type": "object",
                  "properties": {"who": {"type": "string"}}}
        with stemma.open(sys.argv[1], embedder="hashing", policy="threshold", tenant="t") as cache:
            typed = Model(cache=LLMCache(cache)).with_structured_output(schema)
            print(typed.invoke("Who leads Acme?"))
        """
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "calls.db")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")
        for _ in range(2)
    ]
    assert printed == [["the model ran", "{'who': 'Ann'}", ""], ["{'who': 'Ann'}", ""]]


# ----------------------------------------------------------------------- what is not stored


@pytest.mark.parametrize(
    "said",
    [
        AIMessage(""),
        AIMessage(" \n"),
        AIMessage([]),
        AIMessage("cut", response_metadata={"finish_reason": "length"}),
        AIMessage("cut", response_metadata={"stop_reason": "max_tokens"}),
        AIMessage("held back", response_metadata={"finish_reason": "content_filter"}),
        AIMessage("no", response_metadata={"finish_reason": "SAFETY"}),
        AIMessage("no", additional_kwargs={"refusal": "I cannot help with that."}),
        [AIMessage("well"), AIMessage("cut", response_metadata={"finish_reason": "length"})],
    ],
)
@pytest.mark.parametrize("style", ["invoke", "ainvoke"])
def test_a_reply_that_did_not_end_well_is_not_stored(cache, said, style):
    model = Model(cache=LLMCache(cache), replies=(said,))
    ask(model, style, ASKED, ASKED)
    assert len(CALLS) == 2
    assert cache.engine.parts.store.sizes() == {}


def test_what_the_provider_says_beside_a_text_counts_as_well(cache):
    face = LLMCache(cache)
    for info in ({"finish_reason": "length"}, {"finish_reason": "content_filter"}):
        face.lookup(ASKED, "m")
        face.update(ASKED, "m", [Generation(text="cut", generation_info=info)])
    assert face.lookup(ASKED, "m") is None


def test_an_error_passes_through_and_the_next_call_runs(cache):
    model = Model(cache=LLMCache(cache), replies=(ConnectionError("503"), AIMessage("well")))
    with pytest.raises(ConnectionError, match="503"):
        ask(model, "invoke", ASKED)
    assert ask(model, "invoke", ASKED)[0].content == "well"
    assert len(CALLS) == 2


# -------------------------------------------------------------------------------- the key


def block(text):
    return [{"type": "text", "text": text}]


def image(data):
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


OTHERS = {
    "temperature": lambda m, q: m.model_copy(update={"temperature": 0.0}).invoke(q),
    "model": lambda m, q: m.model_copy(update={"name_of_it": "m2"}).invoke(q),
    "stop": lambda m, q: m.invoke(q, stop=["x"]),
    "bound temperature": lambda m, q: m.bind(temperature=0).invoke(q),
    "seed": lambda m, q: m.invoke(q, seed=1),
    "another seed": lambda m, q: m.invoke(q, seed=2),
    "a field of the future": lambda m, q: m.invoke(q, thinking={"budget": 1}),
    "tools": lambda m, q: m.bind_tools([SCHEMA]).invoke(q),
    "tool choice": lambda m, q: m.bind_tools([SCHEMA], tool_choice="any").invoke(q),
    "response format": lambda m, q: m.bind(response_format={"type": "json_object"}).invoke(q),
    "system prompt": lambda m, q: m.invoke([SystemMessage("Be brief."), HumanMessage(q)]),
    "other system prompt": lambda m, q: m.invoke([SystemMessage("Be long."), HumanMessage(q)]),
    "earlier turns": lambda m, q: m.invoke([HumanMessage("Hi"), AIMessage("Hi!"), HumanMessage(q)]),
    "other earlier turns": lambda m, q: m.invoke([HumanMessage("Hi"), AIMessage("Yo!"), HumanMessage(q)]),
    "who says it": lambda m, q: m.invoke([HumanMessage(q, name="ann")]),
    "in which role": lambda m, q: m.invoke([SystemMessage(q)]),
    "an image": lambda m, q: m.invoke([HumanMessage([*block(q), image("AAAA")])]),
    "another image": lambda m, q: m.invoke([HumanMessage([*block(q), image("BBBB")])]),
    "two texts": lambda m, q: m.invoke([HumanMessage([*block("Look."), *block(q)])]),
}  # fmt: skip


@pytest.mark.parametrize("kind", [Model, Unserializable])
def test_whatever_else_differs_is_a_miss_exactly_and_by_meaning(cache, kind):
    model = kind(cache=LLMCache(cache))
    model.invoke(ASKED)
    for number, (name, call) in enumerate(OTHERS.items(), start=2):
        call(model, ASKED)
        assert len(CALLS) == number, name
        call(model, ASKED)
        assert len(CALLS) == number, f"{name}, the second time"
    for name, call in OTHERS.items():
        hit = call(model, REWORDED)
        own = call(model, ASKED)
        served = hit.response_metadata.get("stemma", {}).get("entry")
        assert served in (None, own.response_metadata["stemma"]["entry"]), name


def test_reworded_under_equal_circumstances_is_a_hit_and_under_others_none(cache):
    model = Model(cache=LLMCache(cache))
    for number, (name, call) in enumerate(OTHERS.items(), start=1):
        assert "stemma" not in call(model, REWORDED).response_metadata, name
        assert len(CALLS) == number, name
    model.invoke([SystemMessage("Be brief."), HumanMessage(ASKED)])
    assert len(CALLS) == len(OTHERS)


def test_a_text_alone_in_a_block_is_the_text(cache):
    model = Model(cache=LLMCache(cache))
    model.invoke([HumanMessage(ASKED)])
    model.invoke([HumanMessage(block(ASKED))])
    model.invoke([HumanMessage([{**block(ASKED)[0], "id": "lc_1"}])])
    model.invoke([HumanMessage([ASKED])])
    assert len(CALLS) == 1


def test_a_second_turn_hits_though_the_first_came_from_the_cache(cache):
    """What a hit adds to a message (cost, note, id) and what providers add never shape an answer."""
    model = Model(cache=LLMCache(cache), replies=(reply(response_metadata={"system": "x"}),))
    for _ in range(3):
        said = model.invoke(ASKED)
        model.invoke([HumanMessage(ASKED, id=said.id), said, HumanMessage("Why?")])
    assert len(CALLS) == 2


def test_tool_call_ids_do_not_count_but_which_call_is_answered_does(cache):
    def history(one, two, *, swapped=False):
        calls = [{"name": "f", "args": {"x": x}, "id": i} for x, i in ((1, one), (2, two))]
        provider = [
            {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}}
            for i in (one, two)
        ]
        answered = (two, one) if swapped else (one, two)
        return [
            HumanMessage("Go."),
            AIMessage("", tool_calls=calls, additional_kwargs={"tool_calls": provider}),
            *(ToolMessage(f"result {n}", tool_call_id=i) for n, i in enumerate(answered)),
        ]

    model = Model(cache=LLMCache(cache))
    model.invoke(history("a", "b"))
    model.invoke(history("call_93", "call_17"))
    assert len(CALLS) == 1
    model.invoke(history("a", "b", swapped=True))
    assert len(CALLS) == 2


@pytest.mark.parametrize("change", [
    {"temperature": 0.9}, {"name_of_it": "m2"}, {"stop_at": ["x"]},
])  # fmt: skip
def test_a_parameter_changed_after_the_first_call_is_another_key(cache, change):
    """LangChain computes its string for a model once, and copies keep it."""
    model = Model(cache=LLMCache(cache), temperature=0, stop_at=["y"])
    model.invoke(ASKED)
    changed = model.model_copy(update=change)
    changed.invoke(ASKED)
    for name, value in change.items():
        setattr(model, name, value)
    model.invoke(ASKED)
    assert len(CALLS) == 2
    Model(cache=LLMCache(cache), temperature=0, stop_at=["y"]).invoke(ASKED)
    assert len(CALLS) == 2


def test_two_models_with_one_prompt_both_stay(cache):
    face = LLMCache(cache)
    one, two = Model(cache=face), Model(cache=face, name_of_it="m2")
    first = [m.invoke(ASKED).content for m in (one, two)]
    assert [m.invoke(ASKED).content for m in (one, two, one)] == [*first, first[0]]
    assert len(CALLS) == 2
    assert first[0] != first[1]


@pytest.mark.parametrize(("sampling", "exact", "reworded"), [
    ("exact", 1, 2), ("never", 2, 3), ("meaning", 1, 1),
])  # fmt: skip
@pytest.mark.parametrize("sampled", [{"temperature": 0.7}, {"n": 2}])
def test_the_rule_for_calls_that_sample(cache, sampling, exact, reworded, sampled):
    model = Model(cache=LLMCache(cache, sampling=sampling), **sampled)
    ask(model, "invoke", ASKED, ASKED)
    assert len(CALLS) == exact
    ask(model, "invoke", REWORDED)
    assert len(CALLS) == reworded


def test_drawing_exactly_is_the_default_and_other_words_for_it_are_refused(cache):
    assert LLMCache(cache).sampling == "exact"
    with pytest.raises(stemma.UsageError, match="sampling"):
        LLMCache(cache, sampling="sometimes")


# -------------------------------------------------------------------------------- tenants


def named(tenant):
    return {"metadata": {"tenant": tenant}}


@pytest.mark.parametrize("style", ["invoke", "batch", "in a chain", "in a lambda"])
def test_the_runs_tenant_goes_before_using_and_using_before_the_default(cache, style):
    model = Model(cache=LLMCache(cache))

    def call(config=None):
        if style == "batch":
            return model.batch([ASKED], config)[0]
        step = RunnableLambda(lambda _: model.invoke(ASKED))
        chain = {"invoke": model, "in a chain": ChatPromptTemplate.from_template("{q}") | model}
        asked = {"q": ASKED} if style == "in a chain" else ASKED
        return chain.get(style, step).invoke(asked, config)

    call()
    with cache.using(tenant="using"):
        call()
        call(named("run"))
    call(named("run"))
    call(named("t"))
    assert len(CALLS) == 3
    assert {t for t, _ in cache.engine.parts.store.sizes()} == {"t", "using", "run"}


def test_each_item_of_a_batch_has_the_tenant_its_own_config_names(cache):
    def whose(run_manager):
        return AIMessage(f"for {run_manager.metadata.get('tenant')}")

    model = Model(cache=LLMCache(cache), replies=(whose,))
    chain = ChatPromptTemplate.from_template("{q}") | model
    for runnable, asked in ((model, ASKED), (chain, {"q": ASKED})):
        for configs in ([named("a"), named("b"), named("c")], [named("c"), named("a"), named("b")]):
            said = runnable.batch([asked] * 3, configs)
            assert [m.content for m in said] == [f"for {c['metadata']['tenant']}" for c in configs]


def test_without_a_tenant_the_call_goes_through_with_one_warning():
    with stemma.open(":memory:", embedder=None) as cache:
        model = Model(cache=LLMCache(cache))
        with pytest.warns(RuntimeWarning, match="tenant"):
            model.invoke(ASKED)
        ask(model, "invoke", ASKED)
        ask(model, "ainvoke", ASKED)
        assert len(CALLS) == 3
        with cache.using(tenant="a"):
            ask(model, "invoke", ASKED, ASKED)
        assert len(CALLS) == 4


def test_clear_takes_the_calls_of_this_tenant_alone(cache):
    face = LLMCache(cache)
    model = Model(cache=face)
    for tenant in ("a", "b"):
        with cache.using(tenant=tenant):
            model.invoke(ASKED)
            cache.answers.get_or_compute("q", lambda: "kept")
    with cache.using(tenant="a"):
        face.clear()
    left = {(t, n): count for (t, n), count in cache.engine.parts.store.sizes().items() if count}
    assert left == {("a", "answer"): 1, ("b", "answer"): 1, ("b", "call"): 1}
    with cache.using(tenant="b"):
        asyncio.run(face.aclear())
    assert cache.engine.parts.store.sizes().get(("b", "call"), 0) == 0


@pytest.mark.parametrize("how", ["threads", "tasks", "named by the run"])
def test_tenants_who_ask_the_same_at_once_never_get_each_others_answers(cache, how):
    """All have looked before anyone stores: a swapped ticket would store under the wrong tenant."""
    tenants = [f"tenant {number}" for number in range(4)]
    whose = contextvars.ContextVar("whose")
    face = LLMCache(cache)

    def said(run_manager):
        return AIMessage(f"for {whose.get()}")

    if how != "tasks":
        model = Model(cache=face, replies=(said,), during=lambda _: gate.wait(30))

        def call(tenant, question):
            whose.set(tenant)
            if how == "threads":
                with cache.using(tenant=tenant):
                    return model.invoke(question).content
            return model.invoke(question, named(tenant)).content

        for number in range(5):
            gate = threading.Barrier(4)
            question = f"{ASKED} {number}"
            with ThreadPoolExecutor(4) as pool:
                first = list(pool.map(lambda t, q=question: call(t, q), tenants))
            assert first == [f"for {tenant}" for tenant in tenants]
            assert [call(tenant, question) for tenant in reversed(tenants)] == first[::-1]
    else:

        class Waiting(Model):
            async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
                await gate.wait()
                return self._generate(messages, stop, run_manager, **kwargs)

        model = Waiting(cache=face, replies=(said,))

        async def acall(tenant, question):
            whose.set(tenant)
            with cache.using(tenant=tenant):
                return (await model.ainvoke(question)).content

        async def rounds():
            nonlocal gate
            for number in range(5):
                gate = asyncio.Barrier(4)
                question = f"{ASKED} {number}"
                first = await asyncio.gather(*(acall(t, question) for t in tenants))
                assert first == [f"for {tenant}" for tenant in tenants]
                again = await asyncio.gather(*(acall(t, question) for t in tenants[::-1]))
                assert again == first[::-1]

        gate = None
        asyncio.run(rounds())
    assert len(CALLS) == 20


# ----------------------------------------------------------------- inside and outside a chain


def rag(cache, *, chunks, focus=None):
    """A chain whose prompt holds chunks and the question; the root input is the question."""
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from the text."), ("human", "{context}\n\nQuestion: {question}")]
    )
    gathered = RunnableParallel(
        context=lambda _: "\n".join(chunks), question=lambda q: q[focus] if focus else q
    )
    return gathered | prompt | Model(cache=LLMCache(cache)) | StrOutputParser()


CHUNKS = ["A stemma codicum is the family tree of a text's copies." * 3, "Acme sells rope." * 9]


def test_in_a_chain_the_question_is_compared_and_the_chunks_must_be_equal(cache):
    chunks = list(CHUNKS)
    chain = rag(cache, chunks=chunks)
    assert chain.invoke(ASKED) == chain.invoke(REWORDED) == chain.invoke(ASKED)
    assert len(CALLS) == 1
    chunks[1] = "Acme sells rope and chain."
    chain.invoke(ASKED)
    assert len(CALLS) == 2
    chain.invoke("Who sells rope?")
    assert len(CALLS) == 3


def test_a_cached_chain_says_which_part_of_its_input_is_the_question(cache):
    chunks = list(CHUNKS)
    inner = rag(cache, chunks=chunks, focus="question")
    for version in ("1", "2"):  # other versions, so that only the model's own cache can hit
        chain = CachedChain(cache, inner, focus="question", version=version)
        chain.invoke({"question": ASKED if version == "1" else REWORDED, "other": version})
    assert len(CALLS) == 1
    chunks.pop()
    CachedChain(cache, inner, focus="question", version="3").invoke({"question": ASKED})
    assert len(CALLS) == 2


def test_in_a_chain_whose_question_is_not_known_a_long_turn_is_not_taken_for_equal(cache):
    """The same chunks with another question are much alike; other chunks with the same one too."""
    prompt = ChatPromptTemplate.from_template("{context}\nQuestion: {question}")
    chain = prompt | Model(cache=LLMCache(cache)) | StrOutputParser()
    first = chain.invoke({"context": CHUNKS[0], "question": "Who is Ann?"})
    other = chain.invoke({"context": CHUNKS[0], "question": "Who is Bob?"})
    assert first != other
    chain.invoke({"context": CHUNKS[0].replace("family", "oak"), "question": "Who is Ann?"})
    assert len(CALLS) == 3


def test_a_question_that_occurs_twice_is_not_cut_out(cache):
    prompt = ChatPromptTemplate.from_template("{q} {q} in {place}")
    gathered = RunnableParallel(q=lambda q: q, place=lambda _: PLACE[0])
    chain = gathered | prompt | Model(cache=LLMCache(cache))
    for place in ("Paris", "Rome"):
        PLACE[:] = [place]
        chain.invoke("Where?")
    assert len(CALLS) == 2


PLACE: list = []


# ------------------------------------------------------------------------- faults and order


class Broken(MemoryStore):
    """Fails in what it is told to."""

    failing: frozenset = frozenset()

    def get(self, ids):
        if "get" in self.failing:
            raise OSError("the disk is gone")
        return super().get(ids)

    def put(self, puts, now):
        if "put" in self.failing:
            raise OSError("the disk is gone")
        return super().put(puts, now)

    def changes(self, after):
        if "changes" in self.failing:
            raise OSError("the disk is gone")
        return super().changes(after)


@pytest.mark.parametrize("failing", [{"get"}, {"put"}, {"changes"}, {"get", "put", "changes"}])
@pytest.mark.parametrize("style", ["invoke", "ainvoke", "generate"])
def test_what_a_broken_store_raises_never_reaches_the_caller(failing, style):
    store = Broken()
    with stemma.open(store, embedder="hashing", policy="threshold", tenant="t") as cache:
        events = []
        cache.listen(events.append)
        model = Model(cache=LLMCache(cache))
        store.failing = frozenset(failing)
        assert ask(model, style, ASKED)[0].content == f"m to {ASKED}, call 1"
        assert any(event.kind == "fault" for event in events)
        store.failing = frozenset()
        ask(model, style, ASKED, ASKED)
        assert len(CALLS) <= 2


@pytest.mark.parametrize("given", [None, [], "text", [object()], 3])
def test_an_update_with_something_else_than_generations_stores_nothing(cache, given):
    face = LLMCache(cache)
    face.lookup(ASKED, "m")
    face.update(ASKED, "m", given)
    assert face.lookup(ASKED, "m") is None


PROMPTS = ("", "\x00", "\ud800", "[", '[{"lc"', '[{"lc": 1}]', '[{"lc":1,"type":"constructor"}]',
           '[{"lc": 1, "type": "constructor", "id": [], "kwargs": {}}]', "[{}]", "x" * 100_000,
           '[{"lc": 1, "type": "constructor", "id": ["a", "messages", "X"], "kwargs": {"a": 1}}]',
           "[" * 5_000, "cafe\u0301", "caf\u00e9")  # fmt: skip


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda text: ascii(text[:12]))
def test_any_two_strings_can_be_asked_and_stored(cache, prompt):
    face = LLMCache(cache)
    for model in ("m", "", "\ud800", '{"lc":', "---", prompt):
        face.update(prompt, model, [Generation(text=f"of {model!r}")])
    for model in ("m", "", "\ud800", '{"lc":', "---"):
        if model != prompt:
            assert face.lookup(prompt, model) == [Generation(text=f"of {model!r}")]
    for other in PROMPTS:
        assert other == prompt or face.lookup(other, "m") is None


def test_an_update_without_a_lookup_is_stored(cache):
    face = LLMCache(cache)
    face.update(ASKED, "m", [Generation(text="forty-two")])
    assert face.lookup(ASKED, "m") == [Generation(text="forty-two")]


@pytest.mark.parametrize("taken_back", [{"tenant": "t"}, {"node": "call"}, {"tag": "red"}])
def test_a_recall_between_lookup_and_update_refuses_the_put(cache, taken_back):
    def recall(_):
        if len(CALLS) == 1:
            cache.recall(**taken_back)

    model = Model(cache=LLMCache(cache), during=recall)
    with cache.using(tags=("red",)):
        ask(model, "invoke", ASKED)
        assert cache.engine.parts.store.sizes() == {}
        ask(model, "invoke", ASKED, ASKED)
    assert len(CALLS) == 2


def test_a_recall_of_something_else_refuses_nothing(cache):
    others = ({"tenant": "u"}, {"tag": "blue"}, {"source": "d"}, {"model": "m2"})

    def recall(_):
        for other in others:
            cache.recall(**other)

    ask(Model(cache=LLMCache(cache), during=recall), "invoke", ASKED, ASKED)
    assert len(CALLS) == 1


def test_bypass_and_refresh_reach_the_model(cache):
    model = Model(cache=LLMCache(cache))
    with cache.bypass():
        ask(model, "invoke", ASKED)
        assert cache.engine.parts.store.sizes() == {}
    ask(model, "invoke", ASKED)
    with cache.refresh():
        fresh = ask(model, "invoke", ASKED)[0].content
    assert ask(model, "invoke", ASKED)[0].content == fresh == f"m to {ASKED}, call 3"


def test_the_face_is_a_handle_that_can_be_copied_and_pickled(tmp_path):
    with stemma.open(tmp_path / "calls.db", embedder=None, tenant="t") as cache:
        face = LLMCache(cache, sampling="never", life=3.0)
        again = pickle.loads(pickle.dumps(face))
        assert (again.cache, again.sampling, again.life) == (cache, "never", 3.0)
        model = Model(cache=LLMCache(cache))
        assert model.model_copy(deep=True).cache is model.cache


def test_nothing_is_warned_of_in_ordinary_use(cache):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(Model(cache=LLMCache(cache)), "invoke", ASKED, REWORDED)


def test_a_call_that_failed_leaves_nothing_to_the_next_tenant(cache):
    """The ticket of a failed call is not what the next call of the same prompt is stored under."""
    failing = RuntimeError("rate limit")
    model = Model(cache=LLMCache(cache), replies=(failing, AIMessage("b's"), AIMessage("a's")))
    of_a, of_b = ({"metadata": {"tenant": name}} for name in ("a", "b"))
    with pytest.raises(RuntimeError, match="rate limit"):
        model.invoke(ASKED, of_a)
    assert model.invoke(ASKED, of_b).content == "b's"
    assert model.invoke(ASKED, of_a).content == "a's"
    assert model.invoke(ASKED, of_b).content == "b's"
