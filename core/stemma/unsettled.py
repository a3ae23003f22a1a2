"""What tools are writing just now, and what could not yet be taken back after they had."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

from stemma import forking

__all__ = ["Unsettled"]

_NOTHING: frozenset[str] = frozenset()


class Unsettled:
    """Sources of which nothing may be served, or stored, before they are settled.

    A source is open while a write concerns it. When the write ends, however it ends, the source is
    owed until what was read of it has been taken back.
    """

    def __init__(self) -> None:
        self._lock = forking.Lock()
        self._numbers = itertools.count(1)
        self._open: Counter[str] = Counter()
        self._owed: dict[str, int] = {}
        forking.follow(self)

    def after_fork(self) -> None:
        """In the child, nobody ends what its parent's threads were writing."""
        self._owed.update(dict.fromkeys(self._open, next(self._numbers)))
        self._open.clear()

    def begin(self, sources: Iterable[str]) -> None:
        """A write that concerns these begins."""
        with self._lock:
            self._open.update(sources)

    def end(self, sources: Iterable[str]) -> None:
        """It has ended, well or not."""
        with self._lock:
            number = next(self._numbers)
            for one in sources:
                self._owed[one] = number
                self._open[one] -= 1
                if self._open[one] <= 0:
                    del self._open[one]

    def writing(self, sources: Iterable[str]) -> bool:
        """Whether a write to one of these is under way."""
        with self._lock:
            return any(one in self._open for one in sources)

    def owed(self, sources: Iterable[str]) -> dict[str, int]:
        """Those of them that are to be taken back, for `settled`."""
        with self._lock:
            return {one: self._owed[one] for one in sources if one in self._owed}

    @property
    def all_owed(self) -> frozenset[str]:
        """All that is to be taken back. Mostly nothing: that is quickly said."""
        if not self._owed:
            return _NOTHING
        with self._lock:
            return frozenset(self._owed)

    def settled(self, owed: dict[str, int]) -> None:
        """What was owed has been taken back; what another write owes since then has not."""
        with self._lock:
            for one, number in owed.items():
                if self._owed.get(one) == number:
                    del self._owed[one]
