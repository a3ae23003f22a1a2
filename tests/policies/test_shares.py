"""How likely so many wrong ones are: after many judgements as after few."""

import math

import pytest

from stemma.policies.learning import Judgement, Trial
from stemma.policies.shares import at_least
from stemma.policies.standing import KNOWN
from stemma.policies.verified import VerifiedPolicy
from stemma.policies.verifier import shipped


@pytest.mark.parametrize(
    ("wrong", "judged", "share"),
    [(0, 9, 0.1), (1, 9, 0.1), (4, 9, 0.3), (9, 9, 0.5), (2, 40, 0.04)],
)
def test_it_is_the_binomial_tail(wrong, judged, share):
    tail = sum(
        math.comb(judged, k) * share**k * (1 - share) ** (judged - k)
        for k in range(wrong, judged + 1)
    )
    assert at_least(wrong, judged, share) == pytest.approx(tail, abs=1e-12)


def test_what_never_or_always_happens_is_no_surprise():
    assert at_least(0, 5, 0.0) == at_least(5, 5, 1.0) == at_least(0, 0, 0.0) == 1.0
    assert at_least(1, 5, 0.0) == 0.0


@pytest.mark.parametrize(("judged", "share"), [(1_200, 0.6), (5_000, 0.04), (100_000, 0.1)])
def test_it_holds_for_as_many_judgements_as_there_may_be(judged, share):
    expected = round(judged * share)
    assert at_least(expected, judged, share) == pytest.approx(0.5, abs=0.05)
    assert at_least(round(1.3 * expected), judged, share) < 0.01


def test_a_policy_goes_on_learning_after_thousands_of_judgements():
    policy = VerifiedPolicy(0.3, embedder=shipped()["embedder"])
    clear = tuple(float(name == "clear") for name in KNOWN)
    for number in range(2_500):
        trial = Trial(candidate="a", known=clear, weight=1.0, audit=True)
        policy.learn(Judgement(trial=trial, right=number % 2 == 0, by="equal"))
    assert policy.record()["doubts"] == [2_500, 1_250]
