"""LangChain's agents behind the cache: what the second run does not ask again."""

import asyncio
import warnings

import httpx
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelRetryMiddleware,
    ToolRetryMiddleware,
    dynamic_prompt,
    wrap_model_call,
)
from langchain.agents.structured_output import (
    ProviderStrategy,
    StructuredOutputValidationError,
    ToolStrategy,
)
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

import stemma
from stemma import UsageError
from stemma.stores.memory import MemoryStore
from stemma.tools import ToolPolicy, ToolRegistry
from stemma_langchain import CachedChatModel, CachedTool, CacheMiddleware, cacheable


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


@pytest.fixture
def calls():
    return []


@pytest.fixture
def get_booking(calls):
    @tool
    @cacheable(ttl=300, reads=["booking:{number}"])
    def get_booking(number: str) -> dict:
        """Get a booking."""
        calls.append(f"get {number}")
        return {"number": number, "seat": "12A"}

    return get_booking


@pytest.fixture
def move(calls):
    @tool
    @cacheable(writes=["booking:{number}"])
    def move(number: str, seat: str) -> str:
        """Move somebody to another seat."""
        calls.append(f"move {number}")
        return f"moved to {seat}"

    return move


@pytest.fixture
def send(calls):
    @tool
    def send(to: str) -> str:
        """Send a mail."""
        calls.append(f"send {to}")
        return "sent"

    return send


LOOK = {"get_booking": {"number": "1"}}


@pytest.fixture
def looking(cache, scripted, acting, get_booking, move):
    """An agent that does what is said, round by round, by default one look; and its model."""

    def make(kind="native", *rounds, behind=cache):
        model = scripted(kind, acting(*(rounds or [LOOK])))
        middleware = [CacheMiddleware(behind)]
        return model, create_agent(model, [get_booking, move], middleware=middleware)

    return make


def asked(text="Which seat has booking 1?"):
    return {"messages": [("user", text)]}


def said(state):
    """What was said, and by whom: of calls which ones, of results those of which."""
    return [
        (m.type.removesuffix("MessageChunk").lower(), m.text, getattr(m, "tool_call_id", None))
        for m in state["messages"]
    ]


def notes(state):
    return [m.response_metadata.get("stemma", {}).get("tier") for m in state["messages"]]


def streamed(agent, given):
    """The state at the end of a stream, from its messages."""
    parts = [part for part, _ in agent.stream(given, stream_mode="messages")]
    return {"messages": joined(parts)}


async def astreamed(agent, given):
    parts = [part async for part, _ in agent.astream(given, stream_mode="messages")]
    return {"messages": joined(parts)}


def joined(parts):
    found = []
    for part in parts:
        if found and isinstance(part, AIMessageChunk) and found[-1].id == part.id:
            found[-1] += part
        else:
            found.append(part)
    return found


WAYS = {
    "invoke": lambda agent, given: agent.invoke(given),
    "ainvoke": lambda agent, given: asyncio.run(agent.ainvoke(given)),
    "stream": streamed,
    "astream": lambda agent, given: asyncio.run(astreamed(agent, given)),
    "batch": lambda agent, given: agent.batch([given])[0],
}


@pytest.mark.parametrize("first", ["invoke", "astream"])
@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("kind", ["whole", "native"])
def test_the_second_run_reaches_neither_model_nor_tool(looking, calls, first, second, kind):
    model, agent = looking(kind)
    before = WAYS[first](agent, asked())
    assert (len(model.calls), calls) == (2, ["get 1"])
    after = WAYS[second](agent, asked())
    assert (len(model.calls), calls) == (2, ["get 1"])
    assert said(after)[-3:] == said(before)[-3:]
    assert notes(before)[-3:] == [None] * 3
    assert notes(after)[-3:] == ["exact"] * 3
    ids = [m.id for state in (before, after) for m in state["messages"]]
    assert len(set(ids)) == len(ids)


def test_a_hit_streams_word_by_word(cache, scripted, acting, get_booking):
    model = scripted("streaming", acting(LOOK))
    agent = create_agent(model, [get_booking], middleware=[CacheMiddleware(cache)])
    agent.invoke(asked())
    parts = [part for part, _ in agent.stream(asked(), stream_mode="messages")]
    words = [part.text for part in parts if isinstance(part, AIMessageChunk) and part.text]
    assert len(words) > 3
    assert "".join(words).startswith("It says: ")
    assert len(model.calls) == 2


