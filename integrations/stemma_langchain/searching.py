"""LangChain's vector stores as the cache sees them: a search by a vector, and documents by id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from stemma import (
    Found,
    Frame,
    Ranking,
    Source,
    UnkeyableValue,
    candidates,
    content_digest,
    digest,
    ranked,
)
from stemma_langchain.kinds import Watching

__all__ = ["Sought", "VectorSearch", "documents_by_id", "stored_vectors", "vector_search"]

Sources = Callable[[Sequence[Document]], list[tuple[Source, str]]]

_K = 4
"""How many documents LangChain asks for where nobody says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorSearch:
    """A retriever that ranks by the similarity of vectors, and nothing else.

    Args:
        store: The vector store.
        embeddings: What embeds its queries.
        settings: The arguments of each of its searches, without `k`.
        k: How many documents it asks for.
        rereads: Whether documents can be read by their ids.
    """

    store: VectorStore
    embeddings: Embeddings
    settings: Mapping[str, Any] = field(repr=False)
    k: int
    rereads: bool


def vector_search(retriever: Runnable[str, list[Document]]) -> VectorSearch | None:
    """The vector search that a retriever makes, or `None` where it does something else.

    A class derived from LangChain's may do anything, so only that one itself is known.
    """
    if type(retriever) is not VectorStoreRetriever or retriever.search_type != "similarity":
        return None
    store, settings = retriever.vectorstore, dict(retriever.search_kwargs)
    store = store.watched if isinstance(store, Watching) else store
    embeddings, k = store.embeddings, settings.pop("k", _K)
    by_vector = type(store).similarity_search_by_vector
    if embeddings is None or by_vector is VectorStore.similarity_search_by_vector:
        return None
    return VectorSearch(
        store=store,
        embeddings=embeddings,
        settings=settings,
        k=k,
        rereads=type(store).get_by_ids is not VectorStore.get_by_ids,
    )


def stored_vectors(
    store: VectorStore, documents: Sequence[Document], embeddings: Embeddings
) -> Sequence[Any]:
    """The vectors of documents: those that the store holds, where it tells; else embedded again.

    Args:
        store: The store that gave the documents.
        documents: The documents.
        embeddings: What embeds them.
    """
    ids = [document.id for document in documents if document.id is not None]
    if len(ids) == len(documents):
        if isinstance(store, InMemoryVectorStore):
            held: Mapping[str, Any] = {
                one: store.store[one]["vector"] for one in ids if one in store.store
            }
        else:
            held = _told(store, ids)
        if all(one in held for one in ids):
            return [held[one] for one in ids]
    return embeddings.embed_documents([document.page_content for document in documents])


def documents_by_id(store: Any, ids: Sequence[str]) -> dict[str, Document]:
    """Those of the documents that a store has.

    Args:
        store: The store.
        ids: The documents' ids.

    Raises:
        NotImplementedError: The store cannot give documents by their ids.
    """
    if not _is_chroma(store):
        found = store.get_by_ids(list(ids))
        return {document.id: document for document in found if document.id is not None}
    # LangChain's method for Chroma fails where a document has no metadata.
    told = store.get(ids=list(ids), include=["documents", "metadatas"])
    parts = zip(told["ids"], told["documents"], told["metadatas"], strict=True)
    return {
        name: Document(id=name, page_content=text, metadata={} if said is None else dict(said))
        for name, text, said in parts
        if text is not None
    }


def _is_chroma(store: Any) -> bool:
    return any(kind.__name__ == "Chroma" for kind in type(store).__mro__)


def _told(store: Any, ids: list[str]) -> Mapping[str, Any]:
    """The vectors that a Chroma collection holds; of other stores, none."""
    if not _is_chroma(store):
        return {}
    told = store.get(ids=ids, include=["embeddings"])
    vectors = told.get("embeddings")
    return {} if vectors is None else dict(zip(told["ids"], vectors, strict=True))


class Sought:
    """One query to one vector search: what the cache asks of it (`stemma.Searcher`).

    Args:
        search: The search.
        query: The query.
        settings: The arguments of this call besides `k`.
        k: How many documents are wanted.
        times: How many times more are asked for.
        sources: Documents as sources.
        note: Notes documents as sources in a frame.
    """

    def __init__(
        self,
        search: VectorSearch,
        query: str,
        *,
        settings: Mapping[str, Any],
        k: int,
        times: int,
        sources: Sources,
        note: Callable[[Sequence[Document], Frame | None], None],
    ) -> None:
        self._search = search
        self._query = query
        self._settings = {**search.settings, **settings}
        self._k = k
        self._times = times
        self._sources = sources
        self._vector: Sequence[float] | None = None
        self.note = note
        self.odd = False

    def embed(self, query: str) -> Sequence[float]:
        """The query's vector; computed once."""
        if self._vector is None:
            self._vector = self._search.embeddings.embed_query(query)
        return self._vector

    async def aembed(self, query: str) -> Sequence[float]:
        """As `embed`."""
        if self._vector is None:
            self._vector = await self._search.embeddings.aembed_query(query)
        return self._vector

    def read(self, chunks: Sequence[str]) -> Mapping[str, Document]:
        """The documents with these ids."""
        return documents_by_id(self._search.store, chunks)

    async def aread(self, chunks: Sequence[str]) -> Mapping[str, Document]:
        """As `read`."""
        store = self._search.store
        if _is_chroma(store):
            return await asyncio.to_thread(documents_by_id, store, chunks)
        found = await store.aget_by_ids(list(chunks))
        return {document.id: document for document in found if document.id is not None}

    def content(self, document: Document) -> str:
        """A hash of text and metadata: rights may lie in these."""
        text = content_digest(document.page_content)
        try:
            return digest("document/1", text, document.metadata)
        except UnkeyableValue:
            return text

    def search(self) -> Ranking:
        """Search the store, for more than are wanted."""
        vector, store = list(self.embed(self._query)), self._search.store
        found = store.similarity_search_by_vector(vector, k=self._wanted, **self._settings)
        vectors = stored_vectors(store, found, self._search.embeddings) if found else []
        return self._ranking(found, vectors)

    async def asearch(self) -> Ranking:
        """As `search`."""
        vector, store = list(await self.aembed(self._query)), self._search.store
        found = await store.asimilarity_search_by_vector(vector, k=self._wanted, **self._settings)
        vectors: Sequence[Any] = []
        if found:
            vectors = await asyncio.to_thread(stored_vectors, store, found, self._search.embeddings)
        return self._ranking(found, vectors)

    @property
    def _wanted(self) -> int:
        return candidates(self._k, self._times)

    def _ranking(self, found: Sequence[Document], vectors: Sequence[Any]) -> Ranking:
        """What was found, as a list that knows how far it reaches."""
        written = not self._search.rereads or any(one.id is None for one in found)
        contents = [self.content(one) for one in found]
        ids = [
            content if one.id is None else one.id
            for one, content in zip(found, contents, strict=True)
        ]
        told = Found(
            documents=found,
            ids=ids,
            contents=contents,
            query=self._vector,
            vectors=vectors,
            complete=len(found) < self._wanted,
            written=written,
            sources=[source for source, _ in self._sources(found)] if written else (),
        )
        ranking = ranked(told, k=self._k, reusable=self._times > 1)
        self.odd = self.odd or ranking.query is None
        return ranking
