"""LlamaIndex tools behind the cache."""

import asyncio
import copy
import datetime as dt
import decimal
import threading
from pathlib import Path

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import CustomLLM, TextBlock
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import Document, NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool, ToolOutput
from llama_index.core.tools.calling import acall_tool, call_tool
from llama_index.core.tools.types import AsyncBaseTool, BaseTool, ToolMetadata
from llama_index.core.workflow import Context, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from pydantic import BaseModel, Field

import stemma
from stemma import Selector, UsageError
from stemma.tools import ToolPolicy, ToolRegistry
from stemma_llamaindex import CachedQueryEngine, CachedTool, CacheHitEvent, cacheable
from stemma_llamaindex.describing import describe

CALLS: list = []
SEATS: dict = {}


@pytest.fixture(autouse=True)
def _a_world():
    CALLS.clear()
    SEATS.clear()
    SEATS.update({"1": "12A", "2": "7F"})


@pytest.fixture(params=["called", "call", "acall", "acall_tool", "call_tool"])
def do(request):
    """Calls a tool in one of the ways that LlamaIndex does."""

    def called(tool, **arguments):
        if request.param == "acall_tool":
            return asyncio.run(acall_tool(tool, arguments))
        if request.param == "call_tool":
            return call_tool(tool, arguments)
        if request.param == "acall":
            return asyncio.run(tool.acall(**arguments))
        return (tool if request.param == "called" else tool.call)(**arguments)

    return called


@cacheable(ttl=300, reads=["booking:{id}"])
def get_booking(id: str, detail: int = 1) -> dict:
    """A booking."""
    CALLS.append(f"get {id}")
    return {"id": id, "seat": SEATS[id], "detail": detail}


@cacheable(writes=["booking:{id}"])
def move(id: str, seat: str) -> str:
    """Move a booking."""
    CALLS.append(f"move {id}")
    SEATS[id] = seat
    return "done"


def counted(*, give, name="look", **declared):
    """A tool that gives something, and says that it was called."""

    def look(about: str = ""):
        CALLS.append(about)
        return give() if callable(give) else give

    return FunctionTool.from_defaults(cacheable(**(declared or {"ttl": 60}))(look), name=name)


def without_note(output):
    """What a hit gives besides saying that it is one."""
    assert output.raw_input["stemma"]["hit"]
    rest = {name: held for name, held in output.raw_input.items() if name != "stemma"}
    return ToolOutput(
        output.tool_name, blocks=output.blocks, raw_input=rest, raw_output=output.raw_output
    )


def entries(cache, node="hop"):
    return cache.engine.parts.store.find(Selector(node=node), limit=50)


# -------------------------------------------------------------------------- functions


def test_a_hit_is_what_the_miss_was_and_says_so(cache, do):
    tool = CachedTool(cache, get_booking)
    first, again = do(tool, id="1"), do(tool, id="1")
    assert CALLS == ["get 1"]
    assert "stemma" not in first.raw_input
    assert again.raw_input["stemma"]["node"] == "hop"
    assert without_note(again) == first == FunctionTool.from_defaults(get_booking)(id="1")
    assert do(tool, id="2").raw_output["seat"] == "7F"


def test_it_is_what_the_tool_is(cache):
    inner = FunctionTool.from_defaults(get_booking, return_direct=True, description="Of one.")
    tool = CachedTool(cache, inner)
    assert isinstance(tool, FunctionTool)
    assert tool.metadata is inner.metadata
    assert tool.metadata.return_direct
    assert tool.metadata.to_openai_tool() == inner.metadata.to_openai_tool()
    assert (tool.real_fn, tool.requires_context) == (get_booking, False)
    assert describe(tool) == describe(inner)
    tool.partial_params = {"detail": 3}
    assert tool(id="1").raw_output["detail"] == inner(id="1").raw_output["detail"] == 3
    with pytest.raises(AttributeError, match="nothing_of_it"):
        tool.nothing_of_it  # noqa: B018 - it is asked for


