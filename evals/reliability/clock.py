"""Wall clocks jump, and differ between processes; the clocks here are set by hand.

A life that is reckoned by two clocks may end early or late by as much as they differ, no more. What
was made while a clock was years ahead must not outlive its correction. Leases and breakers count
time that passes, whatever a wall clock says.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import stemma
from evals.reliability import Outcome, times
from evals.reliability.children import Process, calling, say
from stemma import LifePolicy, StoreUnavailable
from stemma.policies.life import AHEAD
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Fetched
from stemma.stores.wrappers.guarded import Guarded
from stemma.stores.wrappers.two_level import TwoLevel
from stemma.testing.clock import ManualClock

HISTORIES, STEPS = 200, 60
ENTRIES = 1_000
"""Put by one process and looked up by another."""

WRAPPERS = 50
"""Breakers and leases that are watched while the wall clock jumps."""

HOUR, DAY = 3_600.0, 86_400.0
JUMPS = (-HOUR, HOUR, 3_650 * DAY)
SKEW = 300.0
"""By which a process's clock may be wrong, seconds."""

TOLD = 1_700_000_000.0
"""When the histories begin, seconds since 1970."""

IMMORTAL = "entries served more than two hours after their life"
LATE = "entries served longer than the clocks differ"
EARLY = "entries refused though they live by both clocks"
MOVED = "leases and breakers that a wall clock changed"
ENDED = "processes that did not come to their end"
PROMISES = (IMMORTAL, LATE, EARLY, MOVED, ENDED)


class Made(NamedTuple):
    """An entry: when it was truly made, how wrong the clock was, and how long it may live."""

    question: str
    at: float
    wrong: float
    life: float


def judge(one: Made, *, at: float, wrong: float, hit: bool) -> Sequence[str]:
    """What is against a promise in a lookup that was truly made then, by a clock that wrong."""
    age, ahead = at - one.at, one.wrong - wrong
    if hit:
        broken = [(IMMORTAL, age > one.life + 2 * HOUR), (LATE, age > one.life + max(0.0, ahead))]
    else:
        broken = [(EARLY, age < one.life - abs(ahead) and ahead <= AHEAD)]
    return [promise for promise, is_broken in broken if is_broken]


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """See the module's text."""
    lucky = random.Random(seed)
    tried: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for number in range(times(HISTORIES, size)):
        path = folder / f"history-{number}.db" if number % 10 == 0 else ":memory:"
        history = History(path, random.Random(lucky.random()))
        history.play(tried, broken)
    skewed(folder / "skewed.db", times(ENTRIES, size), lucky, tried, broken)
    for _ in range(times(WRAPPERS, size)):
        for jump in JUMPS:
            tried["jumps seen by a breaker and a lease"] += 1
            broken[MOVED] += _breaker_moved(jump) + _lease_moved(jump)
    return Outcome(tried=tried, violations={promise: broken[promise] for promise in PROMISES})


# ----------------------------------------------------------------- one clock that jumps


class History:
    """A cache whose clock jumps there and back, while entries are put and looked up."""

    def __init__(self, url: str | Path, lucky: random.Random) -> None:
        self._lucky = lucky
        self._clock = ManualClock(TOLD)
        self._cache = opened(url, self._clock)
        self._wrong = 0.0
        self._made: list[Made] = []

    def play(self, tried: Counter[str], broken: Counter[str]) -> None:
        """Let time pass; the clock is right again for the last third."""
        lucky, clock = self._lucky, self._clock
        for step in range(STEPS):
            if step > STEPS * 2 / 3:
                self._wrong = 0.0
            elif lucky.random() < 0.3:
                self._wrong = lucky.choice((0.0, *JUMPS))
            clock.set(TOLD + clock.monotonic() + self._wrong)
            self._put(f"entry {step}")
            clock.advance(lucky.choice((1.0, 60.0, HOUR, DAY)) * lucky.random())
            for one in lucky.sample(self._made, min(len(self._made), 10)):
                hit = self._cache.answers.lookup(one.question).hit
                tried[f"lookups, {'hits' if hit else 'misses'}"] += 1
                broken.update(judge(one, at=clock.monotonic(), wrong=self._wrong, hit=hit))
        self._cache.close()

    def _put(self, question: str) -> None:
        life = self._lucky.choice((60.0, HOUR, DAY)) * self._lucky.uniform(0.5, 2)
        self._cache.answers.get_or_compute(question, lambda: question, life=life)
        self._made.append(Made(question, self._clock.monotonic(), self._wrong, life))


