"""A chat model behind the cache: who reaches the model, what a hit is, what is in the key."""

import asyncio
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.rate_limiters import BaseRateLimiter
from langchain_core.runnables import ConfigurableField
from pydantic import SecretStr, ValidationError

import stemma
from stemma.stores.memory import MemoryStore
from stemma_langchain import CachedChatModel, LLMCache

ASKED, REWORDED = "What is a stemma codicum?", "what is a stemma codicum"
USAGE = {"input_tokens": 30, "output_tokens": 12, "total_tokens": 42}
ZERO = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
FINISHED = {"finish_reason": "stop"}


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", policy="threshold", tenant="t") as opened:
        yield opened


def whole(chunks):
    first, *rest = chunks
    return sum(rest, first)


async def awhole(stream):
    return whole([chunk async for chunk in stream])


ASK = {
    "invoke": lambda m, q, **k: m.invoke(q, **k),
    "ainvoke": lambda m, q, **k: asyncio.run(m.ainvoke(q, **k)),
    "batch": lambda m, q, **k: m.batch([q], **k)[0],
    "abatch": lambda m, q, **k: asyncio.run(m.abatch([q], **k))[0],
    "generate": lambda m, q, **k: m.generate([[HumanMessage(q)]], **k).generations[0][0].message,
    "stream": lambda m, q, **k: whole(m.stream(q, **k)),
    "astream": lambda m, q, **k: asyncio.run(awhole(m.astream(q, **k))),
}


# ------------------------------------------------------------- who reaches the model


@pytest.mark.parametrize("cold", ASK)
@pytest.mark.parametrize("kind", ["whole", "streaming", "native"])
def test_what_was_asked_in_one_style_is_a_hit_in_every_other(cache, scripted, kind, cold):
    inner = scripted(kind)
    model = CachedChatModel(cache, inner)
    first = ASK[cold](model, ASKED)
    assert first.text == f"m to {ASKED}, call 1"
    assert "stemma" not in first.response_metadata
    for warm, ask in ASK.items():
        again = ask(model, ASKED)
        assert again.text == first.text, warm
        assert again.response_metadata["stemma"]["hit"] is True, warm
    assert len(inner.calls) == 1


@pytest.mark.parametrize(
    ("kind", "style", "reached"),
    [
        ("whole", "ainvoke", "generate"),
        ("whole", "stream", "generate"),
        ("whole", "astream", "generate"),
        ("streaming", "invoke", "generate"),
        ("streaming", "stream", "stream"),
        ("streaming", "astream", "stream"),
        ("native", "ainvoke", "agenerate"),
        ("native", "abatch", "agenerate"),
        ("native", "astream", "astream"),
    ],
)
def test_the_model_is_called_as_it_would_have_been(cache, scripted, kind, style, reached):
    plain, inner = scripted(kind), scripted(kind)
    named = {"stop": ["x"], "seed": 7, "thinking": {"budget": 1}}
    bare = ASK[style](plain, ASKED, **named)
    behind = ASK[style](CachedChatModel(cache, inner), ASKED, **named)
    assert inner.calls == plain.calls
    assert [way for way, *_ in inner.calls] == [reached]
    assert (bare.text, bare.response_metadata) == (behind.text, behind.response_metadata)


@pytest.mark.parametrize("style", ASK)
def test_the_model_gets_the_runs_manager_where_it_takes_one(cache, scripted, style):
    told = []

    class Telling(type(scripted("native"))):
        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            told.append(run_manager)
            return super()._generate(messages, stop=stop, **kwargs)

        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            told.append(run_manager)
            return await super()._agenerate(messages, stop=stop, **kwargs)

    class Deaf(type(scripted("whole"))):
        def _generate(self, messages, stop=None, **kwargs):
            assert "run_manager" not in kwargs
            return super()._generate(messages, stop=stop, **kwargs)

    ASK[style](CachedChatModel(cache, Telling(disable_streaming=True)), ASKED)
    assert [type(manager).__name__.removeprefix("Async") for manager in told] == [
        "CallbackManagerForLLMRun"
    ]
    if not style.startswith("a"):  # LangChain's own async functions hand it on in any case
        assert ASK[style](CachedChatModel(cache, Deaf()), ASKED).text


