"""Whole runs of agents: whose they are, what they are built on, where they are interrupted."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

import stemma
from stemma.tools import ToolCaching
from stemma_langchain import CacheMiddleware, cacheable


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


@pytest.fixture
def calls():
    return []


def asked(text="Look at it."):
    return {"messages": [("user", text)]}


def of(tenant):
    return {"metadata": {"tenant": tenant}}


def last(state):
    return state["messages"][-1].text


RUN = {
    "sync": lambda agent, given, config=None: agent.invoke(given, config),
    "async": lambda agent, given, config=None: asyncio.run(agent.ainvoke(given, config)),
}


# ------------------------------------------------------------------------ whose runs


def test_two_tenants_in_one_graph_at_once(scripted, acting):
    """Each asks while the other is in the middle of its run, and none is given the other's."""
    world = contextvars.ContextVar("world")
    seen, both = [], threading.Barrier(2, timeout=30)

    @tool
    @cacheable(ttl=60, reads=["it"])
    def look(at: str) -> str:
        """Look."""
        both.wait()
        seen.append(world.get())
        return f"{world.get()}'s {at}"

    model = scripted("native", acting({"look": {"at": "it"}}))
    with stemma.open(":memory:", embedder="hashing") as cache:
        agent = create_agent(model, [look], middleware=[CacheMiddleware(cache)])

        def run(tenant):
            world.set(tenant)
            return last(agent.invoke(asked(), of(tenant)))

        with ThreadPoolExecutor(2) as pool:
            for _ in range(2):
                said = list(pool.map(run, ["acme", "globex"]))
                assert said == ["It says: acme's it", "It says: globex's it"]
        assert sorted(seen) == ["acme", "globex"]
        assert len(model.calls) == 4


def test_two_tenants_in_one_loop(scripted, acting):
    world = contextvars.ContextVar("world")
    seen = []

    @tool
    @cacheable(ttl=60, reads=["it"])
    async def look(at: str) -> str:
        """Look."""
        await asyncio.sleep(0)
        seen.append(world.get())
        return f"{world.get()}'s {at}"

    model = scripted("native", acting({"look": {"at": "it"}}))
    with stemma.open(":memory:", embedder="hashing") as cache:
        agent = create_agent(model, [look], middleware=[CacheMiddleware(cache)])

        async def run(tenant):
            world.set(tenant)
            return last(await agent.ainvoke(asked(), of(tenant)))

        async def main():
            return await asyncio.gather(*map(run, ["acme", "globex"] * 3))

        for _ in range(2):
            assert asyncio.run(main()) == ["It says: acme's it", "It says: globex's it"] * 3
        assert sorted(seen) == ["acme", "globex"]  # agents that ask at once make one call


def test_a_user_of_the_tenant(cache, scripted, acting, calls):
    @tool
    @cacheable(ttl=60, scope="user")
    def mine(at: str) -> str:
        """Look at what is mine."""
        calls.append(at)
        return "seen"

    model = scripted("native", acting({"mine": {"at": "it"}}))
    agent = create_agent(model, [mine], middleware=[CacheMiddleware(cache)])
    for user in ("ada", "max", "ada"):
        with cache.using(user=user):
            agent.invoke(asked())
    assert len(calls) == 2


# ---------------------------------------------------------------------- built on what


class Library(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("A stemma is a family tree.", metadata={"source": "s.md"})]


@pytest.mark.parametrize("way", RUN)
def test_replies_are_built_on_what_the_tools_before_them_read(cache, scripted, acting, calls, way):
    @tool
    @cacheable(ttl=60)
    def search(query: str) -> str:
        """Search the library."""
        calls.append(query)
        return Library().invoke(query)[0].page_content

    model = scripted("native", acting({"search": {"query": "q"}}))
    agent = create_agent(model, [search], middleware=[CacheMiddleware(cache)])
    RUN[way](agent, asked())
    RUN[way](agent, asked())
    assert (len(model.calls), calls) == (2, ["q"])
    # The tool's result, and the answer at hop 3; not the step that chose the tool.
    assert cache.recall(source="s.md").by_hop == {1: 1, 3: 1}
    RUN[way](agent, asked())
    assert (len(model.calls), calls) == (3, ["q", "q"])


