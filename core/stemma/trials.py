"""What the policy knew of the hits served last, so that a report of one can teach it."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from stemma import forking
from stemma.policies.learning import Trial

__all__ = ["Served", "Trials"]

MOST = 4_096
"""Hits that are remembered; the oldest are forgotten first."""


class Served(NamedTuple):
    """Whose policy served a hit at which node, and what it knew of it."""

    tenant: str
    node: str
    trial: Trial


class Trials:
    """The trials of hits by meaning, by question and entry, in the memory of one process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Served] = OrderedDict()
        self._lock = forking.Lock()

    def keep(self, question: str, served: Served) -> None:
        """Remember what was known of an entry that was served to a question."""
        with self._lock:
            self._kept[question, served.trial.candidate] = served
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def take(self, question: str, entry: str) -> Served | None:
        """What was known of such a hit, once; `None` where it is not known here."""
        with self._lock:
            return self._kept.pop((question, entry), None)
