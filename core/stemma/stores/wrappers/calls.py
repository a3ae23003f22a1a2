"""Calls to a store, each within a budget, and none while the breaker is open.

Sync calls run on a few threads; async ones on the store's native twins where it has them. What is
not answered in time is given up, and goes on by itself: when it ends, the breaker hears of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from stemma.clock import Clock
from stemma.errors import StemmaError, StoreUnavailable
from stemma.stores.protocol import Store
from stemma.stores.wrappers.background import Background, ended
from stemma.stores.wrappers.breaker import Breaker, Call, State
from stemma.stores.wrappers.workers import Workers

__all__ = ["READS", "WRITES", "Args", "Budgets", "Calls", "Named"]

Args = tuple[Any, ...]
Named = dict[str, Any]

READS = frozenset(
    {
        "get",
        "ancestry",
        "changes",
        "vectors",
        "lineage",
        "children",
        "lessons",
        "offered",
        "sequence",
    }
)
WRITES = frozenset({"put", "remove", "judge", "journal", "learn"})


class Budgets(NamedTuple):
    """Seconds that a call may cost: a read, a write, anything else."""

    read: float
    write: float
    long: float

    def of(self, method: str) -> float:
        """The budget of a method."""
        return self.read if method in READS else self.write if method in WRITES else self.long


class Calls:
    """See the module's text.

    Args:
        store: What is called.
        budgets: How long each call may take.
        failures: How many failures in a row open the breaker.
        open_for: Seconds until the store is tried again.
        workers: How many calls run at once.
        clock: Where time comes from.
        changed: Called with the breaker's new state.

    Raises:
        UsageError: An argument is out of its range.
    """

    def __init__(
        self,
        store: Store,
        budgets: Budgets,
        *,
        failures: int,
        open_for: float,
        workers: int,
        clock: Clock,
        changed: Callable[[State], object],
    ) -> None:
        self.budgets = budgets
        self.workers = Workers(workers)
        self.background = Background(self.workers, clock.monotonic)
        self.breaker = Breaker(
            failures=failures,
            open_for=open_for,
            fast=budgets.read,
            monotonic=clock.monotonic,
            changed=changed,
        )
        self._store = store
        self._open_for = open_for

    def call(self, method: str, args: Args, named: Named) -> Any:
        """What the store answers.

        Raises:
            StoreUnavailable: It did not within the budget, or is not asked at present.
        """
        budget = self.budgets.of(method)
        if method == "changes":  # rightly long where an index begins: who asks next gets it
            begin = partial(self._begin, method, args, named)
            return self.background.join(self.background.begin((method, *args), begin), budget)
        if self._is_long(method):
            self.call("sequence", (), {})  # is anybody there?
        call = self.breaker.admit()
        future = self._start(call, method, args, named)
        try:
            return future.result(budget)
        except TimeoutError:
            if future.done():
                return future.result()
            raise self._gave_up(call, future, method) from None

    async def acall(self, method: str, args: Args, named: Named) -> Any:
        """As `call`."""
        if self._is_long(method):
            await self.acall("sequence", (), {})
        native = getattr(self._store, f"a{method}", None)
        call = self.breaker.admit()
        if native is not None:
            return await self._native(call, native(*args, **named), method)
        future = self._start(call, method, args, named)
        try:
            done = await ended(future, self.budgets.of(method))
        except asyncio.CancelledError:
            if self.workers.give_up(future):
                self.breaker.dropped(call)
            raise
        if done:
            return future.result()
        raise self._gave_up(call, future, method)

    async def _native(self, call: Call, answering: Awaitable[Any], method: str) -> Any:
        """The answer of a native twin. One given up goes on until the store is tried again."""
        task = asyncio.ensure_future(self._settled_async(call, answering, method))
        try:
            done, _ = await asyncio.wait({task}, timeout=self.budgets.of(method))
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return task.result()
        task.add_done_callback(_hear)
        asyncio.get_running_loop().call_later(self._open_for, task.cancel)
        if not self._is_long(method):
            self.breaker.abandoned(call)
        raise self._too_late(method)

    def _begin(self, method: str, args: Args, named: Named) -> Future[Any]:
        return self._start(self.breaker.admit(), method, args, named)

    def _start(self, call: Call, method: str, args: Args, named: Named) -> Future[Any]:
        try:
            return self.workers.submit(partial(self._settled, call, method, args, named))
        except StoreUnavailable:
            self.breaker.failed(call)
            raise

    def _settled(self, call: Call, method: str, args: Args, named: Named) -> Any:
        """Make the call, and tell the breaker what became of it, whoever still waits."""
        try:
            answer = getattr(self._store, method)(*args, **named)
        except BaseException as error:
            self._met(call, method, error)
            raise
        self.breaker.answered(call)
        return answer

    async def _settled_async(self, call: Call, answering: Awaitable[Any], method: str) -> Any:
        try:
            answer = await answering
        except asyncio.CancelledError:
            self.breaker.dropped(call)
            raise
        except BaseException as error:
            self._met(call, method, error)
            raise
        self.breaker.answered(call)
        return answer

    def _met(self, call: Call, method: str, error: BaseException) -> None:
        """Tell the breaker: a store that says what is wrong with one record has answered."""
        if isinstance(error, StemmaError) and not isinstance(error, StoreUnavailable):
            self.breaker.answered(call)
            return
        self.breaker.failed(call)
        if isinstance(error, Exception) and not isinstance(error, StemmaError):
            raise StoreUnavailable(
                f"{self._store.url}: {method} failed: {type(error).__name__}: {error}"
            ) from error

    def _gave_up(self, call: Call, future: Future[Any], method: str) -> StoreUnavailable:
        if self.workers.give_up(future):
            self.breaker.failed(call)  # it never began: all threads were busy
        elif not self._is_long(method):
            self.breaker.abandoned(call)
        return self._too_late(method)

    def _too_late(self, method: str) -> StoreUnavailable:
        budget = self.budgets.of(method)
        return StoreUnavailable(f"{self._store.url}: no answer to {method} within {budget:g} s")

    @staticmethod
    def _is_long(method: str) -> bool:
        return method not in READS and method not in WRITES


def _hear(task: asyncio.Task[Any]) -> None:
    """Take note of a late error, which nobody waits for."""
    if not task.cancelled():
        task.exception()
