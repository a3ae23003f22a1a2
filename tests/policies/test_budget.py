"""The bar: as low as the judgements allow, and never lower."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.policies.budget import SUREST, audit_share, doubts, lowest_bar
from stemma.policies.logistic import fit

judgements = st.lists(
    st.tuples(
        st.floats(-5, 5).map(lambda z: round(z, 1)),
        st.sampled_from([1.0, 4.0, 20.0]),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


def spent(judged, bar):
    """What the module says in words, summed one by one."""
    above = [(1 / (1 + math.exp(z)), w, bad) for z, w, bad in judged if z >= bar]
    above = [(max(SUREST, doubt), w, bad) for doubt, w, bad in above]
    found = 1 + sum(bad for _, _, bad in above)
    expected = 1 + sum(doubt for doubt, _, _ in above)
    told = (found + math.sqrt(found)) / expected * sum(doubt * w for doubt, w, _ in above)
    return max(2 + told, sum(w * bad for _, w, bad in above))


def lowest(judged, **what):
    scores, weights, wrong = (np.array(one, dtype=float) for one in zip(*judged, strict=True))
    return lowest_bar(scores, doubts(scores), weights, wrong, **what)


@given(judgements, st.integers(1, 5_000), st.sampled_from([0.01, 0.02, 0.05, 0.5]))
def test_the_bar_is_the_lowest_that_stays_within_the_budget(judged, requests, bound):
    bar = lowest(judged, requests=requests, bound=bound)
    budget = bound * (requests + 1)
    if math.isfinite(bar):
        assert spent(judged, bar) <= budget + 1e-9
    lower = [z for z, _, _ in judged if z < bar]
    if lower:
        assert spent(judged, max(lower)) > budget - 1e-9


def test_nothing_is_served_before_the_budget_holds_what_a_first_hit_may_cost():
    sure = [(9.0, 20.0, False)]
    cost = spent(sure, 9.0)
    enough = math.ceil(cost / 0.02)
    assert lowest(sure, requests=enough - 2, bound=0.02) == math.inf
    assert lowest(sure, requests=enough, bound=0.02) == 9.0
    assert lowest(sure, requests=10**6, bound=0.0) == math.inf
    assert lowest(sure, requests=98, bound=0.02) == math.inf, "not even two wrong hits"
    none = np.empty(0)
    assert lowest_bar(none, none, none, none, requests=10**6, bound=0.5) == math.inf


def test_scores_that_say_too_much_are_not_believed():
    """Sure by their scores, and one in ten is wrong: the bar goes over them."""
    told = [(5.0 + 0.001 * n, 20.0, n % 10 == 0) for n in range(200)]
    kept = [(z, w, False) for z, w, _ in told]
    assert lowest(kept, requests=4_000, bound=0.02) == 5.0
    assert lowest(told, requests=4_000, bound=0.02) > 5.1


def test_wrong_ones_count_as_many_times_as_they_stand_for_where_that_is_more():
    """Hundreds were right before; then the audits, few as they are, find the same scores wrong."""
    before = [(3.0, 1.0, False)] * 300
    now = [*before, *[(3.0, 40.0, True)] * 3]
    assert lowest(before, requests=1_000, bound=0.05) == 3.0
    assert lowest(now, requests=1_000, bound=0.05) == math.inf
    assert lowest(now, requests=2_400, bound=0.05) == 3.0


@given(st.floats(-40, 40), st.floats(0, 10), st.sampled_from([0.001, 0.01, 0.5]))
def test_the_doubtful_are_audited_more_often_than_the_sure(score, less, bound):
    sure, doubtful = (audit_share(one, bound, usual=0.05) for one in (score, score - less))
    assert 0 < sure <= doubtful <= 0.25
    assert audit_share(score, bound, usual=0.8) >= sure


def test_as_doubtful_as_the_bound_is_audited_as_usual():
    at = math.log(0.98 / 0.02)
    assert audit_share(at, 0.02, usual=0.05) == pytest.approx(0.05)
    assert audit_share(20.0, 0.02, usual=0.05) == pytest.approx(0.025)
    assert audit_share(-20.0, 0.02, usual=0.05) == 0.25
    assert doubts(np.array([at, 50.0, -50.0])) == pytest.approx([0.02, SUREST, 1.0])


def test_the_fit_finds_the_curve_and_stays_at_the_prior_without_rows():
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.ones(4_000), rng.normal(size=4_000)])
    right = (rng.random(4_000) < 1 / (1 + np.exp(-(0.5 + 2.0 * rows[:, 1])))).astype(float)
    found = fit(rows, right, np.ones(4_000), prior=np.zeros(2), ridge=0.01)
    assert found == pytest.approx([0.5, 2.0], abs=0.15)
    prior = np.array([1.0, -2.0])
    none = fit(np.empty((0, 2)), np.empty(0), np.empty(0), prior=prior, ridge=1.0)
    assert none == pytest.approx(prior)


def test_the_fit_is_finite_where_a_line_parts_right_from_wrong():
    rows = np.column_stack([np.ones(20), np.arange(20.0)])
    right = (np.arange(20) >= 10).astype(float)
    found = fit(rows, right, np.ones(20), prior=np.zeros(2), ridge=1e-3)
    assert np.isfinite(found).all()
    assert found[1] > 1
