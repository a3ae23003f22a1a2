"""Whole chains behind the cache."""

import asyncio
import copy
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import warnings
from collections import defaultdict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    ConfigurableField,
    RunnableConfig,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.runnables.utils import AddableDict

import stemma
from stemma_langchain import CachedChain, CachedRetriever, LLMCache
from stemma_langchain.codec import CODEC
from stemma_langchain.runs import runs

CALLS: list = []
"""What reached the inner things, in order."""


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", policy="threshold", tenant="t") as opened:
        yield opened


def called(given):
    CALLS.append(given)
    return given


def answer(given):
    CALLS.append(given)
    return f"answer to {given['question']}"


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        CALLS.append(("retriever", query))
        text = f"what {query} is: a thing of its own"
        return [Document(text, id=f"{query}-1", metadata={"source": query})]


class Replying(BaseChatModel):
    """Gives its replies in turn, over and over; streams them word by word, the reason last."""

    replies: list[AIMessage]

    @property
    def _llm_type(self):
        return "replying"

    def _next(self):
        CALLS.append("model")
        return self.replies[(CALLS.count("model") - 1) % len(self.replies)]

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._next())])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        said = self._next()
        for word in re.split(r"(?<= )", said.content):
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        last = AIMessageChunk(
            "", response_metadata=said.response_metadata, usage_metadata=said.usage_metadata
        )
        yield ChatGenerationChunk(message=last)


def model(*replies, **named):
    said = [r if isinstance(r, AIMessage) else AIMessage(r) for r in replies or ("a reply",)]
    return Replying(replies=said, **named)


def rag(cache, *, replies=("a reply",), retriever=None, **named):
    retriever = retriever if retriever is not None else CachedRetriever(cache, Shelf())
    return (
        RunnableParallel(
            context=RunnableLambda(lambda d: d["question"]) | retriever,
            question=lambda d: d["question"],
        )
        | ChatPromptTemplate.from_template("{context}\n{question}")
        | model(*replies, cache=LLMCache(cache), **named)
        | StrOutputParser()
    )


def reply(**named):
    return AIMessage(
        "forty-two",
        usage_metadata={"input_tokens": 30, "output_tokens": 12, "total_tokens": 42},
        **named,
    )


# ------------------------------------------------------------------ hit and miss


def test_the_second_call_reaches_neither_retriever_nor_model(cache):
    chain = CachedChain(cache, rag(cache), focus="question")
    first = chain.invoke({"question": "a codex"})
    reached = list(CALLS)
    assert chain.invoke({"question": "a codex"}) == first
    assert ("retriever", "a codex") in reached
    assert "model" in reached
    assert reached == CALLS


async def test_async_calls_share_with_sync_ones(cache):
    chain = CachedChain(cache, RunnableLambda(answer), focus="question")
    first = await chain.ainvoke({"question": "q"})
    assert await chain.ainvoke({"question": "q"}) == chain.invoke({"question": "q"}) == first
    assert len(CALLS) == 1


async def test_each_item_of_a_batch_is_a_call_of_its_own(cache):
    chain = CachedChain(cache, RunnableLambda(answer), focus="question")
    asked = [{"question": name} for name in ("a", "b", "a")]
    assert chain.batch(asked) == [f"answer to {each['question']}" for each in asked]
    assert await chain.abatch(asked) == chain.batch(asked)
    assert sorted(call["question"] for call in CALLS) == ["a", "b"]


def test_a_question_with_the_same_meaning_is_answered_too(cache):
    chain = CachedChain(cache, RunnableLambda(answer), focus="question")
    first = chain.invoke({"question": "What is a stemma codicum?"})
    assert chain.invoke({"question": "what is a stemma codicum"}) == first
    exact = CachedChain(cache, RunnableLambda(answer), focus="question", meaning=False, version="e")
    exact.invoke({"question": "What is a stemma codicum?"})
    exact.invoke({"question": "what is a stemma codicum"})
    assert len(CALLS) == 3


def test_all_else_in_the_input_must_be_equal(cache):
    chain = CachedChain(cache, RunnableLambda(answer), focus="question")
    for other in ({}, {"language": "de"}, {"language": "en"}, {"language": None}, {"k": 0}):
        chain.invoke({"question": "q", **other})
    assert len(CALLS) == 5
    chain.invoke({"language": "en", "question": "q"})
    assert len(CALLS) == 5


