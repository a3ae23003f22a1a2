"""Many ask the same at once: in one process, in eight, and when who computes is killed or fails."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import stemma
from evals.reliability import Outcome, times
from evals.reliability.children import Process, calling, say
from evals.reliability.crowd import ended

ROUNDS = 20
"""Of each kind."""

THREADS, TASKS = 64, 936
PROCESSES = 8
MOST = 2
"""Calls that eight processes may make together."""

SOON = 31.0
"""Seconds after a leader's death within which all must have an answer: the lease, and one more."""

MORE = "calls beyond one in a process"
MANY = f"calls beyond {MOST} in {PROCESSES} processes"
LATE = "leaders killed that were not followed in time"
HUNG = "crowds and processes that hung"
WRONG = "replies that are neither the answer nor the error"
PROMISES = (MORE, MANY, LATE, HUNG, WRONG)


class Failing(Exception):
    """What a computation raises here."""


class Crowd:
    """A thousand callers in one process that all ask one question.

    The first computation goes on until everybody has asked.

    Args:
        cache: Whom they ask.
        question: What they ask.
        failing: Whether the first computation raises.
    """

    def __init__(self, cache: stemma.Cache, question: str, *, failing: bool) -> None:
        self._cache = cache
        self._question = question
        self._failing = failing
        self._lock = threading.Lock()
        self.calls = 0
        self.asked = 0
        self.replies: Counter[str] = Counter()

    def ended(self) -> bool:
        """Let them ask; whether all got a reply."""
        return ended([self._ask] * THREADS, self._tasks)

    async def _tasks(self) -> None:
        await asyncio.gather(*(self._aask() for _ in range(TASKS)))

    def _ask(self) -> None:
        with self._replying():
            served = self._cache.answers.get_or_compute(self._question, self._compute)
            self._reply(str(served.value))

    async def _aask(self) -> None:
        with self._replying():
            served = await self._cache.answers.aget_or_compute(self._question, self._acompute)
            self._reply(str(served.value))

    @contextmanager
    def _replying(self) -> Iterator[None]:
        with self._lock:
            self.asked += 1
        try:
            yield
        except Failing:
            self._reply("error")

    def _reply(self, value: str) -> None:
        with self._lock:
            self.replies[value] += 1

    def _waits(self) -> Iterator[float]:
        """Pauses until everybody has asked, and a little more."""
        with self._lock:
            self.calls += 1
            first = self.calls == 1
        until = time.monotonic() + 10
        while self.asked < THREADS + TASKS and time.monotonic() < until:
            yield 0.01
        yield 0.05
        if self._failing and first:
            raise Failing

    def _compute(self) -> str:
        for pause in self._waits():
            time.sleep(pause)
        return "answer"

    async def _acompute(self) -> str:
        for pause in self._waits():
            await asyncio.sleep(pause)
        return "answer"


class Processes:
    """Eight processes that all ask one question over one file.

    Args:
        script: What each runs.
        folder: Where the file is, and the list of calls.
        stack: What ends them.
    """

    def __init__(self, script: str, folder: Path, stack: ExitStack) -> None:
        self._calls = folder / "calls"
        self._file = folder / "many.db"
        self._script = script
        self._stack = stack
        self._crowd = [self._begin() for _ in range(PROCESSES)]
        self.broken: Counter[str] = Counter()
        for one in self._crowd:
            self._judge(one.hear(), "ready")

    def _begin(self) -> Process:
        return self._stack.enter_context(Process(self._script, self._file, self._calls))

    def together(self, question: str) -> None:
        """All ask at once, and get the answer."""
        for one in self._crowd:
            one.tell(f"slow {question}")
        for one in self._crowd:
            self._judge(one.hear(), "answer")
        self._count(question, MOST)

    def after(self, question: str, *, killed: bool) -> float:
        """All ask what another computes already, which is killed or fails.

        Gives the seconds from then until all have an answer.
        """
        leader = self._begin()
        self._judge(leader.hear(), "ready")
        self._judge(leader.ask(f"{'endless' if killed else 'failing'} {question}"), "computing")
        for one in self._crowd:
            one.tell(f"slow {question}")
        time.sleep(0.1)  # in which they come to wait
        began = time.perf_counter()
        if killed:
            leader.kill()
        else:
            leader.tell("fail")
            self._judge(leader.hear(), "error")
            leader.end()
        for one in self._crowd:
            self._judge(one.hear(), "answer")
        self._count(question, 1 + MOST)
        return time.perf_counter() - began

    def _judge(self, reply: str, expected: str) -> None:
        self.broken[HUNG] += reply == ""
        self.broken[WRONG] += reply not in ("", expected)

    def _count(self, question: str, most: int) -> None:
        calls = self._calls.read_text().splitlines().count(question)
        self.broken[MANY] += max(0, calls - most)


def ask(path: str, calls: str) -> None:
    """Ask what one is told to, computing it as one is told to; in a process of its own."""
    with stemma.open(path, tenant="shared", embedder=None) as cache:
        say("ready")
        while line := sys.stdin.readline():
            how, question = line.split()
            compute = partial(_answer, how, question, calls)
            try:
                say(cache.answers.get_or_compute(question, compute).value)
            except Failing:
                say("error")


def _answer(how: str, question: str, calls: str) -> str:
    with Path(calls).open("a") as file:
        file.write(f"{question}\n")
    if how == "slow":
        time.sleep(0.05)
        return "answer"
    say("computing")
    if how == "endless":
        time.sleep(600)
    sys.stdin.readline()
    raise Failing


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """See the module's text."""
    del seed  # nothing is drawn: who comes first is the machine's affair
    rounds = times(ROUNDS, size)
    with stemma.open(folder / "one.db", tenant="me", embedder=None) as cache:
        broken = one_process(cache, rounds)
    many, seconds = several_processes(folder, rounds)
    broken.update(many)
    return Outcome(
        tried={
            "crowds of 1,000 in one process": rounds,
            "such crowds whose leader fails": rounds,
            "crowds of 8 processes": rounds,
            "such crowds whose leader is another process that fails": rounds,
            "such crowds whose leader is another process that is killed": rounds,
        },
        violations={promise: broken[promise] for promise in PROMISES},
        figures={"longest seconds from a leader's death to all answers": max(seconds)},
    )


def one_process(cache: stemma.Cache, rounds: int) -> Counter[str]:
    """Crowds of threads and tasks; gives what was against a promise."""
    broken: Counter[str] = Counter()
    for number in range(rounds):
        for failing in (False, True):
            crowd = Crowd(cache, f"{number} {failing}", failing=failing)
            if not crowd.ended():
                broken[HUNG] += 1
                return broken
            broken[MORE] += max(0, crowd.calls - 1 - failing)
            broken[WRONG] += THREADS + TASKS - crowd.replies["answer"] - crowd.replies["error"]
            broken[WRONG] += max(0, crowd.replies["error"] - failing)
    return broken


def several_processes(
    folder: Path, rounds: int, script: str | None = None
) -> tuple[Counter[str], list[float]]:
    """Crowds of processes; gives what was against a promise, and seconds after leaders' deaths."""
    seconds = []
    with ExitStack() as stack:
        crowd = Processes(calling(ask) if script is None else script, folder, stack)
        for number in range(rounds):
            crowd.together(f"together-{number}")
            crowd.after(f"failing-{number}", killed=False)
            seconds.append(crowd.after(f"killed-{number}", killed=True))
            crowd.broken[LATE] += seconds[-1] > SOON
    return crowd.broken, seconds
