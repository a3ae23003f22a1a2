"""`python -m evals propagation --part pools` and `attacks_on_pools`, small; and that they notice."""

import random

from evals.propagation import attacks_on_pools
from evals.propagation.halueval import Answered
from evals.propagation.pools import ALONE, TENANTS, given, shared

from evals import propagation
from stemma import PoolPolicy
from stemma.grounding import GroundingCheck
from stemma.policies import pools

ITEMS = [
    Answered(
        question=f"Where do returns of kind {number} go?",
        sources=(f"Returns of kind {number} go to Leeds. Ask at the till.",),
        right="Leeds",
        hallucinated="They go to Oslo, by sea.",
    )
    for number in range(40)
]


def test_an_error_of_one_is_outvoted_and_one_of_all_is_not():
    asked = given(ITEMS, seed=1)
    rare = [one for one in asked if sum(one.wrong) == 1]
    all_wrong = [one for one in asked if sum(one.wrong) == TENANTS]
    assert rare
    assert all_wrong
    assert 0 < ALONE < 1
    check = GroundingCheck()
    assert shared(rare, PoolPolicy(), check)["hallucinated"] == 0
    assert shared(all_wrong, PoolPolicy(), check)["hallucinated"] == 1
    assert shared(all_wrong, PoolPolicy(grounding=0.5), check)["hallucinated"] == 0
    assert shared(rare, PoolPolicy(grounding=0.5), check)["right"] == 1


def test_no_attempt_succeeds():
    measured = propagation.measured("attacks_on_pools", size=0.02, seed=1)
    assert measured.details["colluding"] == {"2 tenants": False, "3 tenants": True}
    assert [figure.met for figure in measured.figures] == [True]


def test_a_pool_that_believes_tenants_one_by_one_is_seen(monkeypatch):
    """Were principals not asked for, many tenants of one would do."""
    attack = attacks_on_pools.ATTACKS["as many tenants of one principal"]
    assert not attacks_on_pools.attempt(attack, random.Random(2))
    monkeypatch.setattr(pools, "independent", tuple)
    assert attacks_on_pools.attempt(attack, random.Random(2))
