"""`WatchedVectorStore`: a vector store whose changes the cache is told of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from pydantic import Field, PrivateAttr

from stemma import Cache, Change, Teller, UsageError
from stemma_llamaindex.describing import index_identity

__all__ = ["WatchedVectorStore"]


class WatchedVectorStore(BasePydanticVectorStore):
    """A vector store that tells the cache of what comes into it, changes, or goes.

    Whatever an index or an `IngestionPipeline` does to its vectors, it does through its vector
    store: `insert`, `insert_nodes`, `refresh_ref_docs`, `update_ref_doc`, `delete_ref_doc`,
    `delete_nodes`, and upserts. So with this one in its place, nothing that was built on what
    changed or went is served any more, and no retrieval that a new node would have come into.

    ```python
    watched = WatchedVectorStore(cache, vector_store)
    storage = StorageContext.from_defaults(vector_store=watched)
    index = VectorStoreIndex.from_documents(documents, storage_context=storage)
    ```

    The cache is told after the store has done it, and also where the store fails half way. A node
    that is added under an id that is there already counts as changed, unless the store can give
    its nodes (`get_nodes`) and finds text and metadata the same. Where the store is cleared, or
    nodes are deleted by a filter, all that was retrieved from the index is taken back.

    Args:
        cache: The cache.
        inner: The vector store.
        index: The identity of the index, as its cached retrievals have it; by default derived
            from the store, as they do.

    Raises:
        UsageError: An argument is wrong.
        StoreError: (from what changes the store) The change is made, but what was built on what
            was there before could not be taken back; the next change through this object does it.
    """

    cache: Cache = Field(exclude=True, repr=False)
    inner: BasePydanticVectorStore = Field(exclude=True)
    index: str

    _teller: Teller = PrivateAttr()

    def __init__(
        self, cache: Cache, inner: BasePydanticVectorStore, *, index: str | None = None
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if not isinstance(inner, BasePydanticVectorStore):
            raise UsageError(f"inner must be a vector store, not {type(inner).__name__}")
        if index is None:
            index = index_identity(inner)
        if not isinstance(index, str) or index == "":
            raise UsageError("index must be the identity of an index: a text that is not empty")
        named: dict[str, Any] = {
            "cache": cache,
            "inner": inner,
            "index": index,
            "stores_text": inner.stores_text,
            "is_embedding_query": inner.is_embedding_query,
        }
        super().__init__(**named)
        self._teller = Teller(cache, index)

    @classmethod
    def class_name(cls) -> str:
        """The name in stored settings."""
        return "WatchedVectorStore"

    @property
    def stemma_identity(self) -> str:
        """The identity of the index."""
        return self.index

    @property
    def client(self) -> Any:
        """The client of the store."""
        return self.inner.client

    def __getattr__(self, name: str) -> Any:
        """What only stores of its kind have."""
        inner = self.__dict__.get("inner")
        if inner is None or name.startswith("_"):
            return super().__getattr__(name)  # type: ignore[misc]  # pydantic's, for private ones
        return getattr(inner, name)

    # ---------------------------------------------------------------- what is read

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """The nodes with these ids, or that the filters let through."""
        return self.inner.get_nodes(node_ids, filters)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As `get_nodes`."""
        return await self.inner.aget_nodes(node_ids, filters)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search the store."""
        return self.inner.query(query, **kwargs)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As `query`."""
        return await self.inner.aquery(query, **kwargs)

    def persist(self, persist_path: str, fs: Any = None) -> None:
        """Have the store write itself to a file, where it can."""
        self.inner.persist(persist_path, fs)

    # ------------------------------------------------------------- what changes it

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes with their vectors."""
        before = self._found([node.node_id for node in nodes])
        try:
            return self.inner.add(nodes, **kwargs)
        finally:
            self._teller.tell(_coming(nodes, before))

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As `add`."""
        before = await self._afound([node.node_id for node in nodes])
        try:
            return await self.inner.async_add(nodes, **kwargs)
        finally:
            await self._teller.atell(_coming(nodes, before))

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        try:
            self.inner.delete(ref_doc_id, **delete_kwargs)
        finally:
            self._teller.tell(Change(removed=[ref_doc_id]))

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As `delete`."""
        try:
            await self.inner.adelete(ref_doc_id, **delete_kwargs)
        finally:
            await self._teller.atell(Change(removed=[ref_doc_id]))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete the nodes with these ids, or that the filters let through."""
        going = _going(node_ids, self._found(None, filters) if node_ids is None else None)
        try:
            self.inner.delete_nodes(node_ids, filters, **delete_kwargs)
        finally:
            self._teller.tell(going)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """As `delete_nodes`."""
        going = _going(node_ids, await self._afound(None, filters) if node_ids is None else None)
        try:
            await self.inner.adelete_nodes(node_ids, filters, **delete_kwargs)
        finally:
            await self._teller.atell(going)

    def clear(self) -> None:
        """Delete everything."""
        going = _going(None, self._found(None))
        try:
            self.inner.clear()
        finally:
            self._teller.tell(going)

    async def aclear(self) -> None:
        """As `clear`."""
        going = _going(None, await self._afound(None))
        try:
            await self.inner.aclear()
        finally:
            await self._teller.atell(going)

    def _found(
        self, node_ids: list[str] | None, filters: MetadataFilters | None = None
    ) -> dict[str, BaseNode] | None:
        """What the store holds, by id; `None` where it cannot say."""
        try:
            return _by_id(self.inner.get_nodes(node_ids, filters))
        except Exception:  # many stores have no such method, or refuse some of its arguments
            return None

    async def _afound(
        self, node_ids: list[str] | None, filters: MetadataFilters | None = None
    ) -> dict[str, BaseNode] | None:
        try:
            return _by_id(await self.inner.aget_nodes(node_ids, filters))
        except Exception:  # as above
            return None


def _by_id(nodes: Sequence[BaseNode]) -> dict[str, BaseNode]:
    return {node.node_id: node for node in nodes}


def _coming(nodes: Sequence[BaseNode], before: dict[str, BaseNode] | None) -> Change:
    """What the cache is told of nodes that are added over those that were there."""
    known = before if before is not None else {}
    coming = [node for node in nodes if not _is_same(known.get(node.node_id), node)]
    return Change(
        added=[node.embedding for node in coming],
        changed=[n.node_id for n in coming if before is None or n.node_id in before],
    )


def _is_same(before: BaseNode | None, node: BaseNode) -> bool:
    return (
        before is not None
        and before.get_content() == node.get_content()
        and before.metadata == node.metadata
    )


def _going(node_ids: list[str] | None, found: dict[str, BaseNode] | None) -> Change:
    """What the cache is told of nodes that are deleted by their ids, or else by a filter.

    A store may give fewer nodes than it deletes; so for a filter, all that came from it goes.
    """
    if node_ids is not None:
        return Change(removed=node_ids)
    return Change(removed=list(found) if found is not None else (), everything=True)