def test_the_way_of_the_run_counts_where_it_is_asked_for(cache, scripted, acting, calls):
    @tool
    @cacheable(ttl=60)
    def look(at: str) -> str:
        """Look."""
        return f"seen {at}"

    @tool
    @cacheable(ttl=60, path=True)
    def think(about: str) -> str:
        """Think."""
        calls.append(about)
        return f"thought, call {len(calls)}"

    def run(at, text):
        model = scripted("native", acting({"look": {"at": at}}, {"think": {"about": "it"}}))
        agent = create_agent(model, [look, think], middleware=[CacheMiddleware(cache)])
        return last(agent.invoke(asked(text)))

    assert run("it", "Look.") == "It says: seen it, thought, call 1"
    assert run("it", "Look.") == "It says: seen it, thought, call 1"
    assert run("that", "Look there.") == "It says: seen that, thought, call 2"


def test_each_step_is_a_hop(cache, scripted, acting):
    @tool
    @cacheable(ttl=60)
    def look(at: str) -> str:
        """Look."""
        with cache.hop("inner") as frame:
            numbers.append((frame.hop, frame.depth))
        return "seen"

    numbers = []
    model = scripted("native", acting({"look": {"at": "it"}}, {"look": {"at": "that"}}))
    create_agent(model, [look], middleware=[CacheMiddleware(cache)]).invoke(asked())
    # model 1, look 2 with its inner hop, model, look with its own
    assert [depth for _, depth in numbers] == [2, 2]
    assert numbers[0][0] == 3
    assert numbers[1][0] > numbers[0][0]


def test_an_agent_as_a_tool_of_another(cache, scripted, acting, calls):
    @tool
    @cacheable(ttl=60, reads=["fact:{of}"])
    def fact(of: str) -> str:
        """Give a fact."""
        calls.append(of)
        return f"a fact of {of}"

    clerk = scripted("native", acting({"fact": {"of": "it"}}))
    inner = create_agent(clerk, [fact], name="clerk", middleware=[CacheMiddleware(cache)])

    @tool
    @cacheable(ttl=60)
    def ask(question: str) -> str:
        """Ask the clerk."""
        calls.append(question)
        return last(inner.invoke(asked(question)))

    model = scripted("native", acting({"ask": {"question": "What of it?"}}))
    outer = create_agent(model, [ask], name="lead", middleware=[CacheMiddleware(cache)])
    for tenant in ("acme", "acme", "globex"):
        said = last(outer.invoke(asked(), of(tenant)))
        assert said == "It says: It says: a fact of it"
    assert calls == ["What of it?", "it"] * 2
    assert (len(model.calls), len(clerk.calls)) == (4, 4)
    with cache.using(tenant="acme"):
        ToolCaching(cache).changed("fact:it")
    outer.invoke(asked(), of("acme"))
    assert calls == ["What of it?", "it"] * 3  # the fact was behind all of it


def test_an_agent_that_calls_itself_without_an_end(cache, scripted, acting):
    model = scripted("native", acting({"again": {"at": "it"}}))

    @tool
    def again(at: str) -> str:
        """Ask myself."""
        return last(agent.invoke(asked()))

    agent = create_agent(model, [again], middleware=[CacheMiddleware(cache)])
    with cache.trace(nested=5), pytest.raises(stemma.HopLimit, match="more than 5 hops"):
        agent.invoke(asked())


def test_what_came_of_a_reply_that_was_cut_off_is_not_kept(cache, scripted, acting, calls):
    cut = AIMessage("A stem", response_metadata={"finish_reason": "length"})
    clerk = scripted("native", cut)

    @tool
    @cacheable(ttl=60)
    def ask(question: str) -> str:
        """Ask a model."""
        calls.append(question)
        return clerk.invoke(question).text

    model = scripted("native", acting({"ask": {"question": "q"}}))
    agent = create_agent(model, [ask], middleware=[CacheMiddleware(cache)])
    agent.invoke(asked())
    agent.invoke(asked())
    assert calls == ["q", "q"]