def test_a_tool_hit_answers_the_call_of_this_run(cache, scripted, acting, calls, get_booking):
    model = scripted("native", acting(LOOK))
    agent = create_agent(model, [get_booking], middleware=[CacheMiddleware(cache, models=False)])
    states = [agent.invoke(asked("One?")), agent.invoke(asked("Two?"))]
    assert (len(model.calls), calls) == (4, ["get 1"])
    for state in states:
        _, asking, answer, _ = state["messages"]
        assert answer.tool_call_id == asking.tool_calls[0]["id"]
        assert answer.content == '{"number": "1", "seat": "12A"}'
        assert (answer.name, answer.status) == ("get_booking", "success")
    assert states[0]["messages"][2].tool_call_id != states[1]["messages"][2].tool_call_id
    assert notes(states[1]) == [None, None, "exact", None]


@pytest.mark.parametrize(("budget", "end"), [(0.6, "semantic"), (0.5, None)])
def test_a_run_in_other_words(looking, calls, budget, end):
    """It takes the same way, as far as the budget for hits by meaning goes."""
    opened = {"embedder": "hashing", "tenant": "t", "policy": "threshold", "budget": budget}
    with stemma.open(":memory:", **opened) as cache:
        model, agent = looking(behind=cache)
        agent.invoke(asked("Which seat is reserved for my booking with you?"))
        state = agent.invoke(asked("Which seat is reserved for my booking with you please?"))
        assert notes(state) == [None, "semantic", "exact", end]
        assert (len(model.calls), calls) == (2 if end else 3, ["get 1"])
        state = agent.invoke(asked("Which seat is not reserved for my booking with you?"))
        assert notes(state) == [None, None, "exact", None]


def test_all_that_shapes_a_reply_counts(cache, scripted, get_booking, send):
    model = scripted("native", model_kwargs={"seed": 1})

    def agent(tools=(get_booking,), prompt="Be brief.", inner=model, *more, **named):
        return create_agent(
            inner,
            list(tools),
            system_prompt=prompt,
            middleware=[*more, CacheMiddleware(cache)],
            **named,
        )

    agent().invoke(asked())
    agent().invoke(asked())
    assert len(model.calls) == 1

    @wrap_model_call
    def warmer(request, handler):
        return handler(request.override(model_settings={"temperature": 0.5}))

    @wrap_model_call
    def must_call(request, handler):
        return handler(request.override(tool_choice="any"))

    @dynamic_prompt
    def in_german(request):
        return "Antworte kurz."

    other = model.model_copy(update={"model_name": "m2"})
    variants = [
        agent(prompt="Be long."),
        agent(tools=[get_booking, send]),
        agent(tools=[]),
        agent((get_booking,), "Be brief.", model, warmer),
        agent((get_booking,), "Be brief.", model, must_call),
        agent((get_booking,), "Be brief.", model, in_german),
        agent(inner=other),
        agent(response_format=ProviderStrategy(Seat)),
    ]
    for number, variant in enumerate(variants, start=2):
        if number == len(variants) + 1:
            with pytest.raises(StructuredOutputValidationError):
                variant.invoke(asked())
        else:
            variant.invoke(asked())
            variant.invoke(asked())
        assert len(model.calls) == number


# ------------------------------------------------------------------ response formats


class Seat(BaseModel):
    """A seat."""

    row: int
    place: str


SEAT = Seat(row=12, place="A")


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_structured_response_is_the_same_on_a_hit(cache, scripted, acting, get_booking, way):
    model = scripted("native", acting(LOOK, {"Seat": {"row": 12, "place": "A"}}))
    agent = create_agent(
        model,
        [get_booking],
        response_format=ToolStrategy(Seat),
        middleware=[CacheMiddleware(cache)],
    )
    before, after = WAYS[way](agent, asked()), WAYS[way](agent, asked())
    assert before["structured_response"] == after["structured_response"] == SEAT
    assert said(before) == said(after)
    assert isinstance(after["messages"][-1], ToolMessage)
    assert after["messages"][-1].tool_call_id == after["messages"][-2].tool_calls[0]["id"]
    assert len(model.calls) == 2


def test_a_providers_own_format_is_asked_for_as_ever(cache, scripted):
    model = scripted("native", AIMessage(SEAT.model_dump_json()))
    agent = create_agent(
        model, [], response_format=ProviderStrategy(Seat), middleware=[CacheMiddleware(cache)]
    )
    for _ in range(2):
        assert agent.invoke(asked())["structured_response"] == SEAT
    assert len(model.calls) == 1
    assert model.calls[0][2]["response_format"]["json_schema"]["name"] == "Seat"


