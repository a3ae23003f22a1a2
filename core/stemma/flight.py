"""One computation per key in a process, however many threads and tasks ask at once.

The first to ask leads; the others wait: threads on their own, tasks without occupying any thread.
When the leader has stored its value, all look again. When it failed, was cancelled or had its
value taken back, one of those who wait leads next: an error is never shared. When its value turned
out not to be storable, all compute for themselves.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar
from typing import Literal

__all__ = ["Flights", "Landing", "Turn", "hold", "holding"]

Turn = Literal["lead", "look", "alone"]
"""`lead`: compute, then call `leave`. `look`: a value was stored. `alone`: compute, don't leave."""

Landing = Literal["stored", "failed", "unstorable"]

_held: ContextVar[frozenset[str]] = ContextVar("stemma_flights", default=frozenset())


class Flights:
    """The computations under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Future[Turn]]] = {}

    def join(self, key: str) -> Turn:
        """Take part in the computation of a key; blocks while another leads.

        On a thread that runs an event loop it never blocks, since the leader may be a task of
        that very loop: the answer is then `alone`.
        """
        future = self._enter(key)
        if future is None:
            return "lead"
        if _on_loop():
            future.cancel()
        return "alone" if future.cancelled() else future.result()

    async def ajoin(self, key: str) -> Turn:
        """As `join`, for tasks."""
        future = self._enter(key)
        if future is None:
            return "lead"
        if future.cancelled():
            return "alone"
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # The lead may have been handed over in the same moment; pass it on.
            if future.done() and not future.cancelled() and future.result() == "lead":
                self.leave(key, "failed")
            raise

    def _enter(self, key: str) -> Future[Turn] | None:
        future: Future[Turn] = Future()
        if key in _held.get():
            future.cancel()  # the leader's own computation asks for itself
            return future
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is None:
                self._waiting[key] = deque()
                return None
            waiting.append(future)
        return future

    def leave(self, key: str, landing: Landing) -> None:
        """End the computation that this caller leads."""
        with self._lock:
            waiting = self._waiting.get(key, deque())
            if landing == "failed":
                while waiting:
                    if _tell(waiting.popleft(), "lead"):
                        return
            self._waiting.pop(key, None)
        for future in waiting:
            _tell(future, "look" if landing == "stored" else "alone")

    def __len__(self) -> int:
        return len(self._waiting)


def hold(keys: frozenset[str]) -> None:
    """Note which keys this context leads, so that it never waits for itself."""
    _held.set(keys)


def holding() -> frozenset[str]:
    """The keys that this context leads."""
    return _held.get()


def _tell(future: Future[Turn], turn: Turn) -> bool:
    try:
        future.set_result(turn)
    except InvalidStateError:
        return False  # whoever waited was cancelled
    return True


def _on_loop() -> bool:
    asyncio = sys.modules.get("asyncio")  # what has not been loaded runs no loop
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
