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
import uuid

import numpy as np
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
