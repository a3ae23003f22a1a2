"""A process forks after it opened a cache, over and over, while its threads use it.

Every child must be able to look up, put and close; the parent's threads must go on; what either
was told is stored must be there.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import stemma
from evals.reliability import Outcome, times
from evals.reliability.children import Process, calling, say
from stemma.stores.sqlite import SqliteStore
from stemma.stores.wrappers.guarded import Guarded
from stemma.stores.wrappers.two_level import TwoLevel

FORKS = 50
"""Of each kind of store."""

KINDS = ("plain", "guarded", "both")
THREADS = 4
LIMIT = 20.0
"""Seconds after which a child, or a thread of the parent, is taken to hang."""

MOST_HUNG = 3
"""Hangs after which a process forks no more."""

HUNG = "children that hung"
FAILED = "children that could not look up, put and close"
STOPPED = "parents whose threads did not go on"
LOST = "acknowledged answers lost"
WRONG = "wrong answers, or none, in the parent"
FOUND = "findings of a check"
PROMISES = (HUNG, FAILED, STOPPED, LOST, WRONG, FOUND)


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """See the module's text."""
    return fork(forks=times(FORKS, size), seed=seed, folder=folder)


def fork(*, forks: int, seed: int, folder: Path, parent: str | None = None) -> Outcome:
    """Have a process of each kind fork.

    Args:
        forks: How often each does.
        seed: Of the moments.
        folder: Where the files are.
        parent: The script of the process that forks; by default one that calls `busy`.
    """
    script = calling(busy) if parent is None else parent
    tried: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for kind in KINDS:
        path = folder / f"{kind}.db"
        with Process(script, path, kind, forks, seed) as forking:
            told = forking.hear(patience=60 + forks + LIMIT * (MOST_HUNG + 1))
        if told == "":
            broken[STOPPED] += 1
            continue
        did, found, kept = json.loads(told)
        tried.update(did)
        broken.update(found)
        with stemma.open(path, tenant="shared", embedder=None) as cache:
            answers = [cache.answers.lookup(question) for question in kept]
            broken[LOST] += sum(not one.hit for one in answers)
            broken[FOUND] += len(cache.check())
    return Outcome(tried=tried, violations={promise: broken[promise] for promise in PROMISES})


# --------------------------------------------------------------- in the process that forks


class Busy:
    """A cache, and threads that use it all the time."""

    def __init__(self, cache: stemma.Cache) -> None:
        self.cache = cache
        self.kept: list[str] = []
        self.broken: Counter[str] = Counter()
        self._done = [0] * THREADS
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._use, args=(number,), daemon=True)
            for number in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def _use(self, number: int) -> None:
        for count in itertools.count():
            if self._stop.is_set():
                return
            question = f"thread {number} {count % 50} {count // 200}"
            try:
                served = self.cache.answers.get_or_compute(question, question.upper)
            except Exception:
                self.broken[WRONG] += 1
                continue
            self.broken[WRONG] += served.value != question.upper()
            if served.stored:
                self.kept.append(question)
            self._done[number] += 1
            time.sleep(0.0005)  # the others shall have their turn, too

    def goes_on(self) -> bool:
        """Whether every thread does something more."""
        before, until = [*self._done], time.monotonic() + LIMIT
        while time.monotonic() < until:
            if all(now > then for now, then in zip(self._done, before, strict=True)):
                return True
            time.sleep(0.001)
        return False

    def stop(self) -> bool:
        """End the threads; whether they did."""
        self._stop.set()
        for thread in self._threads:
            thread.join(LIMIT)
        return not any(thread.is_alive() for thread in self._threads)


def busy(path: str, kind: str, forks: str, seed: str) -> None:
    """Fork at random moments; say what was done, what was against a promise, and what is kept."""
    warnings.simplefilter("ignore")  # later Pythons warn of forking with threads: that is the point
    lucky = random.Random(f"{seed}.{kind}")
    parent = Busy(_opened(path, kind))
    parent.cache.answers.get_or_compute("before", lambda: "parent")
    did: Counter[str] = Counter()
    for number in range(int(forks)):
        time.sleep(lucky.uniform(0, 0.02))
        child = os.fork()
        if child == 0:
            _child(parent.cache, f"child {number}")
        did[f"forks, {kind}"] += 1
        code = _code(child)
        parent.broken[HUNG] += code is None
        parent.broken[FAILED] += code not in (0, None)
        if code == 0:
            parent.kept.append(f"child {number}")
        if not parent.goes_on():
            parent.broken[STOPPED] += 1
            break
        if parent.broken[HUNG] >= MOST_HUNG:
            break
    if parent.stop():
        parent.cache.close()
    else:
        parent.broken[STOPPED] += 1
    did["answers put meanwhile"] = len(parent.kept)
    say(json.dumps([did, parent.broken, parent.kept]))
    os._exit(0)  # whatever hangs does not matter any more


def _opened(path: str, kind: str) -> stemma.Cache:
    if kind == "plain":
        return stemma.open(path, tenant="shared", embedder=None)
    guarded = Guarded(SqliteStore(path), budget=10, outbox=f"{path}-outbox")
    store = guarded if kind == "guarded" else TwoLevel(guarded, lease=60)
    return stemma.open(store, tenant="shared", embedder=None)


def _child(cache: stemma.Cache, mine: str) -> None:
    """What a child does; it ends here, and nothing of its parent's is done in it."""
    status = 1
    try:
        before = cache.answers.get_or_compute("before", lambda: "anew").value
        put = cache.answers.get_or_compute(mine, lambda: mine)
        again = cache.answers.get_or_compute(mine, lambda: "anew").value
        cache.close()
        status = not (put.stored and (before, again) == ("parent", mine))
    finally:
        os._exit(status)


def _code(child: int) -> int | None:
    """A child's exit code; `None` where it hung, and was killed for it."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None
