"""Vector stores and record managers that say what changes in them.

What was built on a chunk that is changed or deleted through them is taken back, and so is every
cached retrieval that a new chunk would have come into (`stemma.Cache.documents_changed`).
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import RecordManager
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore

from stemma import Cache, Change, Teller, UsageError
from stemma_langchain.fingerprint import index_identity
from stemma_langchain.kinds import Watching
from stemma_langchain.searching import documents_by_id, stored_vectors

__all__ = ["WatchedRecordManager", "WatchedVectorStore"]


class WatchedVectorStore(Watching, VectorStore):
    """A vector store that tells the cache what changes in it.

    Use it wherever the store was used: for LangChain's indexing API, for adding and deleting, and
    for retrievers (`CachedRetriever(cache, watched.as_retriever())`); to the cache it is the same
    index as the store itself. What the store can do besides passes through to it.

    The store is changed first, then the cache is told. Of documents added under an id that is
    there already, those with other contents or metadata count as changed, equal ones as nothing.
    A deletion without ids takes back everything from the index.

    Args:
        cache: The cache.
        store: The vector store.
        index: The identity of the index; by default derived from the store. Cached retrievers over
            this object have it from here.

    Raises:
        StoreError: By what adds or deletes: the cache's store could not be reached. The documents
            are in the index as asked; the next call takes back what this one should have.
    """

    def __init__(self, cache: Cache, store: VectorStore, *, index: str | None = None) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if not isinstance(store, VectorStore):
            raise UsageError(f"store must be a LangChain VectorStore, not {type(store).__name__}")
        self.cache = cache
        self.watched: VectorStore = store
        self.stemma_index = index
        self._teller = Teller(cache, index if index is not None else index_identity(store))

    @property
    def embeddings(self) -> Embeddings | None:
        """The store's own."""
        return self.watched.embeddings

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "watched":
            raise AttributeError(name)
        return getattr(self.watched, name)

    # ------------------------------------------------------------------ changes

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add or update documents."""
        before = self._held(_ids(documents, kwargs))
        ids = self.watched.add_documents(documents, **kwargs)
        self._teller.tell(self._added(ids, documents, before))
        return ids

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """As `add_documents`."""
        before = await run_in_executor(None, self._held, _ids(documents, kwargs))
        ids = await self.watched.aadd_documents(documents, **kwargs)
        change = await run_in_executor(None, self._added, ids, documents, before)
        await self._teller.atell(change)
        return ids

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add or update texts."""
        given = list(texts)
        before = self._held(ids)
        named = kwargs if ids is None else {**kwargs, "ids": ids}
        found = self.watched.add_texts(given, metadatas, **named)
        self._teller.tell(self._added(found, _documents(given, metadatas), before))
        return found

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """As `add_texts`."""
        given = list(texts)
        before = await run_in_executor(None, self._held, ids)
        named = kwargs if ids is None else {**kwargs, "ids": ids}
        found = await self.watched.aadd_texts(given, metadatas, **named)
        documents = _documents(given, metadatas)
        change = await run_in_executor(None, self._added, found, documents, before)
        await self._teller.atell(change)
        return found

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents."""
        done = self.watched.delete(ids, **kwargs)
        self._teller.tell(_deleted(ids))
        return done

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """As `delete`."""
        done = await self.watched.adelete(ids, **kwargs)
        await self._teller.atell(_deleted(ids))
        return done

    def update_document(self, document_id: str, document: Document) -> None:
        """Update a document, where the store can."""
        self.update_documents([document_id], [document])

    def update_documents(self, ids: list[str], documents: list[Document]) -> None:
        """Update documents, where the store can."""
        before = self._held(ids)
        self.watched.update_documents(ids, documents)  # type: ignore[attr-defined]
        self._teller.tell(self._added(ids, documents, before))

    def delete_collection(self) -> None:
        """Delete the whole index, where the store can."""
        self.watched.delete_collection()  # type: ignore[attr-defined]
        self._teller.tell(Change(everything=True))

    def reset_collection(self) -> None:
        """Empty the index, where the store can."""
        self.watched.reset_collection()  # type: ignore[attr-defined]
        self._teller.tell(Change(everything=True))

    def _held(self, ids: Sequence[str | None] | None) -> dict[str, Document] | None:
        """The documents that the store has under these ids; `None` where it cannot say."""
        named = [one for one in ids or () if one is not None]
        if not named:
            return {}
        try:
            return documents_by_id(self.watched, named)
        except NotImplementedError:
            return None

    def _added(
        self, ids: Sequence[str], documents: Sequence[Document], before: dict[str, Document] | None
    ) -> Change:
        """What the adding of documents changed, by what the store gave before and gives now."""
        now = self._held(ids)
        if now is None or len(now) < len(set(ids)):
            given = zip(ids, documents, strict=False)
            now = {name: one.model_copy(update={"id": name}) for name, one in given}
        fresh = [one for name, one in now.items() if before is None or before.get(name) != one]
        changed = [str(one.id) for one in fresh if before is None or one.id in before]
        return Change(added=self._vectors(fresh), changed=changed)

    def _vectors(self, documents: Sequence[Document]) -> list[Any]:
        """The vectors of documents that are in the store now; `None` for what has none."""
        embeddings = self.watched.embeddings
        if not documents or embeddings is None:
            return [None] * len(documents)
        return list(stored_vectors(self.watched, documents, embeddings))

    # ------------------------------------------------------------------ the rest

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The store's own."""
        return self.watched.similarity_search(query, k, **kwargs)

    @classmethod
    def from_texts(cls, texts: list[str], embedding: Embeddings, *_: Any, **__: Any) -> Self:
        """Not for this: make the store, then wrap it."""
        del texts, embedding
        raise UsageError("make the store itself, then wrap it: WatchedVectorStore(cache, store)")


