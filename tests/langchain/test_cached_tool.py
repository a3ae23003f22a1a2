"""One tool behind the cache, however it is made and whoever calls it."""

import asyncio
import socket
import threading
import warnings
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, Tool, ToolException
from langchain_core.tools import tool as lc_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel

import stemma
from stemma import UsageError
from stemma.tools import ToolPolicy, ToolRegistry
from stemma_langchain import CachedTool, cacheable


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


@pytest.fixture
def calls():
    return []


def call(name="look", number="c1", **args):
    return {"name": name, "args": args, "id": number, "type": "tool_call"}


def made(kind, calls, mark):
    """A tool `look(at, near=0)` of each kind there is, marked as that kind allows."""

    def look(at: str, near: int = 0) -> str:
        """Look at something."""
        calls.append((at, near))
        return f"seen {at}"

    async def alook(at: str, near: int = 0) -> str:
        """Look at something."""
        return look(at, near)

    class Look(BaseTool):
        name: str = "look"
        description: str = "Look at something."

        def _run(self, at: str, near: int = 0) -> str:
            return look(at, near)

    schema = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
    kinds = {
        "over": lambda: mark(lc_tool(look)),
        "under": lambda: lc_tool(mark(look)),
        "async": lambda: lc_tool("look")(mark(alook)),
        "structured": lambda: mark(StructuredTool.from_function(look)),
        "schema": lambda: mark(
            StructuredTool(name="look", description="Look.", args_schema=schema, func=look)
        ),
        "subclass": lambda: mark(Look()),
        "single": lambda: mark(Tool("look", look, "Look at something.")),
    }
    return kinds[kind]()


KINDS = ["over", "under", "async", "structured", "schema", "subclass", "single"]


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_second_equal_call_does_not_reach_the_tool(cache, calls, kind, way):
    inner = made(kind, calls, cacheable(ttl=60))
    tool = CachedTool(cache, inner)
    if (kind, way) == ("async", "sync"):
        with pytest.raises(NotImplementedError):
            tool.invoke(call(at="it"))
        return
    argument = "__arg1" if kind == "single" else "at"

    def ask(number, at):
        asked = call("look", number, **{argument: at})
        return tool.invoke(asked) if way == "sync" else asyncio.run(tool.ainvoke(asked))

    first, second, other = ask("c1", "it"), ask("c2", "it"), ask("c3", "that")
    assert calls == [("it", 0), ("that", 0)]
    plain = inner.invoke if way == "sync" else lambda asked: asyncio.run(inner.ainvoke(asked))
    for found, number in ((first, "c1"), (second, "c2")):
        bare = found.model_copy(update={"response_metadata": {}})
        assert bare == plain(call("look", number, **{argument: "it"}))
    assert "stemma" not in first.response_metadata
    assert second.response_metadata["stemma"]["tier"] == "exact"
    assert other.content == "seen that"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_declared_nothing_kept(cache, calls, kind):
    tool = CachedTool(cache, made(kind, calls, lambda tool: tool))
    argument = "__arg1" if kind == "single" else "at"
    for _ in range(2):
        assert asyncio.run(tool.ainvoke(call("look", **{argument: "it"}))).content == "seen it"
    assert len(calls) == 2


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "single"])
def test_to_a_model_it_is_the_same_tool(cache, calls, kind):
    inner = made(kind, calls, cacheable(ttl=60))
    tool = CachedTool(cache, inner)
    assert convert_to_openai_tool(tool) == convert_to_openai_tool(inner)
    assert (tool.name, tool.description, tool.args) == (inner.name, inner.description, inner.args)


def test_called_itself_it_gives_the_value_and_not_a_message(cache, calls):
    @lc_tool
    @cacheable(ttl=60)
    def look(at: str) -> dict:
        """Look."""
        calls.append(at)
        return {"at": at, "seen": [1]}

    tool = CachedTool(cache, look)
    first = tool.invoke({"at": "it"})
    first["seen"].append("mine")
    assert tool.invoke({"at": "it"}) == {"at": "it", "seen": [1]}
    assert tool.run({"at": "it"}) == {"at": "it", "seen": [1]}
    assert tool.batch([{"at": "it"}] * 2) == [{"at": "it", "seen": [1]}] * 2
    assert calls == ["it"]
    message = tool.invoke(call(at="it"))  # a message is another thing than the value
    assert (message.content, calls) == ('{"at": "it", "seen": [1]}', ["it", "it"])


