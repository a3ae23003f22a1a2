"""`CachedEmbedding`: any embedding model of LlamaIndex behind the cache."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import Field

from stemma import Cache, UsageError
from stemma_llamaindex.describing import embedding_identity
from stemma_llamaindex.events import tell_hit

__all__ = ["CachedEmbedding"]

Vector = list[float]

_MOST = 2_048
"""The largest batch that LlamaIndex allows."""


class CachedEmbedding(BaseEmbedding):
    """An embedding model whose vectors are cached, exactly, by text and role.

    Texts embedded as a query and as a text of a document never share a vector, nor do two models,
    two lengths or two instructions. Each vector comes back to its own text, bit by bit as it was.
    Of a batch, only what is missing is computed, each missing text once, in batches of the
    model's own `embed_batch_size`. Only these count with the model's rate limiter. Blank texts go
    to the model and are not cached; vectors with numbers that are not finite are not stored.

    Events and spans are those of one embedding model. The model's own `embeddings_cache` is not
    asked: its keys do not tell models and roles apart.

    Args:
        cache: The cache.
        inner: The embedding model.
        model: Its name and revision, for the key and for `recall(model=…)`; by default derived
            (see `stemma_llamaindex.describing`).
        dimensions: The length asked for, where that is set outside the model.
        instruction: The instruction or prefix, where that is set outside the model.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        shared: The pool that keeps the vectors of documents, for all tenants that name the same
            pool: for corpora that every one of them may know. Vectors of queries stay the
            tenant's own. By default those of documents do, too.

    Raises:
        UsageError: An argument is wrong.
    """

    cache: Cache = Field(exclude=True, repr=False)
    inner: BaseEmbedding = Field(exclude=True)
    model: str | None = None
    dimensions: int | None = None
    instruction: str = ""
    life: float | None = None
    shared: str | None = None

    def __init__(
        self,
        cache: Cache,
        inner: BaseEmbedding,
        *,
        model: str | None = None,
        dimensions: int | None = None,
        instruction: str = "",
        life: float | None = None,
        shared: str | None = None,
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if not isinstance(inner, BaseEmbedding):
            raise UsageError(f"inner must be a BaseEmbedding, not {type(inner).__name__}")
        if model == "":
            raise UsageError("model must not be empty; leave it out to have it derived")
        named: dict[str, Any] = {
            "cache": cache,
            "inner": inner,
            "model": model,
            "dimensions": dimensions,
            "instruction": instruction,
            "life": life,
            "shared": shared,
            "model_name": inner.model_name,
            "embed_batch_size": _MOST,  # for what is missing, the model's own counts
            "callback_manager": inner.callback_manager,
            "num_workers": inner.num_workers,
        }
        super().__init__(**named)
        cache.embeddings.asked("", model=inner.model_name, role="document", shared=shared)

    @classmethod
    def class_name(cls) -> str:
        """The name in events and stored settings."""
        return "CachedEmbedding"

    @property
    def stemma_identity(self) -> str:
        """The identity of the model behind it: a cached model gives the same vectors."""
        return self.model if self.model is not None else embedding_identity(self.inner)

    def to_payload(self) -> dict[str, Any]:
        """What events tell of it: what they would tell of the model."""
        payload: dict[str, Any] = self.inner.to_payload()
        return {**payload, "class_name": self.class_name()}

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Its settings; of the model its identity, and nothing that must be kept secret."""
        settings: dict[str, Any] = super().to_dict(**kwargs)
        return {**settings, "stemma_identity": self.stemma_identity}

    def _get_query_embedding(self, query: str) -> Vector:
        def compute() -> Vector:
            self._wait()
            return self.inner._get_query_embedding(query)  # noqa: SLF001 - events are told once

        return self.cache.embeddings.vector(query, compute, **self._queries())

    async def _aget_query_embedding(self, query: str) -> Vector:
        async def compute() -> Vector:
            await self._await()
            return await self.inner._aget_query_embedding(query)  # noqa: SLF001 - as above

        return await self.cache.embeddings.avector(query, compute, **self._queries())

    def _get_text_embedding(self, text: str) -> Vector:
        def compute() -> Vector:
            self._wait()
            return self.inner._get_text_embedding(text)  # noqa: SLF001 - as above

        return self.cache.embeddings.vector(text, compute, **self._texts())

    async def _aget_text_embedding(self, text: str) -> Vector:
        async def compute() -> Vector:
            await self._await()
            return await self.inner._aget_text_embedding(text)  # noqa: SLF001 - as above

        return await self.cache.embeddings.avector(text, compute, **self._texts())

    def _get_text_embeddings(self, texts: list[str]) -> list[Vector]:
        def compute(part: list[str]) -> list[Vector]:
            self._wait()
            return self.inner._get_text_embeddings(part)  # noqa: SLF001 - as above

        return self.cache.embeddings.vectors(
            texts, compute, batch_size=self.inner.embed_batch_size, **self._texts()
        )

    async def _aget_text_embeddings(self, texts: list[str]) -> list[Vector]:
        async def compute(part: list[str]) -> list[Vector]:
            await self._await()
            return await self.inner._aget_text_embeddings(part)  # noqa: SLF001 - as above

        return await self.cache.embeddings.avectors(
            texts,
            compute,
            batch_size=self.inner.embed_batch_size,
            at_once=self.num_workers,
            **self._texts(),
        )

    def _wait(self) -> None:
        if self.inner.rate_limiter is not None:
            self.inner.rate_limiter.acquire()

    async def _await(self) -> None:
        if self.inner.rate_limiter is not None:
            await self.inner.rate_limiter.async_acquire()

    def _queries(self) -> dict[str, Any]:
        return {
            "on_hit": tell_hit,
            "model": self.stemma_identity,
            "dimensions": self.dimensions,
            "instruction": self.instruction,
            "life": self.life,
        }

    def _texts(self) -> dict[str, Any]:
        return {"role": "document", "shared": self.shared, **self._queries()}