def test_an_input_without_a_stable_key_passes_by(cache):
    chain = CachedChain(cache, RunnableLambda(answer), focus="question")
    with pytest.warns(RuntimeWarning, match="no stable key"):
        chain.invoke({"question": "q", "handle": object()})
    chain.invoke({"question": "q", "handle": object()})
    assert len(CALLS) == 2


def test_a_text_alone_is_the_question(cache):
    chain = CachedChain(cache, RunnableLambda(called))
    assert chain.invoke("q") == chain.invoke("q") == "q"
    assert CALLS == ["q"]


def test_messages_are_compared_by_their_last_turn_after_equal_ones(cache):
    chain = CachedChain(cache, RunnableLambda(lambda turns: called(turns)[-1].content))
    turns = [SystemMessage("Be brief."), HumanMessage("Who leads Acme?", id="1")]
    chain.invoke(turns)
    chain.invoke([SystemMessage("Be brief.", id="x"), HumanMessage("who leads Acme", id="2")])
    assert len(CALLS) == 1
    chain.invoke([SystemMessage("Be long."), HumanMessage("Who leads Acme?")])
    assert len(CALLS) == 2


def test_a_question_after_other_turns_is_another(cache):
    """ "How old is he" is not answered from a conversation about somebody else."""
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{q}")])
    chain = CachedChain(cache, prompt | model("47", "63") | StrOutputParser(), focus="q")
    acme = [HumanMessage("Who leads Acme?"), AIMessage("Ann.", id="a1")]
    zenith = [HumanMessage("Who leads Zenith?"), AIMessage("Zoe.")]
    assert chain.invoke({"history": acme, "q": "How old is he?"}) == "47"
    assert chain.invoke({"history": zenith, "q": "How old is he?"}) == "63"
    again = [HumanMessage("Who leads Acme?", id="new"), AIMessage("Ann.", id="other")]
    assert chain.invoke({"history": again, "q": "How old is he?"}) == "47"


# ---------------------------------------------------------------------- streams


def streaming(cache, *replies, **named):
    prompt = ChatPromptTemplate.from_template("{question}")
    return CachedChain(
        cache, prompt | model(*replies, **named) | StrOutputParser(), focus="question"
    )


async def test_a_stream_is_stored_when_it_ended_well_and_served_in_every_style(cache):
    chain = streaming(cache, "one two three")
    chunks = list(chain.stream({"question": "q"}))
    assert len(chunks) > 1
    assert list(chain.stream({"question": "q"})) == ["one two three"]
    assert [c async for c in chain.astream({"question": "q"})] == ["one two three"]
    assert chain.invoke({"question": "q"}) == "".join(chunks)
    assert CALLS == ["model"]


async def test_an_async_stream_is_stored_as_well(cache):
    chain = streaming(cache, "one two three")
    chunks = [c async for c in chain.astream({"question": "q"})]
    assert len(chunks) > 1
    assert "".join(chunks) == await chain.ainvoke({"question": "q"})
    assert len(CALLS) == 1


async def test_an_abandoned_stream_stores_nothing(cache):
    chain = streaming(cache, "one two three")
    for _ in chain.stream({"question": "q"}):
        break
    async for _ in chain.astream({"question": "q"}):
        break
    assert chain.invoke({"question": "q"}) == "one two three"
    assert len(CALLS) == 3


def test_a_stream_that_fails_stores_nothing_and_says_so(cache):
    def failing(given):
        yield from given
        raise ConnectionError("gone")

    chain = CachedChain(cache, RunnableGenerator(failing))
    for _ in range(2):
        with pytest.raises(ConnectionError, match="gone"):
            list(chain.stream("q"))
    assert cache.engine.parts.store.sizes() == {}


def test_a_message_streams_in_chunks_and_comes_back_whole(cache):
    chain = CachedChain(cache, model(reply(response_metadata={"finish_reason": "stop"})))
    total = None
    for chunk in chain.stream("q"):
        total = chunk if total is None else total + chunk
    whole = chain.invoke("q")
    assert type(whole) is AIMessage
    assert whole.content == total.content
    (again,) = chain.stream("q")
    assert type(again) is AIMessageChunk
    assert again.content == total.content


