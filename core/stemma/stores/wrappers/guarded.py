"""A store that is out costs its caller little, and forgets no recall.

Every call has a budget. What is not answered within it is given up (the caller gets
`StoreUnavailable`, which the engine turns into a miss) and a circuit breaker sees to it that
nobody else waits: see `stemma.stores.wrappers.breaker`. With an outbox, recalls, quarantines and
judgements that the store could not take are kept durably; until it has taken them, nothing is read
from it.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from stemma.clock import Clock, SystemClock
from stemma.errors import StoreUnavailable, UsageError
from stemma.events import Event, Kind, Listener, Listeners
from stemma.stores.protocol import Store
from stemma.stores.wrappers.background import Task
from stemma.stores.wrappers.breaker import State
from stemma.stores.wrappers.calls import WRITES, Budgets, Calls
from stemma.stores.wrappers.forwarding import Forwarding
from stemma.stores.wrappers.outbox import Note, Outbox, note_of

__all__ = ["Guarded"]


class Guarded(Forwarding):
    """A store behind a deadline and a circuit breaker.

    Sync calls run on a few threads of its own; async ones on the store's native twins where it has
    them. `changes`, which may rightly be long, goes on in the background when its budget is over,
    and whoever asks for it next gets it. Recalls, quarantines, `check` and questions over
    everything may be long, too: they ask for the sequence first, so that a store that is out costs
    them no more.

    Args:
        store: The store that is guarded; closed with this one.
        budget: Seconds a read may cost, above 0.
        write_budget: Seconds a put, removal, judgement or journal batch may cost; never less than
            `budget`.
        long_budget: Seconds a recall, a check, or a question over everything may cost; never less
            than `write_budget`.
        failures: How many failures in a row open the breaker. A call that is given up opens it,
            too, until it comes back.
        open_for: Seconds until the store is tried again.
        workers: How many calls are made at once, 2 or more. Calls that hang do not count; when
            there are three times as many of those, the store is not asked again before one ends.
        outbox: A directory for recalls, quarantines and judgements that the store could not take.
            Without it they are lost, and the caller told so. Processes on one machine should name
            the same.
        clock: Where time comes from.

    Raises:
        UsageError: An argument is out of its range.
        StoreUnavailable: The outbox cannot be made.
    """

    def __init__(
        self,
        store: Store,
        *,
        budget: float = 0.05,
        write_budget: float = 0.25,
        long_budget: float = 10.0,
        failures: int = 5,
        open_for: float = 5.0,
        workers: int = 8,
        outbox: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if not (budget > 0 and write_budget > 0 and long_budget > 0):
            raise UsageError(
                f"budgets must be above 0: {budget!r}, {write_budget!r}, {long_budget!r} seconds"
            )
        if workers < 2:  # noqa: PLR2004 - the outbox is emptied by one that waits for another
            raise UsageError(f"workers must be 2 or more, not {workers!r}")
        super().__init__(store)
        write_budget = max(budget, write_budget)
        self._clock = clock if clock is not None else SystemClock()
        self._begin = partial(
            Calls,
            store,
            Budgets(budget, write_budget, max(write_budget, long_budget)),
            failures=failures,
            open_for=open_for,
            workers=workers,
            clock=self._clock,
            changed=self._changed,
        )
        self._outbox = Outbox(outbox) if outbox is not None else None
        self._listeners = Listeners()
        self._closed = False
        self._calls = self._begin()
        self._finalizer = weakref.finalize(self, self._calls.workers.close)

    def after_fork(self) -> None:
        """See `Forwarding.after_fork`."""
        self._finalizer.detach()
        self._calls = self._begin()
        self._finalizer = weakref.finalize(self, self._calls.workers.close)

    @property
    def state(self) -> State:
        """`closed` (the store answers), `open` (it is not asked), or `half-open` (it is tried)."""
        return self._calls.breaker.state

    @property
    def pending(self) -> int:
        """How many recalls, quarantines and judgements wait in the outbox."""
        return 0 if self._outbox is None else len(self._outbox)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a listener told when the breaker opens, tries and closes, and of the outbox.

        The function returned takes it off again.
        """
        return self._listeners.add(listener)

    def close(self) -> None:
        """See `Store.close`. A store that hangs is left to itself after the write budget."""
        if self._closed:
            return
        self._closed = True
        try:
            closing = self._calls.workers.submit(self._store.close)
        except StoreUnavailable:
            return  # every thread hangs in it
        with suppress(TimeoutError):
            closing.result(self._calls.budgets.write)
        self._calls.workers.give_up(closing)
        self._calls.workers.close()

    # ------------------------------------------------------------------- asking

    def _ask(self, method: str, *args: Any, **named: Any) -> Any:
        self._refuse_if_closed()
        note = note_of(method, args, named)
        if note is not None:
            try:
                return self._calls.call(method, args, named)
            except Exception as error:
                self._keep(note, error)
                raise
        if (emptying := self._emptying()) is not None:
            self._calls.background.join(emptying, self._calls.budgets.read)
        answer = self._calls.call(method, args, named)
        self._refuse_if_waiting(method)
        return answer

    async def _aask(self, method: str, *args: Any, **named: Any) -> Any:
        self._refuse_if_closed()
        note = note_of(method, args, named)
        if note is not None:
            try:
                return await self._calls.acall(method, args, named)
            except Exception as error:
                await asyncio.to_thread(self._keep, note, error)
                raise
        if (emptying := self._emptying()) is not None:
            await self._calls.background.ajoin(emptying, self._calls.budgets.read)
        answer = await self._calls.acall(method, args, named)
        self._refuse_if_waiting(method)
        return answer

    # ------------------------------------------------------------------- outbox

    def _emptying(self) -> Task | None:
        """The emptying of the outbox, begun where it is needed; `None` where nothing waits.

        Raises:
            StoreUnavailable: Something waits, and the store is not asked at present.
        """
        if self._outbox is None or not self._outbox.waiting():
            return None
        self._calls.breaker.check()
        return self._calls.background.begin(
            ("what waits in the outbox",), lambda: self._calls.workers.submit(self._empty)
        )

    def _empty(self) -> None:
        if self._outbox is None:
            return
        notes = self._outbox.notes()
        for name, note in notes:
            self._calls.call(*note.request())
            self._outbox.done(name)
        self._tell("recall", "outbox:applied", f"{len(notes)} taken from the outbox")

    def _keep(self, note: Note, error: Exception) -> None:
        """Keep what the store did not take, where there is an outbox, and tell the caller so.

        Raises:
            StoreUnavailable: It is kept; or it could not be kept, either.
        """
        if self._outbox is None or isinstance(error, UsageError) or self._closed:
            return
        self._outbox.keep(note)
        self._tell("warning", "outbox:kept", str(error))
        raise StoreUnavailable(
            f"{error}; it is kept, and applied before anything is read again"
        ) from error

    def _refuse_if_waiting(self, method: str) -> None:
        if self._outbox is not None and method not in WRITES and self._outbox.waiting():
            raise StoreUnavailable(f"{self.url}: recalls wait in the outbox; nothing is read")

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable("this store was closed; open another one")

    def _changed(self, state: State) -> None:
        self._tell("warning", f"store:{state}", f"{self.url}: the breaker is {state}")

    def _tell(self, kind: Kind, outcome: str, detail: str) -> None:
        self._listeners.tell(Event(kind, self._clock.now(), outcome=outcome, detail=detail))
