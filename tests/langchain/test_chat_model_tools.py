"""Tools, response formats, agents and chains around a cached chat model."""

import asyncio
import json
import subprocess
import sys
import textwrap

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

import stemma
from stemma_langchain import CachedChain, CachedChatModel, LLMCache
from stemma_langchain.fingerprint import describe_chain, fingerprint

ASKED = "Who leads Acme?"


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", policy="threshold", tenant="t") as opened:
        yield opened


def look(at: str) -> str:
    """Look at something."""
    return f"seen {at}"


def call(name, id, **args):
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


# --------------------------------------------------------------------------- tools


def test_tools_are_bound_as_the_model_binds_them_and_the_calls_are_cached(cache, scripted):
    inner = scripted("native", AIMessage("", tool_calls=[call("look", "c", at="it")]))
    bound = CachedChatModel(cache, inner).bind_tools([look], tool_choice="look", strict=True)
    expected = inner.bind_tools([look], tool_choice="look", strict=True)
    assert bound.kwargs == expected.kwargs
    messages = [bound.invoke(ASKED), asyncio.run(bound.ainvoke(ASKED)), *bound.batch([ASKED] * 2)]
    assert [message.tool_calls for message in messages] == [[call("look", "c", at="it")]] * 4
    assert len(inner.calls) == 1
    assert inner.calls[0][2] == {"stop": None, **expected.kwargs}


def test_another_tool_or_its_description_is_another_call(cache, scripted):
    def other(at: str) -> str:
        """Look elsewhere."""
        return at

    inner = scripted("native", AIMessage("well"))
    model = CachedChatModel(cache, inner)
    for tools in ([look], [other], [look, other], [other, look], [look]):
        model.bind_tools(tools).invoke(ASKED)
    assert len(inner.calls) == 4


def test_a_model_without_tools_says_so_as_it_would(cache):
    model = CachedChatModel(cache, FakeListChatModel(responses=["x"]))
    with pytest.raises(NotImplementedError):
        model.bind_tools([look])
    with pytest.raises(NotImplementedError):
        model.with_structured_output({"title": "P", "type": "object", "properties": {}})


@pytest.mark.parametrize("kind", ["whole", "streaming", "native"])
@pytest.mark.parametrize("mode", ["messages", "updates"])
def test_an_agent_runs_its_tools_each_time_and_the_model_once(cache, scripted, kind, mode):
    runs = []

    def look(at: str) -> str:
        """Look at something."""
        runs.append(at)
        return f"seen {at}"

    def reply(messages):
        last = messages[-1]
        if isinstance(last, HumanMessage):
            return AIMessage(
                "", tool_calls=[call("look", "c1", at="a"), call("look", "c2", at="b")]
            )
        return AIMessage(f"after {last.text}")

    inner = scripted(kind, reply)
    agent = create_agent(CachedChatModel(cache, inner), tools=[look])
    given = {"messages": [HumanMessage(ASKED)]}
    finals = []
    for _ in range(2):
        finals.append(agent.invoke(given)["messages"])
        for _part in agent.stream(given, stream_mode=mode):
            pass
    assert len(inner.calls) == 2
    assert sorted(runs) == ["a"] * 4 + ["b"] * 4
    for messages in finals:
        assert [m.text for m in messages][2:] == ["seen a", "seen b", "after seen b"]


# ----------------------------------------------------------------- structured output


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


def test_the_general_way_of_structured_output_is_cached(cache, scripted):
    inner = scripted("native", AIMessage("", tool_calls=[call("Person", "c", who="Ann", age=47)]))
    model = CachedChatModel(cache, inner)
    typed = model.with_structured_output(Person)
    raw = model.with_structured_output(Person, include_raw=True)
    for _ in range(2):
        assert typed.invoke(ASKED) == Person(who="Ann", age=47)
        assert asyncio.run(typed.ainvoke(ASKED)) == Person(who="Ann", age=47)
        both = raw.invoke(ASKED)
        assert (both["parsed"], both["parsing_error"]) == (Person(who="Ann", age=47), None)
        assert list(typed.stream(ASKED))[-1] == Person(who="Ann", age=47)
    assert both["raw"].response_metadata["stemma"]["hit"] is True
    assert len(inner.calls) == 1


@pytest.mark.parametrize("schema", [SCHEMA, Person])
@pytest.mark.parametrize("method", ["function_calling", "json_schema", "json_mode"])
@pytest.mark.parametrize("include_raw", [False, True])
def test_a_providers_own_ways_come_back_typed_from_a_reopened_store(
    tmp_path, schema, method, include_raw
):
    value = {"who": "Ann", "age": 47}
    function = {"name": "Person", "arguments": json.dumps(value)}
    calling = {"tool_calls": [{"id": "c", "type": "function", "function": function}]}
    said = calling if method == "function_calling" else {"content": json.dumps(value)}
    requests = []

    def serve(request):
        requests.append(json.loads(request.content))
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": None, **said},
        }
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        body = {"id": "r", "object": "chat.completion", "created": 1, "model": "gpt-x"}
        return httpx.Response(200, json={**body, "choices": [choice], "usage": usage})

    expected = Person(**value) if schema is Person else value
    for _ in range(2):
        with stemma.open(
            str(tmp_path / "calls.db"), embedder="hashing", policy="threshold", tenant="t"
        ) as cache:
            client = httpx.Client(transport=httpx.MockTransport(serve))
            inner = ChatOpenAI(model="gpt-x", api_key="k", http_client=client)
            model = CachedChatModel(cache, inner)
            typed = model.with_structured_output(schema, method=method, include_raw=include_raw)
            given = typed.invoke("Who leads Acme? Answer as JSON.")
            assert (given["parsed"] if include_raw else given) == expected
    assert len(requests) == 1
    asked = requests[0].get("response_format", {}).get("type", "tools")
    wanted = {"json_mode": "json_object", "function_calling": "tools"}.get(method, method)
    assert asked == wanted


