"""Whether a judge's word still serves: some of what it approves is computed afresh, to see."""

from __future__ import annotations

import random

from stemma import forking
from stemma.policies.shares import at_least

__all__ = ["Trust"]

_RARE = 0.05
"""A judge is dismissed once so many are wrong that the allowed share makes that rarer than this."""


class Trust:
    """What audits have shown of one judge.

    Args:
        audits: The share of what it approves that is computed afresh, 0 to 1.
        max_wrong: The share of it that may be wrong, 0 to 1.
    """

    def __init__(self, audits: float, max_wrong: float) -> None:
        self._audits, self._max_wrong = audits, max_wrong
        self._lock = forking.Lock()
        self._random = random.Random()  # noqa: S311 - chooses what is audited, nothing secret
        self.audited = self.wrong = 0
        self.dismissed = False

    def audits(self) -> bool:
        """Whether what is approved now is to be computed afresh."""
        return self._random.random() < self._audits

    def note(self, *, right: bool) -> bool:
        """Take the outcome of an audit in; gives whether the judge is dismissed by it."""
        with self._lock:
            self.audited += 1
            self.wrong += not right
            rare = at_least(self.wrong, self.audited, self._max_wrong) < _RARE
            now, self.dismissed = rare and not self.dismissed, self.dismissed or rare
        return now
