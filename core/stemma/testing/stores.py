"""What every store must do: subclass `StoreConformance` and give it your store.

```python
class TestMine(StoreConformance):
    @pytest.fixture
    def store(self):
        store = MyStore(...)
        yield store
        store.close()
```

A store that outlives its process subclasses `PersistentStoreConformance` and gives two hooks more.
A wrapper around a store is a store, and passes the same suite.
"""
# ruff: noqa: S101 - a suite of tests asserts

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stemma.scope import Labels
from stemma.selector import Selector
from stemma.stores.protocol import Count, Judgement, Serving, Store
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source, vector
from stemma.testing.store_arrivals import ArrivalPromises
from stemma.testing.store_entries import EntryPromises
from stemma.testing.store_following import FollowingPromises
from stemma.testing.store_holds import HoldPromises, quarantine
from stemma.testing.store_judgements import JudgementPromises
from stemma.testing.store_lessons import LessonPromises, lesson
from stemma.testing.store_lineage import LineagePromises
from stemma.testing.store_recalls import RecallPromises
from stemma.testing.store_sharing import SharingPromises
from stemma.testing.store_watching import WatchingPromises

__all__ = ["PersistentStoreConformance", "StoreConformance"]


class StoreConformance(
    EntryPromises,
    LineagePromises,
    RecallPromises,
    JudgementPromises,
    ArrivalPromises,
    FollowingPromises,
    LessonPromises,
    WatchingPromises,
    SharingPromises,
    HoldPromises,
):
    """Every promise of `stemma.stores.protocol.Store`, as tests.

    Attributes:
        reach: How many removed vectors the store under test remembers. Make it small: a test
            removes one more.
    """

    reach = 10_000

    @pytest.fixture
    def store(self) -> Store:
        """The store under test: new, empty, open. Override this."""
        raise NotImplementedError("override the fixture `store`")


