"""Recalls asked for while the store is out, by processes that are killed: none may be lost.

Two processes of an application share a store and an outbox. An edition of a document goes out of
date while the store is out; once the recall was acknowledged, as done or as kept, no process may
serve an answer of the former edition: not while the outage lasts, not at the first read after it,
and not from a process that was started meanwhile. Besides, many short courses in one process.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import stemma
from evals.reliability import Outcome, times
from evals.reliability.children import Process, calling, say
from stemma.errors import StoreError, StoreUnavailable
from stemma.stores.postgres import PostgresStore
from stemma.stores.sqlite import SqliteStore
from stemma.stores.wrappers.guarded import Guarded
from stemma.testing import ManualClock
from stemma.testing.fakes import Faulty, Scripted
from stemma.testing.postgres import NEWEST, PostgresServer
from stemma.testing.proxy import Proxy, Trouble

__all__ = ["application", "course", "locked", "run", "unreachable"]

OUTAGES, COURSES, STEPS, QUESTIONS = 200, 1000, 80, 3
TROUBLES = (Trouble(refuse=True), Trouble(silent=True), Trouble(least=0.2, most=0.2))
Moment = Literal["before the recall", "in the recall", "after the recall", "while it is applied"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)

STALE = "answers served that had been taken back"
LOST = "recalls neither done nor kept"
ENDED = "processes that ended of themselves"
DUMB = "outages after which nothing was served again"


class Place(NamedTuple):
    """A store of two processes, and what makes outages of it."""

    url: str
    outage: Callable[[random.Random], AbstractContextManager[object]]


@contextmanager
def unreachable(folder: Path) -> Iterator[Place]:  # noqa: ARG001 - the server has its own
    """A PostgreSQL server that refuses, says nothing, or is late."""
    with PostgresServer(NEWEST, fsync="off") as server, Proxy(server.port) as proxy:

        @contextmanager
        def outage(lucky: random.Random) -> Iterator[None]:
            proxy.make(lucky.choice(TROUBLES))
            yield
            proxy.make(Trouble())

        yield Place(server.url(server.database(), "keeper", proxy.port), outage)


@contextmanager
def locked(folder: Path) -> Iterator[Place]:
    """A SQLite file that somebody else writes to: it can be read, and takes no recall."""
    path = folder / "cache.db"
    SqliteStore(path).close()

    @contextmanager
    def outage(_: random.Random) -> Iterator[None]:
        with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield

    yield Place(str(path), outage)


def application(url: str, outbox: str) -> None:
    """A process of the application: it is told by lines to ask a question, or to recall."""
    store = PostgresStore(url, lazy=True) if "://" in url else SqliteStore(url, busy_timeout=0.1)
    guarded = Guarded(store, outbox=outbox or None, open_for=0.1, long_budget=2.0)
    cache = stemma.open(guarded, tenant="me", embedder=None)
    for line in sys.stdin:
        what, *words = line.split()
        if what == "ask":
            question, edition = words
            served = cache.answers.get_or_compute(question, Scripted(edition))
            say(served.value, int(served.outcome.hit))
        else:
            try:
                cache.recall(node="answer")
                say("done")
            except StoreError as error:
                say("kept" if "it is kept" in str(error) else "lost")


class Story:
    """Two processes, and which edition of the document is the present one."""

    def __init__(self, place: Place, outbox: str, lucky: random.Random) -> None:
        self._outage = place.outage
        self._start = partial(Process, calling(application), place.url, outbox)
        self._processes = [self._start(), self._start()]
        self._lucky = lucky
        self._edition = 0
        self._recalled = True
        self.tried: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()

    def close(self) -> None:
        """Kill the processes."""
        for one in self._processes:
            one.__exit__()

    def outage(self) -> None:
        """One outage, with a recall in it, and a process killed somewhere."""
        moment = self._lucky.choice(MOMENTS)
        self._until_served()
        with self._outage(self._lucky):
            self._kill_at("before the recall", moment)
            self._ask()
            self._edition += 1
            self._recalled = False
            self._kill_at("in the recall", moment, "recall")
            self._recall()
            self._ask()
            self._kill_at("after the recall", moment)
            self._ask()
        self._kill_at("while it is applied", moment, self._question())
        self._until_served()
        self.tried["outages"] += 1

    def _ask(self) -> bool:
        """Put some question to some process; gives whether the cache answered."""
        edition, hit = self._say(self._question()).split()
        self.tried["questions"] += 1
        self.violations[STALE] += self._recalled and int(edition) != self._edition
        return hit == "1"

    def _recall(self) -> None:
        said = self._say("recall")
        self._recalled = True
        self.tried[f"recalls {said}"] += 1
        self.violations[LOST] += said == "lost"

    def _until_served(self) -> None:
        ends = time.monotonic() + 30
        while not self._ask():
            if time.monotonic() > ends:
                self.violations[DUMB] += 1
                return
            time.sleep(0.01)

    def _question(self) -> str:
        return f"ask q{self._lucky.randrange(QUESTIONS)} {self._edition}"

    def _say(self, line: str) -> str:
        """Tell some process, and hear; another one in its place, where it has ended."""
        number = self._lucky.randrange(2)
        while not (said := self._processes[number].ask(line)):
            self.violations[ENDED] += 1
            self._kill(number)
        return said

    def _kill_at(self, here: Moment, chosen: Moment, line: str = "") -> None:
        """If this is the moment, kill a process: in the middle of what it is told, if anything."""
        if here != chosen:
            return
        number = self._lucky.randrange(2)
        if line:
            self._processes[number].tell(line)
            time.sleep(self._lucky.random() * 0.15)
        self._kill(number)
        self.tried[f"killed {here}"] += 1

    def _kill(self, number: int) -> None:
        """Kill a process, and start another one in its place."""
        self._processes[number].__exit__()
        self._processes[number] = self._start()


def course(seed: int, outbox: Path | None) -> tuple[int, int]:
    """Outages, recalls and questions in any order, over two guards of one store.

    Gives how often the cache answered, and how often with what had been taken back.
    """
    lucky, clock, faulty = random.Random(seed), ManualClock(), Faulty()
    hits = stale = edition = 0
    with ExitStack() as stack:
        caches = []
        for failures in (1, 3):
            one = Guarded(faulty, budget=20.0, failures=failures, outbox=outbox, clock=clock)
            cache = stemma.open(one, tenant="me", embedder=None, clock=clock)
            caches.append(stack.enter_context(cache))
        for _ in range(STEPS):
            out = lucky.random() < 0.3
            faulty.mode = ConnectionRefusedError(111, "refused") if out else "well"
            cache = lucky.choice(caches)
            question = f"q{lucky.randrange(2)}"
            if lucky.random() < 0.15:
                edition += 1
                with suppress(StoreUnavailable):
                    cache.recall(node="answer")
            else:
                served = cache.answers.get_or_compute(question, Scripted(edition))
                hits += served.outcome.hit
                stale += served.value != edition
            clock.advance(lucky.choice((0, 1, 6)))
    return hits, stale


def run(
    *,
    size: float,
    seed: int,
    folder: Path,
    places: Sequence[Callable[[Path], AbstractContextManager[Place]]] = (unreachable, locked),
    keeps: bool = True,
) -> Outcome:
    """So many outages and courses; without an outbox if not `keeps`."""
    tried: Counter[str] = Counter()
    violations = Counter({STALE: 0, LOST: 0, ENDED: 0, DUMB: 0})
    for number in range(times(COURSES, size)):
        outbox = folder / f"course-{number}" if keeps else None
        hits, stale = course(seed * COURSES + number, outbox)
        tried.update({"courses in one process": 1, "hits in them": hits})
        violations[STALE] += stale
    for place_of in places:
        with place_of(folder) as place:
            outbox = folder / place_of.__name__
            lucky = random.Random(f"{seed} {place_of.__name__}")
            story = Story(place, str(outbox) if keeps else "", lucky)
            try:
                for _ in range(times(OUTAGES // len(places), size)):
                    story.outage()
            finally:
                story.close()
        tried.update(story.tried)
        violations.update(story.violations)
    return Outcome(tried=tried, violations=violations)
