"""`WatchedDocumentStore`: a docstore whose changes the cache is told of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore

from stemma import Cache, Change, Teller, UsageError
from stemma_llamaindex.vector_store import WatchedVectorStore

__all__ = ["WatchedDocumentStore"]


def _forwarded(name: str) -> Any:
    """A method, or coroutine function, that only asks the store behind."""

    def forward(self: WatchedDocumentStore, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner, name)(*args, **kwargs)

    forward.__name__ = name
    forward.__qualname__ = f"WatchedDocumentStore.{name}"
    forward.__doc__ = f"See `BaseDocumentStore.{name}`."
    return forward


class WatchedDocumentStore(BaseDocumentStore):
    """A docstore that tells the cache which documents changed or went.

    It finds the changes that never reach a vector store: a pipeline without one, the strategy
    `duplicates_only`, and indexes over a docstore (summaries, keywords, BM25).

    ```python
    pipeline = IngestionPipeline(
        docstore=WatchedDocumentStore(cache, docstore, vector_store=watched),
        vector_store=watched,
        docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        …,
    )
    ```

    A document has changed when its hash is another than the one that was kept: its text or its
    metadata. The cache is told after the store has done it, and also where the store fails half
    way.

    Args:
        cache: The cache.
        inner: The docstore.
        vector_store: The watched vector store beside it, which tells of new nodes by itself.
        index: Without one, the identity of the index that reads this docstore, as its cached
            retrievals have it. Where a new document comes in, all of them are taken back.

    Raises:
        UsageError: An argument is wrong.
        StoreError: (from what changes the store) The change is made, but what was built on what
            was there before could not be taken back; the next change through this object does it.
    """

    def __init__(
        self,
        cache: Cache,
        inner: BaseDocumentStore,
        *,
        vector_store: WatchedVectorStore | None = None,
        index: str | None = None,
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if not isinstance(inner, BaseDocumentStore):
            raise UsageError(f"inner must be a docstore, not {type(inner).__name__}")
        if (vector_store is None) == (index is None):
            raise UsageError("give either vector_store, the watched one beside it, or index")
        if vector_store is not None and not isinstance(vector_store, WatchedVectorStore):
            raise UsageError(f"vector_store must be watched, not {type(vector_store).__name__}")
        if index is not None and (not isinstance(index, str) or index == ""):
            raise UsageError("index must be the identity of an index: a text that is not empty")
        self.cache = cache
        self.inner = inner
        self.index: str = vector_store.index if vector_store is not None else str(index)
        self._teller = Teller(cache, self.index)
        self._tells_new = vector_store is None

    def __getattr__(self, name: str) -> Any:
        """What only stores of its kind have."""
        inner = self.__dict__.get("inner")
        if inner is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(inner, name)

    @property
    def stemma_identity(self) -> str:
        """The identity of the index that reads it."""
        return self.index

    @property
    def docs(self) -> dict[str, BaseNode]:
        """All documents, by id."""
        return self.inner.docs

    persist = _forwarded("persist")
    get_document = _forwarded("get_document")
    aget_document = _forwarded("aget_document")
    document_exists = _forwarded("document_exists")
    adocument_exists = _forwarded("adocument_exists")
    get_document_hash = _forwarded("get_document_hash")
    aget_document_hash = _forwarded("aget_document_hash")
    get_all_document_hashes = _forwarded("get_all_document_hashes")
    aget_all_document_hashes = _forwarded("aget_all_document_hashes")
    get_all_ref_doc_info = _forwarded("get_all_ref_doc_info")
    aget_all_ref_doc_info = _forwarded("aget_all_ref_doc_info")
    get_ref_doc_info = _forwarded("get_ref_doc_info")
    aget_ref_doc_info = _forwarded("aget_ref_doc_info")

    # ------------------------------------------------------------- what changes it

    def add_documents(self, docs: Sequence[BaseNode], *args: Any, **kwargs: Any) -> None:
        """Add documents, in the place of those with the same ids."""
        after = {doc.node_id: doc.hash for doc in docs}
        self._watched(lambda: self.inner.add_documents(docs, *args, **kwargs), after)

    async def async_add_documents(
        self, docs: Sequence[BaseNode], *args: Any, **kwargs: Any
    ) -> None:
        """As `add_documents`."""
        after = {doc.node_id: doc.hash for doc in docs}
        await self._awatched(lambda: self.inner.async_add_documents(docs, *args, **kwargs), after)

    def set_document_hash(self, doc_id: str, doc_hash: str) -> None:
        """Set the hash of a document; another than before says that it has changed."""
        self._watched(lambda: self.inner.set_document_hash(doc_id, doc_hash), {doc_id: doc_hash})

    async def aset_document_hash(self, doc_id: str, doc_hash: str) -> None:
        """As `set_document_hash`."""
        after = {doc_id: doc_hash}
        await self._awatched(lambda: self.inner.aset_document_hash(doc_id, doc_hash), after)

    def set_document_hashes(self, doc_hashes: dict[str, str]) -> None:
        """Set the hashes of documents; another than before says that one has changed."""
        self._watched(lambda: self.inner.set_document_hashes(doc_hashes), doc_hashes)

    async def aset_document_hashes(self, doc_hashes: dict[str, str]) -> None:
        """As `set_document_hashes`."""
        await self._awatched(lambda: self.inner.aset_document_hashes(doc_hashes), doc_hashes)

    def delete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """Delete a document or node."""
        try:
            self.inner.delete_document(doc_id, raise_error)
        finally:
            self._teller.tell(Change(removed=[doc_id]))

    async def adelete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """As `delete_document`."""
        try:
            await self.inner.adelete_document(doc_id, raise_error)
        finally:
            await self._teller.atell(Change(removed=[doc_id]))

    def delete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """Delete a document and all its nodes."""
        try:
            self.inner.delete_ref_doc(ref_doc_id, raise_error)
        finally:
            self._teller.tell(Change(removed=[ref_doc_id]))

    async def adelete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """As `delete_ref_doc`."""
        try:
            await self.inner.adelete_ref_doc(ref_doc_id, raise_error)
        finally:
            await self._teller.atell(Change(removed=[ref_doc_id]))

    def _watched(self, change: Callable[[], None], after: Mapping[str, str]) -> None:
        before = {doc: self.inner.get_document_hash(doc) for doc in after}
        try:
            change()
        finally:
            self._teller.tell(self._coming(before, after))

    async def _awatched(self, change: Callable[[], Any], after: Mapping[str, str]) -> None:
        before = {doc: await self.inner.aget_document_hash(doc) for doc in after}
        try:
            await change()
        finally:
            await self._teller.atell(self._coming(before, after))

    def _coming(self, before: Mapping[str, str | None], after: Mapping[str, str]) -> Change:
        """What the cache is told of documents that are added over those that were there."""
        changed = [doc for doc, kept in before.items() if kept is not None and kept != after[doc]]
        is_new = self._tells_new and (changed or None in before.values())
        return Change(changed=changed, added=[None] if is_new else ())