def test_how_a_reply_is_delivered_is_no_part_of_the_key(cache, scripted):
    inner = scripted("streaming")
    model = CachedChatModel(cache, inner)
    whole(model.stream(ASKED, stream_usage=True, stream_options={"include_usage": True}))
    model.invoke(ASKED, stream=False)
    model.invoke(ASKED, stream=True)
    assert len(inner.calls) == 1


def test_the_same_meaning_is_answered_too(cache, scripted):
    inner = scripted()
    model = CachedChatModel(cache, inner)
    first = model.invoke(ASKED)
    for again in (model.invoke(REWORDED), whole(model.stream(REWORDED))):
        assert again.text == first.text
        assert again.response_metadata["stemma"]["tier"] == "semantic"
    assert len(inner.calls) == 1


def test_equal_prompts_in_one_generate_are_asked_once(cache, scripted):
    inner = scripted()
    given = CachedChatModel(cache, inner).generate([[HumanMessage(ASKED)]] * 3).generations
    assert {generations[0].text for generations in given} == {f"m to {ASKED}, call 1"}
    assert len(inner.calls) == 1


@pytest.mark.parametrize("way", ["generate", "agenerate"])
def test_the_prompts_of_one_generate_are_not_built_on_each_other(cache, scripted, way):
    model = CachedChatModel(cache, scripted("native"))
    turns = [[HumanMessage(f"{ASKED} {n}")] for n in range(3)]
    for _ in range(2):
        found = model.generate(turns) if way == "generate" else asyncio.run(model.agenerate(turns))
    for (generation,) in found.generations:
        entry = generation.message.response_metadata["stemma"]["entry"]
        assert cache.recall(entry=entry, dry_run=True).by_node == {"call": 1}


def test_those_who_ask_at_once_share_one_call(cache, scripted):
    def slowly(messages):
        time.sleep(0.2)
        return AIMessage("slow")

    inner = scripted("whole", slowly)
    model = CachedChatModel(cache, inner)
    with ThreadPoolExecutor(6) as pool:
        assert {m.text for m in pool.map(model.invoke, [ASKED] * 6)} == {"slow"}

    async def at_once():
        return await asyncio.gather(*[model.ainvoke("And then?") for _ in range(6)])

    assert {m.text for m in asyncio.run(at_once())} == {"slow"}
    assert len(inner.calls) == 2


# --------------------------------------------------------------------- what a hit is


@pytest.mark.parametrize("style", ASK)
@pytest.mark.parametrize("kind", ["whole", "streaming", "native"])
def test_a_hit_says_so_and_has_no_usage_but_the_one_that_is_saved(cache, scripted, kind, style):
    said = AIMessage("forty-two", usage_metadata=USAGE, response_metadata=FINISHED)
    model = CachedChatModel(cache, scripted(kind, said))
    first = ASK[style](model, ASKED)
    assert first.usage_metadata == USAGE
    hits = [ASK[style](model, ASKED) for _ in range(2)]
    for hit in hits:
        note = hit.response_metadata.pop("stemma")
        assert note.keys() == model.invoke(ASKED).response_metadata["stemma"].keys()
        assert (note["tier"], note["node"], note["similarity"]) == ("exact", "call", 1.0)
        assert (note["saved_usage"], note["saved_tokens"]) == (USAGE, 42)
        assert hit.usage_metadata == ZERO
        assert hit.response_metadata == {"finish_reason": "stop", "provider": "scripted"}
    assert len({message.id for message in (first, *hits)}) == 3
    assert None not in {message.id for message in (first, *hits)}