def test_a_parser_whose_chunks_replace_each_other_gives_its_last(cache):
    chain = CachedChain(cache, model("[1, 2, 34]") | JsonOutputParser())
    assert list(chain.stream("q"))[-1] == [1, 2, 34]
    assert chain.invoke("q") == [1, 2, 34]
    assert len(CALLS) == 1


def test_chunks_that_may_mean_anything_are_not_stored(cache):
    """Lists that replace each other cannot be told from lists that are to be joined."""

    def growing(given):
        CALLS.extend(given)
        yield [1]
        yield [1, 2]

    def in_a_mapping(given):
        CALLS.extend(given)
        yield AddableDict(a=[1])
        yield AddableDict(a=[1, 2])

    for function in (growing, in_a_mapping):
        chain = CachedChain(cache, RunnableGenerator(function))
        assert list(chain.stream("q")) == list(chain.stream("q"))
    assert len(CALLS) == 4


def test_mappings_stream_key_by_key(cache):
    chain = CachedChain(
        cache,
        RunnablePassthrough.assign(
            answer=lambda d: called("x") + d["question"], docs=lambda _: [1]
        ),
        focus="question",
    )
    total = None
    for chunk in chain.stream({"question": "q"}):
        total = chunk if total is None else total + chunk
    assert (
        chain.invoke({"question": "q"})
        == dict(total)
        == {"question": "q", "answer": "xq", "docs": [1]}
    )
    assert len(CALLS) == 1


def test_an_input_that_comes_in_chunks_is_one_question(cache):
    chain = CachedChain(cache, RunnableLambda(called))
    assert "".join(chain.transform(iter(["a ", "b"]))) == "a b"
    assert chain.invoke("a b") == "a b"
    assert CALLS == ["a b"]


# ---------------------------------------------------------------- what is given back


def stored_reply(cache):
    chain = CachedChain(
        cache, model(reply(id="first", response_metadata={"finish_reason": "stop"}))
    )
    return chain, chain.invoke("q")


async def test_a_hit_says_so_alike_in_all_call_styles(cache):
    chain, first = stored_reply(cache)
    hits = [
        chain.invoke("q"),
        await chain.ainvoke("q"),
        next(iter(chain.stream("q"))),
        await anext(chain.astream("q")),
    ]
    notes = [{**hit.response_metadata["stemma"], "age": 0} for hit in hits]
    assert all(note == notes[0] for note in notes)
    assert notes[0]["hit"] is True
    assert notes[0]["saved_tokens"] == 42
    assert notes[0]["saved_usage"]["total_tokens"] == 42
    assert "stemma" not in first.response_metadata


