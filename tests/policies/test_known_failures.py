"""Failures that users of other caches reported, as decisions."""

import pytest

from stemma.errors import UsageError
from stemma.policies.threshold import Candidate, ThresholdPolicy


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("How do I disable two-factor login?", "How do I enable two-factor login?"),
        ("Is port 6379 closed by default?", "Is port 6379 open by default?"),
        ("turn dark mode on", "turn dark mode off"),
    ],
)
def test_the_opposite_is_refused_however_near(asked, stored):
    """A1: a bi-encoder puts opposites closer than paraphrases."""
    assert not ThresholdPolicy(0.9).decide(asked, [Candidate("x", stored, 0.999)]).accepted


def test_a_plain_paraphrase_still_hits():
    """A1, the other side."""
    stored = Candidate("x", "How do I enable two-factor login?", 0.97)
    assert ThresholdPolicy(0.9).decide("How can I enable two-factor login?", [stored]).accepted


def test_four_short_questions_about_functions_do_not_answer_each_other():
    """A2: one shared key word must not do."""
    questions = (
        "What is the function of a TV?",
        "What is the function of money?",
        "What is the function of a TV antenna?",
        "What is the function of a heart?",
    )
    for asked in questions:
        candidates = [Candidate(text, text, 1.0 if text == asked else 0.95) for text in questions]
        accepted = ThresholdPolicy(0).decide(asked, candidates).accepted
        assert [one.id for one in accepted] == [asked]


def test_a_joke_is_not_arithmetic_at_any_threshold():
    """A3: 0.9 taken as a distance accepts nearly everything."""
    for threshold in (0.0, 0.1, 0.9, 1.0):
        decision = ThresholdPolicy(threshold).decide("tell me a joke", [Candidate("x", "1+1", 0.2)])
        assert not decision.accepted


def test_the_units_of_a_threshold_are_said():
    """A3: one unit, and who uses another is told so."""
    with pytest.raises(UsageError, match="distance"):
        ThresholdPolicy(1.8)
    with pytest.raises(UsageError, match="percentage"):
        ThresholdPolicy(85)


def test_zero_and_one_do_what_is_documented():
    """53: elsewhere 0 was documented as 'no hits' and accepted everything, unguarded."""
    near, far = Candidate("near", "log in", 0.9999), Candidate("far", "log in", 0.5)
    assert [one.id for one in ThresholdPolicy(0).decide("log in", [near, far]).accepted] == [
        "near",
        "far",
    ]
    assert [one.id for one in ThresholdPolicy(1).decide("log in", [near, far]).accepted] == ["near"]