def test_what_the_caller_does_to_a_message_changes_nothing_stored(cache, scripted):
    class Spoiling(BaseCallbackHandler):
        def on_llm_end(self, response, **kwargs):
            message = response.generations[0][0].message
            message.content = "spoiled"
            message.response_metadata["finish_reason"] = "spoiled"
            message.tool_calls.append({"name": "x", "args": {}, "id": "1", "type": "tool_call"})

        def on_llm_new_token(self, token, *, chunk=None, **kwargs):
            chunk.message.additional_kwargs["spoiled"] = True
            chunk.message.content = "spoiled"

    said = AIMessage("well", response_metadata=FINISHED, additional_kwargs={"deep": {"in": []}})
    for way, first in (("invoke", ASK["invoke"]), ("stream", ASK["stream"])):
        model = CachedChatModel(cache, scripted("streaming", said, model_name=way))
        given = first(model.with_config(callbacks=[Spoiling()]), ASKED)
        assert given.content.startswith("spoiled")
        given.additional_kwargs.setdefault("deep", {})["in"] = "spoiled"
        for again in (model.invoke(ASKED), ASK["stream"](model, ASKED)):
            assert again.content == "well"
            assert again.tool_calls == []
            assert again.response_metadata["finish_reason"] == "stop"
            assert again.additional_kwargs == {"deep": {"in": []}}
            again.additional_kwargs["deep"]["in"].append("spoiled")


def test_all_replies_of_a_call_come_back_and_a_stream_is_no_part_of_them(cache, scripted):
    inner = scripted("streaming", n=2)
    model = CachedChatModel(cache, inner)
    turns = [[HumanMessage(ASKED)]]
    for _ in range(2):
        streamed = ASK["stream"](model, ASKED)
    assert streamed.response_metadata["stemma"]["hit"] is True
    for _ in range(2):
        assert len(model.generate(turns).generations[0]) == 2
    assert [way for way, *_ in inner.calls] == ["stream", "generate"]


# ------------------------------------------------------------------ callbacks, limits, other caches


class Listening(BaseCallbackHandler):
    def __init__(self):
        self.heard = []

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.heard.append(("start", kwargs["invocation_params"].get("model_name")))

    def on_llm_end(self, response, **kwargs):
        self.heard.append(("end", response.generations[0][0].text))

    def on_llm_error(self, error, **kwargs):
        self.heard.append(("error", str(error)))


@pytest.mark.parametrize("style", ASK)
@pytest.mark.parametrize("kind", ["whole", "streaming", "native"])
def test_a_listener_hears_one_run_per_call_hit_or_miss(cache, scripted, kind, style):
    ear, inners = Listening(), Listening()
    model = CachedChatModel(cache, scripted(kind, callbacks=[inners]))
    bound = model if style == "generate" else model.with_config(callbacks=[ear])
    told = {"callbacks": [ear]} if style == "generate" else {}
    for _ in range(2):
        ASK[style](bound, ASKED, **told)
    assert ear.heard == [("start", "m"), ("end", f"m to {ASKED}, call 1")] * 2
    assert inners.heard == ear.heard


class Limit(BaseRateLimiter):
    def __init__(self):
        self.asked = []

    def acquire(self, *, blocking=True):
        self.asked.append(blocking)
        return True

    async def aacquire(self, *, blocking=True):
        return self.acquire(blocking=blocking)


@pytest.mark.parametrize("style", ASK)
@pytest.mark.parametrize("kind", ["whole", "streaming", "native"])
def test_the_rate_limiter_is_asked_on_a_miss_alone(cache, scripted, kind, style):
    limit = Limit()
    model = CachedChatModel(cache, scripted(kind, rate_limiter=limit))
    for _ in range(3):
        ASK[style](model, ASKED)
    assert limit.asked == [True]


