"""A store in memory that hangs, fails or refuses on demand."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from stemma.stores.protocol import Store
from stemma.stores.wrappers.calls import Budgets
from stemma.stores.wrappers.guarded import Guarded
from stemma.testing import ManualClock, fakes

PATIENT = Budgets(20.0, 20.0, 30.0)
"""Budgets for what works: the tests are not about how fast this machine is."""


class Faulty(fakes.Faulty):
    """As in the package, and it tells its guard how patient to be."""

    def __init__(self):
        super().__init__()
        self._guard: Guarded | None = None

    def hang(self, guarded: Guarded) -> None:
        """Answer nobody any more; the guard, which was patient so far, waits 30 ms from now on."""
        self.mode, self._guard = "hang", guarded
        self.times.clear()
        guarded._calls.budgets = Budgets(0.03, 0.03, 30.0)

    def recover(self) -> None:
        """Work well from now on; those who hang go on hanging."""
        self.mode = "well"
        if self._guard is not None:
            self._guard._calls.budgets = PATIENT

    def let_go(self) -> None:
        """Work well from now on, and answer those who hang."""
        self.recover()
        super().let_go()


class Native(Faulty):
    """As `Faulty`, with native async twins."""

    def __init__(self):
        super().__init__()
        self.cancelled = 0
        self.ended = asyncio.Event()

    async def aget(self, ids):
        if self.mode == "hang":
            self.times.append(0.0)
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
