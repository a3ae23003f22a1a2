"""What may be kept of a declared read, by what it is told apart, and what is never kept."""

import asyncio
import datetime as dt
import decimal
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import stemma
from stemma.testing.fakes import Scripted
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry, cacheable

ONE = ToolPolicy(ttl=600)


def registry(**policies: ToolPolicy) -> ToolRegistry:
    made = ToolRegistry()
    for name, policy in policies.items():
        made.declare(name, policy)
    return made


@pytest.fixture
def declared(cache) -> ToolCaching:
    return ToolCaching(cache, registry(search=ONE))


def test_the_second_equal_call_does_not_reach_the_tool(do, tools, world):
    assert do(tools, world.get_booking, "1") == do(tools, world.get_booking, id="1")
    assert world.calls == [("get", "1")]
    assert do(tools, world.get_booking, "12")["seat"] == "3C"
    assert world.calls == [("get", "1"), ("get", "12")]


def test_a_hit_says_so_and_is_a_fresh_copy(declared):
    compute = Scripted(["a"])
    first = declared.call("search", {"q": "x"}, compute)
    first.value.append("spoilt")
    second = declared.call("search", {"q": "x"}, compute)
    second.value.append("spoilt")
    third = declared.call("search", {"q": "x"}, compute)
    assert (third.value, compute.calls) == (["a"], 1)
    assert first.outcome.reason == "cold"
    assert third.outcome.note()["node"] == "hop"
    assert third.outcome.note()["tier"] == "exact"


def test_nothing_of_a_tool_that_declares_nothing_is_kept(do, tools, world):
    assert do(tools, world.now) != do(tools, world.now)
    served = tools.call("now", {}, world.now)
    assert (served.outcome.reason, served.stored) == ("undeclared", None)


def test_a_declaration_of_ttl_zero_takes_a_tools_own_away(cache, world):
    tools = ToolCaching(cache, registry(get_booking=ToolPolicy(ttl=0)))
    get = tools.wrap(world.get_booking)
    get("1"), get("1")
    assert world.calls == [("get", "1")] * 2


def test_life_is_as_declared(declared, clock):
    compute = Scripted()
    declared.call("search", {}, compute)
    clock.advance(530)  # the jitter takes off a tenth at most
    assert declared.call("search", {}, compute).outcome.hit
    clock.advance(80)
    assert declared.call("search", {}, compute).outcome.reason == "expired"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"arguments": {"a": "x", "b": "yz"}}, {"arguments": {"a": "xy", "b": "z"}}),
        ({"arguments": {"a": 1}}, {"arguments": {"a": "1"}}),
        ({"arguments": {"a": None}}, {"arguments": {}}),
        ({"arguments": {"a": 1}}, {"arguments": {}, "injected": {"a": 1}}),
        ({"arguments": {}, "injected": {"a": 1}}, {"arguments": {}, "injected": {"a": 2}}),
        ({"arguments": {"injected": {"a": 1}}}, {"arguments": {}, "injected": {"a": 1}}),
    ],
)
def test_arguments_and_injected_state_tell_calls_apart(declared, one, other):
    compute = Scripted()
    for asked in (one, other, one, other):
        declared.call("search", compute=compute, **asked)
    assert compute.calls == 2


def test_name_version_and_tenant_tell_calls_apart(cache):
    declared = registry(search=ONE, find=ONE)
    tools, compute = ToolCaching(cache, declared), Scripted()
    tools.call("search", {}, compute)
    tools.call("find", {}, compute)
    with cache.using(tenant="another"):
        tools.call("search", {}, compute)
    declared.declare("search", ToolPolicy(ttl=600, version="2"), replace=True)
    tools.call("search", {}, compute)
    assert compute.calls == 4
    assert tools.call("search", {}, compute).outcome.hit


def test_a_tool_of_another_version_in_the_middle_of_a_call_stores_under_the_one_it_was(cache):
    declared = registry(search=ONE)
    tools = ToolCaching(cache, declared)

    def changing():
        declared.declare("search", ToolPolicy(ttl=600, version="2"), replace=True)
        return "of the first"

    tools.call("search", {}, changing)
    assert tools.call("search", {}, lambda: "of the second").value == "of the second"