@pytest.mark.parametrize("other", ["own", "everyone's"])
def test_another_cache_of_langchain_is_not_asked_beside(cache, scripted, other):
    class Asked(InMemoryCache):
        def lookup(self, prompt, llm_string):
            raise AssertionError("two caches for one call")

    try:
        set_llm_cache(Asked() if other == "everyone's" else None)
        inner = scripted("whole", cache=LLMCache(cache) if other == "own" else None)
        model = CachedChatModel(cache, inner)
        for _ in range(2):
            model.invoke(ASKED)
        assert len(inner.calls) == 1
        assert cache.engine.parts.store.sizes() == {("t", "call"): 1}
    finally:
        set_llm_cache(None)


# ------------------------------------------------------------------------------ the key


def block(text):
    return [{"type": "text", "text": text}]


def image(data):
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


SCHEMA = {
    "title": "Person",
    "description": "Somebody.",
    "type": "object",
    "properties": {"who": {"type": "string"}},
}

OTHERS = {
    "bound temperature": lambda m, q: m.bind(temperature=0).invoke(q),
    "another model": lambda m, q: m.invoke(q, model="m2"),
    "top_p": lambda m, q: m.invoke(q, top_p=0.1),
    "max_tokens": lambda m, q: m.invoke(q, max_tokens=10),
    "logit_bias": lambda m, q: m.invoke(q, logit_bias={"1": 2}),
    "stop": lambda m, q: m.invoke(q, stop=["x"]),
    "no stop": lambda m, q: m.invoke(q, stop=[]),
    "seed": lambda m, q: m.invoke(q, seed=1),
    "another seed": lambda m, q: m.invoke(q, seed=2),
    "n": lambda m, q: m.invoke(q, n=2),
    "a field of the future": lambda m, q: m.invoke(q, thinking={"budget": 1}),
    "another value of it": lambda m, q: m.invoke(q, thinking={"budget": 2}),
    "tools": lambda m, q: m.bind_tools([SCHEMA]).invoke(q),
    "tool choice": lambda m, q: m.bind_tools([SCHEMA], tool_choice="any").invoke(q),
    "response format": lambda m, q: m.bind(response_format={"type": "json_object"}).invoke(q),
    "a streamed response format": lambda m, q: whole(m.stream(q, response_format={"type": "text"})),
    "system prompt": lambda m, q: m.invoke([SystemMessage("Be brief."), HumanMessage(q)]),
    "earlier turns": lambda m, q: m.invoke([HumanMessage("Hi"), AIMessage("Hi!"), HumanMessage(q)]),
    "other earlier turns": lambda m, q: m.invoke([HumanMessage("Hi"), AIMessage("Yo!"), HumanMessage(q)]),
    "in which role": lambda m, q: m.invoke([SystemMessage(q)]),
    "two texts": lambda m, q: m.invoke([HumanMessage([*block("Look."), *block(q)])]),
    "an image": lambda m, q: m.invoke([HumanMessage([*block(q), image("AAAA")])]),
    "another image": lambda m, q: whole(m.stream([HumanMessage([*block(q), image("BBBB")])])),
}  # fmt: skip


def test_whatever_else_differs_is_a_miss_exactly_and_by_meaning(cache, scripted):
    inner = scripted()
    model = CachedChatModel(cache, inner)
    model.invoke(ASKED)
    for count, (what, ask) in enumerate(OTHERS.items(), 2):
        ask(model, ASKED)
        assert len(inner.calls) == count, what
    for what, ask in OTHERS.items():
        ask(model, ASKED)
        assert len(inner.calls) == 1 + len(OTHERS), what


