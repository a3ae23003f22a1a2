"""Confidence falls with age, rises with audits that agree, and has a floor."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma import UsageError
from stemma.policies.confidence import ConfidencePolicy, likelihood

stored = st.floats(0, 1)
audits = st.integers(0, 50)


@given(stored, st.floats(0, 1e6), audits, audits)
def test_it_is_a_share_that_age_lowers_and_audits_move(value, age, agreed, disagreed):
    policy = ConfidencePolicy(half_life=3_600.0)
    now = policy.confidence(value, age=age, agreed=agreed, disagreed=disagreed)
    assert 0 <= now <= 1
    assert policy.confidence(value, age=age + 60, agreed=agreed, disagreed=disagreed) <= now
    assert policy.confidence(value, age=age, agreed=agreed + 1, disagreed=disagreed) >= now
    assert policy.confidence(value, age=age, agreed=agreed, disagreed=disagreed + 1) <= now


def test_the_floor_is_inclusive_and_nought_refuses_none():
    policy = ConfidencePolicy()
    assert not policy.refuses(0.5)
    assert policy.refuses(0.49)
    assert not policy.refuses(0.49, agreed=1)
    assert policy.refuses(0.6, disagreed=4)
    assert not ConfidencePolicy(floor=0.0).refuses(0.0, age=1e9)


def test_half_is_left_after_half_a_life():
    policy = ConfidencePolicy(half_life=100.0)
    assert policy.confidence(0.8, age=100.0) == pytest.approx(0.4)
    assert policy.confidence(0.8, age=-5.0) == pytest.approx(0.8)


@pytest.mark.parametrize(
    "wrong",
    [{"floor": -0.1}, {"floor": 1.1}, {"half_life": 0}, {"half_life": "x"}, {"stored_as": 0}],
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError):
        ConfidencePolicy(**wrong)


@pytest.mark.parametrize(
    ("logprobs", "sure"),
    [
        ([0.0], 1.0),
        ([math.log(0.5)] * 3, 0.5),
        ([math.log(0.25), 0.0], 0.5),
        ([None, math.log(0.5), "x", True, float("nan"), 0.1], 0.5),
        ([-9999.0], math.exp(-20)),
        ([-math.inf, 0.0], math.exp(-10)),
        ([], None),
        ([None], None),
    ],
)
def test_a_reply_is_as_sure_as_its_tokens_in_the_geometric_mean(logprobs, sure):
    assert likelihood(logprobs) == (None if sure is None else pytest.approx(sure))