def test_a_format_is_chosen_as_the_model_itself_would_have_it(cache, get_booking):
    """LangChain looks at the model's class and profile to choose how it asks."""
    bodies = []

    def sent(middleware):
        def answer(request):
            bodies.append(request.read())
            reply = {"role": "assistant", "content": SEAT.model_dump_json()}
            choice = {"index": 0, "finish_reason": "stop", "message": reply}
            return httpx.Response(200, json={"id": "1", "model": "gpt-4o", "choices": [choice]})

        client = httpx.Client(transport=httpx.MockTransport(answer))
        model = ChatOpenAI(model="gpt-4o", api_key="k", http_client=client)
        agent = create_agent(model, [get_booking], response_format=Seat, middleware=middleware)
        return agent.invoke(asked())["structured_response"]

    assert sent([]) == sent([CacheMiddleware(cache)]) == sent([CacheMiddleware(cache)]) == SEAT
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_reply_that_does_not_fit_the_format_is_not_met_again(cache, scripted, way):
    replies = AIMessage('{"row": "the last"}'), AIMessage(SEAT.model_dump_json())
    model = scripted("native", *replies)
    agent = create_agent(
        model, [], response_format=ProviderStrategy(Seat), middleware=[CacheMiddleware(cache)]
    )
    with pytest.raises(StructuredOutputValidationError):
        WAYS[way](agent, asked())
    for _ in range(2):
        assert WAYS[way](agent, asked())["structured_response"] == SEAT
    assert len(model.calls) == 2


# ----------------------------------------------------------------------------- tools


def test_what_is_not_declared_is_called_every_time(cache, scripted, acting, calls, send):
    model = scripted("native", acting({"send": {"to": "ada"}}))
    agent = create_agent(model, [send], middleware=[CacheMiddleware(cache)])
    for _ in range(3):
        agent.invoke(asked("Send Ada a mail."))
    assert len(model.calls) == 2  # what to do is known, and it is done
    assert calls == ["send ada"] * 3


def test_a_write_is_made_every_time_and_takes_back_what_was_read(looking, calls):
    asking, looks = looking()
    looks.invoke(asked())
    assert looks.invoke(asked())["messages"][-1].response_metadata["stemma"]["hit"]
    moving, moves = looking("native", {"move": {"number": "1", "seat": "14B"}})
    for _ in range(2):
        moves.invoke(asked("Move booking 1 to 14B"))
    assert calls == ["get 1", "move 1", "move 1"]
    # What spoke of the write was not kept; what decided on it was.
    assert len(moving.calls) == 3
    state = looks.invoke(asked())
    assert calls == ["get 1", "move 1", "move 1", "get 1"]
    # The answer was built on the read that was taken back.
    assert notes(state) == [None, "exact", None, None]
    assert len(asking.calls) == 3


def test_tools_called_side_by_side(cache, scripted, acting, calls, get_booking):
    twice = [("get_booking", {"number": "1"}), ("get_booking", {"number": "1"})]
    model = scripted("native", acting([*twice, ("get_booking", {"number": "2"})]))
    agent = create_agent(model, [get_booking], middleware=[CacheMiddleware(cache)])
    for way in ("invoke", "ainvoke", "ainvoke"):
        state = WAYS[way](agent, asked("Which seats?"))
        wanted = [call["id"] for call in state["messages"][1].tool_calls]
        given = [m for m in state["messages"] if isinstance(m, ToolMessage)]
        assert [m.tool_call_id for m in given] == wanted
        assert ['"1"' in m.content for m in given] == [True, True, False]
    assert sorted(calls) == ["get 1", "get 2"]
    assert len(model.calls) == 2


def test_a_registry_and_its_mistakes(cache, scripted, acting, calls, send):
    registry = ToolRegistry()
    registry.declare("send", ToolPolicy(ttl=60, reads=["mail:{address}"]))
    model = scripted("native", acting({"send": {"to": "ada"}}))
    agent = create_agent(model, [send], middleware=[CacheMiddleware(cache, registry)])
    with pytest.raises(UsageError, match="no argument address"):
        agent.invoke(asked())
    assert model.calls == []  # refused before anything was done
    registry.declare("send", ToolPolicy(ttl=60, reads=["mail:{to}"]), replace=True)
    agent.invoke(asked("a"))
    agent.invoke(asked("b"))
    assert calls == ["send ada"]


