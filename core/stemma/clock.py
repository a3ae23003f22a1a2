"""Time, as something that can be handed in.

Wall-clock seconds are stored in entries; the monotonic clock measures durations.
"""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

__all__ = ["Clock", "SystemClock"]


@runtime_checkable
class Clock(Protocol):
    """Two readings, both in seconds."""

    def now(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...


class SystemClock:
    """The machine's own clocks."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
