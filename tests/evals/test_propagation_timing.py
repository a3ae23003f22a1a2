"""Audits of timing: two samples are told apart if they differ, and p-values are uniform if not."""

import json
import math
from itertools import count

import numpy as np
import pytest
from evals.propagation.apart import p_apart, p_uniform
from evals.propagation.hiding import WAYS, kept, waits
from evals.propagation.timing import Tenants, audited, trials
from scipy import stats

from evals import propagation


def test_the_p_values_of_samples_that_do_not_differ_are_uniform():
    rng = np.random.default_rng(1)
    values = [p_apart(rng.normal(size=20), rng.normal(size=20), rng) for _ in range(2_000)]
    assert stats.kstest(values, "uniform").pvalue > 0.01
    assert p_uniform(np.array(values), rng) > 0.01


def test_equal_values_are_no_difference():
    rng = np.random.default_rng(2)
    values = [p_apart(np.ones(20), np.ones(20), rng) for _ in range(2_000)]
    assert stats.kstest(values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("shift", [0.0, 0.3, 1.0])
def test_the_p_value_is_at_most_that_of_the_textbook_and_reaches_it(shift):
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=50), shift + rng.normal(size=50)
    values = [p_apart(one, other, rng) for _ in range(200)]  # coins decide about equal draws
    assert max(values) == pytest.approx(stats.ks_2samp(one, other).pvalue, abs=0.02)


def test_values_that_are_not_uniform_are_found():
    rng = np.random.default_rng(4)
    assert p_uniform(rng.random(100) ** 2, rng) < 0.001
    assert p_uniform(np.array([0.5]), rng) > 0.9


def leaking(by):
    """Two tenants of whom the second is quicker by so much where the first has asked the same."""
    rng, known = np.random.default_rng(5), set()
    return Tenants(known.add, lambda text: rng.normal() - by * (text in known))


@pytest.mark.parametrize(("by", "uniform"), [(0.0, True), (1.0, False)])
def test_a_leak_is_noticed_and_none_is_not(by, uniform):
    rng, tenants, numbers = np.random.default_rng(6), leaking(by), count()
    found = audited([trials(tenants, numbers, rng, probes=50) for _ in range(20)], rng)
    assert (found["p of the p-values being uniform"] > 0.01) is uniform
    assert found["AUC of one lookup"] == pytest.approx(0.76 if by else 0.5, abs=0.04)


def test_a_hit_that_waits_as_long_as_a_miss_is_not_told_from_it():
    rng = np.random.default_rng(7)
    hits, misses = rng.normal(100, 5, size=1_000), rng.normal(5_000, 50, size=1_000)
    found = waits(hits, misses, audits=20, rng=rng)
    assert list(found) == list(WAYS)
    at_once, mean, drawn = (found[name] for name in WAYS)
    assert at_once["AUC of one answer"] == 1.0
    assert mean["share of audits below 0.05"] == 1.0
    assert drawn["AUC of one answer"] == pytest.approx(0.5, abs=0.05)
    assert drawn["share of audits below 0.05"] < 0.5
    assert drawn["seconds that a hit takes, mean"] > 0.5
    assert 0.5 < kept(rng) < 1.0


def test_the_part_gives_figures_that_can_be_written_down():
    found = propagation.measured("timing", size=0.01, seed=3)
    assert not found.skipped
    assert all(math.isfinite(figure.value) for figure in found.figures)
    assert json.loads(json.dumps(found.details))
