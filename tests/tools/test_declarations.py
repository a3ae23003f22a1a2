"""Declarations: what is refused at the start, how tools carry them, which of two counts."""

import asyncio
import functools
import inspect
import os
import subprocess
import sys

import pytest

import stemma
from stemma import UsageError
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry, cacheable, policy_of


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({}, "must say something"),
        ({"version": "2"}, "must say something"),
        ({"ttl": -1}, "ttl"),
        ({"ttl": float("nan")}, "ttl"),
        ({"ttl": float("inf")}, "ttl"),
        ({"ttl": True}, "ttl"),
        ({"ttl": "60"}, "ttl"),
        ({"writes": ["a"], "ttl": 60}, "never cached"),
        ({"writes": ["a"], "reads": ["b"]}, "never cached"),
        ({"writes": ["a"], "semantic": ["q"]}, "never cached"),
        ({"writes": ["a"], "when": bool}, "never cached"),
        ({"writes": ["a"], "keep": bool}, "never cached"),
        ({"ttl": 0, "reads": ["a"]}, "keeps nothing"),
        ({"ttl": 0, "path": True}, "keeps nothing"),
        ({"reads": ["page:{q}"], "semantic": ["q"]}, "compared by meaning"),
        ({"reads": ["page:{q.id}"], "semantic": "q"}, "compared by meaning"),
        ({"reads": ["a", "a"]}, "twice"),
        ({"reads": [""]}, "not empty"),
        ({"reads": [7]}, "texts"),
        ({"reads": ["{id}"]}, "begins with an argument"),
        ({"writes": ["booking:*"]}, "leave out the star"),
        ({"ttl": 60, "scope": "public"}, "scope"),
        ({"ttl": 60, "similarity": 0.9}, "similarity"),
        ({"ttl": 60, "semantic": "q", "similarity": 1.5}, "similarity"),
        ({"ttl": 60, "when": "x"}, "when"),
        ({"ttl": 60, "keep": 1}, "keep"),
        ({"ttl": 60, "version": 2}, "version"),
        ({"ttl": 60, "path": "yes"}, "path"),
    ],
    ids=str,
)
def test_a_declaration_that_contradicts_itself_is_refused(declared, why):
    with pytest.raises(UsageError, match=why):
        ToolPolicy(**declared)


def test_a_declaration_of_what_is_read_may_name_what_nothing_writes():
    assert ToolPolicy(reads="weather:{city}").reads == ("weather:{city}",)
    assert ToolPolicy(writes="mail", ttl=0).writes == ("mail",)


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"reads": ["booking:{booking_id}"]}, "no argument booking_id; it has id, unit"),
        ({"ttl": 1, "semantic": ["query"]}, "no argument query"),
        ({"tll": 60}, "unknown tll; a ToolPolicy takes ttl"),
    ],
)
def test_a_declaration_that_is_not_of_the_tool_is_refused(declared, why):
    with pytest.raises(UsageError, match=why):

        @cacheable(**declared)
        def get_booking(id, unit="C"):
            """Of another signature."""


def test_what_is_said_wrongly_is_refused():
    with pytest.raises(UsageError, match="@cacheable"):

        @cacheable
        def tool():
            """Without parentheses."""

    with pytest.raises(UsageError, match="not both"):
        cacheable(ToolPolicy(ttl=1), ttl=2)
    with pytest.raises(UsageError, match="cannot carry"):
        cacheable(ttl=1)(len)


def test_a_generator_cannot_be_kept():
    with pytest.raises(UsageError, match="generator"):

        @cacheable(ttl=1)
        def tool():
            yield 1

    with pytest.raises(UsageError, match="generator"):

        @cacheable(ttl=1)
        async def atool():
            yield 1


@pytest.mark.parametrize("idle", [{"writes": "booking"}, {"ttl": 0}], ids=str)
def test_whose_a_result_is_says_nothing_of_a_tool_that_keeps_none(idle):
    """A write takes back what anybody of the tenant has read."""
    with pytest.raises(UsageError, match="scope"):
        ToolPolicy(scope="user", **idle)


def test_nobody_could_say_when_a_generator_has_written():
    with pytest.raises(UsageError, match="generator"):

        @cacheable(writes="booking")
        def tool():
            yield 1

    with pytest.raises(UsageError, match="generator"):
        ToolRegistry().declare("tool", ToolPolicy(writes="booking"), tool=_agenerator)


def test_any_argument_may_be_named_where_any_may_be_given():
    @cacheable(reads=["booking:{id}"])
    def tool(**given):
        """Of any signature."""

    assert policy_of(tool).reads == ("booking:{id}",)


def test_the_mark_changes_nothing_and_outlives_wrapping():
    def tool(id):
        return id

    async def atool(id):
        return id

    class Service:
        @cacheable(ttl=9)
        def method(self, id):
            return id

    for each in (tool, atool):
        assert cacheable(ttl=9)(each) is each

        @functools.wraps(each)
        def outer(*args, each=each, **kwargs):
            return each(*args, **kwargs)

        assert policy_of(outer) == policy_of(each) == ToolPolicy(ttl=9)
    assert policy_of(Service().method) == ToolPolicy(ttl=9)
    assert policy_of(functools.partial(tool, id=1)) is None  # what it was given would not be seen
    assert policy_of(print) is policy_of(object()) is policy_of(None) is None


def test_a_wrapped_function_is_called_as_it_was_called(tools):
    seen = []

    @cacheable(ttl=60)
    def tool(a, /, b, *rest, c=3, **more):
        """Its text."""
        seen.append((a, b, rest, c, more))
        return "x"

    called = tools.wrap(tool)
    called(1, 2, 3, 4, d=5)
    called(1, 2, 3, 4, c=3, d=5)  # the default, given
    called(1, b=2)
    assert seen == [(1, 2, (3, 4), 3, {"d": 5}), (1, 2, (), 3, {})]
    assert (called.__name__, called.__doc__) == ("tool", "Its text.")
    assert inspect.signature(called) == inspect.signature(tool)
    with pytest.raises(TypeError, match="missing"):
        called(1)


