"""The store goes out while an application works: it refuses, says nothing, or is seconds late.

The application must not notice but by what it pays: every question is answered by its model, at
the price of one budget, and of next to nothing while the breaker is open. Times are measured, and
held against nobody; what counts is a question without an answer, an error that reaches the
application, and a store that is asked more often than the breaker allows.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Literal, Protocol, get_args

import stemma
from evals.reliability import Outcome, times
from stemma.events import Event
from stemma.stores.postgres import PostgresStore
from stemma.stores.protocol import Store
from stemma.stores.wrappers.forwarding import Forwarding
from stemma.stores.wrappers.guarded import Guarded
from stemma.testing.fakes import Faulty
from stemma.testing.postgres import NEWEST, PostgresServer
from stemma.testing.proxy import Proxy, Trouble

__all__ = ["Place", "local", "run", "shared"]

Kind = Literal["down", "black-holed", "slow"]
KINDS: tuple[Kind, ...] = get_args(Kind)
QUESTIONS = 10
PAUSE = 0.002
OPEN_FOR = 5.0
"""Seconds between two tries of a store that is out, as a guard has it; short forms have fewer. A
slow store is as late as that."""

PROMISES = (
    "questions not answered by the model",
    "errors that reached the application",
    "calls to the store beyond one a try",
    "breakers that did not close",
    "faults not told with fail=closed",
)


class Noted(Store, Protocol):
    """A store that notes when it was asked, by the monotonic clock."""

    times: list[float]


class Place(Protocol):
    """Where stores are, and can be put out of order."""

    def open(self) -> Noted:
        """A store there."""
        ...

    def make(self, kind: Kind | None, late: float) -> None:
        """Put what was opened last out of order, or right; a slow one is so many seconds late."""
        ...


class Local:
    """In this process: a store whose calls are made by threads."""

    def open(self) -> Noted:
        self._faulty = Faulty()
        return self._faulty

    def make(self, kind: Kind | None, late: float) -> None:
        if kind == "down":
            self._faulty.mode = ConnectionRefusedError(111, "refused")
        elif kind == "black-holed":
            self._faulty.mode = "hang"
        elif kind == "slow":
            self._faulty.mode = late
        else:
            self._faulty.let_go()


class Shared:
    """On a PostgreSQL server, behind a proxy."""

    def __init__(self, url: str, proxy: Proxy) -> None:
        self._url = url
        self._proxy = proxy

    def open(self) -> Noted:
        return Noting(PostgresStore(self._url))

    def make(self, kind: Kind | None, late: float) -> None:
        troubles = {
            None: Trouble(),
            "down": Trouble(refuse=True),
            "black-holed": Trouble(silent=True),
            "slow": Trouble(least=late / 2, most=late / 2),  # there, and back
        }
        self._proxy.make(troubles[kind])


class Noting(Forwarding):
    """Notes when the store was asked."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.times: list[float] = []

    def _ask(self, method: str, *args: Any, **named: Any) -> Any:
        self.times.append(time.monotonic())
        return super()._ask(method, *args, **named)

    async def _aask(self, method: str, *args: Any, **named: Any) -> Any:
        self.times.append(time.monotonic())
        return await super()._aask(method, *args, **named)


@contextmanager
def local() -> Iterator[Place]:
    """See `Local`."""
    yield Local()


@contextmanager
def shared() -> Iterator[Place]:
    """See `Shared`."""
    with PostgresServer(NEWEST, fsync="off") as server, Proxy(server.port) as proxy:
        yield Shared(server.url(server.database(), "keeper", proxy.port), proxy)


