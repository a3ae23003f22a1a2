"""What every cache for LangGraph's nodes must do: subclass `NodeCacheConformance`.

```python
class TestMine(NodeCacheConformance):
    @pytest.fixture
    def cache(self):
        return MyCache(...)
```

LangGraph has an interface for such caches (`langgraph.cache.base.BaseCache`) and no suite for
it; this is one. Each test runs by the sync methods, and by the async ones. A cache that never
raises in a graph subclasses `FailOpenConformance` besides.
"""
# ruff: noqa: S101 - a suite of tests asserts

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, Self

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.cache.base import BaseCache, FullKey, Namespace

__all__ = ["HOSTILE", "FailOpenConformance", "NodeCacheConformance", "Way"]

NS: Namespace = ("writes", "module.node", "node")

HOSTILE: tuple[FullKey, ...] = (
    *(((), key) for key in ("", "a", "a:b", "a,b", "*", "%", "'", "\n", "ß", "a\x00b")),
    *(((part,), "a") for part in ("", "a", "a:b", "a,b", "*", "%", "_", "'", "\n", "ß", "a/b")),
    *((("a", part), "b") for part in ("", "a", "b", ":", ",", "/", "*")),
    *(
        (namespace, "k")
        for namespace in (("a", "b"), ("a:b",), ("a,b",), ("b", "a"), ("a", "b", ""))
    ),
    *((namespace, "b:k") for namespace in ((), ("a",), ("a", "b"), ("a:b",))),
)
"""Keys that are all different, and easily taken for one another."""

VALUES: tuple[Any, ...] = (
    *(None, False, 0, "", [], {}, 0.0, b""),
    *(True, 1, -1.5, "a", "ß\n\x00", [1, [2]], {"a": {"b": None}}, b"\x00\xff"),
)