@pytest.mark.parametrize("native", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("order", ["function", "tool", "cached"])
def test_the_declaration_may_be_anywhere(cache, do, native, order):
    async def alook(about: str) -> str:
        CALLS.append(about)
        return f"all of {about}"

    def look(about: str) -> str:
        CALLS.append(about)
        return f"all of {about}"

    mark, function = cacheable(ttl=60), alook if native else look
    function = mark(function) if order == "function" else function
    tool = FunctionTool.from_defaults(**({"async_fn": function} if native else {"fn": function}))
    tool = CachedTool(cache, mark(tool) if order == "tool" else tool)
    tool = mark(tool) if order == "cached" else tool
    assert [do(tool, about="x").content for _ in range(2)] == ["all of x"] * 2
    assert CALLS == ["x"]


def test_one_way_to_call_serves_what_another_has_stored(cache):
    tool = CachedTool(cache, get_booking)
    told = [tool("1"), tool.call(id="1", detail=1), asyncio.run(tool.acall("1", detail=1))]
    assert CALLS == ["get 1"]
    assert [one.raw_input["kwargs"] for one in told] == [
        {},
        {"id": "1", "detail": 1},
        {"detail": 1},
    ]
    assert [one.raw_input["args"] for one in told] == [("1",), (), ("1",)]


def test_nothing_is_kept_of_what_declares_nothing(cache, do):
    def look(about: str) -> str:
        """Look."""
        CALLS.append(about)
        return about

    tool = CachedTool(cache, look)
    assert [do(tool, about="x").content for _ in range(2)] == ["x", "x"]
    assert CALLS == ["x", "x"]
    assert entries(cache) == ()


def test_a_write_takes_back_what_was_read_of_it(cache, do):
    read, write = CachedTool(cache, get_booking), CachedTool(cache, move)
    do(read, id="1"), do(read, id="2")
    assert do(write, id="1", seat="14B").content == "done"
    assert do(read, id="1").raw_output["seat"] == "14B"
    assert do(read, id="2").raw_output["seat"] == "7F"
    do(write, id="1", seat="14B")
    assert CALLS == ["get 1", "get 2", "move 1", "get 1", "move 1"]


class Seat(BaseModel):
    """A seat."""

    row: int
    letter: str


def seat(about: str = "") -> Seat:
    """A seat."""
    CALLS.append(about)
    return Seat(row=12, letter="A")


def seats(about: str = "") -> list[Seat] | None:
    """Seats."""
    CALLS.append(about)
    return [Seat(row=12, letter="A")]


@pytest.mark.parametrize(
    "given",
    [
        {"a": [1, 2.5, None], 7: (1, 2), "s": {1, 2}},
        decimal.Decimal("1.50"),
        dt.datetime(2026, 11, 30, tzinfo=dt.UTC),
        [TextBlock(text="one"), TextBlock(text="two")],
        [NodeWithScore(node=TextNode(text="of a node", id_="n"), score=0.5)],
        "",
        None,
    ],
)
def test_what_it_gave_comes_back_as_it_was(cache, do, given):
    tool = CachedTool(cache, counted(give=given))
    first, again = do(tool, about="x"), do(tool, about="x")
    assert CALLS == ["x"]
    assert again.raw_output == first.raw_output == given
    assert type(again.raw_output) is type(given)
    assert (again.blocks, again.content) == (first.blocks, first.content)


@pytest.mark.parametrize("function", [seat, seats])
def test_objects_of_the_class_that_it_is_annotated_with_come_back(cache, do, function):
    tool = CachedTool(cache, cacheable(ttl=60)(function))
    first, again = do(tool, about="x"), do(tool, about="x")
    assert CALLS == ["x"]
    assert again.raw_output == first.raw_output
    assert again.raw_output is not first.raw_output


def test_objects_of_a_class_that_is_named_come_back(cache):
    inner = counted(give=lambda: Seat(row=1, letter="B"))
    CachedTool(cache, inner)(about="x")
    named = CachedTool(cache, inner, output=Seat)
    assert [named(about="x").raw_output for _ in range(2)] == [Seat(row=1, letter="B")] * 2
    assert len(CALLS) == 2


def test_what_would_not_come_back_is_not_stored(cache, do):
    tool = CachedTool(cache, counted(give=object))
    assert all(type(do(tool, about="x").raw_output) is object for _ in range(2))
    assert len(CALLS) == 2


def test_a_hit_is_a_copy_of_its_own(cache):
    tool = CachedTool(cache, get_booking)
    tool(id="1").raw_output["seat"] = "spoilt"
    tool(id="1").raw_output["seat"] = "spoilt"
    assert tool(id="1").raw_output["seat"] == "12A"


@pytest.mark.parametrize("where", ["fixed", "default", "field"])
def test_arguments_that_no_model_gives_count(cache, where):
    def look(about: str, far: int = Field(default=2), limit: int = 5) -> str:
        """Look."""
        CALLS.append((about, limit, far))
        return about

    mark = cacheable(ttl=60)
    if where == "fixed":
        told = [{"partial_params": {"limit": limit}} for limit in (5, 5, 6)]
        for one in told:
            CachedTool(cache, FunctionTool.from_defaults(mark(look), **one))(about="x")
        assert CALLS == [("x", 5, 2), ("x", 6, 2)]
        return
    tool = CachedTool(cache, mark(look))
    name = "limit" if where == "default" else "far"
    tool(about="x"), tool(about="x", **{name: 5 if where == "default" else 2})
    assert len(CALLS) == 1
    tool(about="x", **{name: 9})
    assert len(CALLS) == 2


class Desk:
    """Holds something that no caller gives."""

    def __init__(self, where):
        self.where = where

    @property
    def stemma_identity(self):
        return self.where

    def look(self, about: str) -> str:
        """Look."""
        CALLS.append((self.where, about))
        return f"{about} in {self.where}"


def test_what_a_method_is_bound_to_counts(cache):
    def tool(where, **said):
        inner = cacheable(ttl=60)(FunctionTool.from_defaults(Desk(where).look))
        return CachedTool(cache, inner, **said)

    with pytest.warns(RuntimeWarning, match="bypassed"):
        assert tool("Oslo")(about="x").content == "x in Oslo"
    for where in ("Oslo", "Bergen", "Oslo"):
        assert tool(where, identity=["desk", where])(about="x").content == f"x in {where}"
    assert CALLS == [("Oslo", "x"), ("Oslo", "x"), ("Bergen", "x")]


def test_arguments_by_meaning_and_the_copy_tells_the_present_ones(do):
    @cacheable(ttl=60, semantic=["question"])
    def look_up(question: str) -> str:
        """Look it up."""
        CALLS.append(question)
        return "for 30 days"

    asked = "Until when can I cancel my order with you"
    with stemma.open(":memory:", embedder="hashing", tenant="t") as cache:
        tool = CachedTool(cache, look_up)
        do(tool, question=f"{asked}?")
        again = do(tool, question=f"{asked} please?")
    assert len(CALLS) == 1
    assert again.raw_input["stemma"]["tier"] == "semantic"
    assert again.raw_input["kwargs"] == {"question": f"{asked} please?"}


# -------------------------------------------------------------- errors, state, tenants


def test_errors_pass_through_and_are_not_stored(cache):
    def fail():
        raise RuntimeError("503")

    tool = CachedTool(cache, counted(give=fail))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="503"):
            tool(about="x")
        assert call_tool(tool, {"about": "x"}).is_error
    assert len(CALLS) == 4
    with pytest.raises(TypeError, match="nothing_such"):
        tool(nothing_such=1)


