"""Servings, counters and lessons, gathered in memory and written in batches.

Nothing is written while a hit is served. A batch is written every second, when it has grown to
`FULL`, and when the cache is closed; a process that is killed loses at most the last second's
statistics and lessons, never an entry.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from stemma import forking
from stemma.stores.protocol import Count, Lesson, Serving, Store

__all__ = ["CROSSING", "EMBEDDER", "FACTOR", "REPORTER", "Journal"]

FULL = 10_000
"""A batch this large is written at once."""

MOST = 100_000
"""Servings, or lessons, kept while the store does not take them; beyond, the oldest are dropped."""

EVERY = 1.0
"""Seconds between two batches."""

EMBEDDER = "embedder "
"""Begins the outcomes that count no lookup, but how often which embedder was asked."""

FACTOR = "factor "
"""Begins those that add up what `stemma.calibration` has measured, by factor and index."""

REPORTER = "reporter "
"""Begins those that count a tenant's reports of shared entries: `upheld`, and `overturned`."""

CROSSING = "crossing "
"""Begins those that count what was refused to a tenant because it is another's."""


Sums = dict[tuple[str, str, str], tuple[int, float, int]]


def _add(sums: Sums, key: tuple[str, str, str], lookups: int, seconds: float, tokens: int) -> None:
    counted, spared, words = sums.get(key, (0, 0.0, 0))
    sums[key] = (counted + lookups, spared + seconds, words + tokens)


class Journal:
    """Gathers what happened, and hands it to the store from a thread of its own.

    Args:
        store: Where batches go.
        on_fault: Called with the error when the store refuses a batch; its counters are kept.
    """

    def __init__(self, store: Store, on_fault: Callable[[Exception], None]) -> None:
        self._store = store
        self._on_fault = on_fault
        self._lock = forking.Lock()
        self._writing = forking.Lock()
        self._closed = False
        self.after_fork()
        forking.follow(self)

    def after_fork(self) -> None:
        """Begin anew in the child: what was gathered until now, the parent will write."""
        self._served: deque[tuple[Serving, str, float, int]] = deque(maxlen=MOST)
        self._lessons: deque[Lesson] = deque(maxlen=MOST)
        self._counts: Sums = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def count(
        self, tenant: str, node: str, outcome: str, seconds: float = 0.0, tokens: int = 0
    ) -> None:
        """Count one lookup and what it saved."""
        with self._lock:
            _add(self._counts, (tenant, node, outcome), 1, seconds, tokens)
        if self._thread is None:
            self._start()

    def serve(self, serving: Serving, node: str, seconds: float, tokens: int) -> None:
        """Note that an entry was served, and what that saved; counted when the batch is written."""
        self._served.append((serving, node, seconds, tokens))
        if self._thread is None:
            self._start()
        elif len(self._served) >= FULL:
            self._wake.set()

    def teach(self, lesson: Lesson) -> None:
        """Note what a policy has learnt."""
        self._lessons.append(lesson)
        if self._thread is None:
            self._start()

    def flush(self) -> None:
        """Write what has been gathered, now."""
        with self._writing:
            self._write_lessons()
            self._write_sums()

    def _write_lessons(self) -> None:
        lessons = [self._lessons.popleft() for _ in range(len(self._lessons))]
        if not lessons:
            return
        try:
            self._store.learn(lessons)
        except Exception as error:
            self._lessons.extendleft(reversed(lessons))
            self._on_fault(error)

    def _write_sums(self) -> None:
        served = [self._served.popleft() for _ in range(len(self._served))]
        with self._lock:
            sums, self._counts = self._counts, {}
        if not served and not sums:
            return
        for serving, node, seconds, tokens in served:
            _add(sums, (serving.tenant, node, serving.tier), 1, seconds, tokens)
        servings = [serving for serving, _, _, _ in served]
        counts = [
            Count(tenant=t, node=n, outcome=o, lookups=c, seconds=s, tokens=w)
            for (t, n, o), (c, s, w) in sums.items()
        ]
        try:
            self._store.journal(servings, counts)
        except Exception as error:
            # The sums are kept, with those of the servings; which entries they were is lost.
            with self._lock:
                for key, (lookups, seconds, tokens) in sums.items():
                    _add(self._counts, key, lookups, seconds, tokens)
            self._on_fault(error)

    def _start(self) -> None:
        with self._lock:
            if self._closed or self._thread is not None:
                return
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
