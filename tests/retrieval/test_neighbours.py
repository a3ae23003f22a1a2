"""The rules of reuse, against every document there is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.policies.neighbours import SLACK, cone_bound, distance, factor_served, reuse, unit


def rows(rng, n, width):
    found = rng.normal(size=(n, width))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@given(
    shape=st.tuples(st.integers(0, 10_000), st.sampled_from([2, 3, 8, 40]), st.integers(1, 60)),
    kept=st.integers(1, 30),
    k=st.integers(1, 8),
    apart=st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.6]),
)
def test_what_is_proven_is_what_a_search_gives(shape, kept, k, apart):
    seed, width, documents = shape
    rng = np.random.default_rng(seed)
    corpus = rows(rng, documents, width)
    query, noise = rows(rng, 2, width)
    asked = unit(query + apart * noise)
    order = np.argsort(-(corpus @ query), kind="stable")[:kept]
    floor = -math.inf if kept > documents else float(corpus[order[-1]] @ query)
    found = reuse(asked, query, corpus[order], floor=floor, k=k, factor=math.inf)
    if found is None:
        return
    assert found.kind == "proven"
    similarities = np.sort(corpus @ asked)[::-1]
    got = [float(corpus[order[one]] @ asked) for one in found.order[:k]]
    assert got == pytest.approx(similarities[:k].tolist(), abs=2e-6)
    outside = set(range(documents)) - {int(order[one]) for one in found.order}
    assert all(float(corpus[one] @ asked) <= found.floor + SLACK for one in outside)


def test_the_same_query_is_always_proven_where_the_list_goes_on():
    rng = np.random.default_rng(1)
    corpus, (query,) = rows(rng, 30, 8), rows(rng, 1, 8)
    order = np.argsort(-(corpus @ query))[:10]
    floor = float(corpus[order[-1]] @ query)
    found = reuse(query, query, corpus[order], floor=floor, k=4, factor=math.inf)
    assert found.order[:4] == (0, 1, 2, 3)
    assert reuse(query, query, corpus[order], floor=floor, k=11, factor=math.inf) is None


def test_two_queries_are_not_taken_for_one_because_their_product_is_one():
    """Of nearly equal unit vectors, float32 gives 1 for what is less by up to 6e-8."""

    def at(angle):
        return unit([math.cos(angle), math.sin(angle)])

    query, asked = at(0.0), at(2e-4)
    assert float(query @ asked) == 1.0
    inside, outside = at(-0.4998), at(0.50001)
    assert float(outside @ asked) > float(inside @ asked)
    floor = float(outside @ query)
    found = reuse(asked, query, np.stack([inside]), floor=floor, k=1, factor=math.inf)
    assert found is None


def test_the_statistical_rule_serves_where_the_proof_does_not_reach():
    query = unit([1.0, 0.0, 0.0])
    asked = unit([math.cos(0.3), math.sin(0.3), 0.0])
    near = np.stack([unit([0.9, 0.2, 0.1]), unit([0.5, 0.0, 0.9])])
    floor = float(near[1] @ query)
    assert reuse(asked, query, near, floor=floor, k=1, factor=math.inf).kind == "proven"
    assert reuse(asked, query, near, floor=0.95, k=1, factor=math.inf) is None
    assert reuse(asked, query, near, floor=0.95, k=1, factor=0.1).kind == "statistical"
    assert reuse(asked, query, near, floor=0.95, k=1, factor=0.5) is None


def test_a_list_that_is_all_there_is_serves_any_query():
    query, asked = unit([1.0, 0.0]), unit([-1.0, 0.1])
    corpus = np.stack([unit([0.0, 1.0]), unit([-1.0, 0.0])])
    found = reuse(asked, query, corpus, floor=-math.inf, k=5, factor=math.inf)
    assert found.kind == "proven"
    assert found.order == (1, 0)
    nothing = np.zeros((0, 2), dtype=np.float32)
    assert reuse(asked, query, nothing, floor=-math.inf, k=5, factor=math.inf).order == ()


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_the_cone_bound_is_never_below_the_floor_and_never_above_one(floor, similarity):
    bound = cone_bound(floor, similarity)
    assert floor - 1e-9 <= bound <= 1.0


@given(shape=st.tuples(st.integers(0, 999), st.integers(4, 30), st.integers(1, 6)))
def test_the_largest_factor_that_serves_is_where_serving_ends(shape):
    seed, documents, k = shape
    rng = np.random.default_rng(seed)
    corpus, (query, noise) = rows(rng, documents, 8), rows(rng, 2, 8)
    asked = unit(query + 0.4 * noise)
    floor = float((corpus @ query).min())
    largest = factor_served(asked, query, corpus, floor=floor, k=k)
    if documents < k:
        assert largest is None
        return
    for by in (-0.01, 0.01):
        found = reuse(asked, query, corpus, floor=floor, k=k, factor=largest + by)
        if found is None or found.kind == "statistical":
            assert (found is None) == (by > 0)


def test_there_is_no_largest_factor_for_one_query_or_a_list_that_is_all_there_is():
    query, corpus = unit([1.0, 0.0]), np.stack([unit([1.0, 1.0])])
    assert factor_served(query, query, corpus, floor=0.1, k=1) is None
    near = unit([1.0, 0.1])
    assert factor_served(near, query, corpus, floor=-math.inf, k=1) is None
    assert factor_served(near, query, corpus, floor=0.1, k=1) > 0


def test_distances_of_unit_vectors():
    assert distance(1.0) == 0.0
    assert distance(-1.0) == 2.0
    assert distance(1.0000001) == 0.0


@pytest.mark.parametrize(
    "given_", [[], [[1.0]], [0.0, 0.0], [math.nan, 1.0], [math.inf], "ab", None, [None], 3.0]
)
def test_what_has_no_direction_is_no_vector(given_):
    assert unit(given_) is None
    assert unit([3, 4]).tolist() == pytest.approx([0.6, 0.8])