def test_an_error_that_is_told_is_not_stored(cache, do):
    def failed(raw):
        return ToolOutput("look", content="503", raw_input={}, raw_output=raw, is_error=True)

    inner = counted(give="data")
    inner._callback = failed
    inner._async_callback = None
    tool = CachedTool(cache, FunctionTool(inner.fn, inner.metadata, callback=failed))
    assert all(do(tool, about="x").is_error for _ in range(2))
    assert len(CALLS) == 2


def test_a_callbacks_own_content_comes_back(cache, do):
    inner = FunctionTool.from_defaults(get_booking, callback=lambda raw: f"in {raw['seat']}")
    tool = CachedTool(cache, inner)
    assert [do(tool, id="1").content for _ in range(2)] == ["in 12A"] * 2
    assert CALLS == ["get 1"]


def test_keep_is_asked_about_what_the_function_gave(cache, do):
    tool = CachedTool(cache, counted(give=list, ttl=60, keep=lambda found: found != []))
    assert [do(tool, about="x").raw_output for _ in range(2)] == [[], []]
    assert len(CALLS) == 2


class Run(Workflow):
    """Gives a context."""

    @step
    async def run_it(self, ctx: Context, ev: StartEvent) -> StopEvent:
        return StopEvent(result=ctx)


async def test_a_tool_that_takes_a_context_is_called_every_time(cache):
    @cacheable(ttl=60)
    async def state(ctx: Context, name: str) -> str:
        """What is known of the run."""
        CALLS.append(name)
        return f"{name}: {await ctx.store.get(name, default=None)}"

    @cacheable(writes=["booking:{id}"])
    async def move_in(ctx: Context, id: str) -> str:
        """Move."""
        SEATS[id] = await ctx.store.get("seat", default="1C")
        return "done"

    ctx = await Run().run()
    read, look = CachedTool(cache, get_booking), CachedTool(cache, state)
    assert look.requires_context
    assert look.ctx_param_name == "ctx"
    with pytest.warns(RuntimeWarning, match="bypassed"):
        told = [await look.acall(ctx=ctx, name="user") for _ in range(2)]
    assert CALLS == ["user", "user"]
    assert told[0].raw_input == {"args": (), "kwargs": {"name": "user"}}
    await read.acall(id="1")
    await CachedTool(cache, move_in).acall(ctx=ctx, id="1")
    assert (await read.acall(id="1")).raw_output["seat"] == "1C"
    with pytest.raises(ValueError, match="Context is required"):
        await look.acall(name="user")


