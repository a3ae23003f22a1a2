"""Work beside the requests: one thread of its owner, there while there is something to do."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

__all__ = ["Beside", "Stopped"]

_log = logging.getLogger("stemma")


class Stopped(Exception):
    """The work is to end where it is."""


class Beside:
    """Runs jobs one after another in a daemon thread.

    A long job calls `step` now and then. A forked child has jobs and a thread of its own: take a
    new one there.

    Args:
        name: The thread's name.
        failed: What to log where a job fails; that one is not run again.
        most: How many jobs may be there at once, the running one included; by default any number.
    """

    def __init__(self, name: str, *, failed: str, most: float = math.inf) -> None:
        self._name, self._words, self._most = name, failed, most
        self._changed = threading.Condition()
        self._jobs: dict[str, Callable[[], None]] = {}
        self._failed: set[str] = set()
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, name: str, job: Callable[[], None]) -> bool:
        """Run a job, unless one of that name waits, runs or has failed, or all is closed.

        Gives `False` where there are too many already: the job is dropped.
        """
        if name in self._jobs or name in self._failed:
            return True  # so that a lookup which asks in vain takes no lock
        with self._changed:
            if self._closed or name in self._jobs:
                return True
            if len(self._jobs) >= self._most:
                return False
            self._jobs[name] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return True

    def step(self) -> None:
        """Go on, or not.

        Raises:
            Stopped: It was closed.
        """
        if self._closed:
            raise Stopped

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until there is nothing to do; gives whether that came before the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs, timeout)

    def close(self, *, wait: bool = True) -> None:
        """End the work, and wait for its end: native code must not run when the process ends.

        Args:
            wait: `False` where a job may wait for what never answers.
        """
        with self._changed:
            self._closed = True
            thread = self._thread
        if wait and thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed or not self._jobs:
                    self._jobs.clear()
                    self._thread = None
                    self._changed.notify_all()
                    return
                name, job = next(iter(self._jobs.items()))
            try:
                job()
            except Stopped:
                pass
            except Exception:
                self._failed.add(name)
                _log.exception(self._words)
            with self._changed:
                self._jobs.pop(name, None)
                self._changed.notify_all()
