"""LlamaIndex agents whose model and tools are cached."""

import asyncio
import json

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
    ToolCallBlock,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Context
from llama_index_instrumentation.dispatcher import instrument_tags
from workflows.errors import WorkflowCancelledByUser

import stemma
from stemma import Selector
from stemma_llamaindex import CachedLLM, CachedTool, cacheable

MODEL: list = []
TOOLS: list = []
SEATS: dict = {}


@pytest.fixture(autouse=True)
def _a_world():
    MODEL.clear()
    TOOLS.clear()
    SEATS.clear()
    SEATS.update({"1": "12A", "2": "7F"})


# ------------------------------------------------------------------ models with a script


def steps_of(asked):
    """What the model does about a question, one tool call after the other."""
    number = next(word for word in asked.split() if word.isdecimal())
    read = ("get_booking", {"id": number})
    if "move" not in asked.lower():
        return [read]
    return [read, ("move", {"id": number, "seat": "14B"}), read]


def say(messages, **kwargs):
    """What a model says that calls functions."""
    MODEL.append(messages)
    asked = next(m.content for m in messages if m.role == MessageRole.USER)
    seen = [m.content for m in messages if m.role == MessageRole.TOOL]
    steps = steps_of(asked)
    if len(seen) == len(steps):
        return ChatMessage(role=MessageRole.ASSISTANT, content=f"In the end: {seen[-1]}")
    name, arguments = steps[len(seen)]
    call = ToolCallBlock(tool_call_id=f"c{len(MODEL)}", tool_name=name, tool_kwargs=arguments)
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=[call])


