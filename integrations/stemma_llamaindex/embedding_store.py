"""A key-value store for LlamaIndex's `embeddings_cache`, bound to one model and to texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.storage.kvstore.types import BaseKVStore

from stemma import Asked, Cache, Hit, Miss, Query, Ticket, UsageError

__all__ = ["EmbeddingKVStore"]

EMBEDDINGS = "embeddings"
"""The one collection that LlamaIndex's embedding models read and write."""


class EmbeddingKVStore(BaseKVStore):
    """Texts to vectors, per tenant, for one embedding model.

    ```python
    embed_model.embeddings_cache = EmbeddingKVStore(cache, model="acme/embed-2")
    ```

    It shares what it keeps with `CachedEmbedding(cache, …, model="acme/embed-2")`, which is the
    better choice: LlamaIndex asks an `embeddings_cache` for queries and texts by the same key, so
    give it only to a model that embeds both alike, or that is asked for texts only. The tenant is
    that of the call; without one nothing is read or written, and a warning told once.

    Args:
        cache: The cache.
        model: The model's name and revision, for the key and for `recall(model=…)`.
        dimensions: The length asked for.
        instruction: The instruction or prefix.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        shared: The pool that keeps what is stored, for all tenants that name the same pool. By
            default it is the tenant's own.

    Raises:
        UsageError: An argument is wrong, or another collection than `"embeddings"` is asked for.
    """

    def __init__(
        self,
        cache: Cache,
        *,
        model: str,
        dimensions: int | None = None,
        instruction: str = "",
        life: float | None = None,
        shared: str | None = None,
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if not isinstance(model, str) or model == "":
            raise UsageError("model must be a text that is not empty")
        self.cache = cache
        self._named: dict[str, Any] = {
            "model": model,
            "role": "document",
            "dimensions": dimensions,
            "instruction": instruction,
            "life": life,
            "shared": shared,
        }
        cache.embeddings.asked("", **self._named)  # refuses a name that is none

    def get(self, key: str, collection: str = EMBEDDINGS) -> dict[str, Any] | None:
        """The vector of a text, under the id of its entry; `None` where there is none."""
        (outcome,) = self.cache.embeddings.look_all([self._asked(key, collection)])
        return _as_value(outcome)

    async def aget(self, key: str, collection: str = EMBEDDINGS) -> dict[str, Any] | None:
        """As `get`."""
        (outcome,) = await self.cache.embeddings.alook_all([self._asked(key, collection)])
        return _as_value(outcome)

    def put(self, key: str, val: dict[str, Any], collection: str = EMBEDDINGS) -> None:
        """Keep the vector of a text: the first value of `val`."""
        self.put_all([(key, val)], collection)

    async def aput(self, key: str, val: dict[str, Any], collection: str = EMBEDDINGS) -> None:
        """As `put`."""
        await self.aput_all([(key, val)], collection)

    def put_all(
        self,
        kv_pairs: Sequence[tuple[str, dict[str, Any]]],
        collection: str = EMBEDDINGS,
        batch_size: int = 1,  # noqa: ARG002 - one write, however many there are
    ) -> None:
        """Keep the vectors of many texts, in one write."""
        self.cache.embeddings.put_all(self._ticketed(kv_pairs, collection))

    async def aput_all(
        self,
        kv_pairs: Sequence[tuple[str, dict[str, Any]]],
        collection: str = EMBEDDINGS,
        batch_size: int = 1,  # noqa: ARG002 - as above
    ) -> None:
        """As `put_all`."""
        await self.cache.embeddings.aput_all(self._ticketed(kv_pairs, collection))

    def delete(self, key: str, collection: str = EMBEDDINGS) -> bool:
        """Remove the vector of a text; says whether there was one.

        Raises:
            StoreError: The store could not do it.
        """
        return self.cache.embeddings.forget_all([self._asked(key, collection)]) > 0

    async def adelete(self, key: str, collection: str = EMBEDDINGS) -> bool:
        """As `delete`."""
        return await self.cache.embeddings.aforget_all([self._asked(key, collection)]) > 0

    def get_all(self, collection: str = EMBEDDINGS) -> dict[str, dict[str, Any]]:
        """Not to be had: of a text only a digest is kept.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(f"the texts of {collection!r} are not kept, only their digests")

    async def aget_all(self, collection: str = EMBEDDINGS) -> dict[str, dict[str, Any]]:
        """As `get_all`."""
        return self.get_all(collection)

    def _asked(self, text: str, collection: str) -> Asked:
        if collection != EMBEDDINGS:
            raise UsageError(f"only {EMBEDDINGS!r} are kept here, not {collection!r}")
        return self.cache.embeddings.asked(text, **self._named)

    def _ticketed(
        self, pairs: Sequence[tuple[str, dict[str, Any]]], collection: str
    ) -> list[tuple[Ticket, Any]]:
        embeddings = self.cache.embeddings
        kept = [(key, next(iter(value.values()), None)) for key, value in pairs if key.strip()]
        queries = [embeddings.resolve(self._asked(key, collection)) for key, _ in kept]
        return [
            (embeddings.ticket_for(query), vector)
            for query, (_, vector) in zip(queries, kept, strict=True)
            if isinstance(query, Query)
        ]


def _as_value(outcome: Hit | Miss) -> dict[str, Any] | None:
    return {outcome.entry.id: outcome.value} if isinstance(outcome, Hit) else None