CHANGES = {
    "temperature": lambda m: setattr(m, "temperature", 0.0),
    "name": lambda m: setattr(m, "model_name", "m2"),
    "account": lambda m: setattr(m, "key", SecretStr("another")),
    "server": lambda m: setattr(m, "base_url", "http://localhost:1"),
    "in place": lambda m: m.model_kwargs.update(seed=1),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("style", ["invoke", "astream"])
def test_the_key_is_of_the_model_as_it_is_now(cache, scripted, what, style):
    inner = scripted("native")
    model = CachedChatModel(cache, inner)
    for _ in range(2):
        ASK[style](model, ASKED)
    CHANGES[what](inner)
    for _ in range(2):
        ASK[style](model, ASKED)
    assert len(inner.calls) == 2


def test_zero_is_not_absent_and_is_zero_however_written(cache, scripted):
    inners = [scripted("whole", temperature=temperature) for temperature in (None, 0, 0.0, 0.7)]
    for inner in inners:
        CachedChatModel(cache, inner).invoke(ASKED)
    assert [len(inner.calls) for inner in inners] == [1, 1, 0, 1]


def test_two_models_with_one_prompt_both_stay(cache, scripted):
    one, other = scripted(model_name="one"), scripted(model_name="other")
    for inner in (one, other, one, other):
        said = CachedChatModel(cache, inner).invoke(ASKED).text
        assert said.startswith(inner.model_name)
    assert (len(one.calls), len(other.calls)) == (1, 1)
    assert cache.recall(model="one").by_node == {"call": 1}
    CachedChatModel(cache, other).invoke(ASKED)
    assert len(other.calls) == 1


def test_ids_usage_and_the_note_of_a_hit_do_not_count(cache, scripted):
    inner = scripted("streaming", AIMessage("one", usage_metadata=USAGE), AIMessage("two"))
    model = CachedChatModel(cache, inner)
    turns = [HumanMessage(ASKED)]
    for _ in range(3):
        reply = model.invoke(turns)
        assert model.invoke([*turns, reply, HumanMessage("And?", id="9")]).text == "two"
    assert len(inner.calls) == 2
    called = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "a"}])
    for name in ("a", "b"):
        called.tool_calls[0]["id"] = name
        model.invoke([*turns, called, ToolMessage("7", tool_call_id=name)])
    assert len(inner.calls) == 3


def test_a_text_alone_in_a_block_is_the_text(cache, scripted):
    inner = scripted()
    model = CachedChatModel(cache, inner)
    model.invoke(ASKED)
    model.invoke([HumanMessage(block(ASKED))])
    assert len(inner.calls) == 1


