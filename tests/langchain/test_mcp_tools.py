"""Tools of a real MCP server in a process of its own: declared like any other."""

import asyncio
import json
import sys
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from langchain.agents import create_agent

import stemma
from stemma.tools import ToolPolicy, ToolRegistry
from stemma_langchain import CachedTool, CacheMiddleware, cacheable

WANTED = "needs the tools of MCP: pip install langchain-mcp-adapters mcp"
sessions = pytest.importorskip("langchain_mcp_adapters.sessions", reason=WANTED)
adapters = pytest.importorskip("langchain_mcp_adapters.tools", reason=WANTED)

SERVER = Path(__file__).with_name("booking_server.py")
READS = ToolPolicy(ttl=300, reads=["booking:{number}"])
WRITES = ToolPolicy(writes=["booking:{number}"])


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


@pytest.fixture
def world(tmp_path):
    file = tmp_path / "bookings.json"
    file.write_text(json.dumps({"seats": {"1": "12A", "2": "7F"}, "calls": []}))
    return file


def calls(world):
    return json.loads(world.read_text())["calls"]


@pytest.fixture
def served(world):
    """The tools of a server that runs as long as it is asked, by name."""

    @asynccontextmanager
    async def opened(**options):
        connection = {
            "transport": "stdio",
            "command": sys.executable,
            "args": [str(SERVER), str(world)],
        }
        async with sessions.create_session(connection) as session:
            await session.initialize()
            tools = await adapters.load_mcp_tools(session, **options)
            yield {tool.name: tool for tool in tools}

    return opened


def registry(**declared):
    made = ToolRegistry()
    for name, policy in declared.items():
        made.declare(name, policy)
    return made


def agent(cache, tools, model, declared):
    middleware = [CacheMiddleware(cache, declared, models=False)]
    return create_agent(model, list(tools.values()), middleware=middleware)


def asked(text):
    return {"messages": [("user", text)]}


def test_reads_are_served_and_writes_take_them_back(cache, scripted, acting, served, world):
    declared = registry(get_booking=READS, move=WRITES)
    looks = scripted("native", acting({"get_booking": {"number": "1"}}))
    moves = scripted("native", acting({"move": {"number": "1", "seat": "14B"}}))

    async def main():
        async with served() as tools:
            looking, moving = (agent(cache, tools, one, declared) for one in (looks, moves))
            said = []
            for who, text in [(looking, "a"), (looking, "b"), (moving, "c"), (looking, "d")]:
                said.append(await who.ainvoke(asked(text)))
            return said

    first, second, _, last = asyncio.run(main())
    assert calls(world) == ["get 1", "move 1", "get 1"]
    results = [state["messages"][2] for state in (first, second, last)]
    assert results[0].content == results[1].content
    assert results[1].artifact == results[0].artifact
    assert json.loads(results[1].text)["seat"] == "12A"
    assert json.loads(results[2].text)["seat"] == "14B"
    assert results[1].response_metadata["stemma"]["tier"] == "exact"
    assert results[1].tool_call_id == second["messages"][1].tool_calls[0]["id"]


def test_hints_permit_nothing(cache, scripted, acting, served, world):
    model = scripted("native", acting({"get_booking": {"number": "1"}}))

    async def main():
        async with served() as tools:
            assert tools["get_booking"].metadata["readOnlyHint"] is True
            assert tools["get_booking"].metadata["idempotentHint"] is True
            for text in ("a", "b"):
                await agent(cache, tools, model, None).ainvoke(asked(text))

    asyncio.run(main())
    assert calls(world) == ["get 1", "get 1"]


def test_a_declaration_against_the_hints_is_told(cache, served):
    async def main():
        async with served() as tools:
            with pytest.warns(RuntimeWarning, match="says of itself that it writes"):
                CachedTool(cache, tools["move"], registry(move=ToolPolicy(ttl=60)))
            with pytest.warns(RuntimeWarning, match="says of itself readOnlyHint=True"):
                CachedTool(cache, tools["get_booking"], registry(get_booking=WRITES))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                CachedTool(cache, tools["get_booking"], registry(get_booking=READS))
                CachedTool(cache, tools["move"], registry(move=WRITES))

    asyncio.run(main())


def test_errors_of_the_server_are_not_kept(cache, served, world):
    async def main():
        async with served() as tools:
            tool = CachedTool(cache, cacheable(READS)(tools["get_booking"]))
            call = {"name": tool.name, "id": "c", "type": "tool_call", "args": {"number": "9"}}
            return [await tool.ainvoke(call) for _ in range(2)]

    assert [one.status for one in asyncio.run(main())] == ["error", "error"]
    assert calls(world) == ["get 9", "get 9"]


def test_what_interceptors_can_read_counts(cache, scripted, acting, served, world):
    """Without interceptors nobody reads the runtime that the adapters ask for."""
    model = scripted("native", acting({"get_booking": {"number": "1"}}))

    async def passing(request, handler):
        assert request.runtime.state["messages"]
        return await handler(request)

    async def main():
        async with served(tool_interceptors=[passing]) as tools:
            looking = agent(cache, tools, model, registry(get_booking=READS))
            for text in ("a", "b"):  # two states
                await looking.ainvoke(asked(text))

    asyncio.run(main())
    assert calls(world) == ["get 1", "get 1"]
