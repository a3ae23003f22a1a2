"""The smallest cut against every set of promotions there is."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stemma import UsageError
from stemma.propagation.cut import Cut, Promotion, smallest_cut

ENTRIES = st.integers(0, 5)
TENANTS = {0: "home", 1: "home", 4: "b", 5: "c"}  # 2 and 3 are a pool's


def crosses(edges, seeds) -> bool:
    reached, before = set(seeds), -1
    while len(reached) != before:
        before = len(reached)
        reached |= {child for parent, child in edges if parent in reached}
    home = {TENANTS[seed] for seed in seeds if seed in TENANTS}
    return any(TENANTS.get(one, "home") not in home | {"home"} for one in reached)


def promotions(pairs):
    return [Promotion(parent=p, child=c, uses=uses) for p, c, uses in pairs]


@settings(deadline=None, max_examples=150)
@given(
    offered=st.lists(
        st.tuples(ENTRIES, ENTRIES, st.integers(0, 5)), max_size=7, unique_by=lambda one: one[:2]
    ),
    built=st.lists(st.tuples(ENTRIES, ENTRIES), max_size=4),
    seeds=st.sampled_from([{0}, {1}, {0, 1}]),
)
def test_none_is_cheaper_and_it_does_stop_it(offered, built, seeds):
    found = smallest_cut(promotions(offered), built, TENANTS, seeds=seeds)
    cheapest = min(
        (
            sum(uses for _, _, uses in cut)
            for many in range(len(offered) + 1)
            for cut in itertools.combinations(offered, many)
            if not crosses([*built, *(e[:2] for e in offered if e not in cut)], seeds)
        ),
        default=None,
    )
    assert found.stops == (cheapest is not None)
    if found.stops:
        assert found.uses == cheapest == sum(one.uses for one in found.promotions)
        kept = [
            (p, c)
            for p, c, _ in offered
            if (p, c) not in {(x.parent, x.child) for x in found.promotions}
        ]
        assert not crosses([*built, *kept], seeds)


def test_a_narrow_place_is_found():
    into = [Promotion(parent=0, child=2, uses=3), Promotion(parent=1, child=2, uses=3)]
    on = Promotion(parent=2, child=3, uses=4)
    found = smallest_cut([*into, on], [(3, 4), (3, 5)], TENANTS, seeds=[0, 1])
    assert found == Cut(promotions=(on,), uses=4.0, stops=True)
    assert smallest_cut([*into, on], [(3, 4)], TENANTS, seeds=[0]).promotions == (into[0],)


def test_what_was_promoted_twice_is_cut_twice():
    twice = [Promotion(parent=0, child=4, uses=1), Promotion(parent=0, child=4, uses=2)]
    assert smallest_cut(twice, [], TENANTS, seeds=[0]) == Cut(
        promotions=tuple(twice), uses=3.0, stops=True
    )


def test_a_shared_source_is_no_promotion():
    found = smallest_cut([Promotion(parent=0, child=2)], [(0, 5)], TENANTS, seeds=[0])
    assert found == Cut(promotions=(), uses=0.0, stops=False)
    assert "crossed without one" in str(found)


def test_where_nothing_crosses_nothing_is_cut():
    nothing = Cut(promotions=(), uses=0.0, stops=True)
    assert smallest_cut([], [], {}, seeds=[]) == nothing
    assert "no other tenant was reached" in str(nothing)
    assert smallest_cut([], [(0, 0), (0, 1)], TENANTS, seeds=[0]) == nothing
    assert smallest_cut([Promotion(parent=0, child=0)], [], TENANTS, seeds=[0]) == nothing


def test_names_may_be_anything():
    one = Promotion(parent="s\n<", child=("", 0))
    found = smallest_cut([one], [(("", 0), "\x00")], {"s\n<": "", "\x00": "b"}, seeds=["s\n<"])
    assert found.promotions == (one,)


@pytest.mark.parametrize("uses", [-1, float("nan"), float("inf"), "many"])
def test_a_cost_that_is_none_is_refused(uses):
    with pytest.raises(UsageError, match="uses"):
        Promotion(parent=0, child=1, uses=uses)
