"""Vector stores behind `CachedRetriever`: lists that serve reworded queries, documents read again."""

import uuid

import chromadb
import numpy as np
import pytest
from langchain_chroma import Chroma
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

import stemma
from stemma_langchain import CachedRetriever, WatchedVectorStore

WIDTH = 16


class Angles(Embeddings):
    """A text is a point by its hash; `~` and digits after it move it a little. Counts its work."""

    def __init__(self) -> None:
        self.queries = 0
        self.texts = 0

    def _vector(self, text):
        name, _, by = text.partition("~")
        point = self._point(name)
        return (point + float(by or 0) * self._point(f"{name}{by}")).tolist()

    def _point(self, name):
        rng = np.random.default_rng(int.from_bytes(uuid.uuid5(uuid.NAMESPACE_OID, name).bytes[:4]))
        vector = rng.normal(size=WIDTH)
        return vector / np.linalg.norm(vector)

    def embed_documents(self, texts):
        self.texts += len(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text):
        self.queries += 1
        return self._vector(text)


def in_memory(embeddings):
    return InMemoryVectorStore(embeddings)


def chroma(embeddings):
    return Chroma(
        collection_name=f"c{uuid.uuid4().hex}",
        embedding_function=embeddings,
        client=chromadb.EphemeralClient(),
        collection_configuration={"hnsw": {"space": "cosine"}},
    )


@pytest.fixture(params=[in_memory, chroma], ids=lambda make: make.__name__)
def store(request):
    made = request.param(Angles())
    made.add_documents(
        [Document(f"text {n}", id=f"d{n}", metadata={"source": f"s{n % 7}"}) for n in range(120)]
    )
    return made


@pytest.fixture
def cache():
    with stemma.open(embedder=None, tenant="t") as opened:
        yield opened


@pytest.fixture
def searches(store, monkeypatch):
    """How often, and for how many documents, the store was searched."""
    asked = []
    kind = type(store)
    search = kind.similarity_search_by_vector

    def counted(self, embedding, k=4, **kwargs):
        asked.append(k)
        return search(self, embedding, k=k, **kwargs)

    async def acounted(self, embedding, k=4, **kwargs):
        return counted(self, embedding, k, **kwargs)

    monkeypatch.setattr(kind, "similarity_search_by_vector", counted)
    monkeypatch.setattr(kind, "asimilarity_search_by_vector", acounted)
    return asked


def how(documents):
    return documents[0].metadata.get("stemma", {}).get("list")


def ids(documents):
    return [document.id for document in documents]


def test_what_a_miss_gives_is_what_the_store_gives(cache, store, searches):
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    found = retriever.invoke("a query")
    assert found == store.similarity_search("a query", k=3)
    assert searches[0] == 24
    again = retriever.invoke("a query")
    assert (how(again), ids(again), len(searches)) == ("exact", ids(found), 1 + (len(searches) - 1))
    assert [one.metadata["source"] for one in again] == [one.metadata["source"] for one in found]


async def test_a_reworded_query_is_served_in_every_style(cache, store, searches):
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    retriever.invoke("a query")
    notes = [how(retriever.invoke("a query~0.01")), how(await retriever.ainvoke("a query~0.011"))]
    notes += [how(one) for one in retriever.batch(["a query~0.012", "a query~0.013"])]
    notes += [how(one) for one in await retriever.abatch(["a query~0.014"])]
    assert notes == ["proven"] * 5
    assert len(searches) == 1
    for asked in ("a query~0.01", "a query~0.014"):
        assert ids(retriever.invoke(asked)) == ids(store.similarity_search(asked, k=3))
    note = retriever.invoke("a query~0.02")[0].metadata["stemma"]
    assert (note["tier"], note["list"], note["hit"]) == ("semantic", "proven", True)
    assert note["similarity"] > 0.99


def test_a_hit_embeds_at_most_the_query(cache, store):
    embeddings = store.embeddings
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    retriever.invoke("a query")
    before = (embeddings.queries, embeddings.texts)
    retriever.invoke("a query")
    assert (embeddings.queries, embeddings.texts) == before
    retriever.invoke("a query~0.01")
    assert (embeddings.queries, embeddings.texts) == (before[0] + 1, before[1])