class Reasoning(CustomLLM):
    """A model that thinks in texts."""

    @property
    def metadata(self):
        return LLMMetadata(model_name="reasoning")

    def _said(self, prompt):
        MODEL.append(prompt)
        _, _, asked = prompt.rpartition("Current Conversation")
        seen = [line for line in asked.splitlines() if line.startswith("user: Observation:")]
        question = next(line for line in asked.splitlines() if line.startswith("user: "))
        steps = steps_of(question)
        if len(seen) == len(steps):
            last = seen[-1].partition("Observation: ")[2]
            return f"Thought: I can answer without any more tools.\nAnswer: In the end: {last}"
        name, arguments = steps[len(seen)]
        return f"Thought: I look.\nAction: {name}\nAction Input: {json.dumps(arguments)}"

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=self._said(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        said = self._said(prompt)

        def chunks():
            half = len(said) // 2
            yield CompletionResponse(text=said[:half], delta=said[:half])
            yield CompletionResponse(text=said, delta=said[half:])

        return chunks()


# ------------------------------------------------------------------------------- tools


@cacheable(ttl=300, reads=["booking:{id}"])
async def get_booking(id: str) -> str:
    """A booking."""
    TOOLS.append(f"get {id}")
    await asyncio.sleep(0)
    return f"booking {id} has seat {SEATS[id]}"


@cacheable(writes=["booking:{id}"])
def move(id: str, seat: str) -> str:
    """Move a booking."""
    TOOLS.append(f"move {id}")
    SEATS[id] = seat
    return f"moved to {seat}"


def function_agent(cache, **said):
    llm = CachedLLM(cache, MockFunctionCallingLLM(response_generator=say, is_chat_model=True))
    tools = [CachedTool(cache, get_booking), CachedTool(cache, move)]
    return FunctionAgent(**{"llm": llm, "tools": tools, **said})


def react_agent(cache, **said):
    tools = [CachedTool(cache, get_booking), CachedTool(cache, move)]
    return ReActAgent(**{"llm": CachedLLM(cache, Reasoning()), "tools": tools, **said})


KINDS = {
    "function": function_agent,
    "function, not streamed": lambda cache: function_agent(cache, streaming=False),
    "function in a workflow": lambda cache: AgentWorkflow(agents=[function_agent(cache)]),
    "react": react_agent,
    "react, not streamed": lambda cache: react_agent(cache, streaming=False),
    "react in a workflow": lambda cache: AgentWorkflow(agents=[react_agent(cache)]),
}


@pytest.fixture(params=KINDS)
def agent(request, cache):
    return KINDS[request.param](cache)


def entries(cache, node, tenant=None):
    return cache.engine.parts.store.find(Selector(node=node, tenant=tenant), limit=50)


def bypasses(recorded):
    """The warnings that the cache was bypassed."""
    return [one for one in recorded if "the cache is bypassed" in str(one.message)]


def parents(cache, entry):
    return {edge.parent for edge in cache.engine.parts.store.lineage(entry.id).parents}


# -------------------------------------------------------------------------- the same run


async def test_a_run_again_reaches_neither_model_nor_tool(agent):
    first = await agent.run(user_msg="Where is booking 1 ?")
    assert str(first) == "In the end: booking 1 has seat 12A"
    assert (len(MODEL), TOOLS) == (2, ["get 1"])
    again = await agent.run(user_msg="Where is booking 1 ?")
    assert str(again) == str(first)
    assert [call.tool_name for call in again.tool_calls] == ["get_booking"]
    assert (len(MODEL), TOOLS) == (2, ["get 1"])
    other = await agent.run(user_msg="Where is booking 2 ?")
    assert str(other) == "In the end: booking 2 has seat 7F"


async def test_what_is_streamed_of_it_is_the_same(agent):
    told = []
    for _ in range(2):
        handler = agent.run(user_msg="Where is booking 1 ?")
        events = [event async for event in handler.stream_events()]
        await handler
        results = [event.tool_output.content for event in events if hasattr(event, "tool_output")]
        deltas = "".join(event.delta for event in events if hasattr(event, "delta"))
        told.append((results, deltas))
    assert told[0] == told[1]
    assert told[0][0] == ["booking 1 has seat 12A"]
    assert len(MODEL) == 2


async def test_a_write_takes_back_what_was_read(agent):
    await agent.run(user_msg="Where is booking 1 ?")
    await agent.run(user_msg="Where is booking 2 ?")
    moved = await agent.run(user_msg="Please move booking 1")
    assert str(moved) == "In the end: booking 1 has seat 14B"
    assert TOOLS == ["get 1", "get 2", "move 1", "get 1"]
    again = await agent.run(user_msg="Where is booking 1 ?")
    assert str(again) == "In the end: booking 1 has seat 14B"
    await agent.run(user_msg="Where is booking 2 ?")
    assert TOOLS == ["get 1", "get 2", "move 1", "get 1"]
    assert len(MODEL) == 2 + 2 + 4 + 1  # in the end, only the step that tells the new seat


async def test_a_write_is_never_left_out(agent):
    for seat in ("12A", "3C"):
        SEATS["1"] = seat
        await agent.run(user_msg="Please move booking 1")
        assert SEATS["1"] == "14B"
    assert TOOLS.count("move 1") == 2


async def test_what_a_tool_gave_is_a_parent_of_the_call_that_used_it(cache, agent):
    await agent.run(user_msg="Where is booking 1 ?")
    (hop,) = entries(cache, "hop")
    calls = entries(cache, "call")
    assert len(calls) == 2
    assert [hop.id in parents(cache, entry) for entry in calls].count(True) == 1
    assert [entry.node for entry in cache.recall(entry=hop.id).entries] == ["hop", "call"]
    await agent.run(user_msg="Where is booking 1 ?")
    assert (len(MODEL), TOOLS) == (3, ["get 1", "get 1"])


async def test_an_engine_as_a_tool_and_the_document_that_it_read(cache):
    def ask(messages, **kwargs):
        MODEL.append(messages)
        if messages[-1].role == MessageRole.TOOL:
            return ChatMessage(role=MessageRole.ASSISTANT, content=messages[-1].content)
        call = ToolCallBlock(tool_call_id="1", tool_name="shelf", tool_kwargs={"input": "what?"})
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[call])

    llm = CachedLLM(cache, MockFunctionCallingLLM(response_generator=ask, is_chat_model=True))

    class Shelf(CustomQueryEngine):
        def custom_query(self, query_str: str):
            node = NodeWithScore(node=TextNode(text="of a page", id_="page"))
            return Response(f"{query_str} in Oslo", source_nodes=[node])

    shelf = cacheable(ttl=60)(QueryEngineTool.from_defaults(Shelf(), name="shelf"))
    agent = FunctionAgent(llm=llm, tools=[CachedTool(cache, shelf)])
    for _ in range(2):
        assert str(await agent.run(user_msg="Look.")) == "what? in Oslo"
    assert len(MODEL) == 2
    assert [entry.node for entry in cache.recall(source="page").entries] == ["hop", "call"]


async def test_a_tool_that_returns_directly(cache):
    inner = FunctionTool.from_defaults(async_fn=get_booking, return_direct=True)
    agent = function_agent(cache, tools=[CachedTool(cache, inner)])
    for _ in range(2):
        said = await agent.run(user_msg="Where is booking 1 ?")
        assert str(said) == "booking 1 has seat 12A"
        assert said.raw == "booking 1 has seat 12A"
    assert (len(MODEL), TOOLS) == (1, ["get 1"])


