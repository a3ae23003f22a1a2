"""LangChain's own suite, over a cached retriever."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests

import stemma
from stemma_langchain import CachedRetriever


class Toy(BaseRetriever):
    """Gives the same texts, as many as asked for."""

    k: int = 3

    def _get_relevant_documents(self, query, *, run_manager, **kwargs):
        return [Document(f"{query} {n}", id=str(n)) for n in range(kwargs.get("k", self.k))]


class TestOverAToy(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _inner(self):
        self.inner = Toy()

    @property
    def retriever_constructor(self):
        return CachedRetriever

    @property
    def retriever_constructor_params(self):
        cache = stemma.open(":memory:", embedder=None, tenant="t")
        return {"cache": cache, "retriever": self.inner}

    @property
    def retriever_query_example(self):
        return "example query"


class TestOverAVectorStore(TestOverAToy):
    @pytest.fixture(autouse=True)
    def _inner(self):
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
        store.add_texts([f"text {n}" for n in range(6)], ids=[str(n) for n in range(6)])
        self.inner = store.as_retriever()


class TestWhereEverythingIsAHit(TestOverAToy):
    """One cache for the whole class of calls: the second of each is served from it."""

    cache = None

    @pytest.fixture(autouse=True)
    def _shared(self):
        type(self).cache = stemma.open(":memory:", embedder=None, tenant="t")
        for k in (1, 3):
            CachedRetriever(self.cache, self.inner, k=k).invoke(self.retriever_query_example)

    @property
    def retriever_constructor_params(self):
        return {"cache": self.cache, "retriever": self.inner}