def test_k_may_be_less_and_not_more(cache, store, searches):
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    retriever.invoke("a query")
    assert how(retriever.invoke("a query", k=2)) == "prefix"
    assert len(retriever.invoke("a query", k=2)) == 2
    assert how(retriever.invoke("a query", k=30)) is None
    assert searches == [24, 240]
    assert len(retriever.invoke("a query", k=30)) == 30


def test_a_document_that_was_deleted_or_changed_behind_our_back_is_not_served(cache, store):
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    first, second, _ = ids(retriever.invoke("a query"))
    store.delete([first])
    found = retriever.invoke("a query")
    assert how(found) is None
    assert first not in ids(found)
    store.add_documents([Document("other", id=second, metadata={"source": "x"})])
    assert second not in ids(retriever.invoke("a query"))
    third = ids(retriever.invoke("a query"))[0]
    text = store.get_by_ids([third])[0].page_content
    store.add_documents([Document(text, id=third, metadata={"source": "y", "acl": "staff"})])
    assert how(retriever.invoke("a query")) is None
    assert retriever.invoke("a query")[0].metadata["acl"] == "staff"


def test_filters_and_other_kinds_of_search_are_apart(cache, store, searches):
    plain = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    plain.invoke("a query")
    chosen = {"source": "s1"} if isinstance(store, Chroma) else only_s1
    filtered = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3, "filter": chosen}))
    found = filtered.invoke("a query~0.01")
    assert {one.metadata["source"] for one in found} == {"s1"}
    assert how(found) is None
    assert how(filtered.invoke("a query~0.011")) is not None
    diverse = CachedRetriever(cache, store.as_retriever(search_type="mmr"))
    assert how(diverse.invoke("a query")) is None
    assert diverse.invoke("a query")[0].metadata["stemma"]["tier"] == "exact"
    assert "stemma" not in diverse.invoke("a query~0.01")[0].metadata


def only_s1(document):
    return document.metadata["source"] == "s1"


def test_one_candidate_a_document_means_the_same_query_only(cache, store, searches):
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}), candidates=1)
    retriever.invoke("a query")
    assert how(retriever.invoke("a query")) == "exact"
    assert how(retriever.invoke("a query~0.001")) is None
    assert searches == [3, 3]


def test_two_tenants_and_two_permission_sets_search_for_themselves(cache, store, searches):
    retriever = CachedRetriever(cache, store.as_retriever())
    retriever.invoke("a query")
    for told in ({"tenant": "u"}, {"permissions": ["staff"]}, {"language": "de"}):
        with cache.using(**told):
            assert how(retriever.invoke("a query~0.001")) is None
    assert len(searches) == 4


def test_nothing_found_is_kept_where_that_is_asked_for(cache):
    store = InMemoryVectorStore(Angles())
    plain = CachedRetriever(cache, store.as_retriever())
    assert plain.invoke("a query") == plain.invoke("a query") == []
    assert cache.stats().of(node="retrieval").entries == 0
    watched = WatchedVectorStore(cache, store)
    negative = CachedRetriever(cache, watched.as_retriever(), negative=60)
    assert negative.invoke("a query") == []
    assert negative.invoke("a query") == []
    assert cache.stats().of(node="retrieval").exact == 1
    (entry,) = cache.engine.parts.store.find()
    assert 0 < entry.expires - entry.made <= 60
    watched.add_documents([Document("text", id="1")])
    assert ids(negative.invoke("a query")) == ["1"]


class Nothing(BaseRetriever):
    """Finds nothing, and counts how often it did not."""

    def _get_relevant_documents(self, query, *, run_manager):
        SOUGHT.append(query)
        return []


SOUGHT: list[str] = []


def test_nothing_found_by_any_retriever_is_kept_likewise(cache):
    SOUGHT.clear()
    retriever = CachedRetriever(cache, Nothing(), negative=60)
    assert retriever.invoke("a") == retriever.invoke("a") == []
    assert SOUGHT == ["a"]


class Backwards(InMemoryVectorStore):
    """Ranks by something else than its vectors' similarity."""

    def similarity_search(self, query, k=4, **kwargs):
        found = super().similarity_search(query, k=k, **kwargs)
        return [*found[1:], found[0]]