async def test_a_tool_that_takes_the_context_gets_it(cache, recwarn):
    @cacheable(ttl=60)
    async def get_booking(ctx: Context, id: str) -> str:
        """A booking."""
        count = await ctx.store.get("count", default=0) + 1
        await ctx.store.set("count", count)
        TOOLS.append(f"get {id}")
        return f"{id}, the {count}st"

    agent = function_agent(cache, tools=[CachedTool(cache, get_booking)])
    for _ in range(2):
        assert str(await agent.run(user_msg="Where is 1 ?")) == "In the end: 1, the 1st"
    assert TOOLS == ["get 1", "get 1"]
    assert len(bypasses(recwarn)) == 1


# --------------------------------------------------------------- in other words, otherwise


async def test_a_run_in_other_words_meets_the_same_tools(cache_by_meaning):
    agent = function_agent(cache_by_meaning)
    await agent.run(user_msg="Where is booking 1 ?")
    said = await agent.run(user_msg="where is booking 1 ?")
    assert str(said) == "In the end: booking 1 has seat 12A"
    assert TOOLS == ["get 1"]
    assert len(MODEL) == 3  # the step with what the tool gave is compared exactly


@pytest.fixture
def cache_by_meaning():
    with stemma.open(":memory:", embedder="hashing", tenant="t", threshold=0.85) as opened:
        yield opened


async def test_what_a_tool_gave_as_text_is_never_compared_by_meaning(cache_by_meaning):
    @cacheable(ttl=0)
    def get_booking(id: str) -> str:
        """A booking."""
        TOOLS.append(f"get {id}")
        return f"The booking of the whole group of friends {SEATS[id]} in the middle of the train"

    cache = cache_by_meaning
    agent = react_agent(cache, tools=[CachedTool(cache, get_booking)])
    for seat in ("waits", "please waits"):
        SEATS["1"] = seat
        assert seat in str(await agent.run(user_msg="Where is booking 1 ?"))
    assert len(MODEL) == 3


# ------------------------------------------------------------------ agents that hand over


def desk(messages, **kwargs):
    """Hands over to the clerk, who looks the booking up; whoever has seen it answers."""
    MODEL.append(messages)
    tools = {tool.metadata.name for tool in kwargs["tools"]}
    seen = [m.content for m in messages if m.role == MessageRole.TOOL]
    name, arguments = "greet", {"name": "Ada"}
    if len(seen) == 1:
        name, arguments = "handoff", {"to_agent": "clerk", "reason": "a booking"}
    elif seen and "get_booking" in tools:
        name, arguments = "get_booking", {"id": "1"}
    if seen and "booking 1" in seen[-1]:
        content = f"{seen[0]} and {seen[-1]}"
        return ChatMessage(role=MessageRole.ASSISTANT, content=content)
    call = ToolCallBlock(tool_call_id=f"c{len(MODEL)}", tool_name=name, tool_kwargs=arguments)
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=[call])


@cacheable(ttl=60)
def greet(name: str) -> str:
    """Greet."""
    TOOLS.append("greet")
    return f"hello {name}"


def office(cache):
    llm = CachedLLM(cache, MockFunctionCallingLLM(response_generator=desk, is_chat_model=True))
    door = FunctionAgent(
        name="door", description="Greets.", llm=llm, tools=[CachedTool(cache, greet)]
    )
    clerk = FunctionAgent(
        name="clerk", description="Looks up.", llm=llm, tools=[CachedTool(cache, get_booking)]
    )
    return AgentWorkflow(agents=[door, clerk], root_agent="door")


async def test_agents_that_hand_over_keep_tenant_and_frame(cache):
    workflow = office(cache)
    with cache.using(tenant="acme"):
        running = workflow.run(user_msg="What of my booking?")
    first = await running
    assert str(first) == "hello Ada and booking 1 has seat 12A"
    assert first.current_agent_name == "clerk"
    assert (len(MODEL), TOOLS) == (4, ["greet", "get 1"])
    found = [*entries(cache, "call", "acme"), *entries(cache, "hop", "acme")]
    assert len(found) == 6
    assert len(entries(cache, "call")) + len(entries(cache, "hop")) == 6
    greeting = min(entries(cache, "hop"), key=lambda entry: entry.made)
    with instrument_tags({"tenant": "acme"}):
        assert str(await workflow.run(user_msg="What of my booking?")) == str(first)
    assert (len(MODEL), TOOLS) == (4, ["greet", "get 1"])
    recalled = cache.recall(entry=greeting.id, tenant="acme").entries
    assert [entry.node for entry in recalled] == ["hop", "call", "call", "call"]


