"""`CachedRetriever` over vector stores that have ways of their own."""

import asyncio

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

import stemma
from stemma_langchain import CachedRetriever, WatchedVectorStore


class Points(Embeddings):
    """A text is the vector that it spells: `"1 0"`; a name before it does not count.

    Args:
        turned: Whether the axes are turned round: another model.
    """

    def __init__(self, turned=False):
        self.model = "turned" if turned else "straight"
        self.documents_fail = False

    def embed_query(self, text):
        vector = [float(part) for part in text.split(":")[-1].split()]
        return vector[::-1] if self.model == "turned" else vector

    def embed_documents(self, texts):
        if self.documents_fail:
            raise OSError("over the limit")
        return [self.embed_query(text) for text in texts]


class OnlyAsync(Points):
    """Embeds in async calls only."""

    def embed_query(self, text):
        raise NotImplementedError

    def embed_documents(self, texts):
        raise NotImplementedError

    async def aembed_query(self, text):
        return Points().embed_query(text)

    async def aembed_documents(self, texts):
        return [Points().embed_query(text) for text in texts]


class Products(VectorStore):
    """Ranks by inner products, gives its own documents, and no vectors, as FAISS may."""

    def __init__(self, embedding, most=1_000):
        self.embedding = embedding
        self.held = {}
        self.most = most
        self.least = -float("inf")

    @property
    def embeddings(self):
        return self.embedding

    def add_texts(self, texts, metadatas=None, *, ids=None, **kwargs):
        texts = list(texts)
        ids = texts if ids is None else ids
        for name, text in zip(ids, texts, strict=True):
            self.held[name] = (Document(text, id=name), np.array(Points().embed_query(text)))
        return list(ids)

    def delete(self, ids=None, **kwargs):
        for name in ids:
            self.held.pop(name, None)

    def get_by_ids(self, ids, /):
        return [self.held[name][0] for name in ids if name in self.held]

    def similarity_search(self, query, k=4, **kwargs):
        return self.similarity_search_by_vector(self.embedding.embed_query(query), k)

    async def asimilarity_search(self, query, k=4, **kwargs):
        return self.similarity_search_by_vector(await self.embedding.aembed_query(query), k)

    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        scored = [(float(vector @ embedding), one) for one, vector in self.held.values()]
        scored.sort(key=lambda pair: -pair[0])
        found = [one for score, one in scored if score >= self.least]
        return found[: min(k, self.most)]

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        raise NotImplementedError


@pytest.fixture
def cache():
    with stemma.open(embedder=None, tenant="t") as opened:
        yield opened


def how(documents):
    return documents[0].metadata.get("stemma", {}).get("list")


def ids(documents):
    return [document.id for document in documents]


def circle(store, degrees):
    for degree in degrees:
        angle = np.radians(degree)
        store.add_texts([f"{degree}: {np.cos(angle)} {np.sin(angle)}"], ids=[str(degree)])


class Screened(InMemoryVectorStore):
    """Gives nobody what is secret; it knows of searches for texts only."""

    def similarity_search(self, query, k=4, **kwargs):
        return super().similarity_search(query, k, filter=lambda one: "secret" not in one.id)

    async def asimilarity_search(self, query, k=4, **kwargs):
        return self.similarity_search(query, k)


async def test_a_store_that_searches_in_its_own_way_is_asked_to_do_so(cache):
    store = Screened(Points())
    store.add_texts(["1 0", "0.9 0.1", "0 1"], ids=["secret", "near", "far"])
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 1}))
    assert ids(retriever.invoke("1 0")) == ids(await retriever.ainvoke("1 0.001")) == ["near"]
    assert ids(retriever.invoke("1 0.002")) == ["near"]


def test_lengths_that_count_are_not_taken_for_similarity(cache):
    store = Products(Points())
    circle(store, range(0, 40, 4))
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 2}))
    watched = WatchedVectorStore(cache, store)
    assert ids(retriever.invoke("1 0")) == ["0", "4"]
    watched.add_texts(["long: 3 3"], ids=["long"])
    assert ids(retriever.invoke("1 0")) == ["long", "0"]
    assert ids(retriever.invoke("1 0.0001")) == ["long", "0"]
    assert how(retriever.invoke("1 0.0002")) is None


def test_what_a_hit_says_is_not_written_into_the_stores_own_documents(cache):
    store = Products(Points())
    circle(store, range(0, 90, 10))
    store.held["0"][0].metadata["parts"] = [1]
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 1}))
    retriever.invoke("1 0")
    (found,) = retriever.invoke("1 0")
    found.metadata["parts"].append(2)
    assert store.held["0"][0].metadata == {"parts": [1]}
    assert how(retriever.invoke("1 0")) == "exact"


