"""Process memory over a shared store: what is fetched, and for how long it may be served."""

import asyncio

import pytest

import stemma
from stemma.errors import StoreUnavailable, UsageError
from stemma.selector import Selector
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Judgement
from stemma.stores.wrappers.two_level import OVERHEAD, TwoLevel
from stemma.testing.builders import NOW, entry, put, put_one, source
from stemma.testing.fakes import Scripted
from stemma.testing.store_holds import quarantine


class Shared(MemoryStore):
    """Notes what is fetched from it."""

    def __init__(self):
        super().__init__()
        self.fetched = []

    def get(self, ids):
        self.fetched.append(list(ids))
        return super().get(ids)


@pytest.fixture
def shared() -> Shared:
    return Shared()


@pytest.fixture
def near(shared, clock) -> TwoLevel:
    return TwoLevel(shared, lease=2.0, clock=clock)


def test_what_was_read_lately_is_not_fetched_again(shared, near, clock):
    """Until the lease is over; then it is, once."""
    put_one(shared, entry())
    first = near.get(["a"])
    clock.advance(1.9)
    assert near.get(["a"]) == first
    assert shared.fetched == [["a"]]
    clock.advance(0.1)
    near.get(["a"])
    near.get(["a"])
    assert shared.fetched == [["a"], ["a"]]


def test_another_process_s_recall_is_honoured_within_the_lease(shared, near, clock):
    """Counted from when the reading began."""
    put_one(shared, entry())
    near.get(["a"])
    shared.recall(Selector(entry="a"), now=NOW)
    clock.advance(2.0)
    assert near.get(["a"]).entries == {}


def test_without_a_lease_every_read_asks(shared, clock):
    """What another process takes back is gone at once."""
    near = TwoLevel(shared, lease=0, clock=clock)
    put_one(shared, entry())
    assert list(near.get(["a"]).entries) == ["a"]
    shared.recall(Selector(entry="a"), now=NOW)
    assert near.get(["a"]).entries == {}
    assert len(near) <= 1


def test_its_own_writes_are_seen_at_once(shared, near):
    """A put, a recall, a removal, a verdict, a quarantine: nothing read before is served after."""
    put_one(near, entry("a", "one"))
    near.get(["a"])
    put_one(near, entry("a", "two"))
    assert near.get(["a"]).entries["a"].value == "two"
    near.remove(["a"])
    assert near.get(["a"]).entries == {}
    put_one(near, entry("b"))
    near.get(["b"])
    near.hold(quarantine("q", "b"))
    assert near.get(["b"]).entries["b"].held == "q"
    near.release("q", now=NOW)
    assert near.get(["b"]).entries["b"].held == ""
    near.recall(Selector(entry="b"), now=NOW)
    assert near.get(["b"]).entries == {}


def test_what_grounding_says_is_seen_at_once_and_the_others_stay_near(shared, near):
    """It is said of every put; any other verdict empties the memory."""
    for name in ("a", "b"):
        put_one(near, entry(name, "one"))
        near.get([name])
    shared.fetched.clear()
    said = {"entry": "a", "value": "one", "by": "check", "confidence": 0.25, "at": NOW}
    near.judge(Judgement(verdict="grounded", **said))
    assert near.get(["a"]).entries["a"].confidence == 0.25
    near.get(["b"])
    assert shared.fetched == [["a"]]
    near.judge(Judgement(verdict="agreed", **said))
    near.get(["b"])
    assert shared.fetched == [["a"], ["b"]]


def test_what_was_put_is_near(shared, near):
    """A put reads it again, with the epoch of that moment: the next lookup fetches nothing."""
    put_one(near, entry())
    shared.fetched.clear()
    assert list(near.get(["a"]).entries) == ["a"]
    assert shared.fetched == []


def test_a_put_that_changes_a_parent_is_seen_by_its_children(shared, near):
    """The epoch has risen: what is near of them carries the old one, and is dropped."""
    parent = put_one(near, entry("parent", "one"))
    put_one(near, entry("child"), parents=[parent])
    before = near.get(["child"])
    put_one(near, entry("parent", "two"))
    assert near.get(["child"]).epoch > before.epoch


def test_a_reply_with_another_epoch_empties_the_memory(shared, near):
    """Whatever it was asked for: an invalidation is known before the lease is over."""
    put_one(shared, entry("a"))
    put_one(shared, entry("b"))
    near.get(["a"])
    shared.recall(Selector(entry="a"), now=NOW)
    near.get(["b"])
    assert near.get(["a"]).entries == {}
    put_one(near, entry("a"))
    near.get(["b"])
    shared.remove(["b"])
    near.ancestry("a")
    assert near.get(["b"]).entries == {}


def test_a_reply_from_memory_carries_the_numbers_of_its_reading(shared, near):
    """So what is built on it is refused, if it was taken back since."""
    parent = put_one(shared, entry("parent"))
    read = near.get(["parent"])
    shared.recall(Selector(entry="parent"), now=NOW)
    put_one(shared, entry("parent"))
    again = near.get(["parent"])
    assert (again.sequence, again.epoch) == (read.sequence, read.epoch)
    (stored,) = near.put([put(entry("child"), since=again.sequence, parents=[parent])], NOW)
    assert stored.refused == "recalled"


def test_what_was_read_apart_is_not_served_together(shared, near):
    """Two entries that are always put together are never read with different values."""
    for value in ("one", "two"):
        shared.put([put(entry(name, value), since=0) for name in ("a", "b")], NOW)
        near.get(["a" if value == "one" else "b"])
    assert {one.value for one in near.get(["a", "b"]).entries.values()} == {"two"}