# ------------------------------------------------------------------------- interrupts


@pytest.mark.parametrize("way", RUN)
def test_an_answer_of_somebodys_is_asked_for_again(cache, scripted, acting, calls, way):
    @tool
    @cacheable(ttl=60)
    def confirm(what: str) -> str:
        """Ask whether it is meant."""
        answer = interrupt(f"{what}?")
        calls.append(answer)
        return f"they said {answer}"

    model = scripted("native", acting({"confirm": {"what": "really"}}))
    agent = create_agent(
        model, [confirm], checkpointer=InMemorySaver(), middleware=[CacheMiddleware(cache)]
    )
    for thread, answer in (("1", "yes"), ("2", "no"), ("3", "no")):
        config = {"configurable": {"thread_id": thread}}
        state = RUN[way](agent, asked(), config)
        assert state["__interrupt__"][0].value == "really?"
        state = RUN[way](agent, Command(resume=answer), config)
        assert last(state) == f"It says: they said {answer}"
    assert calls == ["yes", "no", "no"]


@pytest.mark.parametrize("way", RUN)
def test_a_human_in_the_loop_is_asked_for_each_write(cache, scripted, acting, calls, way):
    @tool
    @cacheable(writes=["booking:{number}"])
    def move(number: str, seat: str) -> str:
        """Move somebody."""
        calls.append((number, seat))
        return f"moved to {seat}"

    model = scripted("native", acting({"move": {"number": "1", "seat": "14B"}}))
    asking = HumanInTheLoopMiddleware(interrupt_on={"move": True})
    agent = create_agent(
        model, [move], checkpointer=InMemorySaver(), middleware=[asking, CacheMiddleware(cache)]
    )
    edited = {"name": "move", "args": {"number": "1", "seat": "2C"}}
    decisions = [
        ({"type": "approve"}, [("1", "14B")]),
        ({"type": "edit", "edited_action": edited}, [("1", "14B"), ("1", "2C")]),
        ({"type": "reject", "message": "no"}, [("1", "14B"), ("1", "2C")]),
    ]
    for thread, (decision, done) in enumerate(decisions):
        config = {"configurable": {"thread_id": str(thread)}}
        state = RUN[way](agent, asked("Move booking 1."), config)
        assert "__interrupt__" in state
        state = RUN[way](agent, Command(resume={"decisions": [decision]}), config)
        assert calls == done
        assert state["messages"][-1].type == "ai"


# -------------------------------------------------------------------- without an agent


@pytest.mark.parametrize("way", RUN)
def test_in_a_tool_node_outside_of_agents(cache, calls, way):
    @tool
    @cacheable(ttl=60)
    def look(at: str) -> str:
        """Look."""
        calls.append(at)
        return "seen"

    def graph(**wrappers):
        builder = StateGraph(MessagesState)
        builder.add_node("tools", ToolNode([look], **wrappers))
        builder.add_edge(START, "tools")
        return builder.compile()

    def given(number):
        call = {"name": "look", "args": {"at": "it"}, "id": number, "type": "tool_call"}
        return {"messages": [HumanMessage("Look."), AIMessage("", tool_calls=[call])]}

    marked = graph()  # a mark alone does nothing
    for _ in range(2):
        RUN[way](marked, given("c"))
    assert calls == ["it", "it"]
    ours = CacheMiddleware(cache)
    node = graph(wrap_tool_call=ours.wrap_tool_call, awrap_tool_call=ours.awrap_tool_call)
    said = [RUN[way](node, given(number))["messages"][-1] for number in ("c1", "c2")]
    assert [one.tool_call_id for one in said] == ["c1", "c2"]
    assert calls == ["it", "it", "it"]
