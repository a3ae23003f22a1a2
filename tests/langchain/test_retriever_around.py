"""Retrievers that are built around vector stores, inside and outside the cached one."""

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    ParentDocumentRetriever,
)
from langchain_core.documents import Document
from langchain_core.documents.compressor import BaseDocumentCompressor
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter

import stemma
from stemma_langchain import CachedChain, CachedRetriever, LocalEmbeddings, WatchedVectorStore

EMBEDDINGS = LocalEmbeddings("hashing")


@pytest.fixture
def cache():
    with stemma.open(embedder=None, tenant="t") as opened:
        yield opened


def watched(cache, *texts):
    store = WatchedVectorStore(cache, InMemoryVectorStore(EMBEDDINGS))
    store.add_texts(texts, ids=list(texts))
    return store


def texts(documents):
    return [document.page_content for document in documents]


class First(BaseDocumentCompressor):
    """Keeps the first document, shortened, without its id."""

    def compress_documents(self, documents, query, callbacks=None):
        return [Document(one.page_content[:40], metadata=one.metadata) for one in documents[:1]]


def ensemble(stores):
    return EnsembleRetriever(
        retrievers=[store.as_retriever(search_kwargs={"k": 1}) for store in stores]
    )


def compression(stores):
    retriever = stores[0].as_retriever(search_kwargs={"k": 1})
    return ContextualCompressionRetriever(base_retriever=retriever, base_compressor=First())


def function(stores):
    retriever = stores[0].as_retriever(search_kwargs={"k": 1})
    return RunnableLambda(lambda query: [*retriever.invoke(query)])


@pytest.mark.parametrize("built", [ensemble, compression, function])
def test_what_changes_in_a_store_reaches_what_is_built_around_it(cache, built):
    stores = [watched(cache, "We ship to Canada."), watched(cache, "Gifts cannot be refunded.")]
    retriever = CachedRetriever(cache, built(stores))

    def ask():
        served = cache.answers.get_or_compute(
            "q", lambda: texts(retriever.invoke("ship to Canada")), meaning=False
        )
        return served.value

    assert ask() == ask() == texts(built(stores).invoke("ship to Canada"))
    stores[0].add_texts(["ship to Canada"], ids=["new"])
    assert "ship to Canada" in ask()
    stores[0].delete(["new"])
    assert "ship to Canada" not in ask()
    if built is ensemble:
        stores[1].add_texts(["ship to Canada by sea"], ids=["other"])
        assert "ship to Canada by sea" in ask()


def test_chunks_that_change_reach_the_documents_they_are_chunks_of(cache):
    store = watched(cache)
    parents = ParentDocumentRetriever(
        vectorstore=store,
        docstore=InMemoryStore(),
        child_splitter=CharacterTextSplitter(separator=". ", chunk_size=20, chunk_overlap=0),
    )
    parents.add_documents(
        [Document("We ship to Canada. In a week."), Document("Gifts. No refund.")]
    )
    retriever = CachedRetriever(cache, parents)
    assert texts(retriever.invoke("ship to Canada"))[0].startswith("We ship")
    assert "stemma" in retriever.invoke("ship to Canada")[0].metadata
    found = store.similarity_search("ship to Canada", k=9)
    gone = [one.id for one in found if "hip" in one.page_content]
    store.delete(gone + [one.id for one in store.similarity_search("In a week", k=1)])
    assert texts(retriever.invoke("ship to Canada")) == texts(parents.invoke("ship to Canada"))


def test_an_answer_that_nothing_is_known_goes_with_the_first_document(cache):
    store = watched(cache)
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 1}))
    chain = retriever | (lambda found: texts(found)[0] if found else "nothing is known")
    cached = CachedChain(cache, chain, version="1")
    assert cached.invoke("Canada?") == cached.invoke("Canada?") == "nothing is known"
    store.add_texts(["We ship to Canada."])
    assert cached.invoke("Canada?") == "We ship to Canada."


def test_what_is_not_stored_for_its_metadata_goes_with_what_comes(cache):
    store = InMemoryVectorStore(EMBEDDINGS)
    store.add_documents([Document("Canada", id="a", metadata={"live": object()})])
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 1}))

    def ask():
        return cache.answers.get_or_compute(
            "q", lambda: retriever.invoke("ship to Canada?")[0].id, meaning=False
        ).value

    assert ask() == ask() == "a"
    WatchedVectorStore(cache, store).add_texts(["ship to Canada?"], ids=["b"])
    assert ask() == "b"