def test_a_hit_has_a_fresh_id_no_usage_and_is_a_copy(cache):
    chain, first = stored_reply(cache)
    one, two = chain.invoke("q"), chain.invoke("q")
    assert len({first.id, one.id, two.id}) == 3
    assert one.usage_metadata == {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    assert one.response_metadata["finish_reason"] == "stop"
    one.content = "changed"
    one.response_metadata.clear()
    assert chain.invoke("q").content == "forty-two"


def test_documents_in_an_answer_carry_the_note_and_are_copies(cache):
    chain = CachedChain(
        cache,
        RunnablePassthrough.assign(docs=lambda d: d["question"])
        | RunnablePassthrough.assign(docs=RunnableLambda(lambda d: d["question"]) | Shelf()),
        focus="question",
    )
    first = chain.invoke({"question": "q"})
    hit = chain.invoke({"question": "q"})["docs"][0]
    assert hit.metadata["stemma"]["hit"] is True
    assert (hit.id, hit.page_content) == (first["docs"][0].id, first["docs"][0].page_content)
    assert "stemma" not in first["docs"][0].metadata
    hit.metadata["mine"] = 1
    assert "mine" not in chain.invoke({"question": "q"})["docs"][0].metadata


def test_a_stored_answer_made_from_a_hit_remembers_what_the_reply_cost(cache):
    inner = model(reply(), cache=LLMCache(cache))
    inner.invoke("q")
    chain = CachedChain(cache, inner)
    assert chain.invoke("q").usage_metadata["total_tokens"] == 0  # the model's own cache hit
    note = chain.invoke("q").response_metadata["stemma"]
    assert note["saved_usage"]["total_tokens"] == 42
    assert note["saved_tokens"] == 0  # with the call cached, the chain's hit saves no tokens


# --------------------------------------------------------------- what is not stored


@pytest.mark.parametrize("given", ["", "  \n", None, {}, [], {"answer": " "}])
def test_an_empty_answer_is_not_stored(cache, given):
    chain = CachedChain(cache, RunnableLambda(lambda q: called(q) and given))
    assert chain.invoke("q") == chain.invoke("q") == given
    assert len(CALLS) == 2


@pytest.mark.parametrize("value", [0, False])
def test_zero_and_false_are_answers(cache, value):
    chain = CachedChain(cache, RunnableLambda(lambda q: called(q) and value))
    assert chain.invoke("q") is chain.invoke("q") is value
    assert len(CALLS) == 1


@pytest.mark.parametrize("finish", ["length", "content_filter", "max_tokens", "SAFETY"])
@pytest.mark.parametrize("style", ["invoke", "stream"])
def test_a_cut_off_reply_is_not_stored_though_a_parser_dropped_the_reason(cache, finish, style):
    cut = AIMessage("cut off here", response_metadata={"finish_reason": finish})
    chain = CachedChain(cache, model(cut) | StrOutputParser())
    for _ in range(2):
        said = chain.invoke("q") if style == "invoke" else "".join(chain.stream("q"))
        assert said.startswith("cut")
    assert len(CALLS) == 2


def test_an_error_passes_through_and_the_next_call_runs(cache):
    def failing(_):
        CALLS.append(1)
        if len(CALLS) == 1:
            raise ValueError("invalid JSON")
        return "well"

    chain = CachedChain(cache, RunnableLambda(failing))
    with pytest.raises(ValueError, match="invalid JSON"):
        chain.invoke("q")
    assert chain.invoke("q") == chain.invoke("q") == "well"
    assert len(CALLS) == 2


def test_what_has_no_stored_form_is_served_uncached_with_a_reason(cache):
    heard = []
    cache.listen(heard.append)
    chain = CachedChain(cache, RunnableLambda(lambda q: called(q) and object()))
    assert chain.invoke("q") is not chain.invoke("q")
    assert [e.outcome for e in heard if e.kind == "put"] == ["unstorable"] * 2


def test_a_chain_that_changes_itself_is_never_reused_and_says_why(cache):
    seen = []
    chain = CachedChain(cache, RunnableLambda(lambda q: seen.append(q) or "x"))
    with pytest.warns(RuntimeWarning, match="changed while it ran"):
        chain.invoke("q")
    assert chain.invoke("q") == "x"
    assert seen == ["q", "q"]


# ------------------------------------------------------------------- what is in the key


def test_a_changed_temperature_is_another_chain(cache):
    inner = FakeListChatModel(responses=["a", "b"])
    chain = CachedChain(cache, inner | StrOutputParser())
    assert chain.invoke("q") == "a"
    inner.sleep = 0.0
    assert chain.invoke("q") == "b"


def test_version_arguments_and_configuration_are_in_the_key(cache):
    def said(given, config: RunnableConfig, **kwargs):
        CALLS.append(kwargs)
        return str((config["configurable"], kwargs))

    one = CachedChain(cache, RunnableLambda(said))
    two = CachedChain(cache, RunnableLambda(said), version="2")
    for call in (
        lambda: one.invoke("q"),
        lambda: two.invoke("q"),
        lambda: one.invoke("q", style="short"),
        lambda: one.bind(style="long").invoke("q"),
        lambda: one.invoke("q", {"configurable": {"place": "x"}}),
        lambda: one.with_config(configurable={"place": "y"}).invoke("q"),
    ):
        before = len(CALLS)
        assert call() == call()
        assert len(CALLS) == before + 1


def test_threads_of_a_graph_share_answers_unless_the_chain_declares_them(cache):
    chain = CachedChain(cache, RunnableLambda(called))
    chain.invoke("q", {"configurable": {"thread_id": "1", "__pregel_read": object()}})
    chain.invoke("q", {"configurable": {"thread_id": "2"}})
    assert len(CALLS) == 1
    own = FakeListChatModel(responses=["a", "b"]).configurable_fields(
        responses=ConfigurableField(id="thread_id")
    )
    declared = CachedChain(cache, own | StrOutputParser())
    assert declared.invoke("q", {"configurable": {"thread_id": ["c"]}}) == "c"
    assert declared.invoke("q", {"configurable": {"thread_id": ["d"]}}) == "d"


# ------------------------------------------------------------------------------ tenants


def test_two_tenants_get_nothing_of_each_other(cache):
    chain = CachedChain(cache, rag(cache), focus="question")
    for tenant in ("acme", "zenith"):
        before = len(CALLS)
        chain.invoke({"question": "a codex"}, {"metadata": {"tenant": tenant}})
        assert len(CALLS) > before
        with cache.using(tenant=tenant):
            reached = len(CALLS)
            chain.invoke({"question": "a codex"})
            assert len(CALLS) == reached
    assert {tenant for tenant, _ in cache.engine.parts.store.sizes()} == {"acme", "zenith"}


def test_the_runs_tenant_goes_before_the_surroundings(cache):
    chain = CachedChain(cache, RunnableLambda(answer), focus="question")
    with cache.using(tenant="acme"):
        chain.invoke({"question": "q"}, {"metadata": {"tenant": "zenith"}})
        chain.invoke({"question": "q"})
    assert len(CALLS) == 2


async def test_without_a_tenant_it_passes_by_and_warns_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        chain = CachedChain(nobody, RunnableLambda(called))
        with pytest.warns(RuntimeWarning, match="no tenant"):
            chain.invoke("q")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert chain.invoke("q") == "".join(chain.stream("q")) == await chain.ainvoke("q")
        assert CALLS == ["q"] * 4


# ----------------------------------------------------------------------- runs and lineage


def entries(cache):
    """The ids of what is stored from now on, by node."""
    made = defaultdict(list)
    cache.listen(lambda e: made[e.node].append(e.entry) if e.outcome == "stored" else None)
    return made


def test_the_answer_descends_from_its_retrieval_its_call_and_the_documents(cache):
    made = entries(cache)
    CachedChain(cache, rag(cache), focus="question").invoke({"question": "a codex"})
    tree = str(cache.lineage(made["answer"][0]))
    assert made["retrieval"][0][:12] in tree
    assert made["call"][0][:12] in tree
    assert "a codex" in tree
    gone = {item.entry for item in cache.recall(source="a codex").entries}
    assert gone == {made["answer"][0], made["retrieval"][0], made["call"][0]}


def test_a_retriever_that_nobody_wrapped_gives_its_sources(cache):
    chain = CachedChain(cache, rag(cache, retriever=Shelf()), focus="question")
    chain.invoke({"question": "a codex"})
    chain.invoke({"question": "a scroll"})
    assert cache.recall(source="a codex", dry_run=True).by_node == {"answer": 1, "call": 1}


async def test_items_of_a_batch_have_no_edges_between_each_other(cache):
    chain = CachedChain(cache, rag(cache), focus="question")
    names = [f"thing {n}" for n in range(4)]
    chain.batch([{"question": name} for name in names[:2]])
    await chain.abatch([{"question": name} for name in names[2:]])
    with cache.trace():
        chain.batch([{"question": f"traced {name}"} for name in names[:2]])
    for name in [*names, *(f"traced {name}" for name in names[:2])]:
        gone = cache.recall(source=name, dry_run=True)
        assert gone.by_node == {"answer": 1, "call": 1, "retrieval": 1}, name


def test_an_answer_is_taken_back_with_its_document_and_computed_anew(cache):
    chain = CachedChain(cache, rag(cache, replies=("old", "new")), focus="question")
    assert chain.invoke({"question": "a codex"}) == "old"
    cache.recall(source="a codex")
    assert chain.invoke({"question": "a codex"}) == "new"


class Desk(BaseRetriever):
    """Has one document, whatever is asked."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Codices are made of bound leaves of vellum.", id="1")]


def test_the_models_cache_finds_the_question_in_the_prompt(cache):
    """The prompt holds a chunk, so its turn is not compared by meaning; the question in it is."""
    inner = rag(cache, replies=("first", "second"), retriever=Desk())
    one = CachedChain(cache, inner, focus="question", meaning=False)
    assert one.invoke({"question": "What is an old codex made of?"}) == "first"
    assert one.invoke({"question": "what is an old codex made of"}) == "first"
    assert CALLS == ["model"]


def test_the_question_of_a_step_is_not_that_of_the_run(cache):
    seen = RunnableLambda(lambda _: stemma.frames.current().focus)
    step = CachedChain(cache, seen, focus="question")
    chain = RunnableLambda(lambda q: {"question": f"in it: {q}"}) | step
    assert chain.invoke("outer") == "in it: outer"
    assert (chain | seen).invoke("outer") == "outer"


def test_the_note_of_a_hit_is_not_stored_with_what_was_built_from_it():
    noted = AIMessage(
        "x",
        usage_metadata={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
        response_metadata={"stemma": {"hit": True, "saved_usage": None}, "finish_reason": "stop"},
    )
    kept = CODEC.decode(
        CODEC.encode([noted, Document("d", metadata={"stemma": {"hit": True}})]).payload
    )
    assert kept[0].response_metadata == {"finish_reason": "stop"}
    assert kept[0].usage_metadata is None
    assert kept[1].metadata == {}


def test_runs_nest_and_what_the_run_was_given_reaches_the_chain(cache):
    class Watching(BaseCallbackHandler):
        def __init__(self):
            self.begun = []

        def on_chain_start(
            self,
            serialized,
            inputs,
            *,
            run_id,
            parent_run_id=None,
            tags=None,
            metadata=None,
            **kwargs,
        ):
            self.begun.append((kwargs["name"], parent_run_id is None, tags, metadata))

    def inner(given, config: RunnableConfig):
        CALLS.append((config["tags"], config["metadata"]["who"], config["configurable"]["c"]))
        return "x"

    watch = Watching()
    chain = CachedChain(cache, RunnableLambda(inner), name="Mine")
    config = {
        "callbacks": [watch],
        "tags": ["a"],
        "metadata": {"who": "me"},
        "configurable": {"c": 1},
    }
    chain.with_config(run_name="Renamed").invoke("q", config)
    assert [begun[:2] for begun in watch.begun] == [("Renamed", True), ("inner", False)]
    assert CALLS == [(["a"], "me", 1)]
    chain.invoke("q", config)
    assert [begun[0] for begun in watch.begun] == ["Renamed", "inner", "Mine"]
    assert not len(runs)


# ----------------------------------------------------------------------- as a runnable


def test_it_is_a_step_like_any_other(cache):
    chain = RunnableLambda(str.lower) | CachedChain(cache, RunnableLambda(called)) | str.upper
    assert chain.invoke("ABC") == chain.invoke("ABC") == "ABC"
    assert "".join(chain.stream("ABC")) == "ABC"
    assert CALLS == ["abc"]


def test_schemas_and_graph_are_the_chains_own(cache):
    inner = ChatPromptTemplate.from_template("{question}") | model()
    chain = CachedChain(cache, inner, focus="question")
    assert (
        chain.get_input_schema().model_json_schema() == inner.get_input_schema().model_json_schema()
    )
    assert [n.name for n in chain.get_graph().nodes.values()] == [
        n.name for n in inner.get_graph().nodes.values()
    ]


def test_a_copy_uses_the_same_cache(cache):
    chain = CachedChain(cache, RunnableLambda(answer), focus="question")
    first = chain.invoke({"question": "q"})
    assert copy.deepcopy(chain).invoke({"question": "q"}) == first
    assert (
        pickle.loads(pickle.dumps(chain.with_config(tags=["x"]))).invoke({"question": "q"}) == first
    )
    assert len(CALLS) == 1


def test_it_goes_to_another_process_and_finds_its_answers_there(tmp_path):
    code = textwrap.dedent(
        """
        import pickle, sys
        import stemma
        from langchain_core.language_models import FakeListChatModel
        from langchain_core.output_parsers import StrOutputParser
        from langchain_core.prompts import ChatPromptTemplate
        from stemma_langchain import CachedChain, LLMCache

        path, role = sys.argv[1:]
        if role == "first":
            cache = stemma.open(path + "/a.db", embedder="hashing", policy="threshold", tenant="t")
            model = FakeListChatModel(responses=["made in the first"], cache=LLMCache(cache))
            chain = CachedChain(
                cache, ChatPromptTemplate.from_template("{q}") | model | StrOutputParser(), focus="q"
            )
            with open(path + "/chain", "wb") as file:
                pickle.dump(chain, file)
        else:
            with open(path + "/chain", "rb") as file:
                chain = pickle.load(file)
        heard = []
        chain.cache.listen(lambda e: heard.append(e.outcome) if e.node == "answer" else None)
        print(chain.invoke({"q": "who?"}), heard)
        chain.cache.close()
        """
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), role],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for role in ("first", "second")
    ]
    assert said == ["made in the first ['cold', 'stored']", "made in the first ['exact']"]


@pytest.mark.parametrize("focus", ["", 3])
def test_a_focus_that_names_no_key_is_refused(cache, focus):
    with pytest.raises(stemma.UsageError, match="focus"):
        CachedChain(cache, RunnableLambda(called), focus=focus)


def test_bypass_and_refresh_are_minded_in_every_style(cache):
    chain = CachedChain(cache, RunnableLambda(called))
    chain.invoke("q")
    with cache.bypass():
        chain.invoke("q")
        list(chain.stream("q"))
    assert len(CALLS) == 3
    with cache.refresh():
        list(chain.stream("q"))
    assert len(CALLS) == 4
    chain.invoke("q")
    assert len(CALLS) == 4


# ------------------------------------------------------------------------ together at once


def test_threads_that_ask_at_once_share_one_run(cache):
    begun, go = threading.Event(), threading.Event()

    def slow(given):
        CALLS.append(given)
        begun.set()
        assert go.wait(20)
        return "x"

    chain = CachedChain(cache, RunnableLambda(slow).with_config(run_name="slow"))
    said = []
    threads = [threading.Thread(target=lambda: said.append(chain.invoke("q"))) for _ in range(4)]
    # Events are captured by nothing: `slow` closes over them, and they are no plain values.
    threads[0].start()
    assert begun.wait(20)
    for thread in threads[1:]:
        thread.start()
    while sum(map(len, cache.engine.flights._waiting.values())) < 3:
        pass
    go.set()
    for thread in threads:
        thread.join(20)
    assert said == ["x"] * 4
    assert len(CALLS) == 1


async def test_tasks_that_ask_at_once_share_one_run(cache):
    go = asyncio.Event()

    async def slow(given):
        CALLS.append(given)
        await go.wait()
        return "x"

    chain = CachedChain(cache, RunnableLambda(slow))
    tasks = [asyncio.create_task(chain.ainvoke("q")) for _ in range(4)]
    while sum(map(len, cache.engine.flights._waiting.values())) < 3:  # noqa: ASYNC110 - no event says it
        await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(*tasks) == ["x"] * 4
    assert len(CALLS) == 1


@pytest.mark.parametrize("tenant", [1, "", ["a"], b"x"])
def test_a_tenant_that_is_no_text_is_nobody_s_and_the_default_is_not_taken(cache, tenant):
    chain = CachedChain(cache, RunnableLambda(called))
    chain.invoke("a question")
    with pytest.warns(RuntimeWarning, match="tenant"):
        chain.invoke("a question", {"metadata": {"tenant": tenant}})
    assert CALLS == ["a question"] * 2


def test_a_tenant_said_inside_an_open_stream_is_the_one_that_is_served(cache):
    def parts(_):
        yield from "abc"

    chain = CachedChain(cache, RunnableLambda(called) | RunnableGenerator(parts))
    with cache.using(tenant="acme"):
        cache.answers.get_or_compute("turnover?", lambda: "acme's")
    stream = chain.stream("a question", {"metadata": {"tenant": "acme"}})
    next(stream)
    with cache.using(tenant="globex"):
        served = cache.answers.get_or_compute("turnover?", lambda: "globex's")
    assert list(stream)
    assert served.value == "globex's"
    assert served.stored.entry.tenant == "globex"
