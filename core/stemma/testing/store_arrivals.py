"""What every store must do when documents come into an index, and an entry replaces another."""
# ruff: noqa: S101 - a suite of tests asserts, on small numbers

from __future__ import annotations

from dataclasses import replace

import pytest

from stemma.entry import Entry, arrivals
from stemma.selector import Selector
from stemma.stores.protocol import RecallsMany, Store
from stemma.testing.builders import NOW, entry, put, put_one, source

__all__ = ["ArrivalPromises"]


def _retrieval(name: str = "r", value: str = "found", index: str = "docs") -> Entry:
    return entry(name, value, node="retrieval", index=index)


class ArrivalPromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    def test_what_was_searched_before_documents_came_is_refused(self, store: Store) -> None:
        """By its index; a search of another index, and one made since, are not."""
        before = store.sequence()
        barrier = store.recall(Selector(source=arrivals("docs")), now=NOW).sequence
        (late, other) = store.put(
            [put(_retrieval(), since=before), put(_retrieval("o", index="notes"), since=before)],
            NOW,
        )
        assert late.refused == "recalled"
        assert other.entry is not None
        (fresh,) = store.put([put(_retrieval(), since=barrier)], NOW)
        assert fresh.entry is not None

    def test_documents_that_come_take_nothing_back_by_themselves(self, store: Store) -> None:
        """What is stored was looked at by who says that they came."""
        put_one(store, _retrieval(), sources=[source()])
        assert len(store.recall(Selector(source=arrivals("docs")), now=NOW)) == 0
        assert set(store.get(["r"]).entries) == {"r"}
        ancestry = store.ancestry("r")
        assert ancestry is not None
        assert not ancestry.overlooked

    def test_what_was_read_from_the_index_before_is_refused_unless_its_search_stands(
        self, store: Store
    ) -> None:
        """A stored retrieval was looked at when they came: what is built on it may be stored."""
        found = put_one(store, _retrieval(), sources=[source()])
        read = store.sequence()
        store.recall(Selector(source=arrivals("docs")), now=NOW)
        answers = [
            put(entry("alone"), since=read, sources=[source()]),
            put(entry("built"), since=read, parents=[found], sources=[source()]),
            put(entry("elsewhere"), since=read, sources=[source(index="notes")]),
            put(entry("seen"), since=read, sources=[source(index="")]),
        ]
        refused = [one.refused for one in store.put(answers, NOW)]
        assert refused == ["recalled", None, None, None]

    def test_an_entry_that_must_replace_another_replaces_only_that(self, store: Store) -> None:
        """Not one that came since, and nothing where there is nothing."""
        first = put_one(store, _retrieval())
        narrowed = replace(first, payload=b'"less"')
        (done,) = store.put(
            [replace(put(narrowed, since=store.sequence()), replaces=first.sequence)], NOW
        )
        assert done.entry is not None
        (again,) = store.put(
            [replace(put(narrowed, since=store.sequence()), replaces=first.sequence)], NOW
        )
        assert again.refused == "overtaken"
        assert store.get(["r"]).entries["r"].payload == b'"less"'
        nothing = replace(put(_retrieval("n"), since=store.sequence()), replaces=1)
        assert store.put([nothing], NOW)[0].refused == "overtaken"
        assert not store.get(["n"]).entries

    def test_an_entry_that_must_replace_none_does_not(self, store: Store) -> None:
        """Only the first of them comes in."""
        for refused in (None, "overtaken"):
            alone = replace(put(_retrieval(), since=store.sequence()), replaces=0)
            assert store.put([alone], NOW)[0].refused == refused

    def test_a_replacement_with_the_same_value_leaves_its_children_valid(
        self, store: Store
    ) -> None:
        """What was given to them is what it was."""
        first = put_one(store, _retrieval())
        put_one(store, entry("child"), parents=[first])
        epoch = store.get(["r"]).epoch
        narrowed = replace(first, payload=b'"less"')
        store.put([replace(put(narrowed, since=store.sequence()), replaces=first.sequence)], NOW)
        assert store.get(["r"]).epoch == epoch

    def test_entries_are_found_in_portions(self, store: Store) -> None:
        """Newest first, each portion before the last one's oldest."""
        for name in "abcde":
            put_one(store, _retrieval(name))
        selector = Selector(index="docs")
        first = store.find(selector, limit=2)
        second = store.find(selector, limit=2, before=first[-1].sequence)
        third = store.find(selector, limit=2, before=second[-1].sequence)
        assert [one.id for one in (*first, *second, *third)] == list("edcba")
        assert store.find(limit=9, before=third[-1].sequence) == ()

    def test_several_recalls_are_as_good_as_one_after_the_other(self, store: Store) -> None:
        """With a receipt each; what went by the first is not in the second."""
        if not isinstance(store, RecallsMany):
            pytest.skip("this store recalls one at a time")
        a = put_one(store, entry("a"), sources=[source("one", "one")])
        put_one(store, entry("b"), parents=[a], sources=[source("two", "two")])
        put_one(store, entry("c"), sources=[source("two", "two")])
        put_one(store, entry("d"))
        sources = ("one", "two", "three")
        receipts = store.recall_all([Selector(source=one) for one in sources], now=NOW)
        assert [{one.entry for one in receipt.entries} for receipt in receipts] == [
            {"a", "b"},
            {"c"},
            set(),
        ]
        assert [one.sequence for one in receipts] == sorted({one.sequence for one in receipts})
        assert set(store.get(list("abcd")).entries) == {"d"}
        assert {one.selector["source"] for one in store.recalls()} == set(sources)
