"""A search in one of LangChain's vector stores, as the cache sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

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
from stemma_langchain.vector_stores import (
    VectorSearch,
    astored_vectors,
    documents_by_id,
    is_chroma,
    stored_vectors,
)

__all__ = ["Sought"]

Sources = Callable[[Sequence[Document]], list[tuple[Source, str]]]

UNKNOWN = (
    "the vectors of what a vector store gave could not be had; what it gave is kept for the same "
    "query only"
)
ODD = (
    "a vector store gives documents in another order than their vectors' similarity to the query, "
    "or may do so, as these are not of length 1; what it gave is kept for the same query only"
)


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
        self.odd: str | None = None

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
        """The documents with these ids, which the store may hold as they are: copies of them."""
        return _copies(documents_by_id(self._search.store, chunks).values())

    async def aread(self, chunks: Sequence[str]) -> Mapping[str, Document]:
        """As `read`."""
        store = self._search.store
        if is_chroma(store):
            return await asyncio.to_thread(self.read, chunks)
        return _copies(await store.aget_by_ids(list(chunks)))

    def content(self, document: Document) -> str:
        """A hash of text and metadata: rights may lie in these."""
        text = content_digest(document.page_content)
        try:
            return digest("document/1", text, document.metadata)
        except UnkeyableValue:
            return text

    def search(self) -> Ranking:
        """Search the store, for more than are wanted."""
        store, k, settings = self._search.store, self._wanted, self._settings
        if self._search.plain:
            vector = list(self.embed(self._query))
            found = store.similarity_search_by_vector(vector, k=k, **settings)
        else:
            found = store.similarity_search(self._query, k=k, **settings)
        try:
            self.embed(self._query)
            vectors = stored_vectors(store, found, self._search.embeddings) if found else []
        except Exception:  # asked for the cache's sake: what was found is given all the same
            return self._ranking(found, None)
        return self._ranking(found, vectors)

    async def asearch(self) -> Ranking:
        """As `search`."""
        store, k, settings = self._search.store, self._wanted, self._settings
        if self._search.plain:
            vector = list(await self.aembed(self._query))
            found = await store.asimilarity_search_by_vector(vector, k=k, **settings)
        else:
            found = await store.asimilarity_search(self._query, k=k, **settings)
        try:
            await self.aembed(self._query)
            embeddings = self._search.embeddings
            vectors = await astored_vectors(store, found, embeddings) if found else []
        except Exception:
            return self._ranking(found, None)
        return self._ranking(found, vectors)

    @property
    def _wanted(self) -> int:
        return candidates(self._k, self._times)

    def _ranking(self, found: Sequence[Document], vectors: Sequence[Any] | None) -> Ranking:
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
            # A store may have its own limits, or leave out what is not near enough.
            complete=len(found) < self._wanted and self._search.plain,
            cosine=self._search.cosine,
            written=written,
            sources=[source for source, _ in self._sources(found)] if written else (),
        )
        ranking = ranked(told, k=self._k, reusable=self._times > 1)
        if ranking.query is None:
            self.odd = UNKNOWN if vectors is None else ODD
        return ranking


def _copies(documents: Iterable[Document]) -> dict[str, Document]:
    """Copies of documents, by their ids."""
    return {one.id: one.model_copy(deep=True) for one in documents if one.id is not None}
