"""The expensive steps of a chain, each counted: embedding and scoring pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.embeddings import Embeddings

from stemma.rerankers import Reranker

__all__ = ["CountedEmbeddings", "CountedReranker"]


class CountedEmbeddings(Embeddings):
    """An embedding model that counts the texts it embeds, and remembers the queries' vectors.

    Args:
        inner: The model.
    """

    def __init__(self, inner: Embeddings) -> None:
        self.inner = inner
        self.texts = 0
        self.queries: dict[str, list[float]] = {}

    @property
    def stemma_identity(self) -> Any:
        """The model's own."""
        return self.inner.stemma_identity  # type: ignore[attr-defined]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """As the model."""
        self.texts += len(texts)
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """As the model."""
        self.texts += 1
        vector = self.inner.embed_query(text)
        self.queries[text] = vector
        return vector


class CountedReranker:
    """A reranker that counts the pairs it scores.

    Args:
        inner: The reranker.
    """

    def __init__(self, inner: Reranker) -> None:
        self.inner = inner
        self.revision = inner.revision
        self.pairs = 0

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """As the reranker."""
        self.pairs += len(texts)
        return self.inner.score(query, texts)
