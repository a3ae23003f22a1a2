"""The verifier: two texts that differ score lower, and what is certain refuses."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma import UsageError
from stemma.policies.features import features
from stemma.policies.guards import LONGEST
from stemma.policies.nearness import nearness
from stemma.policies.threshold import Candidate
from stemma.policies.verifier import CERTAIN, FEATURES, SOFT, FeatureVerifier, Verifier, shipped

VERIFIER = FeatureVerifier.read(shipped())


def verify(asked: str, stored: str, similarity: float = 0.95):
    return VERIFIER.verify(asked, Candidate("a", stored, similarity))


def differing(asked: str, stored: str) -> set[str]:
    values = dict(zip(FEATURES, features(asked, stored, 0.9), strict=True))
    return {name for name, value in values.items() if value and name != "nearness"}


@pytest.mark.parametrize(
    ("asked", "stored", "names"),
    [
        ("How do I reset my password?", "How can I reset my password?", set()),
        ("Is 1,000 dollars enough?", "Is $1000 enough?", set()),
        ("new in Python 3.8", "new in Python 3.9", {"number_differs"}),
        ("rooms on floor 5", "rooms on a floor", {"number_missing"}),
        ("the weight in kg", "the weight in pounds", {"unit"}),
        ("safe for dogs", "not safe for dogs", {"negated"}),
        (
            "is this food safe for old dogs",
            "is this toy not safe for old dogs",
            {"negation", "short_edit", "strange"},
        ),
        ("open by default", "closed by default", {"antonym", "short_edit", "strange"}),
        ("Who founded Intel?", "When was Intel founded?", {"asked_otherwise", "order"}),
        (
            "do you ship to Canada and Peru",
            "do you ship to Mexico and Peru",
            {"name_exchanged", "short_edit", "strange"},
        ),
        ("what does `len` do", "what does `str` do", {"literal", "short_edit", "strange"}),
        ("convert miles to feet per hour", "convert feet to miles per hour", {"order"}),
        ("Who is the president?", "Who was the president?", {"small_word"}),
        ("三天内可以退货吗", "七天内可以退货吗", {"number_differs"}),
        ("西部的铁路", "东部的铁路", {"antonym", "short_edit", "strange", "foreign"}),
    ],
)
def test_each_difference_has_its_feature(asked, stored, names):
    assert differing(asked, stored) == names
    assert differing(stored, asked) == names


def test_a_word_exchanged_for_a_far_one_is_stranger_than_one_for_a_near_one():
    texts = "how do I write a long letter to my uncle", "how do I read a long letter to my uncle"
    near, far = (
        features(*texts, similarity)[FEATURES.index("strange")] for similarity in (0.97, 0.85)
    )
    assert 0 < near < far


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_nearness_rises_with_similarity(one, other):
    assert (one < other) <= (nearness(one) <= nearness(other))


@given(st.text(max_size=60), st.text(max_size=60), st.floats(-1, 1))
def test_no_text_scores_above_the_ceiling_of_its_similarity(asked, stored, similarity):
    said = verify(asked, stored, similarity)
    assert said.score <= VERIFIER.ceiling(similarity) + 1e-9
    assert said.refused in {"", *CERTAIN.values()}
    assert said.against in {"", *SOFT.values()}


def test_the_same_question_in_other_words_scores_higher_than_another_question():
    same = verify("How do I cancel my order?", "How can I cancel an order?")
    other = verify("How do I cancel my order?", "How do I cancel my subscription?")
    assert same.score > 1 > other.score
    assert (same.against, other.against) == ("", "guard:word")


@pytest.mark.parametrize(
    ("asked", "stored", "reason"),
    [
        (
            "How long does two-factor login last for 2 users?",
            "How long does two-factor login last for 3 users?",
            "guard:number",
        ),
        ("new in Python 3.8", "new in Python 3.9", "guard:number"),
        ("turn dark mode on", "turn dark mode off", "guard:antonym"),
        ("safe for dogs", "not safe for dogs", "guard:negation"),
        ("Where is Anna buried?", "When was Anna buried?", "guard:question"),
        ("shipping to Canada", "shipping to Mexico", "guard:name"),
        ("Celsius to Fahrenheit", "Fahrenheit to Celsius", "guard:order"),
        ("the weight in kg", "the weight in pounds", "guard:unit"),
        ("退货", "refund", "guard:word"),
        ("x" * (LONGEST + 1), "x" * LONGEST, "guard:word"),
    ],
)
def test_what_is_certain_refuses_at_any_similarity(asked, stored, reason):
    assert verify(asked, stored, 0.999).refused == reason


def test_it_is_a_verifier_and_its_revision_is_that_of_its_weights():
    assert isinstance(VERIFIER, Verifier)
    again = FeatureVerifier.read(json.loads(json.dumps(shipped())))
    assert again.revision == VERIFIER.revision
    weights = {**VERIFIER.weights, "negation": -9.0}
    other = FeatureVerifier(constant=VERIFIER.constant, weights=weights)
    assert other.revision != VERIFIER.revision


def test_the_shipped_record_says_where_it_is_from():
    made = shipped()["made"]
    assert {"by", "on", "seed", "pairs", "streams", "counting"} <= set(made)
    assert made["accepted_by_cross_validation"]


@pytest.mark.parametrize(
    "change",
    [
        {"negation": 0.1},
        {"nearness": -0.1},
        {"negation": "much"},
        {"negation": math.nan},
        {"negation": True},
        {"invented": -1.0},
    ],
)
def test_wrong_weights_are_refused(change):
    with pytest.raises(UsageError):
        FeatureVerifier(constant=0.0, weights={**VERIFIER.weights, **change})


@pytest.mark.parametrize("record", [{}, {"constant": 1.0}, None, []])
def test_what_is_no_record_is_refused(record):
    with pytest.raises(UsageError, match="record"):
        FeatureVerifier.read(record)