class Way:
    """One cache, called by its sync or its async methods."""

    def __init__(self, cache: BaseCache[Any], kind: Literal["sync", "async"]) -> None:
        self.cache = cache
        self.kind = kind
        self._runner = asyncio.Runner()

    def get(self, *keys: FullKey) -> dict[FullKey, Any]:
        """What is stored under the keys."""
        if self.kind == "sync":
            return self.cache.get(keys)
        return self._runner.run(self.cache.aget(keys))

    def set(self, pairs: Mapping[FullKey, Any], ttl: float | None = None) -> None:
        """Store values, all with one life."""
        given: dict[FullKey, tuple[Any, Any]] = {key: (value, ttl) for key, value in pairs.items()}
        if self.kind == "sync":
            self.cache.set(given)
        else:
            self._runner.run(self.cache.aset(given))

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Clear namespaces, or everything."""
        if self.kind == "sync":
            self.cache.clear(namespaces)
        else:
            self._runner.run(self.cache.aclear(namespaces))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()


class NodeCacheConformance:
    """The promises of LangGraph's `BaseCache`, as tests.

    Attributes:
        short: A life that is over after `later(short)`, seconds; LangGraph passes whole ones.
    """

    short: float = 1

    @pytest.fixture
    def cache(self) -> BaseCache[Any]:
        """The cache under test: new and empty. Override this."""
        raise NotImplementedError("override the fixture `cache`")

    def later(self, cache: BaseCache[Any], seconds: float) -> None:
        """Let time pass. Override this where the clock can be moved."""
        del cache
        time.sleep(seconds * 1.05)

    @pytest.fixture(params=["sync", "async"])
    def way(self, request: pytest.FixtureRequest, cache: BaseCache[Any]) -> Iterator[Way]:
        """The cache by its sync methods, then by its async ones."""
        with Way(cache, request.param) as way:
            yield way

    def test_what_is_not_stored_is_left_out(self, way: Way) -> None:
        """Also where nothing is asked for, or nothing stored."""
        assert way.get() == {}
        assert way.get((NS, "a")) == {}
        way.set({})
        way.set({(NS, "a"): "one"})
        assert way.get((NS, "b"), (NS, "a"), ((), "a")) == {(NS, "a"): "one"}

    def test_values_come_back_as_they_were(self, way: Way) -> None:
        """Falsy ones too: a stored `None` is not the same as nothing stored."""
        pairs: dict[FullKey, Any] = {(NS, str(at)): value for at, value in enumerate(VALUES)}
        way.set(pairs)
        found = way.get(*pairs)
        assert found == pairs
        assert [type(found[key]) for key in pairs] == [type(value) for value in VALUES]

    def test_writes_come_back_in_order(self, way: Way) -> None:
        """What LangGraph stores: a queue of channels and values, messages among them."""
        messages = [HumanMessage("What is a stemma?"), AIMessage("A family tree of copies.")]
        writes = deque([("messages", messages), ("branch:to:next", None), ("messages", [])])
        way.set({(NS, "a"): writes})
        [found] = way.get((NS, "a")).values()
        told = [(channel, value) for channel, value in found]
        assert [channel for channel, _ in told] == [channel for channel, _ in writes]
        assert [(one.type, one.content) for one in told[0][1]] == [
            (one.type, one.content) for one in messages
        ]
        assert [value for _, value in told[1:]] == [None, []]

    def test_values_are_nobodys_but_the_readers(self, way: Way) -> None:
        """Changing what was stored, or what was read, changes nothing that is read later."""
        value = {"found": [1]}
        way.set({(NS, "a"): value})
        value["found"].append(2)
        way.get((NS, "a"))[NS, "a"]["found"].append(3)
        assert way.get((NS, "a")) == {(NS, "a"): {"found": [1]}}

    def test_the_newest_value_counts(self, way: Way) -> None:
        """Storing again replaces."""
        way.set({(NS, "a"): "one"})
        way.set({(NS, "a"): "two"})
        assert way.get((NS, "a")) == {(NS, "a"): "two"}

    def test_keys_that_look_alike_are_apart(self, way: Way) -> None:
        """Whatever their parts hold, and wherever one part ends and the next begins."""
        assert len(set(HOSTILE)) == len(HOSTILE)
        pairs = {key: f"value {place}" for place, key in enumerate(HOSTILE)}
        way.set(pairs)
        assert way.get(*HOSTILE) == pairs
        for key, value in pairs.items():
            assert way.get(key) == {key: value}

    def test_many_at_once(self, way: Way) -> None:
        """As many as a wide graph has tasks in one step."""
        pairs: dict[FullKey, Any] = {(NS, f"key {place}"): place for place in range(300)}
        way.set(pairs)
        assert way.get(*pairs) == pairs

    def test_a_life_ends(self, cache: BaseCache[Any], way: Way) -> None:
        """What has none is still there."""
        way.set({(NS, "a"): "short"}, ttl=self.short)
        way.set({(NS, "b"): "long"})
        way.set({(NS, "c"): "longer"}, ttl=3_000)
        assert way.get((NS, "a")) == {(NS, "a"): "short"}
        self.later(cache, self.short)
        left = {(NS, "b"): "long", (NS, "c"): "longer"}
        assert way.get((NS, "a"), (NS, "b"), (NS, "c")) == left

    def test_a_life_of_nothing_ends_at_once(self, way: Way) -> None:
        """Zero is not the same as no life given."""
        way.set({(NS, "a"): "one"})
        way.set({(NS, "a"): "two"}, ttl=0)
        assert way.get((NS, "a")) == {}

    def test_the_newest_life_counts(self, cache: BaseCache[Any], way: Way) -> None:
        """Storing again replaces the life, too."""
        way.set({(NS, "a"): "one"}, ttl=self.short)
        way.set({(NS, "a"): "two"})
        self.later(cache, self.short)
        assert way.get((NS, "a")) == {(NS, "a"): "two"}

    def test_clearing_takes_the_namespaces_named_and_no_others(self, way: Way) -> None:
        """Not those that begin like it, not those that it begins like, and none twice."""
        pairs = {key: place for place, key in enumerate(HOSTILE)}
        namespaces = list(dict.fromkeys(namespace for namespace, _ in HOSTILE))
        for named in [[], *([one] for one in namespaces), *combinations(namespaces[:4], 2)]:
            way.set(pairs)
            way.clear(list(named))
            left = {key: value for key, value in pairs.items() if key[0] not in named}
            assert way.get(*pairs) == left, named

    def test_clearing_what_is_not_there(self, way: Way) -> None:
        """Is no error, and touches nothing."""
        way.clear([("nowhere",)])
        way.set({(NS, "a"): "one"})
        way.clear([("nowhere",), NS[:1]])
        assert way.get((NS, "a")) == {(NS, "a"): "one"}

    def test_clearing_everything(self, way: Way) -> None:
        """That is what no namespaces at all mean; none in a list mean none."""
        pairs: dict[FullKey, Any] = {(NS, "a"): 1, (NS, "b"): 2, (("other",), "a"): 3}
        way.set(pairs)
        way.clear([])
        assert way.get(*pairs) == pairs
        way.clear()
        assert way.get(*pairs) == {}
        way.set({(NS, "a"): "one"})
        assert way.get((NS, "a")) == {(NS, "a"): "one"}

    def test_sync_and_async_are_one_cache(self, cache: BaseCache[Any]) -> None:
        """What the one stores, the other reads and clears."""
        with Way(cache, "sync") as sync, Way(cache, "async") as other:
            for one, two in ((sync, other), (other, sync)):
                one.set({(NS, "a"): "one"})
                assert two.get((NS, "a")) == {(NS, "a"): "one"}
                two.clear([NS])
                assert one.get((NS, "a")) == {}

    def test_threads_share_it(self, cache: BaseCache[Any]) -> None:
        """Nothing is lost, nothing mixed up."""
        wrong: list[Any] = []

        def work(name: str) -> None:
            try:
                for place in range(20):
                    key = ((name,), f"key {place}")
                    cache.set({key: (f"{name} {place}", None)})
                    found = cache.get([key])
                    if found != {key: f"{name} {place}"}:
                        wrong.append(found)
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcdefgh"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


class FailOpenConformance:
    """What a cache does where it fails: nothing. LangGraph lets what it raises fail the run."""

    @pytest.fixture
    def broken(self) -> BaseCache[Any]:
        """The cache under test, over a store that raises whatever is asked of it. Override this."""
        raise NotImplementedError("override the fixture `broken`")

    @pytest.fixture(params=["sync", "async"])
    def ways(
        self, request: pytest.FixtureRequest, cache: BaseCache[Any], broken: BaseCache[Any]
    ) -> Iterator[tuple[Way, Way]]:
        """A cache that works, and one that does not."""
        with Way(cache, request.param) as sound, Way(broken, request.param) as unsound:
            yield sound, unsound

    def test_what_cannot_be_written_is_not_stored(self, ways: tuple[Way, Way]) -> None:
        """And what is stored beside it is."""
        way, _ = ways
        way.set({(NS, "a"): threading.Lock(), (NS, "b"): "one", (NS, "c"): lambda: None})
        assert way.get((NS, "a"), (NS, "b"), (NS, "c")) == {(NS, "b"): "one"}

    def test_a_broken_store_is_a_miss(self, ways: tuple[Way, Way]) -> None:
        """Neither reading nor writing raises."""
        _, way = ways
        way.set({(NS, "a"): "one"}, ttl=3)
        assert way.get((NS, "a")) == {}
