"""The suite for LangGraph's node caches, over ours and over LangGraph's own."""

import sqlite3

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.cache.sqlite import SqliteCache

import stemma
from stemma.testing.clock import ManualClock
from stemma.testing.fakes import Faulty
from stemma_langchain import NodeCache
from stemma_langchain.testing.node_caches import FailOpenConformance, NodeCacheConformance


class TestInMemory(NodeCacheConformance, FailOpenConformance):
    @pytest.fixture
    def clock(self):
        return ManualClock()

    @pytest.fixture
    def cache(self, clock):
        with stemma.open(tenant="me", embedder=None, clock=clock) as cache:
            yield NodeCache(cache)

    @pytest.fixture
    def broken(self):
        store = Faulty()
        with stemma.open(store, tenant="me", embedder=None) as cache:
            store.mode = sqlite3.OperationalError("disk I/O error")
            yield NodeCache(cache)
            store.mode = "well"

    def later(self, cache, seconds):
        cache.cache.engine.parts.clock.advance(seconds)


class TestSqlite(TestInMemory):
    @pytest.fixture
    def cache(self, clock, tmp_path):
        with stemma.open(tmp_path / "c.db", tenant="me", embedder=None, clock=clock) as cache:
            yield NodeCache(cache)


class TestLangGraphsInMemory(NodeCacheConformance):
    short = 0.05

    @pytest.fixture
    def cache(self):
        return InMemoryCache()


joins = pytest.mark.xfail(strict=True, reason="it joins the parts of a namespace with commas")


class TestLangGraphsSqlite(NodeCacheConformance):
    """What it does not do is marked, and said in the documentation."""

    short = 0.05

    @pytest.fixture
    def cache(self, tmp_path):
        cache = SqliteCache(path=str(tmp_path / "cache.db"))
        yield cache
        cache._conn.close()

    @joins
    def test_keys_that_look_alike_are_apart(self, way):
        super().test_keys_that_look_alike_are_apart(way)

    @joins
    def test_clearing_takes_the_namespaces_named_and_no_others(self, way):
        super().test_clearing_takes_the_namespaces_named_and_no_others(way)
