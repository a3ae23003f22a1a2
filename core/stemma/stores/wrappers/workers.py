"""A few threads that may be left behind.

A pool of the standard library waits at exit for a thread that hangs, and counts it as working for
ever. Here a call that is given up leaves its thread to itself: another one takes its place, up to
`STUCK` times as many as were asked for, and none keeps the process from ending.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from stemma.errors import StoreUnavailable

__all__ = ["Workers"]

STUCK = 4
"""So many times the threads asked for may exist, those that hang included."""

Job = tuple["Future[Any]", Callable[[], Any]]


class Workers:
    """Runs calls in daemon threads, started when they are needed.

    Args:
        limit: How many work at once, not counting those given up.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._wake = threading.Condition(threading.Lock())
        self._jobs: deque[Job] = deque()
        self._stuck: set[Future[Any]] = set()
        self._running: set[Future[Any]] = set()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def __len__(self) -> int:
        """How many threads there are."""
        return self._threads

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """Have a call made as soon as a thread is free. Cancelling the future takes it back.

        Raises:
            StoreUnavailable: Every thread hangs, or the workers were closed.
        """
        future: Future[Any] = Future()
        with self._wake:
            if self._closed:
                raise StoreUnavailable("this store was closed; open another one")
            if len(self._stuck) >= STUCK * self._limit:
                raise StoreUnavailable(
                    f"{len(self._stuck)} calls hang in the store; give its client a time-out"
                )
            self._jobs.append((future, work))
            if self._idle >= len(self._jobs):
                self._wake.notify()
            elif self._threads < min(self._limit + len(self._stuck), STUCK * self._limit):
                self._threads += 1
                threading.Thread(target=self._work, name="stemma-guard", daemon=True).start()
        return future

    def give_up(self, future: Future[Any]) -> bool:
        """Wait for a call no longer; gives whether it was taken back before it began."""
        if future.cancel():
            return True
        with self._wake:
            if future in self._running:
                self._stuck.add(future)
        return False

    def close(self) -> None:
        """End the threads that have nothing to do, the others when they have done."""
        with self._wake:
            self._closed = True
            self._jobs.clear()
            self._wake.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            future, work = job
            if not future.set_running_or_notify_cancel():
                self._leave(future)
            else:
                try:
                    answer = work()
                except BaseException as error:  # the future carries it to whoever waits
                    self._leave(future)
                    future.set_exception(error)
                else:
                    self._leave(future)
                    future.set_result(answer)
                    del answer
            del job, future, work  # an idle thread keeps nothing alive

    def _next(self) -> Job | None:
        with self._wake:
            while not self._jobs and not self._closed and not self._spare():
                self._idle += 1
                self._wake.wait()
                self._idle -= 1
            if self._closed or not self._jobs:
                self._threads -= 1
                return None
            job = self._jobs.popleft()
            self._running.add(job[0])
            return job

    def _spare(self) -> bool:
        return self._threads > self._limit + len(self._stuck)

    def _leave(self, future: Future[Any]) -> None:
        with self._wake:
            self._running.discard(future)
            self._stuck.discard(future)