def _passing(name: str) -> Any:
    def passed(self: WatchedVectorStore, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.watched, name)(*args, **kwargs)

    passed.__name__ = passed.__qualname__ = name
    passed.__doc__ = "The store's own."
    return passed


# `__getattr__` is not asked for what the base class has, so all of that is passed on by name.
for _name, _method in vars(VectorStore).items():
    _own = _name in vars(WatchedVectorStore) or _name == "as_retriever" or _name.startswith("__")
    if isinstance(_method, types.FunctionType) and not _own:
        setattr(WatchedVectorStore, _name, _passing(_name))


class WatchedRecordManager(RecordManager):
    """A record manager of LangChain's indexing API that tells the cache what changes.

    For where the vector store itself cannot be wrapped: a record manager is told ids and no
    vectors, so that any new document takes back every retrieval from the index. Wrap one of the
    two, not both.

    Args:
        cache: The cache.
        manager: The record manager.
        index: The identity of the index (`CachedRetriever.index_identity`), or the vector store.
    """

    def __init__(self, cache: Cache, manager: RecordManager, index: str | VectorStore) -> None:
        super().__init__(namespace=getattr(manager, "namespace", ""))
        self.cache = cache
        self.manager = manager
        named = index if isinstance(index, str) else index_identity(index)
        self._teller = Teller(cache, named)

    def create_schema(self) -> None:
        """The manager's own."""
        self.manager.create_schema()

    async def acreate_schema(self) -> None:
        """The manager's own."""
        await self.manager.acreate_schema()

    def get_time(self) -> float:
        """The manager's own."""
        return self.manager.get_time()

    async def aget_time(self) -> float:
        """The manager's own."""
        return await self.manager.aget_time()

    def exists(self, keys: Sequence[str]) -> list[bool]:
        """The manager's own."""
        return self.manager.exists(keys)

    async def aexists(self, keys: Sequence[str]) -> list[bool]:
        """The manager's own."""
        return await self.manager.aexists(keys)

    def list_keys(self, **named: Any) -> list[str]:
        """The manager's own."""
        return self.manager.list_keys(**named)

    async def alist_keys(self, **named: Any) -> list[str]:
        """The manager's own."""
        return await self.manager.alist_keys(**named)

    def update(self, keys: Sequence[str], **named: Any) -> None:
        """Documents were added, or seen again."""
        known = self.manager.exists(keys)
        self.manager.update(keys, **named)
        self._teller.tell(Change(added=[None] * known.count(False)))

    async def aupdate(self, keys: Sequence[str], **named: Any) -> None:
        """As `update`."""
        known = await self.manager.aexists(keys)
        await self.manager.aupdate(keys, **named)
        await self._teller.atell(Change(added=[None] * known.count(False)))

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Documents were deleted."""
        self.manager.delete_keys(keys)
        self._teller.tell(_deleted(keys))

    async def adelete_keys(self, keys: Sequence[str]) -> None:
        """As `delete_keys`."""
        await self.manager.adelete_keys(keys)
        await self._teller.atell(_deleted(keys))


def _ids(documents: Sequence[Document], kwargs: dict[str, Any]) -> Sequence[str | None]:
    given: Sequence[str | None] | None = kwargs.get("ids")
    return [one.id for one in documents] if given is None else given


def _documents(texts: Sequence[str], metadatas: Sequence[dict[str, Any]] | None) -> list[Document]:
    if not metadatas:
        return [Document(page_content=text) for text in texts]
    pairs = zip(texts, metadatas, strict=False)
    return [Document(page_content=text, metadata=dict(told)) for text, told in pairs]


def _deleted(ids: Sequence[str] | None) -> Change:
    return Change(everything=True) if ids is None else Change(removed=list(ids))
