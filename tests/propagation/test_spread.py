"""The spread against every way the coins can fall, on small graphs; and on great ones that it ends."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stemma import UsageError
from stemma.propagation.edges import Edges
from stemma.propagation.spread import bound, sampled, spread

CHANCES = st.sampled_from((0.0, 0.1, 0.3, 0.5, 0.8, 1.0))
ENTRIES = st.integers(0, 4)
SEEDS = st.dictionaries(ENTRIES, CHANCES, max_size=2)
ANY = st.lists(st.tuples(ENTRIES, ENTRIES, CHANCES), max_size=7)
THOROUGH = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
DIAMOND = [("a", "b", 1.0), ("a", "c", 1.0), ("b", "d", 1.0), ("c", "d", 1.0)]


@st.composite
def trees(draw):
    """Graphs that are trees when no one looks at the arrows."""
    edges = []
    for node in range(1, draw(st.integers(2, 6))):
        ends = (draw(st.integers(0, node - 1)), node)
        edges.append((*(ends if draw(st.booleans()) else ends[::-1]), draw(CHANCES)))
    return edges


def graph(edges) -> Edges:
    return Edges.between(edges, also=range(5))


def off(found, true) -> dict:
    likely = dict(zip(found.names, found.probabilities.tolist(), strict=True))
    return {name: likely[name] - true.get(name, 0.0) for name in found.names}


@THOROUGH
@given(edges=ANY, seeds=SEEDS)
def test_what_is_called_exact_is_and_the_rest_is_within_its_error(truth, edges, seeds):
    true = truth(edges, seeds)
    for way in (spread, sampled):
        found = way(graph(edges), seeds, worlds=4096, seed=1)
        for (name, wrong), exact, error in zip(
            off(found, true).items(), found.exact, found.standard_errors, strict=True
        ):
            assert abs(wrong) <= (1e-9 if exact else 6 * error), (way.__name__, name)
            assert (error == 0.0) == exact


@THOROUGH
@given(edges=ANY, seeds=SEEDS)
def test_no_probability_exceeds_the_bound(truth, edges, seeds):
    found = bound(graph(edges), seeds, tolerance=1e-7, rounds=20_000)
    assert min(off(found, truth(edges, seeds)).values()) >= -1e-5


@THOROUGH
@given(edges=trees(), seeds=SEEDS)
def test_on_trees_the_bound_is_exact_and_nothing_is_sampled(truth, edges, seeds):
    found = spread(graph(edges), seeds, worlds=1)
    assert found.exact.all()
    assert max(map(abs, off(found, truth(edges, seeds)).values())) <= 1e-12


def test_a_shared_ancestor_makes_the_bound_too_high_and_the_estimate_not():
    edges, seeds = Edges.between(DIAMOND), {"a": 0.5}
    assert bound(edges, seeds).wrong()["d"] == 0.75
    found = spread(edges, seeds, worlds=10_000)
    assert found.wrong()["d"] == pytest.approx(0.5, abs=0.03)
    assert found.exact.tolist() == [True, True, True, False]
    assert found.wrong()["b"] == 0.5


def test_a_certain_ancestor_does_no_harm():
    edges = Edges.between([(p, c, 0.5) for p, c, _ in DIAMOND])
    found = spread(edges, {"a": 1.0}, worlds=1)
    assert found.exact.all()
    assert found.wrong() == {"a": 1.0, "b": 0.5, "c": 0.5, "d": 1 - 0.75**2}


def test_a_circle_echoes_in_the_bound_and_not_in_the_sample():
    edges = Edges.between([("a", "b", 0.9), ("b", "a", 0.9)])
    assert bound(edges, {"a": 0.1}).wrong()["a"] == pytest.approx(0.1 / (1 - 0.9 * 0.81), abs=1e-6)
    found = spread(edges, {"a": 0.1}, worlds=20_000)
    assert found.wrong() == pytest.approx({"a": 0.1, "b": 0.09}, abs=0.01)


def test_a_circle_is_gone_round_until_all_in_it_know():
    edges = Edges.between([("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0), ("b", "d", 1.0)])
    found = sampled(edges, {"a": 1e-9, "c": 1.0}, worlds=8)
    assert found.wrong() == dict.fromkeys("abcd", 1.0)


def test_a_circle_that_does_not_settle_is_an_error_and_is_sampled():
    edges = Edges.between([("a", "b", 1.0), ("b", "a", 1.0)])
    with pytest.raises(UsageError, match="not settled to 1e-12 in 50 rounds"):
        bound(edges, {"a": 1e-4}, tolerance=1e-12, rounds=50)
    assert spread(edges, {"a": 1e-6}).wrong().get("b", 0.0) < 0.01


@pytest.mark.parametrize("circle", [False, True])
def test_no_depth_is_too_deep(circle):
    depth = 30_000
    places = np.arange(depth)
    ends = (places + 1) % depth if circle else places + 1
    edges = Edges(
        names=range(depth + 1), parents=places, children=ends, attenuations=np.ones(depth)
    )
    found = sampled(edges, {0: 1.0}, worlds=8)
    assert found.probabilities[:depth].tolist() == [1.0] * depth
    assert spread(edges, {0: 0.5, 1: 1.0}, worlds=8).probabilities[depth - 1] == 1.0
    if not circle:
        assert bound(edges, {0: 0.25}).probabilities[-1] == 0.25


def test_an_edge_to_itself_changes_nothing():
    edges = Edges.between([("a", "a", 1.0), ("a", "b", 0.5)])
    assert spread(edges, {"a": 0.5}, worlds=1).wrong() == {"a": 0.5, "b": 0.25}


def test_two_edges_between_the_same_are_two_ways():
    edges = Edges.between([("a", "b", 0.5), ("a", "b", 0.5)])
    assert spread(edges, {"a": 1.0}, worlds=1).wrong()["b"] == 0.75
    assert spread(edges, {"a": 0.5}, worlds=20_000).wrong()["b"] == pytest.approx(0.375, abs=0.02)


def test_where_nothing_is_there_is_nothing_wrong():
    for way in (spread, bound, sampled):
        assert way(Edges.between([]), {}).wrong() == {}
        assert way(Edges.between([], also=["a"]), {"a": 0.0}).wrong() == {}
        assert way(Edges.between([], also=["a"]), {"a": 1.0}).wrong() == {"a": 1.0}


def test_names_may_be_anything():
    hostile = ["", "a\nb", "<x>&\"'", "\x00", "日本", ("t", 1), 0, None, "DROP TABLE"]
    edges = Edges.between([(p, c, 1.0) for p, c in pairwise(hostile)])
    assert list(spread(edges, {"": 1.0}).wrong()) == hostile


def test_the_same_seed_gives_the_same_and_another_something_else():
    edges = Edges.between([(p, c, 0.5) for p, c, _ in DIAMOND])
    one, same, other = (
        sampled(edges, {"a": 0.5}, seed=seed).probabilities.tolist() for seed in (1, 1, 2)
    )
    assert one == same != other


def test_a_graph_of_networkx_is_taken_with_its_lonely_entries():
    given = nx.DiGraph([("a", "b", {"attenuation": 0.5})])
    given.add_node("c")
    assert list(Edges.of(given).names) == ["a", "b", "c"]
    assert spread(Edges.of(given), {"a": 1.0}).wrong() == {"a": 1.0, "b": 0.5}
    with pytest.raises(UsageError, match="must be directed"):
        Edges.of(nx.Graph(given))
    with pytest.raises(UsageError, match="'a' to 'b' has no 'weight'"):
        Edges.of(given, attenuation="weight")


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_number_that_is_no_probability_is_refused(value):
    with pytest.raises(UsageError):
        Edges.between([("a", "b", value)])
    with pytest.raises(UsageError):
        spread(Edges.between([("a", "b", 0.5)]), {"a": value})


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": "aa"},
        {"parents": [0, 1]},
        {"parents": [-1]},
        {"children": [2]},
        {"children": [0.5]},
        {"attenuations": ["much"]},
        {"attenuations": [[0.5]]},
    ],
)
def test_edges_that_make_no_graph_are_refused(wrong):
    right = {"names": "ab", "parents": [0], "children": [1], "attenuations": [0.5]}
    assert len(Edges(**right).parents) == 1
    with pytest.raises(UsageError):
        Edges(**{**right, **wrong})


def test_arguments_out_of_range_are_refused():
    edges = Edges.between([("a", "b", 0.5)])
    with pytest.raises(UsageError, match="'gone' is no entry"):
        spread(edges, {"gone": 1.0})
    for worlds in (0, -1, 1.5, True, 1 << 30):
        with pytest.raises(UsageError, match="worlds"):
            sampled(edges, {"a": 1.0}, worlds=worlds)
    with pytest.raises(UsageError, match="rounds"):
        bound(edges, {"a": 1.0}, rounds=0)
    with pytest.raises(UsageError, match="tolerance"):
        bound(edges, {"a": 1.0}, tolerance=0.0)


def test_what_was_given_is_not_changed_and_cannot_be_changed_inside():
    parents = np.array([0])
    edges = Edges(names="ab", parents=parents, children=[1], attenuations=[1.0])
    parents[0] = 1
    assert spread(edges, {"a": 1.0}).wrong() == {"a": 1.0, "b": 1.0}
    with pytest.raises(ValueError, match="read-only"):
        edges.attenuations[0] = 0.0
