"""What every store must know of where entries came from, and what it may conclude from it."""
# ruff: noqa: S101, PLR2004 - a suite of tests asserts, on small numbers

from __future__ import annotations

import pytest

from stemma.entry import Edge, Lineage, SourceEdge
from stemma.selector import Selector
from stemma.stores.protocol import Judgement, Put, Store
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, source

__all__ = ["LineagePromises"]


class LineagePromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    def test_a_lineage_comes_back_as_it_was(self, store: Store) -> None:
        """Parents and sources, observed and ambient, in their order."""
        for name in ("a", "b"):
            put_one(store, entry(name))
        given = Lineage(
            parents=(
                Edge(parent="b", value="one", known="observed"),
                Edge(parent="a", value="one", known="ambient"),
            ),
            sources=(
                SourceEdge(source=source("d2", "c2", owner="public"), known="observed"),
                SourceEdge(source=source("d1", "c1", owner="pool:x", index=""), known="ambient"),
            ),
        )
        store.put([Put(entry=entry("child"), lineage=given, since=store.sequence())], NOW)
        assert store.lineage("child") == given
        assert store.lineage("a") == Lineage()
        assert store.lineage("nobody") is None

    def test_a_source_of_nobody_is_the_reader_s(self, store: Store) -> None:
        """An empty owner is stored as the entry's tenant."""
        put_one(store, entry("a", tenant="x"), sources=[source(owner="")])
        put_one(store, entry("b", tenant="y"), sources=[source(owner="public")])
        owners = []
        for name in ("a", "b"):
            known = store.lineage(name)
            assert known is not None
            owners.append(known.sources[0].source.owner)
        assert owners == ["tenant:x", "public"]

    def test_a_lineage_outlives_its_entry(self, store: Store) -> None:
        """It stays readable after a removal, and is replaced by the next put."""
        parent = put_one(store, entry("a"))
        put_one(store, entry("b"), parents=[parent], sources=[source(owner="public")])
        known = store.lineage("b")
        store.remove(["b"])
        assert known
        assert store.lineage("b") == known
        put_one(store, entry("b"))
        assert store.lineage("b") == Lineage()

    def test_children_are_the_stored_entries_built_on_one(self, store: Store) -> None:
        """Not their children, not those that went, not those rebuilt on something else."""
        root = put_one(store, entry("root"))
        for name in ("a", "b", "c"):
            put_one(store, entry(name), parents=[root])
        put_one(store, entry("deep"), parents=[entry("a")])
        store.remove(["b"])
        put_one(store, entry("c"))
        assert store.children("root") == ("a",)
        assert store.children("a") == ("deep",)
        assert store.children("nobody") == ()

    def test_hostile_names_are_nobody_else_s_parents_or_sources(self, store: Store) -> None:
        """Each hostile id has its own child, and each hostile source its own reader."""
        for number, text in enumerate(HOSTILE):
            put_one(store, entry(text))
            read = source(text, f"chunk {number}", content=text, owner=f"tenant:{text}")
            put_one(store, entry(f"child {number}"), parents=[entry(text)], sources=[read])
        for number, text in enumerate(HOSTILE):
            assert store.children(text) == (f"child {number}",)
            found = store.ancestry(f"child {number}")
            assert found is not None
            assert set(found.entries) == {text, f"child {number}"}
            assert dict(found.current) == {(f"tenant:{text}", "docs", f"chunk {number}"): text}

    def test_a_parent_must_be_there(self, store: Store) -> None:
        """A put whose parent was never stored, or went, is refused."""
        gone = put_one(store, entry("gone"))
        store.remove(["gone"])
        for parent in (entry("never"), gone):
            (stored,) = store.put([put(entry("b"), since=store.sequence(), parents=[parent])], NOW)
            assert (stored.entry, stored.refused) == (None, "parent_gone")
        assert store.get(["b"]).entries == {}

    def test_a_parent_must_have_the_value_that_was_read(self, store: Store) -> None:
        """A parent that was recomputed and came out different refuses what was built on it."""
        read = put_one(store, entry("a", "one"))
        since = store.sequence()
        put_one(store, entry("a", "two"))
        (stored,) = store.put([put(entry("b"), since=since, parents=[read])], NOW)
        assert stored.refused == "parent_gone"
        put_one(store, entry("a", "one"))
        (again,) = store.put([put(entry("b"), since=since, parents=[read])], NOW)
        assert again.entry is not None

    def test_a_parent_must_not_be_quarantined(self, store: Store) -> None:
        """Nothing is built on what is known to be wrong."""
        parent = put_one(store, entry("a"))
        judgement = Judgement(
            entry="a", value="one", verdict="hallucinated", by="t", confidence=1.0, at=NOW
        )
        store.judge(judgement)
        (stored,) = store.put([put(entry("b"), since=store.sequence(), parents=[parent])], NOW)
        assert stored.refused == "parent_gone"

    def test_one_refusal_does_not_refuse_the_batch(self, store: Store) -> None:
        """Each put stands under its own conditions, and a later one may build on an earlier."""
        batch = [
            put(entry("a"), since=0),
            put(entry("b"), since=0, parents=[entry("nobody")]),
            put(entry("c"), since=0, parents=[entry("a")]),
            put(entry("d"), since=0, parents=[entry("b")]),
        ]
        stored = store.put(batch, NOW)
        assert [one.refused for one in stored] == [None, "parent_gone", None, "parent_gone"]
        assert set(store.get(["a", "b", "c", "d"]).entries) == {"a", "c"}

    def test_an_entry_is_proven_until_the_earliest_end(self, store: Store) -> None:
        """The least of its own life and of its parents' proofs; `None` where nothing ends."""
        short = put_one(store, entry("short", expires=NOW + 10))
        long = put_one(store, entry("long", expires=NOW + 90))
        endless = put_one(store, entry("endless"))
        both = put_one(store, entry("both", expires=NOW + 50), parents=[short, long, endless])
        deep = put_one(store, entry("deep", expires=NOW + 30), parents=[both])
        own = put_one(store, entry("own", expires=NOW + 20), parents=[long])
        free = put_one(store, entry("free"), parents=[endless])
        proofs = [one.proven_until for one in (short, endless, both, deep, own, free)]
        assert proofs == [NOW + 10, None, NOW + 10, NOW + 10, NOW + 20, None]
        assert store.get(["deep"]).entries["deep"].proven_until == NOW + 10

    def test_a_new_entry_is_proven_at_the_store_s_epoch(self, store: Store) -> None:
        """And so is what is built on it, while nothing was invalidated."""
        parent = put_one(store, entry("a"))
        child = put_one(store, entry("b"), parents=[parent], sources=[source()])
        grandchild = put_one(store, entry("c"), parents=[child])
        epoch = store.get([]).epoch
        assert {parent.epoch, child.epoch, grandchild.epoch} == {epoch}

    def test_an_equal_value_leaves_the_epoch(self, store: Store) -> None:
        """Recomputing what comes out the same invalidates nothing."""
        put_one(store, entry("a", "one"))
        before = store.get([]).epoch
        put_one(store, entry("a", "one"))
        put_one(store, entry("b", "two"))
        assert store.get([]).epoch == before

    def test_another_value_of_a_childless_entry_leaves_the_epoch(self, store: Store) -> None:
        """Nothing depends on it, so no proof becomes void."""
        put_one(store, entry("a", "one"))
        before = store.get([]).epoch
        put_one(store, entry("a", "two"))
        assert store.get([]).epoch == before

    def test_an_equal_value_with_an_earlier_end_voids_the_proofs_on_it(self, store: Store) -> None:
        """What was built on it must not outlive it."""
        parent = put_one(store, entry("a", "one", expires=NOW + 300))
        child = put_one(store, entry("b", expires=NOW + 300), parents=[parent])
        put_one(store, entry("a", "one", expires=NOW + 50))
        assert store.get([]).epoch != child.epoch

    def test_the_same_value_put_again_keeps_its_verdict(self, store: Store) -> None:
        """A model that gives the same wrong answer again has not mended it."""
        stored = put_one(store, entry("a", "wrong"))
        store.judge(
            Judgement(
                entry="a",
                value=stored.value,
                verdict="hallucinated",
                by="t",
                confidence=1.0,
                at=NOW,
            )
        )
        put_one(store, entry("a", "wrong"))
        assert store.get(["a"]).entries["a"].verdict == "hallucinated"
        put_one(store, entry("a", "right"))
        assert store.get(["a"]).entries["a"].verdict == "unknown"

    def test_another_value_raises_the_epoch(self, store: Store) -> None:
        """To a sequence not seen before."""
        put_one(store, entry("a", "one"))
        child = put_one(store, entry("b"), parents=[entry("a", "one")])
        before = store.sequence()
        put_one(store, entry("a", "two"))
        fetched = store.get(["b"])
        assert fetched.epoch > before
        assert fetched.entries["b"].epoch == child.epoch != fetched.epoch

    def test_a_void_proof_proves_no_child(self, store: Store) -> None:
        """What is built on an entry whose ancestor was replaced must not look proven."""
        root = put_one(store, entry("root", "one"))
        middle = put_one(store, entry("middle"), parents=[root])
        put_one(store, entry("root", "two"))
        child = put_one(store, entry("child"), parents=[middle])
        assert child.epoch != store.get([]).epoch

    def test_each_put_of_a_batch_is_proven_for_itself(self, store: Store) -> None:
        """One put's invalidation voids the proof of one earlier in the same batch."""
        put_one(store, entry("x"), sources=[source(content="first")])
        second, third = source(content="second"), source(content="third")
        now = store.sequence()
        store.put(
            [
                put(entry("y"), since=now, sources=[second]),
                put(entry("z"), since=now, sources=[third]),
            ],
            NOW,
        )
        fetched = store.get(["y", "z"])
        assert fetched.entries["y"].epoch != fetched.epoch
        assert fetched.entries["z"].epoch == fetched.epoch

    @pytest.mark.parametrize("event", ["recall", "remove", "verdict", "source"])
    def test_every_invalidation_raises_the_epoch(self, store: Store, event: str) -> None:
        """A recall, a removal, a verdict and a changed source each do."""
        put_one(store, entry("a"), sources=[source(content="first")])
        before = store.get([]).epoch
        if event == "recall":
            put_one(store, entry("b"))
            store.recall(Selector(entry="b"), now=NOW)
        elif event == "remove":
            store.remove(["a"])
        elif event == "verdict":
            store.judge(
                Judgement(
                    entry="a", value="one", verdict="hallucinated", by="t", confidence=1, at=NOW
                )
            )
        else:
            put_one(store, entry("b"), sources=[source(content="second")])
        assert store.get([]).epoch > before

    def test_an_ancestry_holds_everything_above(self, store: Store) -> None:
        """Through any number of hops, over tenants, each entry once; nothing beside it."""
        top = put_one(store, entry("top", tenant="x"), sources=[source("d", "c", owner="public")])
        left = put_one(store, entry("left", tenant="y", expires=NOW + 5), parents=[top])
        right = put_one(store, entry("right"), parents=[top])
        put_one(store, entry("down"), parents=[left, right])
        put_one(store, entry("beside"), parents=[top])
        found = store.ancestry("down")
        assert found is not None
        assert set(found.entries) == {"top", "left", "right", "down"}
        assert found.entries["left"].expires == NOW + 5
        assert found.entries["left"].lineage == store.lineage("left")
        assert found.entries["top"].value == "one"
        assert dict(found.current) == {("public", "docs", "c"): "first edition"}
        assert found.epoch == store.get([]).epoch

    def test_an_ancestry_of_a_hundred_hops_is_whole(self, store: Store) -> None:
        """Depth is no limit."""
        above = put_one(store, entry("0"))
        for number in range(1, 100):
            above = put_one(store, entry(str(number)), parents=[above])
        found = store.ancestry("99")
        assert found is not None
        assert len(found.entries) == 100

    def test_an_ancestry_lacks_what_is_not_there(self, store: Store) -> None:
        """A removed parent is missing from it, and a quarantined one says so."""
        wrong = put_one(store, entry("wrong"))
        gone = put_one(store, entry("gone"))
        put_one(store, entry("b"), parents=[wrong, gone])
        store.remove(["gone"])
        store.judge(
            Judgement(
                entry="wrong", value="one", verdict="hallucinated", by="t", confidence=1, at=NOW
            )
        )
        found = store.ancestry("b")
        assert found is not None
        assert set(found.entries) == {"b", "wrong"}
        assert found.entries["wrong"].verdict == "hallucinated"

    def test_the_source_table_knows_what_an_index_last_said(self, store: Store) -> None:
        """A changed chunk shows in the ancestry of what was built on the former one."""
        put_one(store, entry("old"), sources=[source(content="first")])
        put_one(store, entry("new"), sources=[source(content="second")])
        where = ("tenant:acme", "docs", "chunk-1")
        for name in ("old", "new"):
            found = store.ancestry(name)
            assert found is not None
            assert dict(found.current) == {where: "second"}

    def test_owners_and_indexes_vouch_apart(self, store: Store) -> None:
        """The same chunk of another owner or index is another chunk."""
        before = store.get([]).epoch
        put_one(store, entry("a"), sources=[source(content="1", owner="tenant:x")])
        put_one(store, entry("b"), sources=[source(content="2", owner="tenant:y")])
        put_one(store, entry("c"), sources=[source(content="3", owner="tenant:x", index="other")])
        put_one(store, entry("d"), sources=[source(content="4", owner="tenant:x", index="")])
        found = store.ancestry("a")
        assert found is not None
        assert dict(found.current) == {("tenant:x", "docs", "chunk-1"): "1"}
        assert store.get([]).epoch == before

    def test_a_chunk_merely_seen_vouches_for_nothing(self, store: Store) -> None:
        """Without an index there is nobody to say that it changed."""
        put_one(store, entry("a"), sources=[source(content="first", index="")])
        before = store.get([]).epoch
        put_one(store, entry("b"), sources=[source(content="second", index="")])
        found = store.ancestry("a")
        assert found is not None
        assert dict(found.current) == {}
        assert store.get([]).epoch == before

    def test_an_older_reading_never_overrides_a_newer_one(self, store: Store) -> None:
        """A slow answer from a former edition is stored as one, and proves nothing."""
        slow = store.sequence()
        put_one(store, entry("other"))
        put_one(store, entry("new"), sources=[source(content="second")])
        late = put_one(store, entry("late"), since=slow, sources=[source(content="first")])
        found = store.ancestry("late")
        assert found is not None
        assert list(found.current.values()) == ["second"]
        assert late.epoch != store.get([]).epoch