def test_arguments_count_as_the_tool_reads_them(cache, calls):
    tool = CachedTool(cache, made("over", calls, cacheable(ttl=60)))
    tool.invoke({"at": "it"})
    tool.invoke({"at": "it", "near": 0})
    tool.invoke({"at": "it", "near": "0"})
    assert calls == [("it", 0)]
    tool.invoke({"at": "it", "near": 1})
    assert calls == [("it", 0), ("it", 1)]


def test_what_the_tool_itself_refuses_is_refused_by_it(cache, calls):
    inner = made("over", calls, cacheable(ttl=60))
    for tool in (inner, CachedTool(cache, inner)):
        with pytest.raises(ValueError, match="validation error"):
            tool.invoke({"near": 1})
    assert calls == []


def test_arguments_that_only_the_tool_itself_can_read(cache, calls):
    """A subclass may accept what its schema does not."""

    class Lenient(BaseTool):
        name: str = "move"
        description: str = "Move."

        def _run(self, number: str) -> str:
            return f"moved {number}"

        def _parse_input(self, tool_input, tool_call_id):
            raise ValueError("I read it myself")

        def _to_args_and_kwargs(self, tool_input, tool_call_id):
            return (), {"number": tool_input["the number"]}

    @lc_tool
    @cacheable(ttl=60, reads=["booking:{number}"])
    def get(number: str) -> str:
        """Get."""
        calls.append(number)
        return "12A"

    read = CachedTool(cache, get)
    write = CachedTool(cache, cacheable(writes=["booking:{number}"])(Lenient()))
    for _ in range(2):
        read.invoke({"number": "1"})
    assert write.invoke({"the number": "1"}) == "moved 1"
    read.invoke({"number": "1"})
    assert calls == ["1", "1"]  # it was taken back
    kept = CachedTool(cache, cacheable(ttl=60)(Lenient()))
    said = [kept.invoke({"the number": number}) for number in ("1", "2", "1")]
    assert said == ["moved 1", "moved 2", "moved 1"]


def test_a_tool_without_arguments(cache, calls):
    def now():
        calls.append("now")
        return "noon"

    for schema in ({"type": "object"}, {"type": "object", "properties": {}}):
        made = StructuredTool(name="now", description="Now.", args_schema=schema, func=now)
        tool = CachedTool(cache, cacheable(ttl=60, version=str(schema))(made))
        assert [tool.invoke(call("now")).content for _ in range(2)] == ["noon", "noon"]
    assert len(calls) == 2


def test_a_hit_is_seen_as_a_run_of_the_tool(cache, calls):
    seen = []

    class Seen(BaseCallbackHandler):
        def on_tool_start(self, serialized, input_str, **kwargs):
            seen.append((serialized["name"], input_str))

        def on_tool_end(self, output, **kwargs):
            seen.append(output.content)

    tool = CachedTool(cache, made("over", calls, cacheable(ttl=60)))
    for _ in range(2):
        tool.invoke(call(at="it"), {"callbacks": [Seen()]})
    assert seen == [("look", "{'at': 'it'}"), "seen it"] * 2
    assert len(calls) == 1


def test_artifacts_are_kept_and_their_documents_say_that_they_are(cache, calls):
    @lc_tool(response_format="content_and_artifact")
    @cacheable(ttl=60)
    def find(query: str) -> tuple[str, list[Document]]:
        """Find."""
        calls.append(query)
        return "found", [Document("a page", metadata={"source": "a"})]

    tool = CachedTool(cache, find)
    tool.invoke(call("find", query="q"))
    (document,) = tool.invoke(call("find", query="q")).artifact
    assert (document.page_content, calls) == ("a page", ["q"])
    assert document.metadata["stemma"]["hit"] is True


class Parcel(BaseModel):
    weight: int


def test_artifacts_of_your_own_classes_are_kept_where_they_are_named(cache, calls):
    @lc_tool(response_format="content_and_artifact")
    @cacheable(ttl=60)
    def weigh(id: str) -> tuple[str, Parcel]:
        """Weigh."""
        calls.append(id)
        return "weighed", Parcel(weight=3)

    for _ in range(2):
        assert CachedTool(cache, weigh).invoke(call("weigh", id="1")).artifact.weight == 3
    assert len(calls) == 2
    named = CachedTool(cache, weigh, allowed=[Parcel])
    assert [named.invoke(call("weigh", id="1")).artifact for _ in range(2)] == [
        Parcel(weight=3)
    ] * 2
    assert len(calls) == 3


