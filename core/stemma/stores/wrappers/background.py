"""Work that may take longer than anybody waits: begun once, waited for by turns, fetched when done.

Who asks for it first begins it. Each waits only until the budget, counted from its beginning, is
over; whoever asks after it has ended gets what it gave.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from stemma.errors import StoreUnavailable
from stemma.stores.wrappers.workers import Workers

__all__ = ["Background", "Task", "ended"]

PATIENCE = 60.0
"""Seconds after which work that has not ended is given up, and begun again."""


class Task(NamedTuple):
    """Work under way: what it is, its result to be, and when it was begun."""

    key: tuple[Any, ...]
    future: Future[Any]
    since: float


class Background:
    """The work under way. See the module's text.

    Args:
        workers: Who does it.
        monotonic: The clock, seconds.
    """

    def __init__(self, workers: Workers, monotonic: Callable[[], float]) -> None:
        self._workers = workers
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._tasks: dict[tuple[Any, ...], Task] = {}

    def __len__(self) -> int:
        """How much is under way, or has not been fetched."""
        return len(self._tasks)

    def begin(self, key: tuple[Any, ...], start: Callable[[], Future[Any]]) -> Task:
        """The work under this key, begun by `start` where none is under way."""
        with self._lock:
            now = self._monotonic()
            task = self._tasks.get(key)
            if task is None or now - task.since > PATIENCE:
                if task is not None:
                    self._workers.give_up(task.future)
                task = self._tasks[key] = Task(key, start(), now)
            return task

    def join(self, task: Task, budget: float) -> Any:
        """Wait for it, and fetch what it gave.

        Raises:
            StoreUnavailable: It has not ended `budget` seconds after it was begun. It goes on.
        """
        with suppress(TimeoutError):
            task.future.exception(self._left(task, budget))
        return self._fetch(task, budget)

    async def ajoin(self, task: Task, budget: float) -> Any:
        """As `join`."""
        await ended(task.future, self._left(task, budget))
        return self._fetch(task, budget)

    def _left(self, task: Task, budget: float) -> float:
        return max(0.0, budget - (self._monotonic() - task.since))

    def _fetch(self, task: Task, budget: float) -> Any:
        if not task.future.done():
            what = " ".join(str(part) for part in task.key)
            raise StoreUnavailable(f"{what}: not done within {budget:g} s; it goes on")
        with self._lock:
            if self._tasks.get(task.key) is task:
                del self._tasks[task.key]
        return task.future.result()


async def ended(future: Future[Any], seconds: float) -> bool:
    """Whether a worker's call ends in time. It is not cancelled with whoever waits here."""
    loop = asyncio.get_running_loop()
    end = asyncio.Event()

    def tell(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop may be closed by then
            loop.call_soon_threadsafe(end.set)

    future.add_done_callback(tell)
    with suppress(TimeoutError):
        await asyncio.wait_for(end.wait(), seconds)
    return future.done()
