"""The bar: as low as the judgements allow, and never lower."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.policies.budget import audit_share, lowest_bar
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


def spent(judged, bar, heaviest):
    lost = [(w * bad, w * w * bad) for z, w, bad in judged if z >= bar]
    return sum(one for one, _ in lost) + heaviest + math.sqrt(sum(two for _, two in lost))


@given(judgements, st.integers(1, 5_000), st.sampled_from([0.01, 0.02, 0.05, 0.5]))
def test_the_bar_is_the_lowest_that_stays_within_the_budget(judged, requests, bound):
    scores, weights, wrong = (np.array(one, dtype=float) for one in zip(*judged, strict=True))
    bar = lowest_bar(scores, weights, wrong, requests=requests, bound=bound, heaviest=20.0)
    budget = bound * (requests + 1)
    if math.isfinite(bar):
        assert spent(judged, bar, 20.0) <= budget
    lower = [z for z, _, _ in judged if z < bar]
    if lower:
        assert spent(judged, max(lower), 20.0) > budget


def test_nothing_is_served_before_the_budget_holds_one_audit():
    right = np.ones(50)
    calm = {"scores": np.arange(50.0), "weights": right, "wrong": np.zeros(50), "heaviest": 20.0}
    assert lowest_bar(**calm, requests=998, bound=0.02) == math.inf
    assert lowest_bar(**calm, requests=999, bound=0.02) == 0.0
    assert lowest_bar(**calm, requests=10**6, bound=0.0) == math.inf


@given(st.integers(0, 10**6), st.floats(0.001, 0.5))
def test_audits_become_rarer_and_stay_in_their_range(requests, bound):
    now, later = (
        audit_share(bound, n, least=0.05, most=0.25) for n in (requests, 2 * requests + 1)
    )
    assert 0.05 <= later <= now <= 0.25


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