def test_without_a_tenant_it_is_called_every_time(do):
    with stemma.open(":memory:", embedder=None) as cache:
        tool = CachedTool(cache, get_booking)
        with pytest.warns(RuntimeWarning, match="tenant") as told:
            assert [do(tool, id="1").raw_output["seat"] for _ in range(3)] == ["12A"] * 3
        assert len(CALLS) == 3
        assert len(told) == 1


def test_tenants_do_not_share(cache, do):
    tool = CachedTool(cache, get_booking)
    for tenant in ("a", "b", "a"):
        with cache.using(tenant=tenant):
            do(tool, id="1")
    assert len(CALLS) == 2


def test_a_registry_declares_tools_that_say_nothing(cache, do):
    registry = ToolRegistry(unknown="clear")
    registry.declare("look", ToolPolicy(reads=["page:{about}"]))

    def look(about: str) -> str:
        CALLS.append(about)
        return about

    tool = CachedTool(cache, look, registry=registry)
    do(tool, about="x"), do(tool, about="x")
    assert CALLS == ["x"]
    do(CachedTool(cache, counted(give="", name="other"), registry=ToolRegistry()), about="-")
    do(CachedTool(cache, lambda: None, registry=registry))
    do(tool, about="x")
    assert CALLS == ["x", "-", "x"]


def test_a_tool_whose_result_depends_on_the_way_there(cache, do):
    page = CachedTool(cache, counted(give="a page", name="page", ttl=60, path=True))
    ways = [CachedTool(cache, counted(give="", name=name)) for name in ("up", "down", "up")]
    for way in ways:
        with cache.trace():
            do(way, about=way.metadata.name)
            do(page, about="page")
    assert CALLS == ["up", "page", "down", "page"]
    assert sorted(entry.hop for entry in entries(cache)) == [1, 1, 2, 2]


