"""Embedding models behind the cache, and Stemma's own embedders for LangChain."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from stemma import Cache, Embedder, UnkeyableValue, UsageError
from stemma.embedders import as_embedder
from stemma_langchain.fingerprint import describe, embedding_identity

__all__ = ["CachedEmbeddings", "LocalEmbeddings"]

Vector = list[float]


class LocalEmbeddings(Embeddings):
    """A Stemma embedder as a LangChain embedding model.

    With it a vector store and the cache share one model:

    ```python
    embeddings = LocalEmbeddings()
    cache = stemma.open("answers.db", tenant="me", embedder=embeddings.embedder)
    store = InMemoryVectorStore(CachedEmbeddings(cache, embeddings))
    ```

    Args:
        embedder: The embedder, or what `stemma.open` takes for one; by default the local model.
    """

    def __init__(self, embedder: Embedder | Any = "local") -> None:
        self.embedder: Embedder = as_embedder(embedder)

    @property
    def stemma_identity(self) -> str:
        """The embedder's revision."""
        return self.embedder.revision

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        """Vectors of length 1, one a text."""
        vectors: list[Vector] = self.embedder.embed(texts).astype(float).tolist() if texts else []
        return vectors

    def embed_query(self, text: str) -> Vector:
        """The vector of a text, of length 1."""
        return self.embed_documents([text])[0]


class CachedEmbeddings(Embeddings):
    """An embedding model whose vectors are cached, exactly, by text and role.

    Texts embedded as a query and as a document never share a vector, nor do two models, two
    lengths or two instructions. Each vector comes back to its own text, bit by bit as it was.
    What is missing is computed in one call with each missing text once. Blank texts go to the
    model and are not cached; vectors with numbers that are not finite are not stored.

    Args:
        cache: The cache.
        embeddings: The embedding model.
        model: Its name and revision, for the key and for `recall(model=…)`; by default derived
            (see `embedding_identity`). Give it where the model says nothing of itself.
        dimensions: The length asked for, where that is set outside the model.
        instruction: The instruction or prefix, where that is set outside the model.
        batch_size: How many missing texts the model is given at a time; by default all at once.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        shared: The pool that keeps the vectors of documents, for all tenants that name the same
            pool: for corpora that every one of them may know. Vectors of queries stay the
            tenant's own. By default those of documents do, too.
    """

    def __init__(
        self,
        cache: Cache,
        embeddings: Embeddings,
        *,
        model: str | None = None,
        dimensions: int | None = None,
        instruction: str = "",
        batch_size: int | None = None,
        life: float | None = None,
        shared: str | None = None,
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if batch_size is not None and batch_size < 1:
            raise UsageError(f"batch_size must be at least 1, not {batch_size}")
        if model == "":
            raise UsageError("model must not be empty; leave it out to have it derived")
        self.cache = cache
        self.embeddings = embeddings
        self.model = model
        self.dimensions = dimensions
        self.instruction = instruction
        self.batch_size = batch_size
        self.life = life
        self.shared = shared
        cache.embeddings.asked("", **self._documents())  # refuses a name that is none

    @property
    def stemma_identity(self) -> str:
        """The identity of the model behind it: a cached model gives the same vectors."""
        return self.model if self.model is not None else embedding_identity(self.embeddings)

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        """The vectors of documents, in the order of their texts."""
        return self.cache.embeddings.vectors(
            texts, self.embeddings.embed_documents, batch_size=self.batch_size, **self._documents()
        )

    async def aembed_documents(self, texts: list[str]) -> list[Vector]:
        """As `embed_documents`."""
        return await self.cache.embeddings.avectors(
            texts, self.embeddings.aembed_documents, batch_size=self.batch_size, **self._documents()
        )

    def embed_query(self, text: str) -> Vector:
        """The vector of a query."""
        return self.cache.embeddings.vector(
            text, lambda: self.embeddings.embed_query(text), **self._named()
        )

    async def aembed_query(self, text: str) -> Vector:
        """As `embed_query`."""
        return await self.cache.embeddings.avector(
            text, lambda: self.embeddings.aembed_query(text), **self._named()
        )

    def _named(self) -> dict[str, Any]:
        try:
            model: Any = self.stemma_identity
        except UnkeyableValue:  # the question has no key either, which is told where it is asked
            model = describe(self.embeddings)
        return {
            "model": model,
            "dimensions": self.dimensions,
            "instruction": self.instruction,
            "life": self.life,
        }

    def _documents(self) -> dict[str, Any]:
        return {"role": "document", "shared": self.shared, **self._named()}