class PersistentStoreConformance(StoreConformance):
    """The promises of a store that outlives its process."""

    def made(self) -> Store:
        """The store under test, opened at its place: the same one at each call. Override this."""
        raise NotImplementedError("override `made`")

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        """The store under test."""
        store = self.made()
        yield store
        store.close()

    def reopen(self, store: Store) -> Store:
        """Close the store, and open it anew."""
        store.close()
        return self.made()

    def damage(self, id: str, part: str) -> None:
        """Change one stored part of an entry (`payload`, `focus`, …) behind the store's back.

        Override this; the parts asked for are those of `damageable`.
        """
        raise NotImplementedError("override `damage`")

    damageable: tuple[str, ...] = ("payload", "focus", "tenant")

    def test_everything_is_there_after_opening_again(self, store: Store) -> None:
        """Entries, vectors, edges, the source table, the journal and the numbers."""
        root = put_one(store, entry("a", labels=Labels(tags=("t",))), sources=[source()])
        put_one(store, entry("b", focus="?"), parents=[root], vector=vector(1, 0))
        put_one(store, entry("c"), vector=vector(0, 1))
        store.recall(Selector(entry="c"), now=NOW)
        judgement = Judgement(
            entry="b", value="one", verdict="supported", by="t", confidence=0.5, at=NOW
        )
        store.judge(judgement)
        serving = Serving(entry="b", tenant="y", tier="semantic", similarity=0.9, at=NOW)
        count = Count(tenant="y", node="answer", outcome="hit", lookups=3, seconds=0.5, tokens=7)
        store.journal([serving], [count])
        store.learn([lesson("b", "y")])
        store.hold(quarantine("q", "b", "a"))
        store.release(store.hold(quarantine("r", "b")).id, now=NOW)

        def told(store: Store) -> list[object]:
            changes = store.changes(1)
            return [
                store.get(["a", "b", "c"]),
                store.ancestry("b"),
                store.lineage("b"),
                store.children("a"),
                store.find(Selector(tag="t")),
                {name: v.tolist() for name, v in store.vectors(["b"]).items()},
                [*changes.ids, *changes.removed, changes.sequence],
                store.recalls(),
                store.quarantines(),
                store.descent(["a"]),
                store.flows(now=NOW),
                store.judgements(),
                store.lessons("y", "answer"),
                store.servings(),
                store.counts(),
                store.sizes(),
                store.sequence(),
            ]

        before = told(store)
        again = self.reopen(store)
        assert told(again) == before
        again.close()

    def test_a_put_under_way_is_refused_after_opening_again(self, store: Store) -> None:
        """A recall is not forgotten with the process."""
        since = store.sequence()
        store.recall(Selector(tenant="acme"), now=NOW)
        again = self.reopen(store)
        (stored,) = again.put([put(entry(), since=since)], NOW)
        assert stored.refused == "recalled"
        again.close()

    def test_hostile_texts_are_there_after_opening_again(self, store: Store) -> None:
        """As they were."""
        for text in HOSTILE:
            put_one(store, entry(text, tenant=text, focus=text))
        again = self.reopen(store)
        found = again.get(HOSTILE).entries
        assert [found[text].tenant for text in HOSTILE] == list(HOSTILE)
        assert [found[text].focus for text in HOSTILE] == list(HOSTILE)
        again.close()

    def test_a_damaged_record_is_named_and_never_given(self, store: Store) -> None:
        """Whatever part of it was changed; the others are given all the same."""
        put_one(store, entry("sound"))
        for part in self.damageable:
            put_one(store, entry(part, focus="What is a stemma?"))
            self.damage(part, part)
            for asked in ([part], [part, "sound"]):
                fetched = store.get(asked)
                assert fetched.damaged == (part,), part
                assert list(fetched.entries) == asked[1:]
                assert fetched.sequence == store.sequence()
        assert [one.id for one in store.find()] == ["sound"]

    def test_a_damaged_record_is_nobody_s_ancestor(self, store: Store) -> None:
        """What was built on it finds it missing."""
        parent = put_one(store, entry("parent"))
        put_one(store, entry("child"), parents=[parent])
        self.damage("parent", "payload")
        found = store.ancestry("child")
        assert found is not None
        assert set(found.entries) == {"child"}
        assert store.ancestry("parent") is None

    def test_nothing_is_built_on_a_damaged_record(self, store: Store) -> None:
        """A put with such a parent is refused; a judgement finds nothing to judge."""
        parent = put_one(store, entry("parent"))
        self.damage("parent", "payload")
        (stored,) = store.put([put(entry("child"), since=store.sequence(), parents=[parent])], NOW)
        assert stored.refused == "parent_gone"
        judgement = Judgement(
            entry="parent", value="one", verdict="supported", by="t", confidence=1.0, at=NOW
        )
        assert store.judge(judgement) is None

    def test_a_damaged_record_is_replaced_by_a_put(self, store: Store) -> None:
        """And the epoch rises for what was built on it: nobody knows what it said before."""
        put_one(store, entry("b"), parents=[put_one(store, entry("a"))])
        before = store.get([]).epoch
        self.damage("a", "payload")
        put_one(store, entry("a"))
        fetched = store.get(["a"])
        assert fetched.damaged == ()
        assert fetched.entries["a"].value == "one"
        assert fetched.epoch > before

    def test_a_damaged_record_is_removed_and_taken_back_like_any(self, store: Store) -> None:
        """By its id, and with what it was built from."""
        for name in ("a", "b"):
            put_one(store, entry(name), sources=[source()])
            self.damage(name, "payload")
        assert store.remove(["a"]) == 1
        assert len(store.recall(Selector(source="doc-1"), now=NOW)) == 1
        assert store.get(["a", "b"]).damaged == ()

    def test_a_check_removes_what_is_damaged_and_says_so(self, store: Store) -> None:
        """Once; the second check finds nothing."""
        put_one(store, entry("sound"), vector=vector(1, 0))
        put_one(store, entry("a"), vector=vector(1, 0))
        self.damage("a", "payload")
        assert any("damaged" in line for line in store.check())
        assert store.check() == ()
        assert store.get(["a"]).damaged == ()
        assert list(store.get(["sound"]).entries) == ["sound"]
