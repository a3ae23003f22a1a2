"""What every store must do when something is taken back or judged."""
# ruff: noqa: S101, PLR2004 - a suite of tests asserts, on small numbers

from __future__ import annotations

from typing import Any

import pytest

from stemma.outcome import Recall
from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.protocol import Judgement, Store
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source, vector

__all__ = ["RecallPromises", "judged", "went"]


def went(recall: Recall) -> set[str]:
    """The ids that a recall took back."""
    return {one.entry for one in recall.entries}


def judged(value: str = "one", verdict: Any = "hallucinated", name: str = "a") -> Judgement:
    """A judgement of an entry."""
    return Judgement(
        entry=name, value=value, verdict=verdict, by="reviewer", confidence=0.9, at=NOW
    )


class RecallPromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    @pytest.mark.parametrize(
        "parts",
        [
            {"entry": "mine"},
            {"tenant": "t"},
            {"tag": "red"},
            {"writer": "w"},
            {"subject": "s"},
            {"model": "m"},
            {"index": "i"},
            {"source": "doc-9"},
            {"source": "chunk-9"},
            {"node": "call"},
            {"tenant": "t", "node": "call", "tag": "red"},
        ],
    )
    def test_a_recall_takes_what_is_named(self, store: Store, parts: dict[str, str]) -> None:
        """By each part of a selector, and nothing else."""
        put_one(
            store,
            entry(
                "mine",
                tenant="t",
                node="call",
                model="m",
                index="i",
                labels=Labels(tags=("red", "blue"), writer="w", subject="s"),
            ),
            sources=[source("doc-9", "chunk-9")],
        )
        put_one(store, entry("other", labels=Labels(tags=("blue",))), sources=[source()])
        receipt = store.recall(Selector(**parts), now=NOW)
        assert went(receipt) == {"mine"}
        assert set(store.get(["mine", "other"]).entries) == {"other"}
        assert dict(receipt.selector) == parts
        assert receipt.sequence == store.sequence()

    def test_the_parts_of_a_selector_are_a_conjunction(self, store: Store) -> None:
        """One tenant's recall of a document leaves the other tenants' answers."""
        for name, tenant in (("a", "x"), ("b", "y")):
            put_one(store, entry(name, tenant=tenant), sources=[source("doc", "chunk")])
        put_one(store, entry("c", tenant="x"), sources=[source("other", "other")])
        assert went(store.recall(Selector(source="doc", tenant="x"), now=NOW)) == {"a"}

    def test_a_document_stands_for_all_its_chunks(self, store: Store) -> None:
        """And a chunk for itself alone."""
        put_one(store, entry("a"), sources=[source("doc", "one")])
        put_one(store, entry("b"), sources=[source("doc", "two"), source("doc", "three")])
        assert went(store.recall(Selector(source="two"), now=NOW, dry_run=True)) == {"b"}
        assert went(store.recall(Selector(source="doc"), now=NOW)) == {"a", "b"}

    def test_a_recall_takes_everything_built_on_it(self, store: Store) -> None:
        """Over nodes, hops and tenants, each entry once, and nothing beside it."""
        root = put_one(store, entry("root", node="retrieval"), sources=[source("doc", "chunk")])
        call = put_one(store, entry("call", node="call"), parents=[root])
        answer = put_one(store, entry("answer", tenant="y"), parents=[root, call])
        hop = put_one(store, entry("hop", node="hop", hop=2, tenant="z"), parents=[answer])
        put_one(store, entry("deep", node="hop", hop=3), parents=[hop, call])
        put_one(store, entry("beside"), sources=[source("elsewhere", "elsewhere")])
        receipt = store.recall(Selector(source="doc"), now=NOW)
        assert went(receipt) == {"root", "call", "answer", "hop", "deep"}
        assert len(receipt) == 5
        assert receipt.by_hop == {1: 3, 2: 1, 3: 1}
        assert receipt.by_tenant == {"acme": 3, "y": 1, "z": 1}
        assert [one.id for one in store.find()] == ["beside"]

    def test_a_recall_follows_a_chain_of_a_hundred(self, store: Store) -> None:
        """Depth is no limit."""
        above = put_one(store, entry("0"))
        for number in range(1, 100):
            above = put_one(store, entry(str(number)), parents=[above])
        assert len(store.recall(Selector(entry="0"), now=NOW)) == 100
        assert store.find() == ()

    def test_a_recall_follows_what_went_before(self, store: Store) -> None:
        """An answer is built from a document also where the step between them is gone."""
        middle = put_one(store, entry("middle"), sources=[source("doc", "chunk")])
        put_one(store, entry("end"), parents=[middle])
        store.remove(["middle"])
        assert went(store.recall(Selector(source="doc"), now=NOW)) == {"end"}

    def test_a_rehearsal_writes_nothing(self, store: Store) -> None:
        """It lists what would go, and all of it stays; nobody is refused for it."""
        root = put_one(store, entry("a"), vector=vector(1, 0))
        put_one(store, entry("b"), parents=[root])
        before = (store.sequence(), store.get([]).epoch)
        receipt = store.recall(Selector(entry="a"), now=NOW, dry_run=True)
        assert receipt.dry_run
        assert went(receipt) == {"a", "b"}
        assert (store.sequence(), store.get([]).epoch) == before
        assert receipt.sequence == before[0]
        assert set(store.get(["a", "b"]).entries) == {"a", "b"}
        assert store.recalls() == ()
        put_one(store, entry("c"), parents=[root], since=0)

    def test_a_rehearsal_lists_what_then_goes(self, store: Store) -> None:
        """The receipt of the recall is the rehearsal's list."""
        root = put_one(store, entry("a", tenant="x"))
        put_one(store, entry("b", node="hop", hop=4), parents=[root])
        rehearsal = store.recall(Selector(tenant="x"), now=NOW, dry_run=True)
        assert store.recall(Selector(tenant="x"), now=NOW).entries == rehearsal.entries

    def test_without_a_cascade_only_what_is_named_goes(self, store: Store) -> None:
        """A clearing is never wider than what is named."""
        root = put_one(store, entry("a", tenant="x"))
        put_one(store, entry("b", tenant="y"), parents=[root])
        receipt = store.recall(Selector(tenant="x"), now=NOW, cascade=False)
        assert went(receipt) == {"a"}
        assert [one.id for one in store.find()] == ["b"]

    def test_a_lineage_is_readable_after_a_recall(self, store: Store) -> None:
        """How an error spread can be told afterwards."""
        root = put_one(store, entry("a"), sources=[source("doc", "chunk")])
        put_one(store, entry("b"), parents=[root])
        known = (store.lineage("a"), store.lineage("b"))
        store.recall(Selector(entry="a"), now=NOW)
        assert (store.lineage("a"), store.lineage("b")) == known
        assert store.children("a") == ()

    def test_recalls_are_journalled(self, store: Store) -> None:
        """Newest first, with what went, also where nothing did; rehearsals are not."""
        put_one(store, entry("a", node="hop", hop=2))
        first = store.recall(Selector(entry="a"), now=NOW)
        store.recall(Selector(tenant="nobody"), now=NOW, dry_run=True)
        second = store.recall(Selector(tag="none", tenant="nobody"), now=NOW)
        assert store.recalls() == (second, first)
        assert store.recalls(limit=1) == (second,)
        assert second.sequence > first.sequence

    def test_a_hostile_recall_takes_its_own(self, store: Store) -> None:
        """A recall of a hostile text takes the entry of that text, and no other."""
        for number, text in enumerate(HOSTILE):
            put_one(store, entry(f"e{number}"), sources=[source(text, f"chunk {number}")])
        for number, text in enumerate(HOSTILE):
            assert went(store.recall(Selector(source=text), now=NOW)) == {f"e{number}"}
        assert [dict(one.selector)["source"] for one in reversed(store.recalls())] == list(HOSTILE)

    @pytest.mark.parametrize(
        "parts",
        [
            {"tenant": "t"},
            {"tag": "red"},
            {"writer": "w"},
            {"subject": "s"},
            {"model": "m"},
            {"index": "i"},
            {"entry": "a"},
            {"entry": "parent"},
            {"source": "doc-9"},
            {"source": "chunk-9"},
            {"source": "doc-9", "tenant": "t"},
        ],
    )
    def test_a_put_under_way_is_refused(self, store: Store, parts: dict[str, str]) -> None:
        """What was looked up before a recall and is covered by it is not stored after it."""
        parent = put_one(store, entry("parent"))
        since = store.sequence()
        store.recall(Selector(**parts), now=NOW)
        put_one(store, parent)
        (stored,) = store.put([self._covered(since, parent)], NOW)
        assert (stored.entry, stored.refused) == (None, "recalled")
        assert store.get(["a"]).entries == {}
        (again,) = store.put([self._covered(store.sequence(), parent)], NOW)
        assert again.entry is not None

    @pytest.mark.parametrize(
        "parts",
        [
            {"tenant": "other"},
            {"tag": "green"},
            {"writer": "s"},
            {"model": "i"},
            {"entry": "b"},
            {"source": "doc-8"},
            {"source": "doc-9", "tenant": "other"},
            {"tag": "red", "node": "hop"},
        ],
    )
    def test_a_recall_of_something_else_refuses_nothing(
        self, store: Store, parts: dict[str, str]
    ) -> None:
        """A put under way goes through, if the recall does not cover it."""
        parent = put_one(store, entry("parent"))
        since = store.sequence()
        store.recall(Selector(**parts), now=NOW)
        (stored,) = store.put([self._covered(since, parent)], NOW)
        assert stored.entry is not None

    @staticmethod
    def _covered(since: int, parent: Any) -> Any:
        labels = Labels(tags=("red", "blue"), writer="w", subject="s")
        mine = entry("a", tenant="t", model="m", index="i", labels=labels)
        return put(mine, since=since, parents=[parent], sources=[source("doc-9", "chunk-9")])

    def test_each_element_counts_from_its_own_reading(self, store: Store) -> None:
        """A source or parent read after the recall is not refused for it, one read before is."""
        parent = put_one(store, entry("parent"))
        before = store.sequence()
        store.recall(Selector(source="doc-1"), now=NOW)
        after = store.sequence()
        for read, refused in ((before, "recalled"), (after, None)):
            one = put(entry(), since=before, sources=[source()], read_at={"chunk-1": read})
            assert store.put([one], NOW)[0].refused == refused
        store.recall(Selector(entry="parent"), now=NOW)
        put_one(store, parent)
        for read, refused in ((after, "recalled"), (store.sequence(), None)):
            one = put(entry(), since=after, parents=[parent], read_at={"parent": read})
            assert store.put([one], NOW)[0].refused == refused

    def test_a_late_lookup_does_not_excuse_an_early_reading(self, store: Store) -> None:
        """What was read in the frame before the lookup counts from then."""
        early = store.sequence()
        store.recall(Selector(source="doc-1"), now=NOW)
        late = store.sequence()
        one = put(entry(), since=late, sources=[source()], read_at={"chunk-1": early})
        assert store.put([one], NOW)[0].refused == "recalled"

    def test_a_parent_taken_back_by_cascade_refuses_its_children(self, store: Store) -> None:
        """Also where it is there again with the same value."""
        root = put_one(store, entry("root"), sources=[source("doc", "chunk")])
        parent = put_one(store, entry("parent"), parents=[root])
        since = store.sequence()
        store.recall(Selector(source="doc"), now=NOW)
        put_one(store, entry("parent"))
        (stored,) = store.put([put(entry("child"), since=since, parents=[parent])], NOW)
        assert stored.refused == "recalled"

    def test_the_journal_of_recalls_refuses_for_ever(self, store: Store) -> None:
        """Many later recalls do not make an earlier one forgotten."""
        since = store.sequence()
        store.recall(Selector(source="doc-1"), now=NOW)
        for number in range(50):
            store.recall(Selector(source=f"other {number}"), now=NOW)
        assert store.put([put(entry(), since=since, sources=[source()])], NOW)[0].refused

    def test_a_verdict_is_set_and_journalled(self, store: Store) -> None:
        """On the entry with that value, and on it alone."""
        put_one(store, entry("a"))
        put_one(store, entry("b"))
        before = store.sequence()
        changed = store.judge(judged())
        assert changed is not None
        assert changed.verdict == "hallucinated"
        found = store.get(["a", "b"]).entries
        assert found["a"] == changed
        assert found["b"].verdict == "unknown"
        assert store.sequence() > before
        assert store.judge(judged(verdict="supported")) is not None
        assert store.get(["a"]).entries["a"].verdict == "supported"

    def test_a_verdict_on_another_value_is_journalled_only(self, store: Store) -> None:
        """An entry is not quarantined for what it said before; an unknown one is no error."""
        put_one(store, entry("a", "two"))
        before = store.get([]).epoch
        assert store.judge(judged("one")) is None
        assert store.judge(judged(name="nobody")) is None
        assert store.get(["a"]).entries["a"].verdict == "unknown"
        assert store.get([]).epoch == before
        assert len(store.judgements()) == 2

    def test_judgements_are_read_newest_first(self, store: Store) -> None:
        """All of them or one entry's, as they were given."""
        first, second, third = judged("1"), judged("2", "supported", "b"), judged("3", "unknown")
        for one in (first, second, third):
            store.judge(one)
        assert store.judgements() == (third, second, first)
        assert store.judgements(entry="a") == (third, first)
        assert store.judgements(entry="a", limit=1) == (third,)
