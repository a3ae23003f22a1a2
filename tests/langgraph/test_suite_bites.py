"""Each promise of the suite is broken by a cache that the suite must catch."""

import inspect
import threading
from functools import partial

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.cache.sqlite import SqliteCache

from stemma_langchain.testing.node_caches import (
    FailOpenConformance,
    NodeCacheConformance,
    Way,
)


class Changed(InMemoryCache):
    """LangGraph's own, with what each call is given, or gives, changed; async is sync, as there."""

    def read(self, keys):
        return super().get(keys)

    def write(self, pairs):
        super().set(pairs)

    def empty(self, namespaces):
        super().clear(namespaces)

    def get(self, keys):
        return self.read(keys)

    def set(self, pairs):
        self.write(pairs)

    def clear(self, namespaces=None):
        self.empty(namespaces)


class ForgetsFalsyValues(Changed):
    def read(self, keys):
        return {key: value for key, value in super().read(keys).items() if value}


class GivesNoneForNothing(Changed):
    def read(self, keys):
        return {**dict.fromkeys(keys), **super().read(keys)}


class ForgetsTheOrder(Changed):
    def write(self, pairs):
        super().write(
            {
                key: (sorted(value) if isinstance(value, list | tuple) or hasattr(value, "popleft")
                      else value, ttl)
                for key, (value, ttl) in pairs.items()
            }
        )  # fmt: skip


class SharesItsValues(InMemoryCache):
    def get(self, keys):
        return {key: self._cache[key] for key in keys if key in self._cache}

    def set(self, pairs):
        self._cache.update({key: value for key, (value, _) in pairs.items()})


class KeepsTheFirst(Changed):
    def write(self, pairs):
        super().write(
            {key: pair for key, pair in pairs.items() if not super(Changed, self).get([key])}
        )


class JoinsNamespaces(Changed):
    """As LangGraph's caches for SQLite and Redis do."""

    def read(self, keys):
        found = super().read([((",".join(ns),), key) for ns, key in keys])
        return {(tuple(ns.split(",")), key): value for ((ns,), key), value in found.items()}

    def write(self, pairs):
        super().write({((",".join(ns),), key): pair for (ns, key), pair in pairs.items()})

    def empty(self, namespaces):
        super().empty(None if namespaces is None else [(",".join(ns),) for ns in namespaces])


class ReadsOneAtMost(Changed):
    def read(self, keys):
        return super().read(keys[:1])


class IgnoresLives(Changed):
    def write(self, pairs):
        super().write({key: (value, None) for key, (value, _) in pairs.items()})


class TakesZeroForNone(Changed):
    def write(self, pairs):
        super().write({key: (value, ttl or None) for key, (value, ttl) in pairs.items()})


class KeepsTheOldLife(Changed):
    def write(self, pairs):
        for (ns, key), (value, ttl) in pairs.items():
            old = self._cache.get(ns, {}).get(key)
            super().write({(ns, key): (value, ttl)})
            if old is not None and old[2] is not None:
                self._cache[ns][key] = (*self._cache[ns][key][:2], old[2])


class ClearsPrefixes(Changed):
    """As a cache does that looks for keys by a pattern."""

    def empty(self, namespaces):
        if namespaces is None:
            return super().empty(None)
        return super().empty(
            [ns for ns in list(self._cache) if any(ns[: len(one)] == one for one in namespaces)]
        )


class TakesNoneForAll(Changed):
    def empty(self, namespaces):
        super().empty(namespaces or None)


class ClearsNothing(Changed):
    def empty(self, namespaces):
        pass


class RaisesForTheUnknown(Changed):
    def empty(self, namespaces):
        for one in namespaces if namespaces is not None else list(self._cache):
            del self._cache[one]


class TwoCaches(InMemoryCache):
    def __init__(self):
        super().__init__()
        self.other = InMemoryCache()

    async def aget(self, keys):
        return self.other.get(keys)

    async def aset(self, pairs):
        self.other.set(pairs)

    async def aclear(self, namespaces=None):
        self.other.clear(namespaces)


class MixesUpThreads(Changed):
    def write(self, pairs):
        self.last = pairs
        threading.Event().wait(0.001)
        super().write(self.last)


BROKEN = {
    GivesNoneForNothing: "test_what_is_not_stored_is_left_out",
    ReadsOneAtMost: "test_many_at_once",
    ForgetsFalsyValues: "test_values_come_back_as_they_were",
    ForgetsTheOrder: "test_writes_come_back_in_order",
    SharesItsValues: "test_values_are_nobodys_but_the_readers",
    KeepsTheFirst: "test_the_newest_value_counts",
    JoinsNamespaces: "test_keys_that_look_alike_are_apart",
    IgnoresLives: "test_a_life_ends",
    TakesZeroForNone: "test_a_life_of_nothing_ends_at_once",
    KeepsTheOldLife: "test_the_newest_life_counts",
    ClearsPrefixes: "test_clearing_takes_the_namespaces_named_and_no_others",
    RaisesForTheUnknown: "test_clearing_what_is_not_there",
    TakesNoneForAll: "test_clearing_everything",
    ClearsNothing: "test_clearing_everything",
    TwoCaches: "test_sync_and_async_are_one_cache",
    MixesUpThreads: "test_threads_share_it",
}


def failures(make):
    """The tests of the suite that a cache fails, by its sync methods or its async ones."""
    suite = NodeCacheConformance()
    suite.short = 0.05
    failed = set()
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if not name.startswith("test_"):
            continue
        for kind in ("sync", "async"):
            cache = make()
            wanted = inspect.signature(test).parameters
            with Way(cache, kind) as way:
                try:
                    test(**{n: v for n, v in (("cache", cache), ("way", way)) if n in wanted})
                except Exception:
                    failed.add(name)
    return failed


def test_a_sound_cache_fails_nothing():
    """What fails below fails for the defect, not for the way the suite is run."""
    assert failures(InMemoryCache) == set()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_cache_fails(broken):
    """Also in the very test that is about what is broken."""
    assert BROKEN[broken] in failures(broken)


def test_every_promise_is_broken_once():
    promised = {name for name in dir(NodeCacheConformance) if name.startswith("test_")}
    assert promised == set(BROKEN.values())


@pytest.mark.parametrize("made", [InMemoryCache, partial(SqliteCache, path=":memory:")])
def test_a_cache_that_raises_in_a_graph_fails(made):
    """LangGraph's own let what their serializer raises through."""
    suite = FailOpenConformance()
    with Way(made(), "sync") as sound, Way(made(serde=Broken()), "sync") as unsound:
        with pytest.raises(TypeError):
            suite.test_what_cannot_be_written_is_not_stored((sound, unsound))
        with pytest.raises(OSError, match="broken"):
            suite.test_a_broken_store_is_a_miss((sound, unsound))
        for way in (sound, unsound):
            if isinstance(way.cache, SqliteCache):
                way.cache._conn.close()


class Broken:
    def dumps_typed(self, obj):
        raise OSError("broken")

    def loads_typed(self, data):
        raise OSError("broken")