def test_a_coroutine_function_stays_one(tools):
    @cacheable(ttl=60)
    async def tool(id):
        return id

    called = tools.wrap(tool)
    assert inspect.iscoroutinefunction(called)
    assert [asyncio.run(called("a")) for _ in "12"] == ["a", "a"]


def test_the_object_of_a_method_counts(tools):
    calls = []

    class Service:
        def __init__(self, name):
            self.name = name

        @cacheable(ttl=60)
        def get(self, id):
            calls.append(self.name)
            return self.name

        @classmethod
        @cacheable(ttl=60)
        def kind(cls):
            calls.append("kind")
            return cls.__name__

    with pytest.warns(RuntimeWarning, match="no stable key"):
        assert [tools.wrap(Service(name).get)("1") for name in "ab"] == ["a", "b"]
    calls.clear()
    assert [tools.wrap(Service.kind)() for _ in "12"] == ["Service", "Service"]
    assert calls == ["kind"]


def test_a_registry_counts_before_what_a_tool_says_itself(cache):
    registry = ToolRegistry()
    marked = cacheable(ttl=1)(lambda: 1)
    registry.declare("a", ToolPolicy(ttl=2))
    assert registry.policy("a", marked) == ToolPolicy(ttl=2)
    assert registry.policy("b", marked) == ToolPolicy(ttl=1)
    assert registry.policy("b") is None
    registry.declare("a", ToolPolicy(ttl=2))
    with pytest.raises(UsageError, match="otherwise already"):
        registry.declare("a", ToolPolicy(ttl=3))
    registry.declare("a", ToolPolicy(ttl=3), replace=True)
    assert registry.policy("a") == ToolPolicy(ttl=3)


@pytest.mark.parametrize(
    "make",
    [
        lambda cache: ToolRegistry(unknown="drop"),
        lambda cache: ToolRegistry().declare("", ToolPolicy(ttl=1)),
        lambda cache: ToolRegistry().declare("a", {"ttl": 1}),
        lambda cache: ToolRegistry().declare("a", ToolPolicy(reads="a:{x}"), tool=lambda y: 1),
        lambda cache: ToolCaching("answers.db"),
        lambda cache: ToolCaching(cache, {"a": ToolPolicy(ttl=1)}),
        lambda cache: ToolCaching(cache).wrap("tool"),
    ],
)
def test_what_is_given_wrongly_is_refused(cache, make):
    with pytest.raises(UsageError):
        make(cache)


class Remote:
    """A tool as the adapters of MCP make it: any arguments, a schema, annotations."""

    def __init__(self, **annotations):
        self.name = "remote"
        self.args = {"id": {"type": "string"}}
        self.metadata = annotations

    async def coroutine(self, **arguments):
        """Calls the server."""


@pytest.mark.parametrize(
    ("policy", "annotations", "warns"),
    [
        (ToolPolicy(reads="a:{id}"), {"readOnlyHint": False}, True),
        (ToolPolicy(reads="a:{id}"), {"destructiveHint": True}, True),
        (ToolPolicy(writes="a:{id}"), {"readOnlyHint": True}, True),
        (ToolPolicy(reads="a:{id}"), {"readOnlyHint": True, "destructiveHint": True}, False),
        (ToolPolicy(reads="a:{id}"), {"readOnlyHint": None}, False),
        (ToolPolicy(writes="a:{id}"), {"destructiveHint": False, "idempotentHint": True}, False),
        (ToolPolicy(reads="a:{id}"), {}, False),
    ],
)
def test_annotations_are_a_hint(recwarn, policy, annotations, warns):
    ToolRegistry().declare("remote", policy, tool=Remote(**annotations))
    assert bool(recwarn.list) is warns


def test_annotations_are_no_permission(tools):
    tool = Remote(readOnlyHint=True, idempotentHint=True)
    assert policy_of(tool) is None
    assert tools.call("remote", {"id": "1"}, lambda: 1, tool=tool).outcome.reason == "undeclared"
    with pytest.raises(UsageError, match="no argument x; it has id"):
        cacheable(reads="a:{x}")(tool)


CODE = """
import datetime, decimal, stemma
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry

registry = ToolRegistry()
registry.declare("get", ToolPolicy(ttl=600, reads=["booking:{id}"], version="1"))
with stemma.open("tools.db", tenant="me", embedder=None) as cache:
    given = {"id": "1", "tags": {"b", "a", "c"}, "at": datetime.date(2024, 5, 20),
             "sum": decimal.Decimal("1.50"), "nan": float("nan")}
    served = ToolCaching(cache, registry).call("get", given, lambda: "12A")
    print(served.outcome.hit, ToolCaching(cache, registry).changed("booking:{id}", id="1").entries
          if WRITE else "")
"""


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_keys_and_resources_are_the_same_in_every_process(tmp_path, url):
    def told(seed, write=False):
        done = subprocess.run(
            [sys.executable, "-c", CODE.replace("WRITE", str(write))],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert told(1).startswith("False")
    third = told(2, write=True)
    assert third.startswith("True")
    assert "Recalled(" in third
    assert told(3).startswith("False")


def test_importing_tools_loads_no_framework():
    code = (
        "import sys, stemma.tools; "
        "assert not {'langchain_core', 'llama_index', 'pydantic'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert stemma.tools.ToolPolicy is ToolPolicy


async def _agenerator():
    yield 1
