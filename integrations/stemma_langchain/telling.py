"""Telling a cache what changes in an index, whatever becomes of the change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables.config import run_in_executor
from langchain_core.vectorstores import VectorStore

from stemma import Cache, StoreError, UnkeyableValue, UsageError, forking
from stemma_langchain.fingerprint import index_identity
from stemma_langchain.vector_stores import (
    by_cosine,
    documents_by_id,
    of_length_one,
    stored_vectors,
)

__all__ = ["Adding", "Change", "Teller"]

T = TypeVar("T")


@dataclass(slots=True)
class Change:
    """What one call changes in an index; `everything` where it cannot be told."""

    added: list[Any] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    everything: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.everything)

    @classmethod
    def deleted(cls, ids: Iterable[Any] | None) -> Change:
        """The deletion of these ids; of what is not said, without."""
        return cls(everything=True) if ids is None else cls(removed=[str(one) for one in ids])

    @classmethod
    def unsure(cls, ids: Iterable[Any], documents: int) -> Change:
        """So many documents came, or did not, and under these ids, if any."""
        changed = [str(one) for one in ids if one is not None]
        return cls(added=[None] * documents, changed=changed)


class Teller:
    """Tells a cache of changes. What could not be told is told before anything else.

    Args:
        cache: The cache.
        index: The identity of the index, or the vector store it is asked for each time.

    Raises:
        UsageError: The identity of the vector store cannot be told.
    """

    def __init__(self, cache: Cache, index: Any) -> None:
        self._cache = cache
        self._index = index
        try:
            self._identity()
        except UnkeyableValue as error:
            raise UsageError(
                f"which index a {type(index).__name__} is cannot be told; name it with index=, "
                f"here and in the cached retriever: {error}"
            ) from error
        self._owed: list[Change] = []
        self._lock = forking.Lock(reentrant=True)

    def __reduce__(self) -> tuple[type[Teller], tuple[Cache, Any]]:
        return Teller, (self._cache, self._index)

    def tell(self, change: Change) -> None:
        """Take back what a change has spoiled.

        Raises:
            StoreError: The cache's store could not be reached; the next call does it first.
        """
        with self._lock:
            self._owed += [change] if change else []
            while self._owed:
                first = self._owed.pop(0)
                try:
                    self._take_back(first)
                except StoreError as error:
                    self._owed.insert(0, first)
                    raise self._failed(error) from error

    def around(self, work: Callable[[], T], half: Change, told: Callable[[T], Change]) -> T:
        """Change the index, and tell.

        Args:
            work: Changes it.
            half: What is told if that fails: some of it may be done.
            told: Says what it has changed, from what it gave.
        """
        try:
            given = work()
        except BaseException:
            with suppress(StoreError):  # the caller has an error to deal with; it is owed
                self.tell(half)
            raise
        self.tell(told(given))
        return given

    async def aaround(self, work: Awaitable[T], half: Change, told: Callable[[T], Change]) -> T:
        """As `around`, to its end even if the caller is cancelled: a thread cannot be stopped."""

        async def whole() -> T:
            try:
                given = await work
            except BaseException:
                with suppress(StoreError):
                    await run_in_executor(None, self.tell, half)
                raise
            await run_in_executor(None, lambda: self.tell(told(given)))
            return given

        return await _to_the_end(whole())

    def _identity(self) -> str:
        return self._index if isinstance(self._index, str) else index_identity(self._index)

    def _take_back(self, change: Change) -> None:
        index, added = self._identity(), change.added
        if change.everything:
            self._cache.recall(index=index)
            added = [None]
        self._cache.documents_changed(
            index, added=added, changed=change.changed, removed=change.removed
        )

    def _failed(self, error: StoreError) -> StoreError:
        return type(error)(
            "the documents are in the index as they should be, but what the cache holds was not "
            f"taken back; the next call through this object does it first: {error}"
        )


class Adding:
    """Documents on their way into a watched store: what is there of them, before and after.

    Args:
        store: The store.
        documents: The documents.
        ids: Their ids, where they are given.
    """

    def __init__(
        self,
        store: VectorStore,
        documents: Sequence[Document],
        ids: Sequence[str | None] | None,
    ) -> None:
        self._store = store
        self._documents = documents
        self._ids = [] if ids is None else list(ids)
        self._before = self._held(self._ids)

    def half(self) -> Change:
        """What is told where it cannot be known what became of them."""
        return Change.unsure(self._ids, len(self._documents))

    def told(self, ids: Sequence[str] | None) -> Change:
        """What the adding changed, by what the store gave before and gives now.

        Args:
            ids: The ids that the store has given them.
        """
        if ids is None or len(ids) != len(self._documents):
            return self.half()
        now = self._held(ids)
        if now is None or len(now) < len(set(ids)):
            given = zip(ids, self._documents, strict=True)
            now = {name: one.model_copy(update={"id": name}) for name, one in given}
        before = self._before
        fresh = [one for name, one in now.items() if before is None or before.get(name) != one]
        changed = [str(one.id) for one in fresh if before is None or one.id in before]
        return Change(added=self._vectors(fresh), changed=changed)

    def _held(self, ids: Sequence[str | None]) -> dict[str, Document] | None:
        """The documents that the store has under these ids; `None` where it cannot say."""
        named = [one for one in ids if one is not None]
        if not named:
            return {}
        try:
            return documents_by_id(self._store, named)
        except Exception:  # asked for the cache's sake: what was asked for goes on
            return None

    def _vectors(self, documents: Sequence[Document]) -> list[Any]:
        """The vectors of documents that are in the store now; `None` for what has none.

        Or has one of which it is not known how the store compares it.
        """
        embeddings = self._store.embeddings
        if not documents or embeddings is None:
            return [None] * len(documents)
        try:
            given = stored_vectors(self._store, documents, embeddings)
            cosine = by_cosine(self._store)
            return [one if cosine or of_length_one(one) else None for one in given]
        except Exception:
            return [None] * len(documents)


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: whoever was cancelled does not want to hear of it
        raise
