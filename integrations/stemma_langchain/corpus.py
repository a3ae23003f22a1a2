"""Vector stores and record managers that say what changes in them.

What was built on a chunk that is changed or deleted through them is taken back, and so is every
cached retrieval that a new chunk would have come into (`stemma.Cache.documents_changed`).
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import RecordManager
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore

from stemma import Cache, Change, Teller, UsageError
from stemma_langchain.adding import Adding
from stemma_langchain.fingerprint import index_identity
from stemma_langchain.kinds import Watching

__all__ = ["WatchedRecordManager", "WatchedVectorStore"]

_CHANGES = re.compile(
    r"a?(add|clear|delete|drop|insert|merge|put|remove|reset|truncate|update|upsert)(_\w+)?"
)
"""Names of methods of a vector store by which it is likely to change."""


class WatchedVectorStore(Watching, VectorStore):
    """A vector store that tells the cache what changes in it.

    Use it wherever the store was used: for LangChain's indexing API, for adding and deleting, and
    for retrievers (`CachedRetriever(cache, watched.as_retriever())`); to the cache it is the same
    index as the store itself. What the store can do besides passes through to it; a method that
    adds, updates or deletes by its name takes back everything from the index.

    The store is changed first, then the cache is told. Of documents added under an id that is
    there already, those with other contents or metadata count as changed, equal ones as nothing.
    A change that fails, or whose caller is cancelled, is told as well: some of it may be done.
    A deletion without ids takes back everything from the index.

    Args:
        cache: The cache.
        store: The vector store.
        index: The identity of the index; by default derived from the store. Cached retrievers over
            this object have it from here.

    Raises:
        UsageError: An argument is wrong, or the identity of the index cannot be told.
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
        named = functools.partial(index_identity, store) if index is None else index
        self._teller = Teller(cache, named)

    @property
    def embeddings(self) -> Embeddings | None:
        """The store's own."""
        return self.watched.embeddings

    # ------------------------------------------------------------------ changes

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add or update documents."""
        given = list(documents)
        adding = Adding(self.watched, given, _ids(given, kwargs))
        return self._teller.around(
            lambda: self.watched.add_documents(given, **kwargs), adding.half(), adding.told
        )

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """As `add_documents`."""
        given = list(documents)
        adding = await run_in_executor(None, Adding, self.watched, given, _ids(given, kwargs))
        return await self._teller.aaround(
            self.watched.aadd_documents(given, **kwargs), adding.half(), adding.told
        )

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
        adding = Adding(self.watched, _documents(given, metadatas), ids)
        named = kwargs if ids is None else {**kwargs, "ids": ids}
        return self._teller.around(
            lambda: self.watched.add_texts(given, metadatas, **named), adding.half(), adding.told
        )

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
        adding = await run_in_executor(
            None, Adding, self.watched, _documents(given, metadatas), ids
        )
        named = kwargs if ids is None else {**kwargs, "ids": ids}
        return await self._teller.aaround(
            self.watched.aadd_texts(given, metadatas, **named), adding.half(), adding.told
        )

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents."""
        gone = Change.deleted(ids)
        return self._teller.around(lambda: self.watched.delete(ids, **kwargs), gone, lambda _: gone)

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """As `delete`."""
        gone = Change.deleted(ids)
        return await self._teller.aaround(self.watched.adelete(ids, **kwargs), gone, lambda _: gone)

    def update_document(self, document_id: str, document: Document) -> None:
        """Update a document, where the store can."""
        self.update_documents([document_id], [document])

    def update_documents(self, ids: list[str], documents: list[Document]) -> None:
        """Update documents, where the store can."""
        adding = Adding(self.watched, documents, ids)
        update = self.watched.update_documents  # type: ignore[attr-defined]
        self._teller.around(
            lambda: update(ids, documents), adding.half(), lambda _: adding.told(ids)
        )

    def __getattr__(self, name: str) -> Any:
        """What only this store can do; if it changes the index, everything from it goes."""
        if name.startswith("__") or name == "watched":
            raise AttributeError(name)
        found = getattr(self.watched, name)
        return self._changing(found) if _CHANGES.fullmatch(name) and callable(found) else found

    def _changing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        everything = Change(everything=True)

        @functools.wraps(method)
        def changed(*args: Any, **kwargs: Any) -> Any:
            return self._teller.around(
                lambda: method(*args, **kwargs), everything, lambda _: everything
            )

        @functools.wraps(method)
        async def achanged(*args: Any, **kwargs: Any) -> Any:
            return await self._teller.aaround(
                method(*args, **kwargs), everything, lambda _: everything
            )

        return achanged if inspect.iscoroutinefunction(method) else changed

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
        named = index if isinstance(index, str) else functools.partial(index_identity, index)
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
        come = Change(added=[None] * self.manager.exists(keys).count(False))
        self._teller.around(lambda: self.manager.update(keys, **named), come, lambda _: come)

    async def aupdate(self, keys: Sequence[str], **named: Any) -> None:
        """As `update`."""
        come = Change(added=[None] * (await self.manager.aexists(keys)).count(False))
        await self._teller.aaround(self.manager.aupdate(keys, **named), come, lambda _: come)

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Documents were deleted."""
        gone = Change.deleted(keys)
        self._teller.around(lambda: self.manager.delete_keys(keys), gone, lambda _: gone)

    async def adelete_keys(self, keys: Sequence[str]) -> None:
        """As `delete_keys`."""
        gone = Change.deleted(keys)
        await self._teller.aaround(self.manager.adelete_keys(keys), gone, lambda _: gone)


def _ids(documents: Sequence[Document], kwargs: dict[str, Any]) -> Sequence[str | None]:
    given: Sequence[str | None] | None = kwargs.get("ids")
    return [one.id for one in documents] if given is None else given


def _documents(texts: Sequence[str], metadatas: Sequence[dict[str, Any]] | None) -> list[Document]:
    if not metadatas:
        return [Document(page_content=text) for text in texts]
    pairs = zip(texts, metadatas, strict=False)
    return [Document(page_content=text, metadata=dict(told)) for text, told in pairs]
