"""The spread from a store against enumeration, and what it means for tenants."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stemma
from stemma import UsageError
from stemma.propagation.timeline import Moment
from stemma.stores.protocol import Count, Judgement, Serving
from stemma.testing.builders import HOSTILE, NOW, entry, put_one, source

FAMILIES = st.lists(st.sets(st.integers(0, 5), max_size=2), min_size=2, max_size=6)
"""For each entry the places of its parents, of those that were made before."""


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None) as opened:
        yield opened


@pytest.fixture
def store(cache):
    return cache.engine.parts.store


@pytest.fixture
def family(store):
    """An answer of acme, its copy in a pool, what beta built on it; gamma was served the copy."""
    seed = put_one(store, entry("seed", "yes", made=NOW), sources=[source("terms")])
    copy = put_one(store, entry("copy", "yes", pool="shop", made=NOW + 1), parents=[seed])
    child = put_one(store, entry("child", "so", tenant="beta", made=NOW + 3), parents=[copy])
    servings = [
        Serving("copy", "gamma", "exact", 1.0, NOW + 2, "acme", "shop", "answer"),
        Serving("copy", "gamma", "exact", 1.0, NOW + 9, "acme", "shop", "answer"),
        Serving("copy", "beta", "exact", 1.0, NOW + 3, "acme", "shop", "answer"),
    ]
    store.journal(servings, [Count(tenant="gamma", node="answer", outcome="cold", lookups=6)])
    return seed, copy, child


@given(FAMILIES, st.sampled_from([1.0, 0.6]))
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
def test_the_spread_from_a_store_is_that_of_all_ways_the_coins_can_fall(truth, families, likely):
    """Every edge of entries that nobody audited passes on half of what is wrong."""
    with stemma.open(":memory:", embedder=None) as cache:
        store, entries, edges = cache.engine.parts.store, [], []
        for at, places in enumerate(families):
            parents = [entries[place] for place in sorted(places) if place < at]
            made = entry(f"e{at}", f"v{at}", tenant=f"t{at % 3}")
            entries.append(put_one(store, made, parents=parents))
            edges += [(parent.id, f"e{at}", 0.5) for parent in parents]
        found = cache.propagation().spread({"e0": likely})
        expected = truth(edges, {"e0": likely})
        for name, probability in found.probabilities.items():
            assert probability == pytest.approx(expected[name], abs=0.08)
        assert found.probabilities.keys() <= expected.keys()
        held = cache.quarantine({"e0": likely}, by="t", dry_run=True)
        exact = dict(zip(found.likely.names, found.likely.exact.tolist(), strict=True))
        for name, probability in expected.items():
            if exact[name] and name != "e0":
                assert (name in {one.entry for one in held.entries}) == (probability >= 0.3 - 1e-9)


def test_tenants_are_exposed_by_what_they_built_and_by_what_they_were_served(cache, family):
    found = cache.propagation().spread("seed")
    assert found.probabilities == {"seed": 1.0, "copy": 1.0, "child": 0.5}
    told = {one.tenant: one for one in found.exposures}
    assert (told["gamma"].wrong, told["gamma"].share) == (2.0, 2 / 8)  # 2 servings, 6 made itself
    assert (told["beta"].wrong, told["beta"].share) == (1.5, 1.5 / 2)
    assert (told["acme"].wrong, told["acme"].share) == (1.0, 1.0)
    assert found.blast_radius.wrong == 3.5
    assert found.reproduction == 0.0
    nodes = found.graph.nodes
    assert {name: nodes[name]["exposure"] for name in told} == {
        name: one.share for name, one in told.items()
    }
    assert "exposure" not in cache.propagation().graph.nodes["acme"]


def test_entries_are_shown_with_how_likely_they_are_wrong_where_entries_are(cache, family):
    assert ("entry", "seed") not in cache.propagation().spread("seed").graph
    shown = cache.propagation(entries=True).spread("seed").graph
    told = {
        node[1]: data["probability"] for node, data in shown.nodes(data=True) if node[0] == "entry"
    }
    assert told == {"seed": 1.0, "copy": 1.0, "child": 0.5}
    assert shown.edges[("entry", "seed"), ("entry", "copy")]["kind"] == "promoted"


def test_the_cut_names_the_promotion_and_what_it_would_have_cost(cache, store, family):
    cut = cache.propagation().spread("seed").cut()
    assert [(one.parent, one.child) for one in cut.promotions] == [("seed", "copy")]
    assert (cut.uses, cut.stops) == (3.0, True)
    assert str(cut) == "left undone, at a cost of 3, this had stopped it: seed to copy"
    assert not cache.propagation().spread("copy").cut().stops  # it began in the pool
    unused = put_one(store, entry("unused", "yes", pool="other"), parents=[family[0]])
    cut = cache.propagation().spread("seed").cut()
    assert unused.id not in {one.child for one in cut.promotions}


def test_the_time_line_tells_what_happened_in_its_order(cache, store, family):
    store.judge(
        Judgement(
            entry="seed",
            value="yes",
            verdict="hallucinated",
            by="ada",
            confidence=1.0,
            at=NOW + 20,
            tenant="gamma",
        )
    )
    receipt = cache.quarantine("seed", by="ada")
    cache.release(receipt)
    told = [(one.what, one.tenant) for one in cache.propagation().spread("seed").timeline()]
    assert told == [
        ("made", "acme"),
        ("promoted", "acme"),
        ("served", "gamma"),
        ("built", "beta"),
        ("served", "beta"),
        ("reported", "gamma"),
        ("quarantined", ""),
        ("released", ""),
    ]


def test_a_moment_reads_as_a_line():
    served = Moment(0.0, "served", "a\nb", "copy out of pool shop, once")
    assert str(served) == "1970-01-01 00:00:00 UTC served a\\nb: copy out of pool shop, once"
    held = Moment(60.5, "released", "", "quarantine 5f1c")
    assert str(held) == "1970-01-01 00:01:00 UTC released: quarantine 5f1c"


def test_a_seed_that_was_recalled_is_followed_and_its_home_is_known(cache, store, family):
    cache.clear(entry="seed")
    found = cache.propagation().spread("seed")
    assert found.probabilities["copy"] == 1.0
    assert found.homes == {"seed": "acme"}
    assert found.blast_radius.wrong == 3.5
    assert "recalled" in {one.what for one in found.timeline()}


def test_nothing_spreads_through_values_that_follow_from_contents_alone(cache, store, family):
    scores = put_one(store, entry("scores", "s", node="rerank"), parents=[family[0]])
    put_one(store, entry("after", "so"), parents=[scores])
    assert set(cache.propagation().spread("seed").probabilities) == {"seed", "copy", "child"}
    assert cache.quarantine("scores", by="ada", dry_run=True).entries == ()
    assert cache.pollution(entry="seed").partitions["tenant:acme"] == 1


def test_seeds_by_source_and_by_tenant(cache, family):
    assert cache.propagation().spread(source="terms").probabilities["copy"] == 1.0
    assert set(cache.propagation().spread(tenant="beta").probabilities) == {"child"}
    for wrong in ((), ("never",)):
        with pytest.raises(UsageError):
            cache.propagation().spread(*wrong)
    with pytest.raises(UsageError, match="worlds"):
        cache.propagation().spread("seed", worlds=0)


def test_tenants_with_any_names(cache, store):
    for number, name in enumerate(HOSTILE):
        copy = put_one(store, entry(f"c{number}", "x", tenant=name, pool=name))
        put_one(store, entry(f"d{number}", "y", tenant=f"b{number}"), parents=[copy])
    graph = cache.propagation(entries=True).spread(*(f"c{n}" for n in range(len(HOSTILE)))).graph
    assert set(HOSTILE) <= set(graph.nodes)
    assert all(graph.nodes[f"b{number}"]["wrong"] == 0.5 for number in range(len(HOSTILE)))


def test_pollution_over_the_partitions_that_hold_copies_and_descendants(cache, store, family):
    found = cache.pollution(entry="seed")
    assert found.partitions == {"tenant:acme": 1, "pool:shop": 1, "tenant:beta": 1}
    assert (found.bits, found.most) == (pytest.approx(found.most), pytest.approx(1.58496, abs=1e-5))
    assert found.stale == 0.0
    assert cache.pollution(tenant="beta").bits == 0.0
    receipt = cache.quarantine("copy", by="ada")
    assert cache.pollution(entry="seed").stale == pytest.approx(2 / 3)
    cache.release(receipt)
    put_one(store, entry("seed", "no"))  # what was built on the other value is stale
    assert cache.pollution(entry="seed").stale == pytest.approx(2 / 3)
    assert str(cache.pollution(entry="seed")) == (
        "1.58 bits of 1.58, 67% stale: 1 in tenant:acme, 1 in pool:shop, 1 in tenant:beta"
    )
    nothing = cache.pollution(tenant="nobody")
    assert (nothing.partitions, str(nothing)) == (
        {},
        "0.00 bits of 0.00, 0% stale: nothing is stored",
    )


@pytest.mark.parametrize("named", [{}, {"entry": "a", "tenant": "b"}, {"entry": "never"}])
def test_what_pollution_cannot_be_of(cache, named):
    with pytest.raises(UsageError):
        cache.pollution(**named)