@pytest.mark.parametrize("method", ["recall", "put"])
def test_a_read_that_a_write_overtakes_is_not_kept(shared, near, monkeypatch, method):
    """It began before, and its reply came after."""
    put_one(shared, entry("a", "one"))
    well = shared.get
    write = {
        "recall": lambda: near.recall(Selector(entry="a"), now=NOW),
        "put": lambda: near.put([put(entry("a", "two"), since=near.sequence())], NOW),
    }[method]

    def slowly(ids):
        found = well(ids)
        monkeypatch.setattr(shared, "get", well)
        write()
        return found

    monkeypatch.setattr(shared, "get", slowly)
    assert near.get(["a"]).entries["a"].value == "one"
    expected = [] if method == "recall" else ["two"]
    assert [one.value for one in near.get(["a"]).entries.values()] == expected


def test_the_lease_begins_with_the_reading(shared, near, clock, monkeypatch):
    """A reply that took a second may be served a second less."""
    put_one(shared, entry())
    well = shared.get

    def slowly(ids):
        found = well(ids)
        clock.advance(1.0)
        return found

    monkeypatch.setattr(shared, "get", slowly)
    near.get(["a"])
    shared.recall(Selector(entry="a"), now=NOW)
    clock.advance(1.0)
    assert near.get(["a"]).entries == {}


@pytest.mark.parametrize("method", ["recall", "put"])
def test_what_a_write_that_failed_may_have_changed_is_fetched(shared, near, monkeypatch, method):
    """It may have taken effect all the same."""
    put_one(near, entry("a", "one"))
    well = getattr(shared, method)

    def half(*args, **named):
        well(*args, **named)
        raise StoreUnavailable("the reply was lost")

    monkeypatch.setattr(shared, method, half)
    write = {
        "recall": lambda: near.recall(Selector(entry="a"), now=NOW),
        "put": lambda: near.put([put(entry("a", "two"), since=near.sequence())], NOW),
    }[method]
    with pytest.raises(StoreUnavailable):
        write()
    expected = [] if method == "recall" else ["two"]
    assert [one.value for one in near.get(["a"]).entries.values()] == expected


def test_a_put_whose_epoch_is_not_known_empties_the_memory(shared, near, monkeypatch):
    """It is stored, and that is what the caller is told."""
    parent = put_one(near, entry("parent", "one"))
    put_one(near, entry("child"), parents=[parent])
    well = shared.get

    def out(ids):
        raise StoreUnavailable("gone")

    monkeypatch.setattr(shared, "get", out)
    (stored,) = near.put([put(entry("parent", "two"), since=near.sequence())], NOW)
    assert stored.entry is not None
    monkeypatch.setattr(shared, "get", well)
    assert len(near) == 0


def test_the_memory_is_bounded(shared, clock):
    """The least recently read go first; what is too large is not kept at all."""
    near = TwoLevel(shared, lease=9, most_bytes=4 * OVERHEAD + 3, clock=clock)
    for name in "abcd":
        put_one(shared, entry(name, payload=b""))
        near.get([name])
    near.get(["a"])
    put_one(shared, entry("e", payload=b""))
    near.get(["e"])
    shared.fetched.clear()
    for name in "acde":
        near.get([name])
    assert shared.fetched == []
    assert len(near) == 4
    put_one(shared, entry("large", payload=b"x" * 4 * OVERHEAD))
    near.get(["large"])
    assert len(near) == 4
    for name in "abcde":
        shared.remove([name])
    near.get([])
    assert (len(near), near._size) == (0, 0)


async def test_tasks_are_served_from_memory_too(shared, near):
    """The async twins share it with the others."""
    await near.aput([put(entry(), since=0)], NOW)
    shared.fetched.clear()
    assert list((await near.aget(["a"])).entries) == ["a"]
    assert shared.fetched == []
    assert await near.aancestry("a") is not None
    await near.arecall(Selector(entry="a"), now=NOW)
    assert (await near.aget(["a"])).entries == {}
    near.close()
    with pytest.raises(StoreUnavailable):
        await near.aget(["a"])


async def test_a_put_that_is_cancelled_leaves_nothing_near(native, clock):
    """It may have been stored, and have raised the epoch."""
    near = TwoLevel(native, lease=9, clock=clock)
    since = put_one(near, entry("b")).sequence
    native.mode = "hang"
    native.aput = lambda *_: asyncio.Event().wait()
    task = asyncio.create_task(near.aput([put(entry(), since=since)], NOW))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(near) == 0


def test_a_cache_over_it_serves_and_recalls(shared, near, clock):
    """Derived answers are proven by the epoch of their reading; a recall takes them at once."""
    cache = stemma.open(near, tenant="me", embedder=None, clock=clock)
    computed = Scripted()
    with cache.trace():
        cache.hops.get_or_compute("q", lambda: "x")
        cache.answers.get_or_compute("q", computed)
    shared.fetched.clear()
    for _ in range(5):
        assert cache.answers.get_or_compute("q", computed).value == "answer 1"
    assert shared.fetched == []
    cache.recall(node="hop")
    assert cache.answers.get_or_compute("q", computed).value == "answer 2"
    cache.close()


@pytest.mark.parametrize("wrong", [{"lease": -1}, {"lease": float("nan")}, {"most_bytes": -1}])
def test_an_argument_out_of_its_range_is_an_error(shared, wrong):
    """At once."""
    with pytest.raises(UsageError):
        TwoLevel(shared, **{"lease": 1.0, **wrong})


def test_sources_are_looked_at_in_the_shared_store(shared, near):
    """A document that another process saw changed is known at the next deep look."""
    put_one(near, entry("a"), sources=[source(content="first")])
    near.get(["a"])
    put_one(shared, entry("b"), sources=[source(content="second")])
    assert list(near.ancestry("a").current.values()) == ["second"]
    assert near.get(["a"]).epoch == shared.get([]).epoch
