"""One computation per question among the processes of a machine. An optimisation, never a need.

A process that computes holds a lock on one byte of a file beside the store; others that come with
the same question wait until it is free, and look again. The operating system frees the lock of a
process that dies, at once. A process that hangs is waited for `patience` seconds, no longer. Where
the system has no such locks, everybody computes.

The byte says how the last computation ended: when its value could not be stored, those who waited
compute side by side instead of one after another.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Literal

from stemma import forking
from stemma.errors import StoreUnavailable, UsageError
from stemma.keys import digest

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Ending", "Leases"]

Ending = Literal["stored", "failed", "unstorable"]

SLOTS = 1 << 16
"""Bytes of the file. Two questions that share one wait for each other, once in a while."""

FIRST, LONGEST = 0.005, 0.05
"""Seconds between two looks at the lock: at first, and at most."""

_ALONE = b"\x01"


class Leases:
    """The computations under way in all processes that name the same file.

    Args:
        path: The file, made if it is not there (0600). On a local disk.
        patience: Seconds for which another process is waited for, 0 or more.

    Raises:
        UsageError: `patience` is out of its range.
        StoreUnavailable: The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 30.0) -> None:
        if not patience >= 0:
            raise UsageError(f"patience must be 0 seconds or more, not {patience!r}")
        self._patience = patience
        self._lock = forking.Lock()
        self.after_fork()
        forking.follow(self)
        try:
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreUnavailable(
                f"{os.fspath(path)!r}: {error.strerror}; leases need a file that may be written"
            ) from error

    def after_fork(self) -> None:
        """Begin anew in the child: the leads are the parent's."""
        self._held: dict[int, int] = {}

    def acquire(self, key: str, wait: bool = True) -> bool:
        """Take the lead for a question, waiting while another process has it.

        Args:
            key: The question's exact key.
            wait: Whether to wait at all. Who leads already must not: two could wait for each other.

        Returns:
            Whether `release` must be called. If not, compute all the same.
        """
        for pause in self._tries(key, wait=wait):
            if isinstance(pause, bool):
                return pause
            time.sleep(pause)
        return False

    async def aacquire(self, key: str, wait: bool = True) -> bool:
        """As `acquire`, for tasks: waiting occupies no thread."""
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        for pause in self._tries(key, wait=wait):
            if isinstance(pause, bool):
                return pause
            await asyncio.sleep(pause)
        return False

    def release(self, key: str, ending: Ending) -> None:
        """End the computation that this caller leads."""
        slot = _slot(key)
        with self._lock:
            if self._file is None or fcntl is None:
                return
            if ending == "unstorable":
                os.pwrite(self._file, _ALONE, slot)
            self._held[slot] = self._held.get(slot, 1) - 1
            if self._held[slot] <= 0:  # the system counts a process once
                del self._held[slot]
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, slot)

    def close(self) -> None:
        """Give up everything that is held."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def _tries(self, key: str, *, wait: bool) -> Iterator[float | bool]:
        """Seconds to wait before the next look, or at last the answer."""
        slot, until = _slot(key), time.monotonic() + self._patience
        pause, waited = FIRST, False
        while True:
            taken = self._take(slot, waited=waited)
            if taken is not None:
                yield taken
                return
            left = until - time.monotonic()
            if not wait or left <= 0:
                yield False
                return
            waited = True
            yield min(pause, left)
            pause = min(2 * pause, LONGEST)

    def _take(self, slot: int, *, waited: bool) -> bool | None:
        """Whether this caller leads now; `None` while another process does."""
        with self._lock:
            if self._file is None or fcntl is None:
                return False
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            except BlockingIOError:
                return None
            except OSError:
                return False  # no locks on this file system
            if slot not in self._held:
                if waited and os.pread(self._file, 1, slot) == _ALONE:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, slot)
                    return False
                os.pwrite(self._file, b"\x00", slot)
            self._held[slot] = self._held.get(slot, 0) + 1
            return True


def _slot(key: str) -> int:
    return int(digest("lease/1", key)[:8], 16) % SLOTS
