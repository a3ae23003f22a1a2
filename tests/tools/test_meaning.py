"""Arguments that are compared by meaning, beside others that must be equal."""

from collections.abc import Iterator

import pytest

import stemma
from stemma.testing.fakes import Scripted
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry

ONE = "Until when can I cancel my order with you?"
OTHER = "Until when can I cancel my order with you please?"


@pytest.fixture
def cache(url, clock) -> Iterator[stemma.Cache]:
    with stemma.open(url, tenant="me", embedder="hashing", clock=clock) as opened:
        yield opened


@pytest.fixture
def tools(cache) -> ToolCaching:
    registry = ToolRegistry()
    registry.declare("search", ToolPolicy(ttl=600, reads=["shop:{shop}"], semantic=["question"]))
    registry.declare("exact", ToolPolicy(ttl=600, reads=["shop:{shop}"]))
    registry.declare("close", ToolPolicy(writes=["shop:{shop}"]))
    return ToolCaching(cache, registry)


def test_other_words_are_served_where_that_is_declared(tools):
    compute = Scripted()
    for name in ("search", "exact"):
        tools.call(name, {"question": ONE, "shop": 1}, compute)
    near = tools.call("search", {"question": OTHER, "shop": 1}, compute)
    assert (near.value, near.outcome.tier) == ("answer 1", "semantic")
    assert near.outcome.note()["tier"] == "semantic"
    assert tools.call("exact", {"question": OTHER, "shop": 1}, compute).outcome.reason == "cold"


@pytest.mark.parametrize(
    "asked",
    [
        {"arguments": {"question": OTHER, "shop": 2}},
        {"arguments": {"question": OTHER, "shop": 1, "limit": 5}},
        {"arguments": {"question": OTHER, "shop": 1}, "injected": {"user": "ada"}},
        {"arguments": {"question": OTHER.replace("can", "cannot"), "shop": 1}},
        {"arguments": {"question": OTHER.replace("my order", "order 17"), "shop": 1}},
    ],
)
def test_all_else_must_be_equal_and_the_guards_agree(tools, asked):
    tools.call("search", {"question": ONE, "shop": 1}, lambda: "of another")
    assert tools.call("search", compute=lambda: "own", **asked).value == "own"


def test_a_write_takes_back_what_other_words_would_have_been_served(tools):
    tools.call("search", {"question": ONE, "shop": 1}, lambda: "open")
    tools.call("close", {"shop": 1}, lambda: "done")
    assert tools.call("search", {"question": OTHER, "shop": 1}, lambda: "shut").value == "shut"
