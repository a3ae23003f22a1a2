"""The threshold policy: near enough, and no guard objects."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.errors import UsageError
from stemma.outcome import REASONS
from stemma.policies.threshold import Candidate, Policy, ThresholdPolicy, probability

SIMILARITY = st.floats(-1, 1)


def test_it_is_a_policy():
    policy = ThresholdPolicy()
    assert isinstance(policy, Policy)
    assert (policy.name, policy.depth) == ("threshold", 8)


def test_nothing_stored_is_cold():
    decision = ThresholdPolicy().decide("How do I log in?", [])
    assert (decision.accepted, decision.reason, decision.nearest) == ((), "cold", None)


def test_the_threshold_is_inclusive():
    at = ThresholdPolicy(0.9).decide("a", [Candidate("x", "a", 0.9)])
    below = ThresholdPolicy(0.9).decide("a", [Candidate("x", "a", math.nextafter(0.9, 0))])
    assert [one.id for one in at.accepted] == ["x"]
    assert at.reason == ""
    assert below.accepted == ()
    assert below.reason == "below_threshold"
    assert (below.nearest, below.similarity) == ("x", math.nextafter(0.9, 0))


def test_the_most_similar_comes_first_whatever_the_order_given():
    asked = "How do I log in?"
    candidates = [Candidate(str(at), asked, at / 100) for at in (91, 99, 95)]
    accepted = ThresholdPolicy(0.9).decide(asked, candidates).accepted
    assert [one.id for one in accepted] == ["99", "95", "91"]
    assert accepted[0].probability > accepted[1].probability > accepted[2].probability
    assert "0.990" in accepted[0].why


def test_a_guard_refuses_the_nearest_and_the_next_is_served():
    decision = ThresholdPolicy(0.9).decide(
        "How do I enable it?",
        [
            Candidate("no", "How do I disable it?", 0.99),
            Candidate("yes", "How can I enable it?", 0.95),
        ],
    )
    assert [one.id for one in decision.accepted] == ["yes"]
    assert decision.nearest == "no"


def test_a_refusal_names_the_nearest_and_why():
    decision = ThresholdPolicy(0.9).decide(
        "How do I enable it?", [Candidate("no", "How do I disable it?", 0.99)]
    )
    assert decision.reason == "guard:antonym"
    assert decision.nearest == "no"
    assert "enable" not in decision.detail
    assert decision.reason in REASONS


def test_zero_leaves_everything_to_the_guards():
    policy = ThresholdPolicy(0)
    assert policy.decide("tell me a joke", [Candidate("x", "tell me a joke!", -0.3)]).accepted
    assert policy.decide("tell me a joke", [Candidate("x", "what is 1+1", 0.1)]).reason.startswith(
        "guard:"
    )


def test_one_asks_for_the_same_meaning():
    """Vectors are kept as float16, so the same text is not quite at 1."""
    policy = ThresholdPolicy(1)
    assert policy.decide("a", [Candidate("x", "a", 0.9995)]).accepted
    assert not policy.decide("a", [Candidate("x", "a", 0.998)]).accepted


def test_without_guards_the_threshold_decides_alone():
    candidates = [Candidate("x", "How do I disable it?", 0.99)]
    assert ThresholdPolicy(0.9, guards=False).decide("How do I enable it?", candidates).accepted


@pytest.mark.parametrize("similarity", [math.nan, math.inf, -math.inf])
def test_a_similarity_that_is_none_is_no_candidate(similarity):
    assert ThresholdPolicy(0).decide("a", [Candidate("x", "a", similarity)]).reason == "cold"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "from 0 to 1"),
        (math.inf, "from 0 to 1"),
        (True, "bool"),
        ("0.9", "str"),
        (None, "NoneType"),
        (90, "give 0.9"),
        (1.2, "not a distance"),
        (-0.1, "not a distance"),
    ],
)
def test_a_wrong_threshold_is_refused_with_a_word_of_help(value, said):
    with pytest.raises(UsageError, match=said):
        ThresholdPolicy(value)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.float64(0.25)])
def test_a_number_from_0_to_1_is_a_threshold(value):
    assert ThresholdPolicy(value).threshold == float(value)


def test_guards_is_a_truth_value():
    with pytest.raises(UsageError, match="guards"):
        ThresholdPolicy(0.9, guards="no")


@given(st.floats(0, 1), st.lists(SIMILARITY, max_size=10))
def test_nothing_below_the_threshold_is_accepted(threshold, similarities):
    candidates = [Candidate(str(at), "a", value) for at, value in enumerate(similarities)]
    accepted = ThresholdPolicy(threshold).decide("a", candidates).accepted
    if threshold > 0:
        assert all(one.similarity >= min(threshold, 0.999) for one in accepted)
    assert [one.similarity for one in accepted] == sorted(
        (one.similarity for one in accepted), reverse=True
    )


@given(SIMILARITY, SIMILARITY)
def test_the_probability_rises_with_the_similarity(one, other):
    low, high = sorted((one, other))
    assert 0 < probability(low) <= probability(high) < 1


def test_no_text_is_in_a_repr():
    assert "secret" not in repr(Candidate("x", "my secret question", 0.9))