class Trial:
    """One outage of one store.

    Args:
        pace: Seconds between two tries of a store that is out.
        awaits: Whether the application is a task; else it is a thread.
        outbox: A directory for it.
    """

    def __init__(self, pace: float, *, awaits: bool, outbox: Path) -> None:
        self._pace = pace
        self._awaits = awaits
        self._outbox = outbox
        self.violations = dict.fromkeys(PROMISES, 0)
        self.asked = 0
        self.paid: dict[bool, list[float]] = {True: [], False: []}

    async def run(self, place: Place, kind: Kind) -> None:
        """Work, lose the store, go on working, and get it back."""
        store = place.open()
        guarded = Guarded(store, open_for=self._pace, outbox=self._outbox)
        told: list[tuple[float, str]] = []

        def hear(event: Event) -> None:
            told.append((time.monotonic(), event.outcome))

        guarded.listen(hear)
        cache = stemma.open(guarded, tenant="me", embedder="hashing")
        strict = stemma.open(guarded, tenant="me", embedder=None, fail="closed")
        for number in range(2 * QUESTIONS):
            await self._ask(cache, number)
        place.make(kind, self._pace)
        try:
            await self._work(cache, guarded)
            self._be_told(strict)
        finally:
            place.make(None, 0)
        ended = time.monotonic()
        await self._recover(cache, guarded)
        self.violations["calls to the store beyond one a try"] += _beyond(
            [at for at in store.times if at < ended], told, self._pace, ended
        )
        cache.close()
        strict.close()

    async def _work(self, cache: stemma.Cache, guarded: Guarded) -> None:
        """Ask, while the store is out, and note what each question costs."""
        ends = time.monotonic() + 2.5 * self._pace
        number = 0
        while time.monotonic() < ends:
            tries, began = guarded.state != "open", time.monotonic()
            await self._ask(cache, number)
            self.paid[tries].append(time.monotonic() - began)
            await asyncio.sleep(PAUSE)
            number += 1

    async def _ask(self, cache: stemma.Cache, number: int) -> stemma.Served | None:
        """Put a question of the application's; its model always answers, and at once."""
        self.asked += 1
        question = f"What is the number {number % QUESTIONS}?"
        try:
            if self._awaits:
                served = await cache.answers.aget_or_compute(question, question.upper)
            else:
                served = cache.answers.get_or_compute(question, question.upper)
        except Exception:
            self.violations["errors that reached the application"] += 1
            return None
        wrong = served.value != question.upper()
        self.violations["questions not answered by the model"] += wrong
        return served

    def _be_told(self, strict: stemma.Cache) -> None:
        """An application that will not go on without the cache learns that it is out."""
        try:
            strict.answers.lookup("What is the number 0?")
        except stemma.CacheFault:
            return
        self.violations["faults not told with fail=closed"] += 1

    async def _recover(self, cache: stemma.Cache, guarded: Guarded) -> None:
        ends = time.monotonic() + 20 + 4 * self._pace
        while time.monotonic() < ends:
            served = await self._ask(cache, 0)
            if served is not None and served.outcome.hit and guarded.state == "closed":
                return
            await asyncio.sleep(PAUSE)
        self.violations["breakers that did not close"] += 1


def _beyond(
    calls: Sequence[float], told: Sequence[tuple[float, str]], pace: float, ended: float
) -> int:
    """How many calls came while the breaker was open, beyond one each time that it may try.

    One more is allowed each time that it opens: let through just before, and noted just after.
    """
    beyond = 0
    opened: float | None = None
    for at, outcome in [*told, (ended, "store:closed")]:
        if outcome == "store:open" and opened is None:
            opened = at
        elif outcome == "store:closed" and opened is not None:
            closed = min(at, ended)
            came = sum(opened < call < closed for call in calls)
            beyond += max(0, came - 1 - int((closed - opened) / pace))
            opened = None
    return beyond


def run(
    *,
    size: float,
    seed: int,  # noqa: ARG001 - nothing is random
    folder: Path,
    places: Sequence[Callable[[], AbstractContextManager[Place]]] = (local, shared),
) -> Outcome:
    """Every kind of outage in every place, for threads and for tasks; if small, by turns."""
    pace = max(0.15, OPEN_FOR * size)
    tried: Counter[str] = Counter()
    violations: Counter[str] = Counter(dict.fromkeys(PROMISES, 0))
    figures: dict[str, float] = {}
    paid: dict[Kind, list[Trial]] = {kind: [] for kind in KINDS}
    for number, place_of in enumerate(places):
        with place_of() as place:
            for turn in range(times(2, size)):
                for kind in KINDS:
                    awaits = (number + turn + KINDS.index(kind)) % 2 == 1
                    trial = Trial(pace, awaits=awaits, outbox=folder / "outbox")
                    asyncio.run(trial.run(place, kind))
                    tried.update({"outages": 1, "questions": trial.asked})
                    violations.update(trial.violations)
                    paid[kind].append(trial)
    for kind, trials in paid.items():
        figures |= _figures(kind, trials)
    return Outcome(tried=tried, violations=violations, figures=figures)


def _figures(kind: Kind, trials: Sequence[Trial]) -> dict[str, float]:
    """What a question cost: where the store was tried for it, and where the breaker was open."""
    figures = {}
    for tries, words in ((True, "store tried"), (False, "breaker open")):
        costs = sorted(1000 * cost for trial in trials for cost in trial.paid[tries])
        if costs:
            figures[f"{kind}, {words}: median ms"] = median(costs)
            figures[f"{kind}, {words}: 99th ms"] = costs[len(costs) * 99 // 100]
            figures[f"{kind}, {words}: most ms"] = costs[-1]
    return figures
