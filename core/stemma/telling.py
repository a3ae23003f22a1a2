"""What a store of documents tells the cache, whatever becomes of a change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from stemma import forking
from stemma.cache import Cache
from stemma.errors import StoreError, UnkeyableValue, UsageError

__all__ = ["Change", "Teller"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What one call changed in an index.

    Args:
        added: For each new chunk its vector, or `None`: see `Cache.documents_changed`.
        changed: Ids of chunks or documents that have other contents now.
        removed: Ids of chunks or documents that are gone.
        everything: Whether that cannot be told, so that all that came from the index goes.
    """

    added: Sequence[Any] = ()
    changed: Sequence[str] = ()
    removed: Sequence[str] = ()
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
    """Tells a cache of the changes of one index. What could not be told is told first next time.

    Args:
        cache: The cache.
        index: The index's identity, or what gives it each time.

    Raises:
        UsageError: The identity cannot be told.
    """

    def __init__(self, cache: Cache, index: str | Callable[[], str]) -> None:
        self._cache = cache
        self._index = index
        try:
            _ = self.index
        except UnkeyableValue as error:
            raise UsageError(
                "which index this is cannot be told; name it with index=, here and in the cached "
                f"retriever: {error}"
            ) from error
        self._owed: list[Change] = []
        self._lock = forking.Lock(reentrant=True)

    def __reduce__(self) -> tuple[type[Teller], tuple[Cache, str | Callable[[], str]]]:
        return Teller, (self._cache, self._index)

    @property
    def index(self) -> str:
        """The index's identity."""
        return self._index if isinstance(self._index, str) else self._index()

    def tell(self, change: Change) -> None:
        """Take back what a change, made already, has spoiled.

        Raises:
            StoreError: The cache's store could not do it; the next call does it first.
        """
        with self._lock:
            self._owed += [change] if change else []
            while self._owed:
                try:
                    self._take_back(self._owed[0])
                except StoreError as error:
                    raise _failed(error) from error
                del self._owed[0]

    async def atell(self, change: Change) -> None:
        """As `tell`."""
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        await asyncio.to_thread(self.tell, change)

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
        import asyncio  # noqa: PLC0415 - as above

        async def whole() -> T:
            try:
                given = await work
            except BaseException:
                with suppress(StoreError):
                    await self.atell(half)
                raise
            await asyncio.to_thread(lambda: self.tell(told(given)))
            return given

        return await _to_the_end(whole())

    def _take_back(self, change: Change) -> None:
        index, added = self.index, change.added
        if change.everything:
            self._cache.recall(index=index)
            added = [None]  # what is being computed from it goes as well
        self._cache.documents_changed(
            index, added=added, changed=change.changed, removed=change.removed
        )


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    import asyncio  # noqa: PLC0415 - as above

    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: whoever was cancelled does not want to hear of it
        raise


def _failed(error: StoreError) -> StoreError:
    return type(error)(
        "the documents are in the index as they should be, but what the cache holds was not "
        f"taken back; the next call through this object does it first: {error}"
    )