def test_a_store_that_ranks_otherwise_serves_the_same_query_only_and_says_so(cache):
    store = Backwards(Angles())
    store.add_texts([f"text {n}" for n in range(60)], ids=[f"d{n}" for n in range(60)])
    told = []
    cache.listen(lambda event: told.append(event.detail) if event.kind == "warning" else None)
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    first = retriever.invoke("a query")
    assert how(retriever.invoke("a query")) == "exact"
    assert ids(retriever.invoke("a query")) == ids(first)
    assert how(retriever.invoke("a query~0.001")) is None
    assert sum("another order" in one for one in told) == 1
    assert len(cache.documents_changed(retriever.index_identity(), added=[[0.0] * 15 + [1.0]])) == 2


class NoIds(VectorStore):
    """Gives documents without ids, and none by id."""

    def __init__(self, embeddings) -> None:
        self.inner = InMemoryVectorStore(embeddings)
        self.searched = 0

    @property
    def embeddings(self):
        return self.inner.embeddings

    def similarity_search(self, query, k=4, **kwargs):
        return self.similarity_search_by_vector(self.embeddings.embed_query(query), k)

    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        self.searched += 1
        found = self.inner.similarity_search_by_vector(embedding, k)
        return [Document(one.page_content, metadata=one.metadata) for one in found]

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        raise NotImplementedError


def test_documents_without_ids_are_served_as_copies(cache):
    store = NoIds(Angles())
    store.inner.add_texts([f"text {n}" for n in range(60)])
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    first = retriever.invoke("a query")
    again = retriever.invoke("a query")
    assert [one.page_content for one in again] == [one.page_content for one in first]
    again[0].metadata["changed"] = True
    assert "changed" not in retriever.invoke("a query")[0].metadata
    assert how(retriever.invoke("a query~0.01")) == "proven"
    assert store.searched == 1
    chunk = stemma.content_digest(first[0].page_content)
    assert len(cache.recall(source=chunk)) == 2


def test_two_documents_of_one_text_keep_their_ids_and_rights(cache, store):
    store.add_documents(
        [
            Document("twin", id="a", metadata={"source": "one", "acl": "all"}),
            Document("twin", id="b", metadata={"source": "two", "acl": "staff"}),
        ]
    )
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 2}))
    first = {one.id: one.metadata["acl"] for one in retriever.invoke("twin")}
    again = {one.id: one.metadata["acl"] for one in retriever.invoke("twin")}
    assert first == again == {"a": "all", "b": "staff"}


def test_metadata_without_a_stored_form_is_given_uncached_unless_it_is_read_again(cache):
    store = InMemoryVectorStore(Angles())
    store.add_documents([Document("text", id="1", metadata={"lock": object()})])
    retriever = CachedRetriever(cache, store.as_retriever())
    assert ids(retriever.invoke("a query")) == ["1"]
    assert "stemma" not in retriever.invoke("a query")[0].metadata


def test_a_handler_that_changes_documents_changes_nothing_that_is_stored(cache, store):
    class Marks(BaseCallbackHandler):
        def on_retriever_end(self, documents, **kwargs):
            for document in documents:
                document.metadata["seen"] = True
                document.page_content = "overwritten"

    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    retriever.invoke("a query", config={"callbacks": [Marks()]})
    again = retriever.invoke("a query")
    assert how(again) == "exact"
    assert all(one.page_content != "overwritten" for one in again)


def test_answers_know_the_documents_of_a_reworded_query(cache, store):
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 3}))
    retriever.invoke("a query")

    def answer(query):
        def compute():
            return "from " + ", ".join(ids(retriever.invoke(query)))

        return cache.answers.get_or_compute(query, compute, meaning=False)

    near = answer("a query~0.05")
    name = near.value.removeprefix("from ").split(", ")[2]
    receipt = cache.recall(source=name, dry_run=True)
    assert near.stored.entry.id in {one.entry for one in receipt.entries}
    store = cache.engine.parts.store
    (edge,) = store.lineage(near.stored.entry.id).parents
    assert store.get([edge.parent]).entries[edge.parent].focus == "a query~0.05"
