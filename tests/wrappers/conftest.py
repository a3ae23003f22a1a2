"""A store in memory that hangs, fails or refuses on demand."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Store
from stemma.stores.wrappers.calls import Budgets
from stemma.stores.wrappers.guarded import Guarded
from stemma.testing import ManualClock

PATIENT = Budgets(20.0, 20.0, 30.0)
"""Budgets for what works: the tests are not about how fast this machine is."""


class Faulty(MemoryStore):
    """Does what `mode` says: `well`, `hang` (until `let_go`), or an error to raise."""

    def __init__(self):
        super().__init__()
        self.mode: str | Exception = "well"
        self.asked = 0
        self._guard: Guarded | None = None
        self._gate = threading.Event()

    @contextmanager
    def _open(self):
        self.asked += 1
        mode, gate = self.mode, self._gate
        if isinstance(mode, Exception):
            raise mode
        if mode == "hang":
            assert gate.wait(60)
        with super()._open() as shelves:
            yield shelves

    def hang(self, guarded: Guarded) -> None:
        """Answer nobody any more; the guard, which was patient so far, waits 30 ms from now on."""
        self.mode, self.asked, self._guard = "hang", 0, guarded
        guarded._calls.budgets = Budgets(0.03, 0.03, 30.0)

    def recover(self) -> None:
        """Work well from now on; those who hang go on hanging."""
        self.mode = "well"
        if self._guard is not None:
            self._guard._calls.budgets = PATIENT

    def let_go(self) -> None:
        """Work well from now on, and answer those who hang."""
        self.recover()
        self._gate.set()
        self._gate = threading.Event()


class Native(Faulty):
    """As `Faulty`, with native async twins."""

    def __init__(self):
        super().__init__()
        self.cancelled = 0
        self.ended = asyncio.Event()

    async def aget(self, ids):
        if self.mode == "hang":
            self.asked += 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                self.ended.set()
                raise
        return self.get(ids)

    async def aput(self, puts, now):
        return self.put(puts, now)


class Told(list):
    """The outcomes of the events that were told."""

    def __call__(self, event):
        self.append(event.outcome)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    store = Faulty()
    yield store
    store.let_go()


@pytest.fixture
def native() -> Native:
    return Native()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def guard(clock: ManualClock, told: Told) -> Iterator[Callable[..., Guarded]]:
    """Makes guarded stores; patient ones, until their store hangs."""
    made = []

    def make(store: Store, **rest) -> Guarded:
        one = Guarded(store, **{"budget": PATIENT.read, "clock": clock, **rest})
        one.listen(told)
        made.append(one)
        return one

    yield make
    for one in made:
        if isinstance(one._store, Faulty):
            one._store.let_go()
        one.close()
