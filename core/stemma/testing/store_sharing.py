"""What every store must tell of how answers travel between tenants."""
# ruff: noqa: S101, PLR2004 - a suite of tests asserts, on small numbers

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest

from stemma.entry import Edge, Entry, Lineage, Offer
from stemma.request import Key
from stemma.selector import Selector
from stemma.stores.protocol import Judgement, Put, Serving, Store
from stemma.stores.sharing import Flow, Shared
from stemma.testing.builders import HOSTILE, NOW, entry, put_one, source

__all__ = ["SharingPromises"]

_Row = tuple[object, ...]


def _offer(place: str, pool: str = "support") -> Offer:
    return Offer(pool=pool, place=Key(f"partition of {pool}", f"group of {pool}", place))


def _put_edges(store: Store, name: str, parents: Sequence[str], tenant: str = "acme") -> Entry:
    """An entry with parents by their ids, which need not be earlier ones."""
    edges = tuple(Edge(parent=one, value="one") for one in parents)
    one = Put(
        entry=entry(name, tenant=tenant), lineage=Lineage(parents=edges), since=store.sequence()
    )
    (stored,) = store.put([one], NOW)
    assert stored.entry is not None, stored.detail
    return stored.entry


def _rows(flows: Iterable[Flow]) -> list[_Row]:
    """Flows without their sums, which are compared by themselves."""
    return [(*one[:6], one.first, one.last) for one in flows]


def _sums(flows: Iterable[Flow]) -> list[tuple[float, float]]:
    return [(one.weight, one.recent) for one in flows]


def _flows(
    servings: Sequence[Serving], now: float, half_life: float | None, by_entry: bool
) -> list[Flow]:
    """As `Sharing.flows`, looked up one by one."""
    found: dict[tuple[str, ...], list[Serving]] = defaultdict(list)
    for one in servings:
        entry = one.entry if by_entry else ""
        found[one.producer, one.tenant, one.pool, one.node, entry].append(one)
    flows = []
    for key in sorted(found):
        of = found[key]
        weights = [max(one.similarity, 0.0) * max(one.confidence, 0.0) for one in of]
        ages = [max(now - one.at, 0.0) for one in of]
        halves = [1.0 if half_life is None else 0.5 ** (age / half_life) for age in ages]
        recent = math.fsum(w * h for w, h in zip(weights, halves, strict=True))
        times = [one.at for one in of]
        producer, consumer, pool, node, name = key
        flows.append(
            Flow(
                producer,
                consumer,
                pool,
                node,
                name,
                uses=len(of),
                weight=math.fsum(weights),
                recent=recent,
                first=min(times),
                last=max(times),
            )
        )
    return flows


class SharingPromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    def test_who_made_what_was_served_comes_back(self, store: Store) -> None:
        """Producer, pool, node and confidence, with whatever text in them."""
        given = [Serving(text, text, "exact", 0.5, NOW, text, text, text, 0.25) for text in HOSTILE]
        store.journal(given, [])
        assert list(store.servings())[::-1] == given

    def test_in_whose_name_it_was_said_comes_back(self, store: Store) -> None:
        """And how far who said it was believed."""
        given = [
            Judgement(
                entry=text,
                value="one",
                verdict="hallucinated",
                by=text,
                confidence=1.0,
                at=NOW,
                tenant=text,
                weight=0.625,
            )
            for text in HOSTILE
        ]
        for one in given:
            store.judge(one)
        assert list(store.judgements(limit=len(given)))[::-1] == given

    def test_an_offer_comes_back_and_is_found(self, store: Store) -> None:
        """By its place alone, the oldest first; what is offered elsewhere or nowhere is not."""
        first = put_one(store, entry("a", tenant="x", offer=_offer("here")))
        put_one(store, entry("b", tenant="x", offer=_offer("there")))
        put_one(store, entry("c", tenant="x"))
        last = put_one(store, entry("d", tenant="y", offer=_offer("here")))
        assert store.get(["a"]).entries["a"] == first
        assert store.offered("here") == (first, last)
        assert store.offered("here", limit=1) == (first,)
        assert store.offered("here", limit=0) == ()
        assert store.offered("nowhere") == ()

    def test_an_offer_ends_with_its_entry(self, store: Store) -> None:
        """Where it goes, or is replaced by one that is not offered there."""
        for name in ("a", "b", "c", "d"):
            put_one(store, entry(name, offer=_offer("here")))
        store.remove(["a"])
        store.recall(Selector(entry="b"), now=NOW)
        put_one(store, entry("c"))
        put_one(store, entry("d", offer=_offer("there")))
        assert store.offered("here") == ()
        assert [one.id for one in store.offered("there")] == ["d"]

    def test_hostile_texts_are_offered_apart(self, store: Store) -> None:
        """As pools and as places."""
        for text in HOSTILE:
            put_one(store, entry(text, offer=_offer(text, text)))
        for text in HOSTILE:
            (found,) = store.offered(text)
            assert (found.id, found.offer) == (text, _offer(text, text))

    def test_a_descent_is_every_edge_below(self, store: Store) -> None:
        """Over all generations, each once, whichever way leads there; nothing beside or above."""
        for name, parents in (
            ("root", ""),
            ("beside", ""),
            ("a", ["root"]),
            ("b", ["root", "beside"]),
            ("c", ["a", "b"]),
            ("d", ["c", "a"]),
            ("other", ["beside"]),
        ):
            _put_edges(store, name, list(parents))
        found = store.descent(["root"])
        assert len(found) == len(set(found))
        assert set(found) == {
            ("root", "a"),
            ("root", "b"),
            ("a", "c"),
            ("b", "c"),
            ("c", "d"),
            ("a", "d"),
        }
        assert set(store.descent(["c", "beside", "c"])) == {
            ("c", "d"),
            ("beside", "b"),
            ("beside", "other"),
            ("b", "c"),
        }
        assert store.descent(["d", "nobody"]) == store.descent([]) == ()

    def test_a_descent_goes_on_below_what_went(self, store: Store) -> None:
        """Children are stored, parents need not be: the edge to one that went is not there."""
        for name, parents in (("a", []), ("b", ["a"]), ("c", ["b"])):
            _put_edges(store, name, parents)
        store.remove(["b"])
        assert store.descent(["a"]) == (("b", "c"),)
        assert store.descent(["b"]) == (("b", "c"),)

    def test_a_descent_in_a_circle_ends(self, store: Store) -> None:
        """Also where an entry is its own parent."""
        put_one(store, entry("a"))
        _put_edges(store, "b", ["a"])
        _put_edges(store, "a", ["b"])
        _put_edges(store, "b", ["a"])
        assert set(store.descent(["a"])) == {("a", "b"), ("b", "a")}
        put_one(store, entry("self"))
        _put_edges(store, "self", ["self"])
        assert store.descent(["self"]) == (("self", "self"),)
        assert ("self", "self") not in store.crossed()

    def test_edges_that_cross_are_those_between_tenants(self, store: Store) -> None:
        """Between stored entries, the newest children first."""
        _put_edges(store, "a", [], "x")
        _put_edges(store, "b", ["a"], "x")
        _put_edges(store, "c", ["a", "b"], "y")
        _put_edges(store, "d", ["c"], "y")
        _put_edges(store, "e", ["c"], "X")
        found = store.crossed()
        assert found[0] == ("c", "e")
        assert set(found[1:]) == {("a", "c"), ("b", "c")}
        assert len(found) == 3
        assert store.crossed(limit=1) == (("c", "e"),)
        assert store.crossed(limit=0) == ()
        store.remove(["a"])
        assert store.crossed() == (("c", "e"), ("b", "c"))

    def test_a_copy_into_a_pool_crosses_nothing(self, store: Store) -> None:
        """It counts as of who made it; what another tenant builds on it crosses."""
        made = put_one(store, entry("a", tenant="x"))
        copy = put_one(store, entry("copy", tenant="x", pool="support"), parents=[made])
        put_one(store, entry("b", tenant="y"), parents=[copy])
        assert store.crossed() == (("copy", "b"),)

    def test_a_document_is_shared_by_several_tenants(self, store: Store) -> None:
        """Or read by others than its owner; each entry counts once, however many chunks it read."""
        public = [source("doc-1", chunk, owner="public") for chunk in ("1", "2")]
        for name, tenant, sources in (
            ("a", "x", public),
            ("b", "x", public[:1]),
            ("c", "y", public),
            ("d", "x", [source("doc-2", owner="public")]),
            ("e", "x", [source("doc-3")]),
            ("f", "y", [source("doc-3")]),
            ("g", "y", [source("doc-4", owner="tenant:x")]),
        ):
            put_one(store, entry(name, tenant=tenant), sources=sources)
        assert store.shared() == (
            Shared("public", "doc-1", "x", 2),
            Shared("public", "doc-1", "y", 1),
            Shared("tenant:x", "doc-4", "y", 1),
        )
        store.remove(["c", "g"])
        assert store.shared() == ()

    def test_hostile_texts_are_shared_apart(self, store: Store) -> None:
        """As documents; each is read by two tenants."""
        for tenant in ("x", "y"):
            for text in HOSTILE:
                read = source(text, owner="pool:p", index="")
                put_one(store, entry(f"{tenant}{text}", tenant=tenant), sources=[read])
        found = store.shared()
        assert len(found) == 2 * len(HOSTILE)
        assert {one.document for one in found} == set(HOSTILE)
        assert {one.entries for one in found} == {1}

    @pytest.mark.parametrize("half_life", [None, 1.0, 1e6])
    def test_flows_are_servings_added_up(self, store: Store, half_life: float | None) -> None:
        """By producer, consumer, pool and node; of some entries, by these as well."""
        chance = random.Random(7)  # noqa: S311 - no secret
        few = (*HOSTILE[:12], "", "z")
        servings = [
            Serving(
                entry=chance.choice(few),
                tenant=chance.choice(few[8:]),
                tier="semantic",
                similarity=chance.uniform(-0.5, 1.0),
                at=NOW + chance.choice((5.0, -1.0, -2.5, -1000.0)),
                producer=chance.choice(few[8:]),
                pool=chance.choice(("", "support")),
                node=chance.choice(("answer", "hop")),
                confidence=chance.random(),
            )
            for _ in range(400)
        ]
        for start in range(0, 400, 100):
            store.journal(servings[start : start + 100], [])
        some = few[:3]
        for given, entries, by_entry in (
            (servings, None, False),
            ([one for one in servings if one.entry in some], some, True),
        ):
            found = store.flows(now=NOW, half_life=half_life, entries=entries)
            expected = _flows(given, NOW, half_life, by_entry)
            assert _rows(found) == _rows(expected)
            for one, other in zip(_sums(found), _sums(expected), strict=True):
                assert one == pytest.approx(other, rel=1e-9, abs=1e-12)

    def test_of_no_servings_there_are_no_flows(self, store: Store) -> None:
        """Nor of entries that were never served."""
        assert store.flows(now=NOW) == ()
        store.journal([Serving("a", "y", "exact", 1.0, NOW, "x")], [])
        assert store.flows(now=NOW, entries=["b"]) == store.flows(now=NOW, entries=[]) == ()
        (one,) = store.flows(now=NOW)
        assert one == Flow("x", "y", "", "", "", 1, 1.0, 1.0, NOW, NOW)
