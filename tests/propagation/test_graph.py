"""The tenants' graph, drawn from a store."""

import math

import pytest

import stemma
from stemma import UsageError
from stemma.entry import Source
from stemma.propagation.graph import HALF_LIFE
from stemma.stores.protocol import Count, Judgement, Serving
from stemma.testing.builders import HOSTILE, NOW, entry, put_one, source
from stemma.tools.resources import kind_of, source_of, sources_of


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None) as opened:
        yield opened


@pytest.fixture
def store(cache):
    return cache.engine.parts.store


def served(one, to, *, at=NOW, similarity=1.0, **rest):
    told = {"producer": one.tenant, "pool": one.pool or "", "node": one.node, **rest}
    return Serving(one.id, to, "exact", similarity, at, **told)


def missed(tenant, many, node="answer", outcome="cold"):
    return Count(tenant=tenant, node=node, outcome=outcome, lookups=many)


def said(one, verdict, *, at=NOW, **rest):
    told = {"by": "audit", "confidence": 1.0, "at": at, "value": one.value, **rest}
    return Judgement(entry=one.id, verdict=verdict, **told)


def promoted(store, original, pool="shop", **rest):
    copy = entry(
        f"{original.id} in {pool}", original.value, tenant=original.tenant, pool=pool, **rest
    )
    copy = put_one(store, copy, parents=[original])
    store.judge(said(copy, "promoted", question=original.id))
    return copy


def test_who_was_served_by_whom_and_how_strongly(cache, store):
    copy = promoted(store, put_one(store, entry("a", "yes")))
    store.journal(
        [
            served(copy, "beta", at=NOW - HALF_LIFE, confidence=0.5),
            served(copy, "beta", similarity=0.8),
            served(copy, "acme"),
        ],
        [missed("beta", 2), missed("beta", 50, node="embedding"), missed("beta", 9, node="rerank")],
    )
    graph = cache.propagation(now=NOW).graph
    assert list(graph.edges) == [("acme", "beta")]
    edge = graph.edges["acme", "beta"]
    assert (edge["kind"], edge["uses"], edge["served"], edge["built"]) == ("served", 2, 2, 0)
    assert edge["strength"] == pytest.approx((0.5 + 0.8) / (2 + 2))
    assert edge["recent"] == pytest.approx(0.25 + 0.8)
    assert (edge["first"], edge["last"], edge["pools"]) == (NOW - HALF_LIFE, NOW, ("shop",))
    assert (edge["attenuation"], edge["deviation"]) == (0.5, pytest.approx(math.sqrt(1 / 12)))
    assert graph.nodes["beta"] == {"kind": "tenant", "label": "beta", "answers": 4, "entries": 0}
    assert graph.nodes["acme"]["entries"] == 2


def test_who_built_on_whom_counts_each_answer_once(cache, store):
    original = put_one(store, entry("a", "yes", confidence=0.5))
    one, two = promoted(store, original, "p1"), promoted(store, original, "p2", confidence=0.5)
    put_one(store, entry("b", "so", tenant="beta", made=NOW - HALF_LIFE), parents=[one, two])
    store.journal([], [missed("beta", 4)])
    edge = cache.propagation(now=NOW).graph.edges["acme", "beta"]
    assert (edge["kind"], edge["uses"], edge["built"]) == ("built", 1, 1)
    assert edge["strength"] in (0.25, 0.125)  # of the parent that is seen first
    assert edge["recent"] == pytest.approx(edge["strength"] * 4 / 2)
    assert edge["pools"] == ("p1", "p2")


def test_pure_values_are_in_no_graph(cache, store):
    one = put_one(store, entry("a", "yes", pool="shop"))
    put_one(store, entry("b", "so", tenant="beta", node="rerank"), parents=[one])
    vector = put_one(store, entry("e", "v", node="embedding"))
    store.journal([served(vector, "beta")], [])
    graph = cache.propagation(entries=True, now=NOW).graph
    assert graph.number_of_edges() == 0
    assert graph.nodes["acme"]["entries"] == 1


def test_a_tenant_in_no_pool_stands_alone(cache, store):
    put_one(store, entry("a", "yes"))
    put_one(store, entry("b", "no", tenant="beta"))
    assert sorted(cache.propagation().graph.nodes) == ["acme", "beta"]
    assert cache.propagation().graph.number_of_edges() == 0