def test_another_process_is_served_the_same_object(tmp_path):
    script = textwrap.dedent(
        """
        import sys
        import stemma
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage
        from langchain_core.outputs import ChatGeneration, ChatResult
        from langchain_core.utils.function_calling import convert_to_openai_tool
        from pydantic import BaseModel
        from stemma_langchain import CachedChatModel

        class Person(BaseModel):
            who: str

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

        with stemma.open(sys.argv[1], embedder="hashing", policy="threshold", tenant="t") as cache:
            typed = CachedChatModel(cache, Model()).with_structured_output(Person)
            print(repr(typed.invoke("Who leads Acme?")))
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
    assert printed == [["the model ran", "Person(who='Ann')", ""], ["Person(who='Ann')", ""]]


def test_what_is_built_around_a_hidden_model_is_warned_of(cache, scripted):
    class Hiding(type(scripted())):
        def bind_tools(self, tools, **kwargs):
            return RunnableLambda(self.invoke)

    events = []
    cache.listen(events.append)
    CachedChatModel(cache, Hiding()).bind_tools([look]).invoke(ASKED)
    assert any("not cached" in event.detail for event in events if event.kind == "warning")


# --------------------------------------------------------------------- in a chain


def test_a_chain_is_the_same_chain_with_the_model_wrapped(cache, scripted):
    def chain(model):
        prompt = ChatPromptTemplate.from_template("{question}")
        return prompt | model.bind(stop=["x"]) | StrOutputParser()

    inner = scripted("streaming", model_name="gpt-x")
    plain, wrapped = chain(inner), chain(CachedChatModel(cache, inner, sampling="never"))
    assert fingerprint(plain) == fingerprint(wrapped)
    assert describe_chain(wrapped).model == "gpt-x"
    inner.temperature = 0.5
    assert fingerprint(chain(scripted("streaming", model_name="gpt-x"))) != fingerprint(wrapped)


def test_a_reply_is_built_on_the_documents_of_its_run_and_goes_with_them(cache, scripted):
    class Toy(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document("A codex is a book.", id="c1", metadata={"source": "books.md"})]

    def chain(model):
        prompt = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")
        question = RunnableLambda(lambda given: given["question"])
        steps = {"context": question | Toy(), "question": question} | prompt | model
        return steps | StrOutputParser()

    inner = scripted("native")
    model = CachedChatModel(cache, inner)
    whole = CachedChain(cache, chain(model), focus="question")
    asked = {"question": "What is a codex?"}
    first = whole.invoke(asked)
    assert whole.invoke({"question": "what is a codex"}) == first
    assert "".join(chain(model).stream(asked)) == first
    assert len(inner.calls) == 1
    receipt = cache.recall(source="books.md")
    assert receipt.by_node == {"answer": 1, "call": 1}
    assert "".join(whole.stream(asked)) != first
    assert asyncio.run(whole.ainvoke(asked)) != first
    assert len(inner.calls) == 2
    assert cache.recall(source="books.md").by_node == {"answer": 1, "call": 1}


def test_in_a_chain_the_question_is_compared_and_all_else_must_be_equal(cache, scripted):
    prompt = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")
    inner = scripted("streaming")
    model = CachedChatModel(cache, inner)

    def chain(context):
        added = RunnableLambda(lambda question: {"context": context, "question": question})
        return added | prompt | model

    for question in ("What is a codex?", "what is a codex"):
        said = chain("one").invoke(question)
    assert said.response_metadata["stemma"]["tier"] == "semantic"
    chain("two").invoke("what is a codex")
    assert len(inner.calls) == 2


def test_batches_keep_their_tenants_and_frames_apart(cache, scripted):
    inner = scripted("native")
    model = CachedChatModel(cache, inner)
    configs = [{"metadata": {"tenant": tenant}} for tenant in "abab"]
    said = model.batch([ASKED] * 4, configs)
    again = asyncio.run(model.abatch([ASKED] * 4, configs))
    assert said[0].text == said[2].text != said[1].text == said[3].text
    assert [m.text for m in again] == [m.text for m in said]
    assert len(inner.calls) == 2


def test_a_hit_of_the_chat_model_is_no_hit_of_the_llm_cache(cache, scripted):
    inner = scripted("whole")
    CachedChatModel(cache, inner).invoke(ASKED)
    scripted("whole", cache=LLMCache(cache)).invoke(ASKED)
    assert cache.engine.parts.store.sizes() == {("t", "call"): 2}
