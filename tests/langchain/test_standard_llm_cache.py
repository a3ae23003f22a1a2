"""LangChain's own suites, over the LLM cache."""

import pytest
from langchain_tests.integration_tests import AsyncCacheTestSuite, SyncCacheTestSuite

import stemma
from stemma_langchain import LLMCache


class TestInMemory(SyncCacheTestSuite):
    @pytest.fixture
    def cache(self):
        with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
            yield LLMCache(opened)


class TestInMemoryAsync(AsyncCacheTestSuite):
    @pytest.fixture
    async def cache(self):
        with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
            yield LLMCache(opened)


class TestInSqlite(SyncCacheTestSuite):
    @pytest.fixture
    def cache(self, tmp_path):
        with stemma.open(tmp_path / "calls.db", embedder="hashing", tenant="t") as opened:
            yield LLMCache(opened)


class TestInSqliteAsync(AsyncCacheTestSuite):
    @pytest.fixture
    async def cache(self, tmp_path):
        with stemma.open(tmp_path / "calls.db", embedder=None, tenant="t") as opened:
            yield LLMCache(opened)
