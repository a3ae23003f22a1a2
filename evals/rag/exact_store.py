"""A vector store that is searched exactly, and counts how often; and retrievers, cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from stemma import Cache
from stemma_langchain import CachedRetriever

__all__ = ["CANDIDATES", "ExactStore", "cached_retriever"]

CANDIDATES = 8
"""How many times k the cached retrievers ask it for."""


class ExactStore(InMemoryVectorStore):
    """LangChain's store in memory, with its vectors in one matrix: as exact, and faster.

    Every search compares the query with every document, in float64; so its list holds the nearest
    there are, as far as the model's vectors say. Each is counted.

    Args:
        embedding: The embedding model.
        like: Another store whose documents it shares.
    """

    def __init__(self, embedding: Embeddings, like: ExactStore | None = None) -> None:
        super().__init__(embedding)
        self.searches = 0
        self._matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]] | None = None
        if like is not None:
            self.store = like.store

    def add_documents(
        self, documents: list[Document], ids: list[str] | None = None, **kwargs: Any
    ) -> list[str]:
        """As LangChain's."""
        self._matrix = None
        return super().add_documents(documents, ids, **kwargs)

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> None:
        """As LangChain's."""
        self._matrix = None
        super().delete(ids, **kwargs)

    def similarities(self, vector: Sequence[float]) -> dict[str, float]:
        """The cosine similarity of every document to a vector, by the document's id."""
        if self._matrix is None:
            rows = np.array([one["vector"] for one in self.store.values()], dtype=np.float64)
            self._matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        asked = np.asarray(vector, dtype=np.float64)
        scores = self._matrix @ (asked / np.linalg.norm(asked))
        return dict(zip(self.store, scores.tolist(), strict=True))

    def _similarity_search_with_score_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        filter: Callable[[Document], bool] | None = None,
    ) -> list[tuple[Document, float, list[float]]]:
        self.searches += 1
        if filter is not None or not self.store:
            return super()._similarity_search_with_score_by_vector(embedding, k, filter)
        scores = self.similarities(embedding)
        nearest = sorted(scores, key=scores.__getitem__, reverse=True)[:k]
        return [
            (_document(self.store[one]), scores[one], self.store[one]["vector"]) for one in nearest
        ]


def _document(held: dict[str, Any]) -> Document:
    return Document(id=held["id"], page_content=held["text"], metadata=held["metadata"])


def cached_retriever(cache: Cache, store: VectorStore, k: int) -> CachedRetriever:
    """A vector store's own retriever of k documents, behind the cache."""
    retriever = store.as_retriever(search_kwargs={"k": k})
    return CachedRetriever(cache, retriever, k=k, candidates=CANDIDATES)