def opened(url: str | Path, clock: ManualClock) -> stemma.Cache:
    """A cache whose entries live exactly as long as they are said to."""
    return stemma.open(url, tenant="me", embedder=None, life=LifePolicy(jitter=0.0), clock=clock)


# ----------------------------------------------------------------- two clocks that differ


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A process, and how wrong its clock is."""

    process: Process
    wrong: float

    def ask(self, what: str, one: Made, at: float) -> str:
        """Have it put or look up an entry at a true time; `hit`, `miss`, or nothing."""
        return self.process.ask(f"{at + self.wrong!r} {what} {one.question} {one.life!r}")


def skewed(
    path: Path, entries: int, lucky: random.Random, tried: Counter[str], broken: Counter[str]
) -> None:
    """One process puts, another looks up around the end of the life, by clocks that differ."""
    with Process(calling(serve), path) as one, Process(calling(serve), path) as two:
        for number in range(entries):
            hosts = [Host(process=each, wrong=lucky.uniform(-SKEW, SKEW)) for each in (one, two)]
            lucky.shuffle(hosts)
            putting, looking = hosts
            made = Made(f"q{number}", TOLD, putting.wrong, lucky.uniform(60.0, DAY))
            replies = [putting.ask("put", made, TOLD)]
            differ = putting.wrong - looking.wrong
            for beyond in (0.0, -DAY, *(differ + lucky.uniform(-9, 9) for _ in range(4)), DAY):
                at = max(TOLD, TOLD + made.life + beyond)
                replies.append(looking.ask("look", made, at))
                hit = replies[-1] == "hit"
                tried["lookups by another clock, " + ("hits" if hit else "misses")] += 1
                broken.update(judge(made, at=at, wrong=looking.wrong, hit=hit))
            if "" in replies:
                broken[ENDED] += 1
                return


def serve(path: str) -> None:
    """Put and look up at the times that it is told."""
    clock = ManualClock()
    with opened(path, clock) as cache:
        while line := sys.stdin.readline():
            now, what, question, life = line.split()
            clock.set(float(now))
            if what == "put":
                cache.answers.get_or_compute(question, lambda: "answer", life=float(life))
            say("hit" if cache.answers.lookup(question).hit else "miss")


# ----------------------------------------------------------------- time that passes


class _Store(MemoryStore):
    """Counts how often it is asked, and may be down."""

    asked = 0
    down = False

    def get(self, ids: Sequence[str]) -> Fetched:
        self.asked += 1
        if self.down:
            raise StoreUnavailable("down")
        return super().get(ids)


def _breaker_moved(jump: float) -> bool:
    """Whether a breaker that is open closes by a jump, or does not half-open by time."""
    clock, store = ManualClock(), _Store()
    guarded = Guarded(store, budget=20.0, failures=1, open_for=5.0, clock=clock)
    store.down = True
    with stemma.open(guarded, tenant="me", embedder=None, clock=clock) as cache:
        cache.answers.lookup("any")
        clock.jump(jump)
        stayed = guarded.state == "open"
        clock.advance(5.0)
        return not stayed or guarded.state != "half-open"


def _lease_moved(jump: float) -> bool:
    """Whether a lease on an entry ends by a jump, or does not end by time."""
    clock, store = ManualClock(), _Store()
    near = TwoLevel(store, lease=5.0, clock=clock)
    with stemma.open(near, tenant="me", embedder=None, clock=clock) as cache:
        key = cache.answers.get_or_compute("any", lambda: "answer").stored
        assert key is not None
        assert key.entry is not None
        near.get([key.entry.id])
        before = store.asked
        clock.jump(jump)
        near.get([key.entry.id])
        stayed = store.asked == before
        clock.advance(5.0)
        near.get([key.entry.id])
        return not stayed or store.asked == before