@pytest.mark.parametrize("scope", ["user", "session"])
def test_results_of_a_user_or_session_are_theirs(cache, scope):
    tools, compute = ToolCaching(cache, registry(mail=ToolPolicy(ttl=60, scope=scope))), Scripted()
    with cache.using(**{scope: "ada"}):
        mine = tools.call("mail", {}, compute).value
    with cache.using(**{scope: "max"}):
        assert tools.call("mail", {}, compute).value != mine
    with cache.using(**{scope: "ada"}):
        assert tools.call("mail", {}, compute).value == mine
    with pytest.warns(RuntimeWarning, match=f"kept by {scope}"):
        nobody = tools.call("mail", {}, compute)
    assert (nobody.outcome.reason, nobody.stored) == ("unscoped", None)


def test_a_label_does_not_separate_what_is_everybodys(cache, declared):
    compute = Scripted()
    for user in ("ada", "max"):
        with cache.using(user=user):
            declared.call("search", {}, compute)
    assert compute.calls == 1


@dataclass
class Point:
    x: float


VALUES = [
    dt.datetime(2024, 5, 20, tzinfo=dt.UTC),
    decimal.Decimal("1.5"),
    b"\x00\xff",
    {"b", "a", "c"},
    Point(x=1.0),
    np.arange(3),
    np.float32(0.5),
    float("nan"),
    uuid.UUID(int=7),
    Path("a/b"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_arguments_that_are_no_json_have_a_stable_key(declared, value):
    compute = Scripted()
    assert declared.call("search", {"v": value}, compute).stored
    assert declared.call("search", {"v": value}, compute).outcome.hit


@pytest.mark.parametrize("value", [lambda: 1, threading.Lock(), object()], ids=str)
@pytest.mark.parametrize("where", ["arguments", "injected"])
def test_what_has_no_stable_key_goes_past_the_cache_with_one_warning(declared, value, where):
    compute = Scripted()
    given = {"arguments": {}, "injected": {}} | {where: {"v": value}}
    with pytest.warns(RuntimeWarning, match="bypassed") as warned:
        reasons = {declared.call("search", compute=compute, **given).outcome.reason for _ in "12"}
    assert (reasons, compute.calls, len(warned)) == ({"unkeyable"}, 2, 1)


def test_without_a_tenant_it_goes_past_the_cache_with_one_warning(url, world):
    with stemma.open(url, embedder=None) as cache:
        get = ToolCaching(cache).wrap(world.get_booking)
        with pytest.warns(RuntimeWarning) as warned:
            assert get("1") == get("1")
    assert len(world.calls) == 2
    assert [str(one.message)[:23] for one in warned] == ["the cache is bypassed: "]


def test_errors_pass_through_and_are_not_stored(do, tools):
    outcomes = Scripted(ValueError("no such page"), "page")

    @cacheable(ttl=60)
    def read_page():
        return outcomes()

    with pytest.raises(ValueError, match="no such page"):
        do(tools, read_page)
    assert do(tools, read_page) == do(tools, read_page) == "page"
    assert outcomes.calls == 2


@pytest.mark.parametrize(
    "value", [(item for item in "ab"), object(), threading.Lock()], ids=lambda v: type(v).__name__
)
def test_what_has_no_stored_form_is_given_as_it_is_and_not_stored(declared, value):
    served = declared.call("search", {}, lambda: value)
    assert served.value is value
    assert served.stored.refused == "unstorable"


def test_what_the_caller_or_the_declaration_does_not_admit_is_not_stored(cache):
    tools = ToolCaching(cache, registry(search=ToolPolicy(ttl=60, keep=lambda value: value != [])))
    refused = tools.call("search", {}, list)
    assert (refused.stored.refused, refused.stored.detail) == (
        "not_admitted",
        "the tool's declaration does not keep it",
    )
    error = tools.call("search", {}, lambda: "503", admit=lambda value: "an error")
    assert error.stored.detail == "an error"
    assert tools.call("search", {}, lambda: ["x"]).stored


@pytest.mark.parametrize("called", ["sync", "async"])
def test_a_declaration_is_asked_about_what_the_tool_gave_inside_of_a_result(cache, called):
    tools = ToolCaching(cache, registry(search=ToolPolicy(ttl=60, keep=lambda found: found != [])))

    def stored(found):
        said = {"result": lambda wrapped: wrapped["found"]}
        if called == "sync":
            return tools.call("search", {}, lambda: {"found": found}, **said).stored
        return asyncio.run(tools.acall("search", {}, lambda: {"found": found}, **said)).stored

    assert stored([]).refused == "not_admitted"
    assert not stored(["x"]).refused


def test_a_condition_on_the_arguments(cache):
    policy = ToolPolicy(ttl=60, when=lambda arguments: arguments["page"] == 1)
    tools, compute = ToolCaching(cache, registry(search=policy)), Scripted()
    for page in (1, 1, 2, 2):
        tools.call("search", {"page": page}, compute)
    assert compute.calls == 3
    assert tools.call("search", {"page": 2}, compute).outcome.reason == "declined"


@pytest.mark.parametrize("name", ["when", "keep"])
def test_a_condition_that_raises_keeps_nothing_and_warns_once(cache, name):
    policy = ToolPolicy(ttl=60, **{name: lambda _: 1 / 0})
    tools, compute = ToolCaching(cache, registry(search=policy)), Scripted()
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError") as warned:
        assert [tools.call("search", {}, compute).value for _ in "12"] == ["answer 1", "answer 2"]
    assert (compute.calls, len(warned)) == (2, 1)


def test_where_an_argument_that_names_a_resource_is_missing_nothing_is_kept(cache):
    policy = ToolPolicy(reads=["booking:{id}"])
    tools, compute = ToolCaching(cache, registry(get=policy)), Scripted()
    for arguments in ({}, {"id": None}, {"id": ""}, {"id": []}):
        served = tools.call("get", arguments, compute)
        assert (served.outcome.reason, served.stored) == ("unresolved", None)


def test_bypass_and_refresh_hold_for_tools(cache, declared):
    compute = Scripted()
    declared.call("search", {}, compute)
    with cache.bypass():
        assert declared.call("search", {}, compute).value == "answer 2"
    with cache.refresh():
        assert declared.call("search", {}, compute).value == "answer 3"
    assert declared.call("search", {}, compute).value == "answer 3"


@pytest.mark.parametrize(
    ("name", "arguments"), [("", {}), (None, {}), ("search", ["x"]), ("search", None)]
)
def test_wrong_arguments_of_a_call_are_errors(declared, name, arguments):
    with pytest.raises(stemma.UsageError):
        declared.call(name, arguments, lambda: 1)


def test_what_was_read_before_in_the_frame_is_no_parent_of_a_read_but_with_a_path(cache):
    policies = registry(one=ONE, two=ONE, three=ToolPolicy(ttl=60, path=True))
    tools = ToolCaching(cache, policies)
    with cache.trace():
        one = tools.call("one", {}, lambda: "1").stored.entry
        two = tools.call("two", {}, lambda: "2").stored.entry
        three = tools.call("three", {}, lambda: "3").stored.entry
        answer = cache.answers.get_or_compute("q", lambda: "a").stored.entry
    store = cache.engine.parts.store
    parents = {
        name: {edge.parent for edge in store.lineage(entry.id).parents}
        for name, entry in {"two": two, "three": three, "answer": answer}.items()
    }
    assert parents == {
        "two": set(),
        "three": {one.id, two.id},
        "answer": {one.id, two.id, three.id},
    }


def test_what_a_tool_reads_while_it_runs_is_its_parent(cache):
    tools = ToolCaching(cache, registry(inner=ONE, outer=ONE))

    def outer():
        return tools.call("inner", {}, lambda: "in").value + "out"

    entry = tools.call("outer", {}, outer).stored.entry
    (edge,) = cache.engine.parts.store.lineage(entry.id).parents
    assert cache.hops.lookup("inner").reason == "cold"  # another key: it is a tool's
    assert cache.engine.parts.store.get([edge.parent]).entries[edge.parent].node == "hop"


def test_the_path_of_a_hop_goes_through_the_tools_called_in_it(cache):
    tools = ToolCaching(cache, registry(search=ONE, read=ToolPolicy(ttl=60, path=True)))

    def run(query):
        with cache.trace():
            with cache.hop("search"):
                tools.call("search", {"q": query}, lambda: query)
            with cache.hop("read"):
                return tools.call("read", {"part": 1}, lambda: "text").outcome

    assert run("a").reason == "cold"
    assert run("a").hit
    assert run("b").reason == "cold"
