"""One computation per key in a process, however many threads and tasks ask at once.

The first to ask leads; the others wait: threads on their own, tasks without occupying any thread.
When the leader has stored its value, all look again. When it failed, was cancelled or had its
value taken back, one of those who wait leads next: an error is never shared. When its value turned
out not to be storable, all compute for themselves.

Nobody waits in a circle: who leads something that the leader waits for, directly or through
others, computes for itself. And nobody waits for ever: after `PATIENCE` seconds each does.
"""

from __future__ import annotations

import sys
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextvars import ContextVar
from typing import Literal

from stemma import forking

__all__ = ["Flights", "Landing", "Turn", "hold", "holding"]

Turn = Literal["lead", "look", "alone"]
"""`lead`: compute, then call `leave`. `look`: a value was stored. `alone`: compute, don't leave."""

Landing = Literal["stored", "failed", "unstorable"]

PATIENCE = 300.0
"""Seconds after which a caller stops waiting: a leader may ask itself through a foreign thread."""

_held: ContextVar[frozenset[str]] = ContextVar("stemma_flights", default=frozenset())


class Flights:
    """The computations under way.

    Args:
        patience: How long to wait for a leader, seconds.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._lock = forking.Lock()
        self.after_fork()
        forking.follow(self)

    def after_fork(self) -> None:
        """Begin anew in the child: nobody there ends what its parent's threads compute."""
        self._waiting: dict[str, deque[Future[Turn]]] = {}
        self._awaited: dict[str, list[str]] = {}

    def join(self, key: str) -> Turn:
        """Take part in the computation of a key; blocks while another leads.

        On a thread that runs an event loop it never blocks, since the leader may be a task of
        that very loop: the answer is then `alone`.
        """
        future = self._enter(key, alone=_on_loop())
        if not isinstance(future, Future):
            return future
        try:
            return future.result(self._patience)
        except TimeoutError:
            return self._gave_up(future)
        finally:
            self._waited(key)

    async def ajoin(self, key: str) -> Turn:
        """As `join`, for tasks."""
        future = self._enter(key, alone=False)
        if not isinstance(future, Future):
            return future
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._patience)
        except TimeoutError:
            return self._gave_up(future)
        except asyncio.CancelledError:
            # The lead may have been handed over in the same moment; pass it on.
            if self._gave_up(future) == "lead":
                self.leave(key, "failed")
            raise
        finally:
            self._waited(key)

    def _enter(self, key: str, *, alone: bool) -> Future[Turn] | Turn:
        held = _held.get()
        if key in held:
            return "alone"  # the leader's own computation asks for itself
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is None:
                self._waiting[key] = deque()
                return "lead"
            if alone or self._in_a_circle(key, held):
                return "alone"
            future: Future[Turn] = Future()
            waiting.append(future)
            for mine in held:
                self._awaited.setdefault(mine, []).append(key)
        return future

    def _in_a_circle(self, key: str, held: frozenset[str]) -> bool:
        """Whether the leader of a key waits for one of those held here."""
        seen, ahead = set[str](), [key]
        while ahead:
            one = ahead.pop()
            if one in held:
                return True
            if one not in seen:
                seen.add(one)
                ahead += self._awaited.get(one, ())
        return False

    def _waited(self, key: str) -> None:
        held = _held.get()
        if held:
            with self._lock:
                for mine in held:
                    self._awaited[mine].remove(key)
                    if not self._awaited[mine]:
                        del self._awaited[mine]

    @staticmethod
    def _gave_up(future: Future[Turn]) -> Turn:
        """What to do after waiting in vain: `alone`, unless the turn came in the same moment."""
        if future.cancel() or future.cancelled():
            return "alone"
        return future.result()

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
