"""Templates, the resources they name, and which of those have something in common."""

import datetime as dt
import decimal
import enum
import itertools
import uuid

import pytest

from stemma import UsageError
from stemma.tools.resources import MOST, Template, concerned, sources_of


class Cabin(enum.Enum):
    ECONOMY = "economy"


class Broken:
    @property
    def id(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("template", "arguments", "paths"),
    [
        ("booking", {}, [("booking",)]),
        ("booking:{id}", {"id": "7"}, [("booking", "7")]),
        ("user:{user_id}:profile", {"user_id": "ada"}, [("user", "ada", "profile")]),
        ("booking:{id}", {"id": "1:2"}, [("booking", "1:2")]),
        ("flight:{flight[number]}", {"flight": {"number": 7}}, [("flight", "7")]),
        ("card:{payment.card.id}", {"payment": {"card": {"id": 7.0}}}, [("card", "7")]),
        ("booking:{ids}", {"ids": ["1", "2", "1"]}, [("booking", "1"), ("booking", "2")]),
        ("day:{legs.date}", {"legs": [{"date": "a"}, {"date": "b"}]}, [("day", "a"), ("day", "b")]),
        ("x:{a}:{b}", {"a": [1, 2], "b": 3}, [("x", "1", "3"), ("x", "2", "3")]),
        ("x:{a}", {"a": Cabin.ECONOMY}, [("x", "economy")]),
        ("x:{a}", {"a": decimal.Decimal("7.0")}, [("x", "7")]),
        ("x:{a}", {"a": uuid.UUID(int=7)}, [("x", "00000000-0000-0000-0000-000000000007")]),
        ("x:{a}", {"a": dt.date(2024, 5, 20)}, [("x", "2024-05-20")]),
        ("x:{a}", {"a": range(MOST + 1)}, None),
        ("x:{a}", {"a": list(range(MOST + 1))}, [("x",)]),
    ],
)
def test_what_a_template_names(template, arguments, paths):
    named = Template(template).named(arguments)
    if paths is None:
        assert not named.complete
    else:
        assert (list(named.paths), named.complete) == (paths, True)


@pytest.mark.parametrize(
    ("template", "arguments", "left"),
    [
        ("booking:{id}", {}, ("booking",)),
        ("booking:{id}", {"id": None}, ("booking",)),
        ("booking:{id}:legs:{n}", {"id": "7"}, ("booking", "7", "legs")),
        ("booking:{ids.id}", {"ids": [{"id": "1"}, {}]}, ("booking",)),
        ("booking:{of.id}", {"of": Broken()}, ("booking",)),
        ("booking:{id}", {"id": object()}, ("booking",)),
        ("booking:{id.x}", {"id": "text"}, ("booking",)),
        ("booking:{id}", {"id": []}, ("booking",)),
    ],
)
def test_where_an_argument_is_missing_a_resource_stands_for_all_it_could_be(
    template, arguments, left
):
    named = Template(template).named(arguments)
    assert (named.paths, named.complete) == ((left,), False)


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "booking:", ":{id}", "{id}", "booking:*", "*", "booking-{id}", "booking:{id}x"),
        *("booking:{}", "booking:{ids[]}", "booking:{id", "booking:id}", "booking:{a b}"),
        *("booking:{a.}", "booking:{0!r}", "booking:{id:>3}", "a b", "a:b:c:d:e:f:g", 7, None),
    ],
)
def test_a_template_of_another_form_is_an_error(text):
    with pytest.raises(UsageError, match="resource"):
        Template(text)


PATHS = [
    ("booking",),
    ("booking", "1"),
    ("booking", "12"),
    ("booking", "1", "2"),
    ("booking", "1", "legs"),
    ("bookin", "g1"),
    ("user",),
    ("user", "a" * 41),
    ("user", "a" * 42),
    ("user", "1"),
]


@pytest.mark.parametrize(("read", "written"), list(itertools.product(PATHS, PATHS)), ids=":".join)
def test_a_write_concerns_what_lies_below_or_above_it_and_nothing_else(read, written):
    shared = min(len(read), len(written))
    names = {name for one in sources_of([read], "me") for name in (one.document, one.chunk)}
    assert bool(names & set(concerned([written], "me"))) is (read[:shared] == written[:shared])


@pytest.mark.parametrize("tenant", ["me", "ME", 'm","e', "x" * 500, "ü" * 41])
def test_no_two_tenants_have_a_source_in_common(tenant):
    ours = {name for one in sources_of(PATHS, tenant) for name in (one.document, one.chunk)}
    for other in ("me2", "x" * 501, "ü" * 42, ""):
        assert not ours & set(concerned([*PATHS, ()], other))
    assert max(map(len, ours)) < 1_000
    assert ours & set(concerned([()], tenant))