def test_hits_are_told_as_events(cache):
    seen = []

    class Hits(BaseEventHandler):
        @classmethod
        def class_name(cls):
            return "Hits"

        def handle(self, event, **kwargs):
            if isinstance(event, CacheHitEvent):
                seen.append(event.node)

    hits = Hits()
    get_dispatcher().add_event_handler(hits)
    try:
        tool = CachedTool(cache, get_booking)
        tool(id="1"), tool(id="1"), asyncio.run(tool.acall(id="1"))
    finally:
        get_dispatcher().event_handlers.remove(hits)
    assert seen == ["hop", "hop"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_goes_on_using_the_same_cache(cache, copied):
    tool = CachedTool(cache, get_booking)
    tool(id="1")
    again = copied(tool)
    assert again(id="1").raw_input["stemma"]["hit"]
    assert (again.cache, CALLS) == (cache, ["get 1"])


# ------------------------------------------------------------------- at once, cancelled


async def test_who_asks_at_once_makes_one_call(cache):
    @cacheable(ttl=60)
    async def slow(about: str) -> list:
        """Slow."""
        CALLS.append(about)
        await asyncio.sleep(0.01)
        return [about]

    tool = CachedTool(cache, slow)
    told = await asyncio.gather(*(tool.acall(about="x") for _ in range(5)))
    assert CALLS == ["x"]
    assert len({id(one.raw_output) for one in told}) == 5


async def test_a_cancelled_read_stores_nothing(cache):
    started = asyncio.Event()

    @cacheable(ttl=60)
    async def slow(about: str) -> str:
        """Slow."""
        CALLS.append(about)
        started.set()
        await asyncio.sleep(60 if len(CALLS) == 1 else 0)
        return about

    tool = CachedTool(cache, slow)
    task = asyncio.create_task(tool.acall(about="x"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert entries(cache) == ()
    assert (await tool.acall(about="x")).content == "x"


async def test_a_write_in_a_thread_that_outlives_its_caller_is_taken_back_when_it_ends(cache):
    started, go, written = threading.Event(), threading.Event(), threading.Event()

    @cacheable(writes=["booking:{id}"])
    def slowly(id: str) -> str:
        """Move it."""
        started.set()
        go.wait(10)
        SEATS[id] = "14B"
        written.set()
        return "done"

    read, write = CachedTool(cache, get_booking), CachedTool(cache, slowly)
    task = asyncio.create_task(write.acall(id="1"))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(2):
        assert read(id="1").raw_output["seat"] == "12A"
    go.set()
    await asyncio.to_thread(written.wait, 10)
    assert read(id="1").raw_output["seat"] == "14B"
    assert CALLS == ["get 1"] * 3


# ----------------------------------------------------------------- engines and retrievers


class Shelf(CustomQueryEngine):
    """Answers with how often it was asked."""

    where: str = "Oslo"

    def custom_query(self, query_str: str):
        CALLS.append(query_str)
        node = NodeWithScore(node=TextNode(text="of a page", id_=f"page-{self.where}"), score=1.0)
        return Response(f"{query_str} in {self.where}", source_nodes=[node])


def engine_tool(engine, **declared):
    return cacheable(**(declared or {"ttl": 60}))(QueryEngineTool.from_defaults(engine))


def test_an_engines_answer_comes_back_whole(cache, do):
    tool = CachedTool(cache, engine_tool(Shelf()))
    assert isinstance(tool, QueryEngineTool)
    assert tool.query_engine is tool.inner.query_engine
    first, again = do(tool, input="what?"), do(tool, input="what?")
    assert CALLS == ["what?"]
    assert without_note(again) == first
    assert again.raw_output.source_nodes == first.raw_output.source_nodes
    assert again.raw_input["input"] == "what?"


def test_two_engines_of_one_name_do_not_mix(cache, do):
    told = [
        do(CachedTool(cache, engine_tool(Shelf(where=where))), input="what?").content
        for where in ("Oslo", "Bergen", "Oslo")
    ]
    assert told == ["what? in Oslo", "what? in Bergen", "what? in Oslo"]
    assert len(CALLS) == 2


def test_a_document_that_changes_takes_an_engines_answer_back(cache, do):
    tool = CachedTool(cache, engine_tool(Shelf()))
    do(tool, input="what?")
    assert [entry.node for entry in cache.recall(source="page-Oslo").entries] == ["hop"]
    do(tool, input="what?")
    assert len(CALLS) == 2


def test_answers_that_say_nothing_are_not_stored(cache, do):
    class Nothing(Shelf):
        def custom_query(self, query_str: str):
            CALLS.append(query_str)
            return Response("Empty Response")

    tool = CachedTool(cache, engine_tool(Nothing()))
    do(tool, input="what?"), do(tool, input="what?")
    assert len(CALLS) == 2


class Speaker(CustomLLM):
    """Says how it has finished."""

    finish: str = "stop"

    @property
    def metadata(self):
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        CALLS.append("model")
        return CompletionResponse(text="a book", raw={"choices": [{"finish_reason": self.finish}]})

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError


def index():
    documents = [Document(id_="books.md", text="A codex is a book.")]
    return VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(8))


@pytest.mark.parametrize(("finish", "stored"), [("stop", 1), ("content_filter", 0), ("length", 0)])
def test_an_answer_that_was_cut_off_is_not_stored(cache, do, finish, stored):
    engine = index().as_query_engine(llm=Speaker(finish=finish))
    tool = CachedTool(cache, engine_tool(engine))
    do(tool, input="what?"), do(tool, input="what?")
    assert len(entries(cache)) == stored
    assert len(CALLS) == 2 - stored


def test_what_a_retriever_in_a_tool_found_is_its_lineage(cache, do):
    retriever = index().as_retriever()
    tool = cacheable(ttl=60)(RetrieverTool.from_defaults(retriever, name="find"))
    tool = CachedTool(cache, tool)
    first, again = do(tool, input="codex"), do(tool, input="codex")
    assert without_note(again) == first
    assert [one.node.text for one in again.raw_output] == ["A codex is a book."]
    assert [entry.node for entry in cache.recall(source="books.md").entries] == ["hop"]
    assert "stemma" not in do(tool, input="codex").raw_input


def test_a_cached_engine_in_a_cached_tool(cache, do):
    tool = CachedTool(cache, engine_tool(CachedQueryEngine(cache, Shelf())))
    do(tool, input="what?"), do(tool, input="what?")
    assert CALLS == ["what?"]
    assert [entry.node for entry in cache.recall(source="page-Oslo").entries] == ["answer", "hop"]


class Named(BaseModel, AsyncBaseTool):
    """A tool with fields."""

    where: str

    @property
    def metadata(self):
        return ToolMetadata(name="named", description="Named.")

    def call(self, input):
        CALLS.append(input)
        return ToolOutput("named", content=f"{input} in {self.where}", raw_input={"input": input})

    async def acall(self, input):
        return self.call(input)


def test_a_tool_that_is_a_model_with_fields(cache, do):
    for where in ("Oslo", "Bergen", "Oslo"):
        tool = CachedTool(cache, cacheable(ttl=60)(Named(where=where)))
        assert (tool.where, do(tool, input="x").content) == (where, f"x in {where}")
    assert isinstance(tool, Named)
    assert CALLS == ["x", "x"]


class Plain(BaseTool):
    """A tool that cannot be awaited."""

    def __init__(self, connection=None):
        self.connection = connection

    @property
    def metadata(self):
        return ToolMetadata(name="plain", description="Plain.")

    def __call__(self, input):
        CALLS.append(input)
        return ToolOutput("plain", content=f"of {input}", raw_input={"input": input})


def test_a_tool_that_cannot_be_awaited(cache):
    tool = CachedTool(cache, cacheable(ttl=60)(Plain()))
    told = [
        tool("x"),
        call_tool(tool, {"input": "x"}),
        asyncio.run(acall_tool(tool, {"input": "x"})),
    ]
    assert [one.content for one in told] == ["of x"] * 3
    assert CALLS == ["x"]


def test_a_tool_that_holds_a_connection_has_no_key_unless_it_is_said_what_it_is(cache):
    with Path(__file__).open(encoding="utf-8") as connection:
        inner = cacheable(ttl=60)(Plain(connection))
        tool = CachedTool(cache, inner)
        with pytest.warns(RuntimeWarning, match="bypassed"):
            tool("x"), tool("x")
        named = CachedTool(cache, inner, identity="the file")
        named("x"), named("x")
    assert len(CALLS) == 3


# --------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda cache: CachedTool("cache", get_booking), "stemma.open"),
        (lambda cache: CachedTool(cache, "get_booking"), "or a function"),
        (lambda cache: CachedTool(cache, CachedTool(cache, move)), "not cached yet"),
        (lambda cache: CachedTool(cache, move, registry={}), "ToolRegistry"),
        (
            lambda cache: CachedTool(cache, FunctionTool(move, ToolMetadata("Nameless."))),
            "name it",
        ),
    ],
)
def test_wrong_arguments_are_errors(cache, wrong, words):
    with pytest.raises(UsageError, match=words):
        wrong(cache)


def test_a_declaration_that_is_not_of_the_tool_is_refused_at_the_start(cache):
    registry = ToolRegistry()
    registry.declare("move", ToolPolicy(writes=["booking:{booking_id}"]))
    with pytest.raises(UsageError, match="no argument booking_id; it has id, seat"):
        CachedTool(cache, move, registry=registry)
