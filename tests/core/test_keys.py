"""Keys are stable, injective, and refuse what has no stable form."""

import dataclasses
import datetime as dt
import decimal
import enum
import io
import json
import pathlib
import subprocess
import sys
import types
import uuid

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma import UnkeyableValue, canonical, digest

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int


@dataclasses.dataclass
class Other:
    x: int
    y: int


def same(a: object, b: object) -> bool:
    """Python's equality, but `True` is not 1 and a tuple is a list."""
    if isinstance(a, bool) or isinstance(b, bool):
        return type(a) is type(b) and a == b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return (type(a) is type(b) and a == b) or (
        isinstance(a, (int, float)) and isinstance(b, (int, float)) and a == b
    )


@given(PLAIN, PLAIN)
def test_two_values_share_a_line_exactly_when_they_are_the_same(a, b):
    assert (canonical(a) == canonical(b)) == same(a, b)


@given(PLAIN)
def test_a_line_is_ascii_and_parses(value):
    line = canonical(value)
    assert line.isascii()
    json.loads(line)


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_parts_never_run_into_each_other(a, b):
    assert (digest(*a) == digest(*b)) == (a == b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (("a", "b:c"), ("a:b", "c")),
        (("doc1", "acme"), ("doc1str:orgstr:acme", "")),
        ({"1": 0}, {1: 0}),
        ({"$float": "nan"}, float("nan")),
        ({"$map": []}, {}),
        (1, True),
        (0, False),
        (None, ""),
        ("", []),
        ([], {}),
        (b"a", "a"),
        (dt.date(2026, 1, 2), "2026-01-02"),
        (decimal.Decimal("1.5"), 1.5),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (Colour.RED, Colour.BLUE),
        (Colour.RED, 1),
        (Point(1, 2), Other(1, 2)),
        (np.array([200], dtype=np.uint8), np.array([-56], dtype=np.int8)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        ({"a", "b"}, ["a", "b"]),
        ("é", "e\u0301"),
        ("\ud800", "\ud801"),
    ],
)
def test_values_that_others_confuse_are_told_apart(a, b):
    assert canonical(a) != canonical(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0, 0.0),
        (-0.0, 0),
        ((1, 2), [1, 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"x", "y", "z"}, {"z", "y", "x"}),
        (np.float64(2.5), 2.5),
        (np.int64(3), 3),
        (decimal.Decimal("1.50"), decimal.Decimal("1.5")),
        (float("nan"), float("nan")),
    ],
)
def test_equal_values_are_equal_in_every_form(a, b):
    assert canonical(a) == canonical(b)


@pytest.mark.parametrize(
    "value",
    [lambda: 1, object(), io.StringIO(), len, Point, np.array([object()]), {"deep": [object()]}],
)
def test_what_has_no_stable_form_is_refused_and_located(value):
    with pytest.raises(UnkeyableValue, match=r"value"):
        canonical(value)


def test_nesting_is_bounded():
    value: list = []
    for _ in range(10_000):
        value = [value]
    with pytest.raises(UnkeyableValue, match="nested deeper"):
        canonical(value)


def test_keys_do_not_depend_on_the_hash_seed():
    program = (
        "import uuid, datetime; from stemma import digest;"
        "print(digest({'b': {1, 2, 'x'}, 'a': frozenset('hello')}, uuid.UUID(int=5)))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert seen == {digest({"b": {1, 2, "x"}, "a": frozenset("hello")}, uuid.UUID(int=5)) + "\n"}


class Filter(pydantic.BaseModel):
    """A model that holds nothing, and is subclassed."""


class ByUser(Filter):
    user: str


class ByOwner(Filter):
    user: str


class Query(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    filter: Filter
    secret: str = pydantic.Field(default="", exclude=True)


class Raising:
    """A model whose field raises."""

    model_fields = types.MappingProxyType({"user": None})
    model_dump = None

    @property
    def user(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Query(filter=ByUser(user="ada")), Query(filter=ByUser(user="max"))),
        (Query(filter=ByUser(user="ada")), Query(filter=ByOwner(user="ada"))),
        (Query(filter=Filter(), secret="a"), Query(filter=Filter(), secret="b")),
        (Query(filter=Filter(), more=1), Query(filter=Filter(), more=2)),
        (decimal.Decimal("1" + "0" * 30 + "1"), decimal.Decimal("1" + "0" * 30 + "2")),
        (decimal.Decimal("NaN"), decimal.Decimal("sNaN")),
        (decimal.Decimal("Infinity"), decimal.Decimal("-Infinity")),
        (np.zeros(2, dtype=[("a", "i4")]), np.zeros(2, dtype=[("b", "i4")])),
        (np.zeros(1, dtype=[("a", "i4")])[0], np.zeros(1, dtype=[("b", "i4")])[0]),
        (np.datetime64("NaT"), None),
        (np.datetime64(5, "ns"), 5),
        (dt.time(2, 30), dt.time(2, 30, fold=1)),
    ],
)
def test_no_detail_of_a_value_is_lost(a, b):
    assert canonical(a) != canonical(b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (decimal.Decimal("-0.00"), decimal.Decimal(0)),
        (decimal.Decimal(100), decimal.Decimal("1E2")),
        (decimal.Decimal("sNaN"), decimal.Decimal("sNaN")),
        (np.longdouble(1), 1),
        (Query(filter=ByUser(user="ada")), Query(filter=ByUser(user="ada"))),
    ],
)
def test_odd_values_are_stable(a, b):
    assert canonical(a) == canonical(b)


def cycle() -> list:
    found: list = []
    found.extend([found, found])
    return found


@pytest.mark.parametrize(
    "value",
    [cycle(), np.clongdouble(1), Raising(), Query.model_construct(), np.ma.masked_array([1])],
    ids=["cycle", "clongdouble", "raising", "no fields", "masked"],
)
def test_odd_objects_are_refused_and_raise_nothing_else(value):
    with pytest.raises(UnkeyableValue):
        canonical(value)


def test_integers_of_any_length_have_a_key():
    """Python refuses to write more than 4300 digits."""
    big = 10**5000
    assert len({canonical(value) for value in (big, big + 1, -big)}) == 3
    assert canonical(big) == canonical(10**5000)
