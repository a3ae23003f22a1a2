"""What every store must do for indexes that follow it, for its journal, and under threads."""
# ruff: noqa: S101, PLR2004 - a suite of tests asserts, on small numbers

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stemma.errors import StoreUnavailable
from stemma.selector import Selector
from stemma.stores.protocol import Changes, Count, Judgement, Serving, Store
from stemma.testing.builders import HOSTILE, NOW, entry, put, put_one, vector

__all__ = ["Follower", "FollowingPromises", "counted", "served"]


class Follower:
    """A brute-force index: what it holds must be what the store has."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], list[float]] = {}
        self.sequence = 0

    def follow(self, store: Store) -> Changes:
        """Catch up with the store."""
        changes = store.changes(self.sequence)
        if changes.rebuild:
            self.held.clear()
        for gone in changes.removed:
            self.held.pop(gone, None)
        for group, name, numbers in zip(changes.groups, changes.ids, changes.vectors, strict=True):
            self.held[group, name] = numbers.tolist()
        self.sequence = changes.sequence
        return changes


def served(name: str = "a", tenant: str = "acme", at: float = NOW) -> Serving:
    """A serving."""
    return Serving(entry=name, tenant=tenant, tier="exact", similarity=1.0, at=at)


def counted(outcome: str = "hit", lookups: int = 1, **rest: float) -> Count:
    """A counter's increment."""
    return Count(
        tenant="acme",
        node="call",
        outcome=outcome,
        lookups=lookups,
        seconds=rest.get("seconds", 0.0),
        tokens=int(rest.get("tokens", 0)),
    )


