"""Process memory in front of a shared store: what was read lately is not fetched again.

An entry is served from memory for at most `lease` seconds after its reading *began*; so what
another process takes back is served no longer than that after its recall was acknowledged. What
this process writes or takes back it never serves stale. Only `get` is answered from memory:
ancestors, indexes and everything else ask the shared store.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stemma.clock import Clock, SystemClock
from stemma.effects import Ask, Steps, arun, run
from stemma.entry import Entry
from stemma.errors import StoreUnavailable, UsageError
from stemma.outcome import Stored
from stemma.stores.protocol import Ancestry, Fetched, Put, Store
from stemma.stores.wrappers.forwarding import Forwarding

__all__ = ["TwoLevel"]

CLEARING = frozenset({"recall", "remove", "judge", "check", "hold", "release"})

OVERHEAD = 1024
"""Bytes counted for an entry beside its payload and focus."""


class _Near(NamedTuple):
    """An entry as it was read, with the store's numbers at that moment."""

    entry: Entry
    sequence: int
    epoch: int
    until: float
    size: int


class TwoLevel(Forwarding):
    """A store with the entries lately read from it in memory.

    A reply from memory carries the sequence and epoch of its reading, so that what is built on it
    is refused if it was taken back since. Entries asked for together come from memory only if they
    were read together. Any reply of the shared store that carries another epoch empties the
    memory before the lease is over.

    Args:
        store: The shared store; closed with this one.
        lease: Seconds for which an entry may be served without asking, 0 or more. With 0 every
            read asks.
        most_bytes: How much is kept, the least recently read going first.
        clock: Where time comes from.

    Raises:
        UsageError: An argument is out of its range.
    """

    def __init__(
        self,
        store: Store,
        *,
        lease: float,
        most_bytes: int = 64 * 1024 * 1024,
        clock: Clock | None = None,
    ) -> None:
        if not lease >= 0:
            raise UsageError(f"lease must be 0 seconds or more, not {lease!r}")
        if most_bytes < 0:
            raise UsageError(f"most_bytes must be 0 or more, not {most_bytes!r}")
        super().__init__(store)
        self.quick = store.quick
        self._lease = lease
        self._most = most_bytes
        self._monotonic = (clock if clock is not None else SystemClock()).monotonic
        self._closed = False
        self.after_fork()

    def after_fork(self) -> None:
        """See `Forwarding.after_fork`."""
        self._lock = threading.Lock()
        self._near: OrderedDict[str, _Near] = OrderedDict()
        self._size = 0
        self._epoch = -1
        self._generation = 0

    def __len__(self) -> int:
        """How many entries are in memory."""
        return len(self._near)

    def forget(self) -> None:
        """Empty the memory."""
        with self._lock:
            self._forget()

    def close(self) -> None:
        """See `Store.close`."""
        self._closed = True
        self.forget()
        super().close()

    def _ask(self, method: str, *args: Any, **named: Any) -> Any:
        try:
            return super()._ask(method, *args, **named)
        finally:
            self._after(method, args, named)

    async def _aask(self, method: str, *args: Any, **named: Any) -> Any:
        try:
            return await super()._aask(method, *args, **named)
        finally:
            self._after(method, args, named)

    def _after(self, method: str, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """What a write leaves of the memory."""
        if method == "judge" and args[0].verdict == "grounded":  # said of every put, and of no more
            with self._lock:
                self._generation += 1
                self._remove(args[0].entry)
        elif method in CLEARING and not named.get("dry_run"):
            self.forget()

    # ------------------------------------------------------------------ reading

    def get(self, ids: Sequence[str]) -> Fetched:
        """See `Store.get`."""
        near = self._nearby(ids)
        return near if near is not None else run(self._fetch(ids))

    async def aget(self, ids: Sequence[str]) -> Fetched:
        """As `get`."""
        near = self._nearby(ids)
        return near if near is not None else await arun(self._fetch(ids))

    def ancestry(self, id: str) -> Ancestry | None:
        """See `Store.ancestry`."""
        return self._saw(super().ancestry(id))

    async def aancestry(self, id: str) -> Ancestry | None:
        """As `ancestry`."""
        return self._saw(await super().aancestry(id))

    def _nearby(self, ids: Sequence[str]) -> Fetched | None:
        """The reply from memory, where all of it is there and of one moment."""
        if self._closed:
            raise StoreUnavailable("this store was closed; open another one")
        if not ids or not self._lease:
            return None
        now = self._monotonic()
        entries: dict[str, Entry] = {}
        with self._lock:
            first: _Near | None = None
            for one in ids:
                near = self._near.get(one)
                if near is None or now >= near.until:
                    return None
                if first is None:
                    first = near
                elif first.sequence != near.sequence:
                    return None
                entries[one] = near.entry
                self._near.move_to_end(one)
        return None if first is None else Fetched(entries, first.sequence, first.epoch)

    def _fetch(self, ids: Sequence[str]) -> Steps[Fetched]:
        generation = self._generation
        until = self._monotonic() + self._lease
        fetched: Fetched = yield Ask(self._store, "get", (ids,))
        with self._lock:
            self._follow(fetched.epoch)
            if generation == self._generation:
                for one in fetched.entries.values():
                    self._keep(one, fetched, until)
        return fetched

    def _saw(self, ancestry: Ancestry | None) -> Ancestry | None:
        if ancestry is not None:
            with self._lock:
                self._follow(ancestry.epoch)
        return ancestry

    # ------------------------------------------------------------------ writing

    def put(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:
        """See `Store.put`."""
        return run(self._put(puts, now))

    async def aput(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:
        """As `put`."""
        return await arun(self._put(puts, now))

    def _put(self, puts: Sequence[Put], now: float) -> Steps[tuple[Stored, ...]]:
        ids = [put.entry.id for put in puts]
        try:
            stored: tuple[Stored, ...] = yield Ask(self._store, "put", (puts, now))
            with self._lock:
                self._generation += 1  # nobody who began to read before this keeps it
                for one in ids:
                    self._remove(one)
        except BaseException:
            self.forget()  # it may have been stored all the same
            raise
        if any(one.entry is not None for one in stored):
            yield from self._read_again(ids)
        return stored

    def _read_again(self, ids: Sequence[str]) -> Steps[None]:
        """After a put: its entries as stored, and whether it has raised the epoch."""
        try:
            yield from self._fetch(ids)
        except BaseException as error:
            self.forget()  # nobody knows whether it has
            if not isinstance(error, Exception):
                raise

    # ------------------------------------------------------- under the lock only

    def _forget(self) -> None:
        self._generation += 1
        self._drop_all()

    def _follow(self, epoch: int) -> None:
        if epoch != self._epoch:  # also where the store was put back to an older state
            self._drop_all()
            self._epoch = epoch

    def _drop_all(self) -> None:
        self._near.clear()
        self._size = 0

    def _remove(self, id: str) -> None:
        near = self._near.pop(id, None)
        if near is not None:
            self._size -= near.size

    def _keep(self, entry: Entry, fetched: Fetched, until: float) -> None:
        self._remove(entry.id)
        size = OVERHEAD + len(entry.payload) + len(entry.focus or "")
        if size > self._most:
            return
        self._near[entry.id] = _Near(entry, fetched.sequence, fetched.epoch, until, size)
        self._size += size
        while self._size > self._most:
            _, near = self._near.popitem(last=False)
            self._size -= near.size