def test_models_and_tools_that_are_cached_already(cache, scripted, acting, calls, get_booking):
    inner = scripted("native", acting(LOOK))
    model, one = CachedChatModel(cache, inner), CachedTool(cache, get_booking)
    agent = create_agent(model, [one], middleware=[CacheMiddleware(cache)])
    for _ in range(2):
        state = agent.invoke(asked())
    assert notes(state) == [None, "exact", "exact", "exact"]
    assert (len(inner.calls), calls) == (2, ["get 1"])


def test_the_middleware_can_do_one_of_the_two(cache, scripted, acting, calls, get_booking):
    model = scripted("native", acting(LOOK))
    agent = create_agent(model, [get_booking], middleware=[CacheMiddleware(cache, tools=False)])
    agent.invoke(asked())
    agent.invoke(asked())
    assert (len(model.calls), len(calls)) == (2, 2)


def test_wrong_arguments(cache, scripted):
    for wrong in (
        lambda: CacheMiddleware(None),
        lambda: CacheMiddleware(cache, {}),
        lambda: CacheMiddleware(cache, sampling="sometimes"),
        lambda: CacheMiddleware(cache, life=-1),
        lambda: CacheMiddleware(cache, allowed=["Seat"]),
    ):
        with pytest.raises(UsageError):
            wrong()


# ------------------------------------------------------------------ beside the others


@pytest.mark.parametrize("last", [True, False])
def test_retries_are_not_served_what_failed(cache, scripted, acting, calls, last):
    @tool
    @cacheable(ttl=60)
    def flaky(at: str) -> str:
        """Fail once."""
        calls.append(at)
        if len(calls) == 1:
            raise ValueError("not now")
        return "there"

    model = scripted("native", ValueError("not now"), *[acting({"flaky": {"at": "it"}})] * 3)
    retries = [
        ToolRetryMiddleware(initial_delay=0, jitter=False),
        ModelRetryMiddleware(initial_delay=0, jitter=False),
    ]
    ours = [CacheMiddleware(cache)]
    agent = create_agent(model, [flaky], middleware=retries + ours if last else ours + retries)
    states = [agent.invoke(asked()) for _ in range(2)]
    assert [state["messages"][-1].text for state in states] == ["It says: there"] * 2
    assert (len(model.calls), calls) == (3, ["it", "it"])


def test_a_tool_that_always_fails_is_called_every_time(cache, scripted, acting, calls):
    @tool
    @cacheable(ttl=60)
    def broken(at: str) -> str:
        """Fail."""
        calls.append(at)
        raise ValueError("never")

    model = scripted("native", acting({"broken": {"at": "it"}}))
    retry = ToolRetryMiddleware(max_retries=0, on_failure="continue")
    agent = create_agent(model, [broken], middleware=[retry, CacheMiddleware(cache)])
    for _ in range(2):
        state = agent.invoke(asked())
        assert [m.status for m in state["messages"] if m.type == "tool"] == ["error"]
    assert calls == ["it", "it"]


class Broken(MemoryStore):
    """Fails, once it is told to."""

    failing = False

    def get(self, ids):
        if self.failing:
            raise OSError("the disk is gone")
        return super().get(ids)

    def put(self, puts, now):
        if self.failing:
            raise OSError("the disk is gone")
        return super().put(puts, now)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_broken_store_is_no_trouble_of_the_agents(scripted, acting, calls, get_booking, way):
    store = Broken()
    model = scripted("native", acting(LOOK))
    with stemma.open(store, embedder="hashing", tenant="t") as cache:
        agent = create_agent(model, [get_booking], middleware=[CacheMiddleware(cache)])
        store.failing = True
        for _ in range(2):
            assert WAYS[way](agent, asked())["messages"][-1].text.startswith("It says: ")
        assert (len(model.calls), len(calls)) == (4, 2)
        store.failing = False


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_without_a_tenant_there_is_one_warning_of_each_kind(
    scripted, acting, calls, get_booking, way
):
    model = scripted("native", acting(LOOK))
    with stemma.open(":memory:", embedder=None) as cache:
        agent = create_agent(model, [get_booking], middleware=[CacheMiddleware(cache)])
        with pytest.warns(RuntimeWarning, match="tenant") as told:
            WAYS[way](agent, asked())
        assert len(told) == 2  # of the model's calls, of the tools'
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            WAYS[way](agent, asked())
        assert (len(model.calls), len(calls)) == (4, 2)