def test_documents_and_tools_that_tenants_share(cache, store):
    for tenant in ("acme", "beta"):
        shared = [source("terms", owner="public"), source("mine", f"mine of {tenant}")]
        read = [
            Source(document=one.document, chunk=one.chunk, content="", owner="public")
            for one in sources_of([("rates", "eur")], "shop")
        ]
        put_one(store, entry(f"1 of {tenant}", "x", tenant=tenant), sources=shared + read)
        put_one(store, entry(f"2 of {tenant}", "y", tenant=tenant))
    graph = cache.propagation().graph
    terms, rates = ("source", "public", "terms"), ("tool", "rates")
    assert {node for node in graph if isinstance(node, tuple)} == {terms, rates}
    assert graph.nodes[terms] == {"kind": "source", "label": "terms"}
    assert graph.nodes[rates] == {"kind": "tool", "label": "rates"}
    for node in (terms, rates):
        edge = graph.edges[node, "beta"]
        assert (edge["kind"], edge["uses"], edge["strength"]) == (node[0], 1, 0.5)
        assert edge["first"] is None
    assert terms not in cache.propagation(sources=False).graph
    assert rates not in cache.propagation(tools=False).graph


@pytest.mark.parametrize(
    "document", ["", "doc", '["resource"', '["resource",1]', '["resource",1,2,[3]]', *HOSTILE]
)
def test_other_documents_are_no_tools(document):
    assert kind_of(document) is None


def test_a_resource_is_known_by_its_first_segment():
    assert kind_of(source_of("search").document) == "search"
    found = {kind_of(one.document) for one in sources_of([("booking", "7"), ("a\x00",)], "t")}
    assert found == {"booking", "a\x00", ""}


def test_entries_that_cross_or_were_promoted(cache, store):
    original = put_one(store, entry("a", "yes"))
    copy = promoted(store, original)
    built = put_one(store, entry("b", "so", tenant="beta"), parents=[copy])
    put_one(store, entry("c", "so", tenant="beta"), parents=[built])
    store.journal([served(copy, "gamma"), served(copy, "acme")], [])
    graph = cache.propagation(entries=True, now=NOW).graph
    a, ac, b = (("entry", one.id) for one in (original, copy, built))
    among = [(x, y, d["kind"], d["attenuation"]) for x, y, d in graph.edges(data=True)]
    assert sorted(among, key=str) == sorted(
        [
            (a, ac, "promoted", 1.0),
            (ac, b, "built", 0.5),
            (ac, "gamma", "served", 1.0),
            ("acme", "beta", "built", 0.5),
            ("acme", "gamma", "served", 0.5),
        ],
        key=str,
    )
    assert graph.nodes[ac]["pool"] == "shop"
    assert not graph.nodes[ac]["held"]
    names = {frozenset(data) for _, _, data in graph.edges(data=True)}
    assert len(names) == 1, "all edges have the same attributes"


def test_audits_tell_how_often_a_wrong_parent_makes_a_wrong_child(cache, store):
    for number in range(3):
        parent = put_one(store, entry(f"p{number}", "wrong", pool="shop"))
        child = put_one(store, entry(f"c{number}", "so", tenant="beta"), parents=[parent])
        store.judge(said(parent, "hallucinated"))
        store.judge(said(child, "hallucinated" if number else "supported"))
    put_one(store, entry("x", "so", tenant="gamma"), parents=[put_one(store, entry("y", pool="s"))])
    graph = cache.propagation(now=NOW).graph
    kind = (2 + 1) / (3 + 2)  # of two right and wrong each that nobody saw, and three that were
    assert graph.edges["acme", "gamma"]["attenuation"] == pytest.approx(kind)
    assert graph.edges["acme", "beta"]["attenuation"] == pytest.approx((2 + 2 * kind) / (3 + 2))
    assert graph.edges["acme", "beta"]["deviation"] < graph.edges["acme", "gamma"]["deviation"]


def test_what_was_said_of_another_value_is_no_audit(cache, store):
    parent = put_one(store, entry("p", "right", pool="shop"))
    child = put_one(store, entry("c", "so", tenant="beta"), parents=[parent])
    store.judge(said(parent, "hallucinated", value="wrong"))
    store.judge(said(child, "hallucinated"))
    store.judge(said(parent, "disagreed", question="another question"))
    assert cache.propagation(now=NOW).graph.edges["acme", "beta"]["attenuation"] == 0.5


def test_the_last_word_counts(cache, store):
    parent = put_one(store, entry("p", "wrong", pool="shop"))
    child = put_one(store, entry("c", "so", tenant="beta"), parents=[parent])
    store.judge(said(parent, "hallucinated"))
    store.judge(said(child, "hallucinated", at=NOW))
    store.judge(said(child, "supported", at=NOW))  # at the same instant
    assert cache.propagation(now=NOW).graph.edges["acme", "beta"]["attenuation"] < 0.5
    store.judge(said(child, "unknown"))
    assert cache.propagation(now=NOW).graph.edges["acme", "beta"]["attenuation"] == 0.5


@pytest.mark.parametrize("bad", [{"now": math.nan}, {"half_life": 0.0}, {"half_life": "week"}])
def test_numbers_out_of_their_range(cache, bad):
    with pytest.raises(UsageError):
        cache.propagation(**bad)
