"""Servings and counters, gathered in memory and written in batches.

Nothing is written while a hit is served. A batch is written every second, when it has grown to
`FULL`, and when the cache is closed; a process that is killed loses at most the last second's
statistics, never an entry.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from stemma.stores.protocol import Count, Serving, Store

__all__ = ["Journal"]

FULL = 1_000
MOST = 100_000
"""Servings kept while the store does not take them; beyond it the oldest are dropped."""

EVERY = 1.0
"""Seconds between two batches."""


class Journal:
    """Gathers what happened, and hands it to the store from a thread of its own.

    Args:
        store: Where batches go.
        on_fault: Called with the error when the store refuses a batch; the batch is kept.
    """

    def __init__(self, store: Store, on_fault: Callable[[Exception], None]) -> None:
        self._store = store
        self._on_fault = on_fault
        self._servings: deque[Serving] = deque(maxlen=MOST)
        self._counts: dict[tuple[str, str, str], tuple[int, float, int]] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._closed = False

    def count(
        self, tenant: str, node: str, outcome: str, seconds: float = 0.0, tokens: int = 0
    ) -> None:
        """Count one lookup and what it saved."""
        key = (tenant, node, outcome)
        with self._lock:
            lookups, spared, words = self._counts.get(key, (0, 0.0, 0))
            self._counts[key] = (lookups + 1, spared + seconds, words + tokens)
        if self._thread is None or self._pid != os.getpid():
            self._start()

    def serve(self, serving: Serving) -> None:
        """Note that an entry was served."""
        self._servings.append(serving)
        if len(self._servings) >= FULL:
            self._wake.set()

    def flush(self) -> None:
        """Write what has been gathered, now."""
        with self._writing:
            with self._lock:
                servings = list(self._servings)
                self._servings.clear()
                sums, self._counts = self._counts, {}
            if not servings and not sums:
                return
            counts = [
                Count(tenant=t, node=n, outcome=o, lookups=c, seconds=s, tokens=w)
                for (t, n, o), (c, s, w) in sums.items()
            ]
            try:
                self._store.journal(servings, counts)
            except Exception as error:
                self._keep(servings, sums)
                self._on_fault(error)

    def _keep(
        self, servings: list[Serving], sums: dict[tuple[str, str, str], tuple[int, float, int]]
    ) -> None:
        with self._lock:
            self._servings.extendleft(reversed(servings[-(MOST - len(self._servings)) :]))
            for key, (lookups, spared, words) in sums.items():
                more, later, further = self._counts.get(key, (0, 0.0, 0))
                self._counts[key] = (lookups + more, spared + later, words + further)

    def _start(self) -> None:
        with self._lock:
            if self._closed or (self._thread is not None and self._pid == os.getpid()):
                return
            self._pid = os.getpid()
            self._thread = threading.Thread(target=self._run, name="stemma-journal", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(EVERY)
            self._wake.clear()
            self.flush()
            time.sleep(0)

    def close(self) -> None:
        """Write the last batch and end the thread."""
        self._closed = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5.0)
        self.flush()
