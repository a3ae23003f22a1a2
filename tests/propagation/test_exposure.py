"""Exposure, radius, reproduction and pollution, by hand and against enumeration."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stemma import UsageError
from stemma.propagation.edges import Edges
from stemma.propagation.exposure import (
    BlastRadius,
    blast_radius,
    exposures,
    pollution,
    reproduction,
)
from stemma.propagation.quarantine import THRESHOLD, quarantine
from stemma.propagation.spread import Spread, spread

EDGES = [("a1", "pool", 0.8), ("pool", "b1", 0.5), ("pool", "c1", 0.5), ("b1", "b2", 1.0)]
TENANTS = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "c1": "c"}
ENTRIES = st.integers(0, 4)


def found():
    return spread(Edges.between(EDGES), {"a1": 1.0}, worlds=1)


def known(likely) -> Spread:
    """A spread of which the probabilities are given."""
    return Spread(
        names=tuple(likely),
        probabilities=np.array(list(likely.values()), dtype=float),
        standard_errors=np.zeros(len(likely)),
        exact=np.ones(len(likely), dtype=bool),
    )


def test_each_tenant_is_exposed_as_its_entries_are():
    a, b, c = exposures(found(), TENANTS)
    assert (a.tenant, a.wrong, a.share, a.least, a.most) == ("a", 1.0, 0.5, 1.0, 1.0)
    assert (b.tenant, b.wrong, b.share) == ("b", 0.8, 0.4)
    assert (b.least, b.most) == (0.4, pytest.approx(1 - 0.6**2))
    assert (c.tenant, c.wrong, c.share, c.most) == ("c", 0.4, 0.4, 0.4)


def test_servings_weigh():
    told = exposures(found(), TENANTS, servings={"b1": 10, "b2": 0, "c1": 30})
    assert [(one.tenant, one.wrong, one.share) for one in told] == [
        ("c", 12.0, 0.4),
        ("b", 4.0, 0.4),
        ("a", 0.0, 0.0),
    ]
    with pytest.raises(UsageError, match="servings"):
        exposures(found(), TENANTS, servings={"b1": -1})


def test_the_radius_leaves_out_where_it_began():
    told = exposures(found(), TENANTS)
    radius = blast_radius(told, origin={"a"})
    assert radius.wrong == pytest.approx(1.2)
    assert (radius.least, radius.most) == (pytest.approx(0.8), pytest.approx(1.04))
    assert blast_radius(told).wrong == pytest.approx(2.2)
    assert blast_radius([]) == BlastRadius(wrong=0.0, least=0.0, most=0.0)


@settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    edges=st.lists(st.tuples(ENTRIES, ENTRIES, st.floats(0, 1)), max_size=6),
    whose=st.dictionaries(ENTRIES, st.sampled_from("xy"), min_size=1),
)
def test_that_a_tenant_holds_a_wrong_entry_is_as_likely_as_is_said(worlds_of, edges, whose):
    worlds = list(worlds_of(edges, {0: 0.5, 1: 0.5}))
    true = {n: math.fsum(p for p, wrong in worlds if n in wrong) for n in range(5)}
    for one in exposures(known(true), whose):
        mine = {entry for entry, tenant in whose.items() if tenant == one.tenant}
        some = math.fsum(p for p, wrong in worlds if wrong & mine)
        assert one.least - 1e-9 <= some <= one.most + 1e-9
        assert one.wrong == pytest.approx(math.fsum(p * len(wrong & mine) for p, wrong in worlds))


def test_errors_that_come_back_feed_themselves():
    there = [("a1", "b1", 0.9), ("a2", "b2", 0.5), ("b1", "a1", 0.8)]
    # a has two entries, b two: 1.4 / 2 there, 0.8 / 2 back; b1 to b2 is inside a tenant
    edges = Edges.between([*there, ("b1", "b2", 1.0), ("pool", "a1", 1.0)])
    assert reproduction(edges, TENANTS) == pytest.approx(math.sqrt(0.7 * 0.4))


def test_where_nothing_comes_back_the_number_is_0_and_not_rounding():
    """The eigenvalues of such a matrix are a numerical trap: 1e-16 to the 60th root is 0.54."""
    chain = Edges.between([(at, at + 1, 1.0) for at in range(60)])
    assert reproduction(chain, {at: f"t{at}" for at in range(61)}) == 0.0
    assert reproduction(Edges.between([]), {}) == 0.0
    assert reproduction(Edges.between(EDGES), {}) == 0.0


def test_it_is_the_spectral_radius_of_the_tenants_matrix():
    rng = np.random.default_rng(5)
    parents, children = rng.integers(0, 40, (2, 300))
    rates = rng.random(300)
    whose = dict(enumerate(rng.integers(0, 7, 40).tolist()))
    matrix = np.zeros((7, 7))
    for parent, child, rate in zip(parents.tolist(), children.tolist(), rates, strict=True):
        if whose[parent] != whose[child]:
            matrix[whose[parent], whose[child]] += rate / list(whose.values()).count(whose[parent])
    edges = Edges(names=range(40), parents=parents, children=children, attenuations=rates)
    assert reproduction(edges, whose) == pytest.approx(max(abs(np.linalg.eigvals(matrix))))


def test_pollution_is_0_in_one_partition_and_log2_n_over_n():
    one = pollution({"a": 7, "b": 0})
    assert (one.bits, one.most, one.stale) == (0.0, 0.0, 0.0)
    even = pollution({"a": 3, "b": 3, "c": 3, "d": 3}, stale={"a": 3})
    assert (even.bits, even.most, even.stale) == (2.0, 2.0, 0.25)
    uneven = pollution({"a": 3, "b": 1})
    assert uneven.bits == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))
    assert uneven.most == 1.0
    assert pollution({}) == pollution({"a": 0})


def test_numbers_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="copies in 'a'"):
        pollution({"a": -1})
    with pytest.raises(UsageError, match="stale in 'a'"):
        pollution({"a": 1}, stale={"a": -1})
    with pytest.raises(UsageError, match="more are stale in 'a'"):
        pollution({"a": 1}, stale={"a": 2})


def test_what_is_likely_enough_wrong_is_held_the_likeliest_first():
    held = quarantine(found(), threshold=0.4)
    assert held.held == ("a1", "pool", "b1", "c1", "b2")
    assert held.doubtful == ()
    assert quarantine(found(), threshold=0.41).held == ("a1", "pool")
    assert quarantine(found()).threshold == THRESHOLD
    assert quarantine(known({"a": 0.0})).held == ()


def test_it_says_which_sampling_alone_may_have_put_there():
    diamond = [("a", "b", 1.0), ("a", "c", 1.0), ("b", "d", 1.0), ("c", "d", 1.0)]
    guessed = spread(Edges.between(diamond), {"a": 0.5}, worlds=100)
    likely = guessed.wrong()["d"]
    assert quarantine(guessed, threshold=likely).doubtful == ("d",)
    assert quarantine(guessed, threshold=likely / 2).doubtful == ()


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.1, math.nan, "much"])
def test_a_threshold_out_of_range_is_refused(threshold):
    with pytest.raises(UsageError, match="threshold"):
        quarantine(found(), threshold=threshold)