# ---------------------------------------------------------------------- tenants, at once


async def test_two_tenants_at_once_in_one_loop_do_not_mix(cache, agent):
    both = asyncio.Barrier(2)
    at_once = {"acme": "12A", "bolt": "9D"}

    @cacheable(ttl=60, reads=["booking:{id}"])
    async def get_booking(id: str) -> str:
        """A booking."""
        await asyncio.wait_for(both.wait(), 10)
        tenant, _ = cache.context(stemma.frames.current())
        TOOLS.append(tenant)
        return f"booking {id} has seat {at_once[tenant]}"

    (one,) = agent.agents.values() if isinstance(agent, AgentWorkflow) else [agent]
    one.tools = [CachedTool(cache, get_booking)]

    async def run(tenant):
        with cache.using(tenant=tenant):
            handler = agent.run(user_msg="Where is booking 1 ?")
        return str(await handler)

    for _ in range(2):
        said = await asyncio.gather(run("acme"), run("bolt"))
        assert said == [f"In the end: booking 1 has seat {at_once[one]}" for one in at_once]
    assert sorted(TOOLS) == ["acme", "bolt"]
    assert len(MODEL) == 4
    for tenant in at_once:
        (hop,) = entries(cache, "hop", tenant)
        calls = entries(cache, "call", tenant)
        assert len(calls) == 2
        known = {hop.id, *(entry.id for entry in calls)}
        assert set().union(*(parents(cache, entry) for entry in calls)) <= known


async def test_without_a_tenant_agents_run_as_ever(recwarn):
    with stemma.open(":memory:", embedder=None) as cache:
        agent = function_agent(cache)
        for _ in range(2):
            said = await agent.run(user_msg="Where is booking 1 ?")
            assert str(said) == "In the end: booking 1 has seat 12A"
    assert (len(MODEL), TOOLS) == (4, ["get 1", "get 1"])
    assert bypasses(recwarn)


# -------------------------------------------------------------------- errors, cancelled


async def test_a_tool_that_fails_is_called_again(cache, agent):
    @cacheable(ttl=60)
    def get_booking(id: str) -> str:
        """A booking."""
        TOOLS.append(f"get {id}")
        if len(TOOLS) == 1:
            raise RuntimeError("503")
        return f"booking {id} has seat 12A"

    (one,) = agent.agents.values() if isinstance(agent, AgentWorkflow) else [agent]
    one.tools = [CachedTool(cache, get_booking)]
    assert str(await agent.run(user_msg="Where is booking 1 ?")) == "In the end: 503"
    assert entries(cache, "hop") == ()
    said = await agent.run(user_msg="Where is booking 1 ?")
    assert str(said) == "In the end: booking 1 has seat 12A"
    assert TOOLS == ["get 1", "get 1"]


async def test_a_run_that_is_cancelled_in_a_tool_stores_nothing_of_it(cache, agent):
    started = asyncio.Event()

    @cacheable(ttl=60)
    async def get_booking(id: str) -> str:
        """A booking."""
        TOOLS.append(f"get {id}")
        started.set()
        await asyncio.sleep(60 if len(TOOLS) == 1 else 0)
        return f"booking {id} has seat 12A"

    (one,) = agent.agents.values() if isinstance(agent, AgentWorkflow) else [agent]
    one.tools = [CachedTool(cache, get_booking)]
    handler = agent.run(user_msg="Where is booking 1 ?")
    await asyncio.wait_for(started.wait(), 10)
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler
    assert entries(cache, "hop") == ()
    assert len(entries(cache, "call")) == 1
    said = await agent.run(user_msg="Where is booking 1 ?")
    assert str(said) == "In the end: booking 1 has seat 12A"
    assert TOOLS == ["get 1", "get 1"]


async def test_a_run_that_is_cancelled_while_the_model_speaks_stores_nothing(cache):
    started = asyncio.Event()

    class Slow(MockFunctionCallingLLM):
        async def astream_chat(self, messages, **kwargs):
            whole = say(messages)
            half = ChatMessage(role=MessageRole.ASSISTANT, content="In the")

            async def chunks():
                yield ChatResponse(message=half, delta="In the")
                started.set()
                await asyncio.sleep(60 if len(MODEL) == 1 else 0)
                yield ChatResponse(message=whole, delta="")

            return chunks()

    agent = function_agent(cache, llm=CachedLLM(cache, Slow(is_chat_model=True)))
    handler = agent.run(user_msg="Where is booking 1 ?")
    await asyncio.wait_for(started.wait(), 10)
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler
    assert entries(cache, "call") == ()
