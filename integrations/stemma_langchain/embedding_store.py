"""A store of bytes for `CacheBackedEmbeddings`, bound to one model and one role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from langchain_core.stores import ByteStore

from stemma import Asked, BytesCodec, Cache, Hit, Query, Request, Ticket, UsageError

__all__ = ["EmbeddingByteStore"]

_CODEC = BytesCodec()


class EmbeddingByteStore(ByteStore):
    """Keys to bytes, per tenant, for one embedding model in one role.

    For code that is built on `CacheBackedEmbeddings` already; `CachedEmbeddings` is simpler, keeps
    vectors in a quarter of the space and computes the same text in a batch once.

    ```python
    cached = CacheBackedEmbeddings.from_bytes_store(
        inner,
        EmbeddingByteStore(cache, model="acme/embed-2"),
        query_embedding_cache=EmbeddingByteStore(cache, model="acme/embed-2", role="query"),
        key_encoder="sha256",
    )
    ```

    Stores of other models, roles, lengths or instructions see nothing of this one, so its user
    needs no `namespace`. The tenant is that of the call. Without a tenant nothing is read or
    written, and a warning told once.

    Args:
        cache: The cache.
        model: The model's name and revision, for the key and for `recall(model=…)`.
        role: `"document"` or `"query"`: asymmetric models need a store for each.
        dimensions: The length asked for.
        instruction: The instruction or prefix.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        shared: The pool that keeps what is stored, for all tenants that name the same pool: for
            documents that every one of them may know. By default it is the tenant's own.

    Raises:
        UsageError: An argument is wrong.
    """

    def __init__(
        self,
        cache: Cache,
        *,
        model: str,
        role: Literal["document", "query"] = "document",
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
        asked = cache.embeddings.asked(
            "",
            model=model,
            role=role,
            dimensions=dimensions,
            instruction=instruction,
            life=life,
            shared=shared,
        )
        self._any = replace(
            asked,
            scope={**asked.scope, "schema": _CODEC.name},
            scope_key=(asked.scope_key, _CODEC.name),
            codec=_CODEC,
        )

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """What is stored under each key; `None` where nothing is."""
        outcomes = self.cache.embeddings.look_all(self._asked(keys))
        return [outcome.value if isinstance(outcome, Hit) else None for outcome in outcomes]

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `mget`."""
        outcomes = await self.cache.embeddings.alook_all(self._asked(keys))
        return [outcome.value if isinstance(outcome, Hit) else None for outcome in outcomes]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Store each value under its key, in the place of what is there."""
        self.cache.embeddings.put_all(self._ticketed(key_value_pairs))

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """As `mset`."""
        await self.cache.embeddings.aput_all(self._ticketed(key_value_pairs))

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove what is stored under these keys, if anything is.

        Raises:
            StoreError: The store could not do it.
        """
        self.cache.embeddings.forget_all(self._asked(keys))

    async def amdelete(self, keys: Sequence[str]) -> None:
        """As `mdelete`."""
        await self.cache.embeddings.aforget_all(self._asked(keys))

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The tenant's keys, with this prefix; reads every entry of the model.

        Raises:
            StoreError: The store could not do it.
        """
        for entry in self.cache.embeddings.entries(self._any):
            if entry.focus is not None and entry.focus.startswith("" if prefix is None else prefix):
                yield entry.focus

    def _asked(self, keys: Sequence[str]) -> list[Asked]:
        # Not part of the exact key but the focus, which is kept: `yield_keys` reads it.
        return [replace(self._any, request=Request(focus=key, meaning=False)) for key in keys]

    def _ticketed(self, pairs: Sequence[tuple[str, bytes]]) -> list[tuple[Ticket, bytes]]:
        embeddings = self.cache.embeddings
        queries = map(embeddings.resolve, self._asked([key for key, _ in pairs]))
        return [
            (embeddings.ticket_for(query), value)
            for query, (_, value) in zip(queries, pairs, strict=True)
            if isinstance(query, Query)
        ]
