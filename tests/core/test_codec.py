"""Stored values come back as they were, or are refused; nothing stored is executed."""

import datetime as dt
import decimal
import json
import pickle
import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma import CodecError, JsonCodec, VectorCodec
from stemma.codec import MAX_PAYLOAD

CODEC = JsonCodec()

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=[]))
    | st.binary()
    | st.datetimes()
    | st.dates()
    | st.decimals(allow_nan=False)
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers(), max_size=3)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back_equal_and_of_the_same_type(value):
    back = CODEC.decode(CODEC.encode(value).payload)
    assert back == value
    assert type(back) is type(value)


@given(VALUES, VALUES)
def test_equal_values_have_equal_hashes_and_others_do_not(a, b):
    if repr(a) == repr(b):
        assert CODEC.encode(a).value == CODEC.encode(b).value
    elif a != b:
        assert CODEC.encode(a).value != CODEC.encode(b).value


def test_a_copy_is_fresh_each_time():
    payload = CODEC.encode({"a": [1]}).payload
    first = CODEC.decode(payload)
    first["a"].append(2)
    assert CODEC.decode(payload) == {"a": [1]}


@pytest.mark.parametrize(
    "value",
    [
        {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}},
        {"$": "tuple", "v": [1]},
        {"$": "lc.AIMessage", "v": {}},
        {"__class__": "os.system"},
        {"!!python/object": "os.system"},
    ],
)
def test_a_users_own_mapping_that_imitates_a_form_stays_a_mapping(value):
    assert CODEC.decode(CODEC.encode(value).payload) == value


class Bomb:
    exploded = False

    def __reduce__(self):
        return (setattr, (Bomb, "exploded", True))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00",
        b"nonsense",
        pickle.dumps(Bomb()),
        b"\x85\xa2lc\x01",
        b"!!python/object/apply:os.system ['true']",
        b'{"$":"no such form","v":1}',
        b'{"$":"tuple"}',
        b'{"$":["tuple"],"v":1}',
        b'{"$":"uuid","v":"x"}',
        b'{"$":"bytes","v":"*"}',
        b'{"$":"map","v":[[[1],2]]}',
        b'{"$":"map","v":[1]}',
        b"[" * 100_000,
        b'{"$":"tuple","v":' * 5_000,
    ],
)
def test_bytes_that_are_not_ours_are_an_error_and_build_nothing(payload):
    with pytest.raises(CodecError):
        CODEC.decode(payload)
    assert not Bomb.exploded


def test_langchain_constructors_in_stored_bytes_stay_plain_mappings():
    planted = {"lc": 1, "type": "secret", "id": ["PATH"]}
    assert CODEC.decode(json.dumps(planted).encode()) == planted


def test_what_would_not_come_back_is_refused():
    for value in (object(), lambda: 1, np.zeros(3), {"a": object()}, type, float):
        with pytest.raises(CodecError, match="would not come back"):
            CODEC.encode(value)


def test_values_beyond_the_limits_are_refused_both_ways():
    with pytest.raises(CodecError, match="bytes"):
        CODEC.encode("x" * (MAX_PAYLOAD + 1))
    with pytest.raises(CodecError, match="bytes"):
        CODEC.decode(b'"' + b"x" * MAX_PAYLOAD + b'"')
    deep: list = []
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(CodecError, match="nested"):
        CODEC.encode(deep)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_vectors_come_back_bit_for_bit(values):
    back = VectorCodec().decode(VectorCodec().encode(values).payload)
    assert [v.hex() for v in back] == [float(v).hex() for v in values]


@pytest.mark.parametrize("bad", [[], [float("nan")], [float("inf")], [[1.0]]])
def test_vectors_that_are_none_are_refused(bad):
    with pytest.raises(CodecError):
        VectorCodec().encode(bad)


@pytest.mark.parametrize("bad", [b"", b"f4", b"f4abc", b"xx0000", b"f81234"])
def test_bytes_that_are_no_vector_are_an_error(bad):
    with pytest.raises(CodecError):
        VectorCodec().decode(bad)


def test_special_values_keep_their_type():
    for value in (
        (1, (2,)),
        {1, 2},
        dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        decimal.Decimal("0.10"),
        uuid.uuid4(),
        b"\x00\xff",
        float("inf"),
    ):
        back = CODEC.decode(CODEC.encode(value).payload)
        assert (back, type(back)) == (value, type(value))


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**63, 2**70, -(2**200)])
def test_an_integer_of_any_width_comes_back_as_it_was(number):
    codec = JsonCodec()
    told = codec.decode(codec.encode({"n": [number]}).payload)
    assert told == {"n": [number]}
    assert type(told["n"][0]) is int