def test_vectors_of_length_one_serve_by_meaning_whatever_the_metric(cache):
    store = Products(Points())
    circle(store, range(0, 180, 3))
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 2}))
    retriever.invoke("1 0")
    assert how(retriever.invoke("0.9999 0.01")) == "proven"


@pytest.mark.parametrize("limit", ["most", "least"])
def test_few_documents_are_not_all_there_are_where_a_store_has_limits(cache, limit):
    store = Products(Points(), most=2 if limit == "most" else 1_000)
    store.least = 0.95 if limit == "least" else -1.0
    circle(store, range(0, 90, 10))
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 2}))
    for query in ("1 0", "0.87 0.5", "0.98 0.19", "0.94 0.34", "0.9 0.42"):
        found = ids(retriever.invoke(query))
        assert found == ids(store.similarity_search(query, k=2))
        assert ids(retriever.invoke(query)) == found
        assert how(retriever.invoke(query)) is not None
    store.most, store.least = 1_000, -1.0
    assert len(retriever.invoke("1 0", k=5)) == 5


def test_another_model_under_the_same_name_of_an_index_is_another_index(cache):
    rows = [f"{n}: {np.cos(n / 40)} {np.sin(n / 40)}" for n in range(60)]
    found = []
    for turned in (False, True):
        store = InMemoryVectorStore(Points(turned))
        store.add_texts(rows, ids=rows)
        retriever = CachedRetriever(
            cache, store.as_retriever(search_kwargs={"k": 1}), index="documents"
        )
        assert how(retriever.invoke("1 0")) is None
        assert ids(retriever.invoke("1 0.01")) == ids(store.similarity_search("1 0.01", k=1))
        found.append(how(retriever.invoke("1 0.01")))
    assert found == ["proven", "proven"]


async def test_vectors_that_cannot_be_had_are_not_the_callers_trouble(cache):
    store = Products(Points())
    circle(store, range(0, 90, 10))
    store.embedding.documents_fail = True
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 2}))
    assert ids(retriever.invoke("1 0")) == ["0", "10"]
    assert ids(await retriever.ainvoke("0 1")) == ["80", "70"]
    assert how(retriever.invoke("1 0")) == how(await retriever.ainvoke("0 1")) == "exact"
    assert how(retriever.invoke("1 0.001")) is None


async def test_a_model_that_embeds_in_async_calls_only(cache):
    store = Products(OnlyAsync())
    circle(store, range(0, 90, 3))
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 2}))
    assert ids(await retriever.ainvoke("1 0")) == ["0", "3"]
    assert how(await retriever.ainvoke("1 0.001")) == "proven"


@pytest.mark.parametrize("k", [0, -1, 2.0, "2", True, None, np.int64(2)])
def test_whatever_k_is_the_store_has_its_say(cache, k):
    store = InMemoryVectorStore(Points())
    store.add_texts(["1 0", "0.9 0.1", "0 1"], ids=["a", "b", "c"])
    plain = store.as_retriever(search_kwargs={"k": k})
    retriever = CachedRetriever(cache, plain)
    try:
        expected = ids(plain.invoke("1 0"))
    except Exception as error:
        with pytest.raises(type(error)):
            retriever.invoke("1 0")
    else:
        assert ids(retriever.invoke("1 0")) == ids(retriever.invoke("1 0")) == expected
        assert ids(retriever.invoke("1 0", k=np.int64(1))) == ["a"]
        assert ids(retriever.invoke("1 0", k=k)) == expected


async def test_many_who_ask_at_once_while_documents_come_and_go_get_what_a_search_gives(cache):
    rng = np.random.default_rng(3)
    store = InMemoryVectorStore(Points())
    watched = WatchedVectorStore(cache, store)
    circle(watched, range(0, 360, 7))
    retrievers = [
        CachedRetriever(cache, watched.as_retriever(search_kwargs={"k": k})) for k in (2, 5)
    ]
    queries = [f"{np.cos(a)} {np.sin(a)}" for a in rng.normal(0, 0.05, size=12)]

    for step in range(12):
        angle = float(rng.normal(0, 0.1))
        new = Document(f"{step}: {np.cos(angle)} {np.sin(angle)}", id=f"new{step}")
        changes = [watched.aadd_documents([new])]
        changes += [watched.adelete([f"new{step - 2}"])] if step >= 2 else []
        await asyncio.gather(
            *changes, *(one.ainvoke(query) for one in retrievers for query in queries)
        )
        for retriever in retrievers:
            k = retriever.retriever.search_kwargs["k"]
            for query in queries:
                found = await retriever.ainvoke(query)
                if how(found) != "statistical":
                    assert ids(found) == ids(store.similarity_search(query, k=k))
