"""LangChain's own suites, over cached embeddings."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

import stemma
from stemma_langchain import CachedEmbeddings, LocalEmbeddings


class _Cached:
    @property
    def embeddings_class(self):
        return CachedEmbeddings

    @property
    def embedding_model_params(self):
        cache = stemma.open(":memory:", embedder=None, tenant="t")
        return {"cache": cache, "embeddings": DeterministicFakeEmbedding(size=6)}


class TestUnit(_Cached, EmbeddingsUnitTests):
    pass


class TestCalls(_Cached, EmbeddingsIntegrationTests):
    pass


class TestCallsThatHit(_Cached, EmbeddingsIntegrationTests):
    @pytest.fixture(autouse=True)
    def _opened(self):
        self.cache = stemma.open(":memory:", embedder=None, tenant="t")
        self.inner = DeterministicFakeEmbedding(size=6)

    @property
    def embedding_model_params(self):
        return {"cache": self.cache, "embeddings": self.inner}


class TestLocalCalls(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return LocalEmbeddings

    @property
    def embedding_model_params(self):
        return {"embedder": "hashing"}