@pytest.mark.parametrize("rule", [("exact", 1, 2), ("never", 2, 3), ("meaning", 1, 1)])
@pytest.mark.parametrize("style", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize(
    "drawn", [{"temperature": 0.7}, {"model_kwargs": {"temperature": 1}}, {"n": 2}]
)
def test_the_rule_for_calls_that_sample(cache, scripted, rule, style, drawn):
    sampling, exact, reworded = rule
    inner = scripted("native", **drawn)
    model = CachedChatModel(cache, inner, sampling=sampling)
    for _ in range(2):
        ASK[style](model, ASKED)
    assert len(inner.calls) == exact
    ASK[style](model, REWORDED)
    assert len(inner.calls) == reworded


def test_the_arguments_of_a_call_say_last_whether_it_samples(cache, scripted):
    inner = scripted(temperature=0.7)
    model = CachedChatModel(cache, inner)
    model.invoke(ASKED, temperature=0)
    model.invoke(REWORDED, temperature=0)
    assert len(inner.calls) == 1


@pytest.mark.parametrize("style", ASK)
def test_a_model_that_changes_while_it_runs_is_warned_of_and_not_stored(cache, scripted, style):
    def heat(messages):
        inner.temperature += 0.1
        return AIMessage("warmer")

    inner = scripted("native", heat, temperature=0.0)
    model = CachedChatModel(cache, inner)
    with pytest.warns(RuntimeWarning, match="changed while it ran"):
        ASK[style](model, ASKED)
    ASK[style](model, ASKED)
    assert len(inner.calls) == 2
    assert cache.engine.parts.store.sizes() == {}


# ------------------------------------------------------------------------- bad input, faults


@pytest.mark.parametrize("style", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("where", ["message", "argument"])
def test_what_has_no_key_is_answered_all_the_same(cache, scripted, style, where):
    inner = scripted("native")
    model = CachedChatModel(cache, inner)
    events = []
    cache.listen(events.append)
    lock = threading.Lock()
    asked = [HumanMessage(ASKED, additional_kwargs={"lock": lock} if where == "message" else {})]
    named = {"lock": (i for i in ())} if where == "argument" else {}
    with pytest.warns(RuntimeWarning, match="bypassed"):
        said = ASK[style](model, asked, **named)
    assert said.text == f"m to {ASKED}, call 1"
    ASK[style](model, asked, **named)
    assert len(inner.calls) == 2
    assert [event.outcome for event in events if event.kind == "warning"] == ["unkeyable"] * 2


@pytest.mark.parametrize(
    "said",
    [
        AIMessage(""),
        AIMessage(" \n"),
        AIMessage([]),
        AIMessage("cut", response_metadata={"finish_reason": "length"}),
        AIMessage("held back", response_metadata={"finish_reason": "content_filter"}),
        AIMessage("no", additional_kwargs={"refusal": "I cannot help with that."}),
    ],
)
@pytest.mark.parametrize("style", ["invoke", "ainvoke", "stream", "astream"])
def test_a_reply_that_did_not_end_well_is_not_stored(cache, scripted, said, style):
    inner = scripted("native", said)
    model = CachedChatModel(cache, inner)
    for _ in range(2):
        assert ASK[style](model, ASKED).content == said.content
    assert len(inner.calls) == 2
    assert cache.engine.parts.store.sizes() == {}


@pytest.mark.parametrize("style", ASK)
def test_an_error_passes_through_and_the_next_call_runs(cache, scripted, style):
    inner = scripted("native", ConnectionError("503"), AIMessage("well"))
    ear = Listening()
    model = CachedChatModel(cache, inner, callbacks=[ear])
    with pytest.raises(ConnectionError, match="503"):
        ASK[style](model, ASKED)
    assert ear.heard == [("start", "m"), ("error", "503")]
    assert ASK[style](model, ASKED).content == "well"
    assert len(inner.calls) == 2


class Broken(MemoryStore):
    failing = False

    def get(self, ids):
        if self.failing:
            raise OSError("the disk is gone")
        return super().get(ids)

    def put(self, puts, now):
        if self.failing:
            raise OSError("the disk is gone")
        return super().put(puts, now)


@pytest.mark.parametrize("style", ASK)
def test_what_a_broken_store_raises_never_reaches_the_caller(scripted, style):
    store = Broken()
    inner = scripted("native")
    with stemma.open(store, embedder="hashing", policy="threshold", tenant="t") as cache:
        events = []
        cache.listen(events.append)
        model = CachedChatModel(cache, inner)
        store.failing = True
        assert ASK[style](model, ASKED).text == f"m to {ASKED}, call 1"
        assert any(event.kind == "fault" for event in events)
        store.failing = False
        for _ in range(2):
            ASK[style](model, ASKED)
        assert len(inner.calls) == 2


@pytest.mark.parametrize("style", ["invoke", "ainvoke", "stream", "astream"])
def test_without_a_tenant_the_call_goes_through_with_one_warning(scripted, style):
    with stemma.open(":memory:", embedder=None) as cache:
        inner = scripted("native")
        model = CachedChatModel(cache, inner)
        with pytest.warns(RuntimeWarning, match="tenant"):
            ASK[style](model, ASKED)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ASK[style](model, ASKED)
        assert len(inner.calls) == 2


@pytest.mark.parametrize("style", ["invoke", "ainvoke", "stream", "astream"])
def test_tenants_never_get_each_others_replies(scripted, style):
    with stemma.open(":memory:", embedder="hashing", policy="threshold", tenant="nobody") as cache:
        inner = scripted("native")
        model = CachedChatModel(cache, inner)
        for _ in range(2):
            for tenant in ("a", "b"):
                own = model.with_config(metadata={"tenant": tenant})
                said = ASK[style](own, ASKED).text
                assert said == f"m to {ASKED}, call {'ab'.index(tenant) + 1}"
            with cache.using(tenant="a"):
                assert ASK[style](model, ASKED).text == f"m to {ASKED}, call 1"
        assert len(inner.calls) == 2


@pytest.mark.parametrize("inner", [None, "m", FakeListChatModel(responses=["x"]).bind(stop=["y"])])
def test_what_is_no_chat_model_is_refused(cache, inner):
    with pytest.raises(stemma.UsageError, match="bind tools and arguments to the cached model"):
        CachedChatModel(cache, inner)


def test_wrong_arguments_are_errors(cache, scripted):
    model = CachedChatModel(cache, scripted())
    with pytest.raises(stemma.UsageError, match="not cached yet"):
        CachedChatModel(cache, model)
    with pytest.raises(stemma.UsageError, match=r"stemma\.Cache"):
        CachedChatModel(scripted(), cache)
    for wrong in ({"life": 0}, {"sampling": "often"}, {"temperature": 0.5}):
        with pytest.raises(ValidationError):
            CachedChatModel(cache, scripted(), **wrong)


# --------------------------------------------------------- it stands for the model


def test_it_is_to_others_what_the_model_is(cache, scripted):
    inner = scripted(
        "streaming",
        model_name="gpt-x",
        profile={"max_input_tokens": 7},
        custom_get_token_ids=lambda text: list(range(3 * len(text))),
    )
    model = CachedChatModel(cache, inner)
    assert model._get_ls_params(stop=["x"]) == inner._get_ls_params(stop=["x"])
    assert model._llm_type == "scripted"
    assert model._identifying_params == inner._identifying_params
    assert model.profile == inner.profile
    assert model.get_num_tokens("four") == 12
    assert model.get_num_tokens_from_messages(
        [HumanMessage("x")]
    ) == inner.get_num_tokens_from_messages([HumanMessage("x")])
    assert model.model_name == "gpt-x"
    with pytest.raises(AttributeError):
        model.unheard_of  # noqa: B018


def test_tracers_hear_of_the_parameters_that_the_model_says_it_was_called_with(cache, scripted):
    class Saying(type(scripted("streaming"))):
        def _get_invocation_params(self, stop=None, **kwargs):
            return {**super()._get_invocation_params(stop=stop, **kwargs), "model_name": "said"}

    ear = Listening()
    model = CachedChatModel(cache, Saying(), callbacks=[ear])
    for ask in ASK.values():
        ask(model, ASKED)
    assert {heard for kind, heard in ear.heard if kind == "start"} == {"said"}


def test_a_run_may_set_the_inner_models_fields(cache, scripted):
    inner = scripted("streaming")
    heat = ConfigurableField(id="heat")
    model = CachedChatModel(cache, inner).configurable_fields(temperature=heat)
    hot = model.with_config(configurable={"heat": 0.9})
    for runnable in (model, hot, model, hot):
        runnable.invoke(ASKED)
        whole(runnable.stream(ASKED))
    assert cache.engine.parts.store.sizes() == {("t", "call"): 2}


def test_bypass_and_refresh_reach_the_model(cache, scripted):
    inner = scripted("native")
    model = CachedChatModel(cache, inner)
    for style in ("invoke", "astream"):
        model.invoke(ASKED)
        before = len(inner.calls)
        with cache.bypass():
            ASK[style](model, ASKED)
        with cache.refresh():
            fresh = ASK[style](model, ASKED)
        assert len(inner.calls) == before + 2
        assert model.invoke(ASKED).text == fresh.text