@pytest.mark.parametrize("handled", [True, False], ids=["handled", "raised"])
def test_errors_are_not_kept(cache, calls, handled):
    @lc_tool
    @cacheable(ttl=60)
    def flaky(id: str) -> str:
        """Fail once."""
        calls.append(id)
        if len(calls) == 1:
            raise ToolException("not now")
        return "there"

    flaky.handle_tool_error = handled
    tool = CachedTool(cache, flaky)
    if handled:
        assert tool.invoke(call("flaky", id="1")).status == "error"
    else:
        with pytest.raises(ToolException, match="not now"):
            tool.invoke(call("flaky", id="1"))
    found = [tool.invoke(call("flaky", id="1")) for _ in range(2)]
    assert [one.content for one in found] == ["there"] * 2
    assert len(calls) == 2


def test_what_controls_the_graph_is_not_kept(cache, calls):
    @lc_tool
    @cacheable(ttl=60)
    def go(to: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Go."""
        calls.append(to)
        return Command(update={"messages": [ToolMessage("gone", tool_call_id=tool_call_id)]})

    tool = CachedTool(cache, go)
    for _ in range(2):
        assert isinstance(tool.invoke(call("go", to="x")), Command)
    assert calls == ["x", "x"]


def test_what_answers_other_calls_is_not_kept(cache, calls):
    @lc_tool
    @cacheable(ttl=60)
    def several(at: str) -> list:
        """Answer more than was asked."""
        calls.append(at)
        return [ToolMessage(at, tool_call_id=number) for number in ("c1", "c2")]

    tool = CachedTool(cache, several)
    for _ in range(2):
        assert [one.tool_call_id for one in tool.invoke(call("several", at="it"))] == ["c1", "c2"]
    assert calls == ["it", "it"]


def test_a_tool_that_speaks_for_itself_answers_the_call_that_was_made(cache, calls):
    @lc_tool
    @cacheable(ttl=60)
    def says(at: str, runtime: ToolRuntime) -> ToolMessage:
        """Say."""
        calls.append(at)
        return ToolMessage(f"seen {at}", tool_call_id=runtime.tool_call_id, name="says")

    node = graph_of(CachedTool(cache, says))
    found = [run(node, call("says", number, at="it")) for number in ("c1", "c2")]
    assert [one.tool_call_id for one in found] == ["c1", "c2"]
    assert found[0].id != found[1].id


# ---------------------------------------------------------------- what is injected


class State(MessagesState, total=False):
    user: str


def graph_of(*tools, state=State, **compiled):
    graph = StateGraph(state, **({"context_schema": dict} if "context" in compiled else {}))
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(START, "tools")
    return graph.compile(store=compiled.get("store"))


def run(graph, asked, config=None, context=None, **state):
    messages = [HumanMessage("look"), AIMessage("", tool_calls=[asked])]
    given = {"messages": messages, **state}
    named = {} if context is None else {"context": context}
    return graph.invoke(given, config, **named)["messages"][-1]


def test_injected_state_counts_as_an_argument(cache, calls):
    @lc_tool
    @cacheable(ttl=60, reads=["user:{user}:{at}"])
    def mine(at: str, user: Annotated[str, InjectedState("user")]) -> str:
        """Look at what is mine."""
        calls.append((at, user))
        return f"{user}'s {at}"

    node = graph_of(CachedTool(cache, mine))
    said = [run(node, call("mine", at="it"), user=user).content for user in ("ada", "max", "ada")]
    assert said == ["ada's it", "max's it", "ada's it"]
    assert calls == [("it", "ada"), ("it", "max")]


def test_state_injected_into_a_subclass(cache, calls):
    class Mine(BaseTool):
        name: str = "mine"
        description: str = "Look at what is mine."

        def _run(self, at: str, user: Annotated[str, InjectedState("user")]) -> str:
            calls.append((at, user))
            return f"{user}'s {at}"

    node = graph_of(CachedTool(cache, cacheable(ttl=60)(Mine())))
    said = [run(node, call("mine", at="it"), user=user).content for user in ("ada", "max", "ada")]
    assert said == ["ada's it", "max's it", "ada's it"]
    assert calls == [("it", "ada"), ("it", "max")]


def test_callbacks_are_not_told_what_was_injected(cache, calls):
    seen = []

    class Seen(BaseCallbackHandler):
        def on_tool_start(self, serialized, input_str, **kwargs):
            seen.append(input_str)

    @cacheable(ttl=60)
    def look(at: str, runtime: ToolRuntime) -> str:
        calls.append(at)
        return "seen"

    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    made = StructuredTool(name="look", description="Look.", args_schema=schema, func=look)
    node = graph_of(CachedTool(cache, made))
    for _ in range(2):
        run(node, call(at="it"), {"callbacks": [Seen()]})
    assert (seen, calls) == (["{'at': 'it'}"] * 2, ["it"])


def test_a_runtime_counts_as_all_that_can_be_read_of_it(cache, calls):
    @lc_tool
    @cacheable(ttl=60, reads=["user:{runtime.context.user}"])
    def mine(at: str, runtime: ToolRuntime[dict, State]) -> str:
        """Look at what is mine."""
        calls.append(runtime.context["user"])
        return f"{runtime.context['user']}'s {at}"

    node = graph_of(CachedTool(cache, mine), context=True)
    asked = call("mine", at="it")
    users = ["ada", "max", "ada"]
    said = [run(node, asked, context={"user": user}).content for user in users]
    assert said == ["ada's it", "max's it", "ada's it"]
    assert calls == ["ada", "max"]
    run(node, asked, {"configurable": {"language": "de", "thread_id": "1"}}, {"user": "ada"})
    run(node, asked, {"configurable": {"language": "de", "thread_id": "2"}}, {"user": "ada"})
    assert calls == ["ada", "max", "ada"]
    run(node, asked, context={"user": "ada"}, user="someone else's state")
    assert calls == ["ada", "max", "ada", "ada"]


@pytest.mark.parametrize("injected", [Annotated[object, InjectedStore()], ToolRuntime])
def test_a_store_has_no_key(cache, calls, injected):
    def remember(at: str, store) -> str:
        """Remember."""
        calls.append(at)
        return "remembered"

    def remembers(at: str, runtime) -> str:
        """Remember."""
        return remember(at, runtime.store)

    function = remembers if injected is ToolRuntime else remember
    function.__annotations__["runtime" if injected is ToolRuntime else "store"] = injected
    tool = cacheable(ttl=60)(lc_tool("remember")(function))
    node = graph_of(CachedTool(cache, tool), store=InMemoryStore())
    with pytest.warns(RuntimeWarning, match="the cache is bypassed"):
        run(node, call("remember", at="it"))
    run(node, call("remember", at="it"))
    assert calls == ["it", "it"]


def test_the_configurable_values_count_where_a_tool_takes_the_config(cache, calls):
    @lc_tool
    @cacheable(ttl=60)
    def mine(at: str, config: RunnableConfig) -> str:
        """Look at what is mine."""
        calls.append(config["configurable"]["user"])
        return "seen"

    tool = CachedTool(cache, mine)
    for user, thread in (("ada", "1"), ("max", "2"), ("ada", "3")):
        tool.invoke({"at": "it"}, {"configurable": {"user": user, "thread_id": thread}})
    assert calls == ["ada", "max"]


# ------------------------------------------------------------------------ whose


def test_tenants_are_apart_and_without_one_there_is_a_warning(calls):
    with stemma.open(":memory:", embedder=None) as cache:
        node = graph_of(CachedTool(cache, made("over", calls, cacheable(ttl=60))))
        for tenant in ("acme", "globex", "acme"):
            run(node, call(at="it"), {"metadata": {"tenant": tenant}})
        assert len(calls) == 2
        with pytest.warns(RuntimeWarning, match="the cache is bypassed"):
            run(node, call(at="it"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run(node, call(at="it"))
        assert len(calls) == 4


def test_a_registry_speaks_for_tools_that_cannot_be_edited(cache, calls):
    registry = ToolRegistry()
    registry.declare("look", ToolPolicy(ttl=60))
    tool = CachedTool(cache, made("over", calls, lambda tool: tool), registry)
    for _ in range(2):
        tool.invoke({"at": "it"})
    assert len(calls) == 1
    registry.declare("look", ToolPolicy(reads=["page:{url}"]), replace=True)
    with pytest.raises(UsageError, match="no argument url"):
        CachedTool(cache, made("over", calls, lambda tool: tool), registry)


def test_wrong_arguments(cache, calls):
    tool = made("over", calls, cacheable(ttl=60))
    for wrong in (
        lambda: CachedTool(None, tool),
        lambda: CachedTool(cache, CachedTool(cache, tool)),
        lambda: CachedTool(cache, lambda at: at),
        lambda: CachedTool(cache, tool, "look"),
        lambda: CachedTool(cache, tool, allowed=["Parcel"]),
    ):
        with pytest.raises(UsageError):
            wrong()


class _Desk:
    def __init__(self, place: str) -> None:
        self.place = place

    def look(self, at: str) -> str:
        """Look at something."""
        return f"{at} in {self.place}"

    async def alook(self, at: str) -> str:
        """Look at something."""
        return self.look(at)


class _Look(BaseTool):
    name: str = "look"
    description: str = "Look at something."
    place: str

    def _run(self, at: str) -> str:
        return f"{at} in {self.place}"


@pytest.mark.parametrize(
    "tool_at",
    [
        lambda place: StructuredTool.from_function(_Desk(place).look, name="look"),
        lambda place: StructuredTool.from_function(
            coroutine=_Desk(place).alook, name="look", description="Look at something."
        ),
        lambda place: _Look(place=place),
    ],
    ids=["method", "coroutine", "subclass"],
)
async def test_what_a_tool_is_bound_to_counts_as_an_argument(cache, tool_at):
    oslo, rome, again = (
        CachedTool(cache, cacheable(ttl=60)(tool_at(place))) for place in ("Oslo", "Rome", "Oslo")
    )
    assert await oslo.ainvoke({"at": "it"}) == "it in Oslo"
    assert await rome.ainvoke({"at": "it"}) == "it in Rome"
    found = await again.ainvoke(call(at="it"))
    assert found.content == "it in Oslo"
    assert (await again.ainvoke(call(at="it"))).response_metadata["stemma"]["hit"]


def test_a_tool_that_holds_what_has_no_key_goes_past_the_cache(cache, calls):
    class Held(_Look):
        place: str = "Oslo"
        connection: Any = None

        def _run(self, at: str) -> str:
            calls.append(at)
            return at

    tool = CachedTool(cache, cacheable(ttl=60)(Held(connection=socket.socket())))
    with pytest.warns(RuntimeWarning, match="the cache is bypassed"):
        assert [tool.invoke({"at": "it"}) for _ in range(2)] == ["it", "it"]
    assert calls == ["it", "it"]
    tool.inner.connection.close()


def test_a_tool_is_called_by_the_name_that_it_has_now(cache, calls):
    """One that is renamed to a tool that writes is called every time."""
    registry = ToolRegistry()
    registry.declare("look", ToolPolicy(ttl=60))
    registry.declare("move", ToolPolicy(writes=["seat"]))
    inner = made("over", calls, lambda tool: tool)
    tool = CachedTool(cache, inner, registry)
    for _ in range(2):
        tool.invoke({"at": "it"})
    assert len(calls) == 1
    inner.name = "move"
    for _ in range(2):
        tool.invoke({"at": "it"})
    assert len(calls) == 3


@pytest.mark.parametrize("kind", ["structured", "single", "subclass"])
async def test_what_a_thread_writes_after_it_was_cancelled_is_taken_back(cache, kind):
    seats, begun, go_on = ["12A"], threading.Event(), threading.Event()

    def move(at: str) -> str:
        """Move."""
        begun.set()
        assert go_on.wait(30)
        seats[0] = at
        return "done"

    class Move(BaseTool):
        name: str = "move"
        description: str = "Move."

        def _run(self, at: str) -> str:
            return move(at)

    kinds = {
        "structured": lambda: lc_tool(move),
        "single": lambda: Tool("move", move, "Move."),
        "subclass": Move,
    }
    writes = CachedTool(cache, cacheable(writes=["seat"])(kinds[kind]()))
    reads = CachedTool(cache, lc_tool("seat", description="A seat.")(_seat(seats)))
    assert await reads.ainvoke({}) == "12A"
    argument = "__arg1" if kind == "single" else "at"
    moving = asyncio.create_task(writes.ainvoke(call("move", **{argument: "14B"})))
    await asyncio.to_thread(begun.wait, 30)
    moving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await moving
    assert await reads.ainvoke({}) == "12A"  # not stored: it is being written
    go_on.set()
    for _ in range(1_000):
        if seats == ["14B"]:
            break
        await asyncio.sleep(0.01)
    assert await reads.ainvoke({}) == "14B"


def _seat(seats):
    @cacheable(ttl=60, reads=["seat"])
    def seat() -> str:
        return seats[0]

    return seat