class FollowingPromises:
    """Part of `stemma.testing.stores.StoreConformance`."""

    reach: int

    def test_vectors_are_kept_as_float16(self, store: Store) -> None:
        """Of any length, of those entries that have one."""
        put_one(store, entry("a"), vector=vector(0.5, -0.25, 1.0))
        put_one(store, entry("b"), vector=vector(*[0.125] * 1536))
        put_one(store, entry("c"))
        found = store.vectors(["a", "b", "c", "nobody"])
        assert set(found) == {"a", "b"}
        assert found["a"].dtype == np.float16
        assert found["a"].tolist() == [0.5, -0.25, 1.0]
        assert found["b"].shape == (1536,)
        assert store.vectors([]) == {}

    def test_a_vector_lives_with_its_entry(self, store: Store) -> None:
        """It is replaced, taken away and removed with it."""
        put_one(store, entry("a"), vector=vector(1, 0))
        put_one(store, entry("a"), vector=vector(0, 1))
        assert store.vectors(["a"])["a"].tolist() == [0, 1]
        put_one(store, entry("a"))
        assert store.vectors(["a"]) == {}
        put_one(store, entry("a"), vector=vector(1, 0))
        store.remove(["a"])
        assert store.vectors(["a"]) == {}

    def test_a_stored_vector_is_nobody_s_to_change(self, store: Store) -> None:
        """Neither by writing to what was put, nor to what was given."""
        mine = vector(1, 0)
        put_one(store, entry("a"), vector=mine)
        mine[0] = 9
        given = store.vectors(["a"])["a"]
        with pytest.raises(ValueError, match="read-only"):
            given[0] = 9
        assert store.vectors(["a"])["a"].tolist() == [1, 0]

    def test_changes_are_what_came_since(self, store: Store) -> None:
        """In the order of their puts, each with its own group; nothing twice."""
        put_one(store, entry("a", group="g"), vector=vector(1, 0))
        put_one(store, entry("b"))
        middle = store.changes(0)
        put_one(store, entry("c", group="h"), vector=vector(0, 1))
        later = store.changes(middle.sequence)
        assert (list(middle.ids), list(middle.groups)) == (["a"], ["g"])
        assert (list(later.ids), list(later.groups)) == (["c"], ["h"])
        assert later.vectors[0].tolist() == [0, 1]
        assert later.sequence == store.sequence()
        assert (later.rebuild, tuple(later.removed)) == (False, ())
        assert not store.changes(later.sequence).ids
        assert list(store.changes(0).ids) == ["a", "c"]

    def test_removals_are_told_with_their_group(self, store: Store) -> None:
        """By removal, by recall, and by a put that brings no vector any more."""
        for name in ("a", "b", "c", "d"):
            put_one(store, entry(name, group=f"of {name}"), vector=vector(1, 0))
        put_one(store, entry("bare"))
        start = store.sequence()
        store.remove(["a", "bare"])
        store.recall(Selector(entry="b"), now=NOW)
        put_one(store, entry("c", group="of c"))
        changes = store.changes(start)
        assert set(changes.removed) == {("of a", "a"), ("of b", "b"), ("of c", "c")}
        assert not changes.ids

    def test_an_entry_that_moved_leaves_its_group(self, store: Store) -> None:
        """The former group is told that it went, the new one that it came."""
        put_one(store, entry("a", group="old"), vector=vector(1, 0))
        start = store.sequence()
        put_one(store, entry("a", group="new"), vector=vector(1, 0))
        changes = store.changes(start)
        assert tuple(changes.removed) == (("old", "a"),)
        assert list(changes.groups) == ["new"]

    def test_what_went_and_came_again_is_there(self, store: Store) -> None:
        """A removal before the last put is not told as one."""
        put_one(store, entry("a"), vector=vector(1, 0))
        start = store.sequence()
        store.remove(["a"])
        put_one(store, entry("a"), vector=vector(0, 1))
        changes = store.changes(start)
        assert (list(changes.ids), tuple(changes.removed)) == (["a"], ())

    def test_a_log_that_reaches_back_no_further_asks_to_rebuild(self, store: Store) -> None:
        """An index that lagged too far behind is told to begin anew, with everything."""
        follower = Follower()
        put_one(store, entry("stays"), vector=vector(1, 0))
        names = [f"e{number}" for number in range(self.reach + 1)]
        batch = [put(entry(name), since=0, vector=vector(0, 1)) for name in names]
        store.put(batch, NOW)
        follower.follow(store)
        for name in names:
            store.remove([name])
        assert follower.follow(store).rebuild
        assert list(follower.held) == [("group of acme", "stays")]
        assert not store.changes(follower.sequence).rebuild
        assert not store.changes(0).rebuild

    def test_a_follower_holds_what_the_store_has(self, store: Store) -> None:
        """After any mixture of puts, moves, removals and recalls."""
        follower = Follower()
        for number in range(60):
            name = f"e{number * 7 % 11}"
            if number % 5 == 3:
                store.remove([name])
            elif number % 13 == 7:
                store.recall(Selector(entry=name), now=NOW)
            else:
                group = f"g{number % 3}"
                put_one(store, entry(name, group=group), vector=vector(number, 1))
            if number % 4 == 0:
                follower.follow(store)
        follower.follow(store)
        stored = store.find(limit=1000)
        vectors = store.vectors([one.id for one in stored])
        assert follower.held == {(one.group, one.id): vectors[one.id].tolist() for one in stored}

    def test_hostile_groups_and_ids_are_followed(self, store: Store) -> None:
        """They come back as they were, when they come and when they go."""
        batch = [put(entry(text, group=text), since=0, vector=vector(1, 0)) for text in HOSTILE]
        store.put(batch, NOW)
        changes = store.changes(0)
        assert list(changes.ids) == list(changes.groups) == list(HOSTILE)
        for text in HOSTILE:
            start = store.sequence()
            store.remove([text])
            assert tuple(store.changes(start).removed) == ((text, text),)

    def test_servings_are_read_newest_first(self, store: Store) -> None:
        """All, or those of one entry, as they were journalled."""
        one, two, three = served("a", at=1.5), served("b", "y", at=2.5), served("a", at=3.5)
        store.journal([one, two], [])
        store.journal([three], [])
        assert store.servings() == (three, two, one)
        assert store.servings(entry="a") == (three, one)
        assert store.servings(limit=2) == (three, two)
        assert store.servings(limit=0) == ()

    def test_counters_are_added_up(self, store: Store) -> None:
        """By tenant, node and outcome."""
        store.journal([], [counted(lookups=2, seconds=0.5, tokens=10), counted("cold")])
        store.journal([], [counted(lookups=3, seconds=0.25, tokens=1), counted(tokens=1)])
        assert store.counts() == (
            counted("cold"),
            counted(lookups=6, seconds=0.75, tokens=12),
        )

    def test_hostile_texts_are_counted_apart(self, store: Store) -> None:
        """Each tenant has its own counter and its own servings."""
        counts = [Count(tenant=t, node="call", outcome=t, lookups=1) for t in HOSTILE]
        store.journal([served(t, t) for t in HOSTILE], counts)
        store.journal([], counts)
        assert {(one.tenant, one.outcome, one.lookups) for one in store.counts()} == {
            (text, text, 2) for text in HOSTILE
        }
        for text in HOSTILE:
            assert store.servings(entry=text) == (served(text, text),)

    def test_the_journal_outlives_the_entries(self, store: Store) -> None:
        """Who was served something wrong is known after it was taken back."""
        put_one(store, entry("a"))
        store.journal([served("a", "y")], [counted()])
        store.recall(Selector(entry="a"), now=NOW)
        assert store.servings(entry="a") == (served("a", "y"),)
        assert store.counts() == (counted(),)

    def test_threads_lose_nothing(self, store: Store) -> None:
        """Puts, reads and journals of eight threads at once all take effect."""

        def work(thread: int) -> None:
            for number in range(20):
                name = f"{thread}-{number}"
                put_one(store, entry(name), vector=vector(thread, number))
                assert store.get([name]).entries[name].id == name
                store.journal([served(name)], [counted()])
                store.changes(0)

        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(work, thread) for thread in range(8)]:
                done.result()
        assert len(store.find(limit=1000)) == 160
        assert len(store.changes(0).ids) == 160
        assert store.counts() == (counted(lookups=160),)
        assert len({one.sequence for one in store.find(limit=1000)}) == 160
        assert store.check() == ()

    def test_a_recall_beats_the_puts_that_race_it(self, store: Store) -> None:
        """Whatever was looked up before a recall is not there after it."""
        barrier = threading.Barrier(5)
        since = store.sequence()

        def work(thread: int) -> None:
            barrier.wait(timeout=30)
            for number in range(20):
                store.put([put(entry(f"{thread}-{number}", tenant="x"), since=since)], NOW)

        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(work, thread) for thread in range(4)]
            barrier.wait(timeout=30)
            store.recall(Selector(tenant="x"), now=NOW)
            for one in running:
                one.result()
        assert store.find(Selector(tenant="x")) == ()

    def test_a_fetch_sees_one_moment(self, store: Store) -> None:
        """Two entries always put together are never read with different values."""
        stop = threading.Event()

        def write() -> None:
            for number in range(200):
                batch = [put(entry(name, str(number)), since=0) for name in ("a", "b")]
                store.put(batch, NOW)
            stop.set()

        writer = threading.Thread(target=write)
        writer.start()
        while not stop.is_set():
            fetched = store.get(["a", "b"])
            assert len({one.value for one in fetched.entries.values()}) <= 1
            assert all(one.sequence <= fetched.sequence for one in fetched.entries.values())
        writer.join()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        """Every method raises `StoreUnavailable`; closing twice is no error."""
        put_one(store, entry("a"))
        store.close()
        store.close()
        judgement = Judgement(
            entry="a", value="one", verdict="supported", by="t", confidence=1.0, at=NOW
        )
        for use in (
            lambda: store.get(["a"]),
            lambda: store.put([put(entry(), since=0)], NOW),
            lambda: store.ancestry("a"),
            lambda: store.changes(0),
            lambda: store.vectors(["a"]),
            lambda: store.recall(Selector(entry="a"), now=NOW),
            lambda: store.recall(Selector(entry="a"), now=NOW, dry_run=True),
            lambda: store.remove(["a"]),
            lambda: store.judge(judgement),
            lambda: store.journal([served()], []),
            lambda: store.lineage("a"),
            lambda: store.children("a"),
            store.find,
            store.counts,
            store.servings,
            store.judgements,
            store.recalls,
            store.sizes,
            store.sequence,
            store.check,
        ):
            with pytest.raises(StoreUnavailable):
                use()
