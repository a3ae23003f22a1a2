"""Work beside the lookups: one thread of an index, there while there is something to do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

__all__ = ["Beside", "Stopped"]

_log = logging.getLogger("stemma")


class Stopped(Exception):
    """The work is to end where it is."""


class Beside:
    """Runs jobs one after another in a daemon thread.

    A job calls `step` now and then. A forked child has jobs and a thread of its own: take a new
    one there.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: dict[str, Callable[[], None]] = {}
        self._failed: set[str] = set()
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, name: str, job: Callable[[], None]) -> None:
        """Run a job, unless one of that name waits, runs or has failed, or all is closed."""
        if name in self._jobs or name in self._failed:
            return  # so that a lookup which asks in vain takes no lock
        with self._changed:
            if self._closed or name in self._jobs:
                return
            self._jobs[name] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stemma-graph", daemon=True)
                self._thread.start()

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

    def close(self) -> None:
        """End the work, and wait for its end: native code must not run when the process ends."""
        with self._changed:
            self._closed = True
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
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
                _log.exception("making a graph failed; lookups scan that group from now on")
            with self._changed:
                self._jobs.pop(name, None)
                self._changed.notify_all()
