"""A clock that stands still until it is told to move."""

from __future__ import annotations

from stemma.errors import UsageError

__all__ = ["ManualClock"]


class ManualClock:
    """A `stemma.clock.Clock` for tests.

    Args:
        start: What `now` says at first, seconds since 1970-01-01 UTC.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._wall = start
        self._elapsed = 0.0

    def __repr__(self) -> str:
        return f"ManualClock(now={self._wall!r}, monotonic={self._elapsed!r})"

    def now(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        return self._wall

    def monotonic(self) -> float:
        """Seconds that it was advanced so far."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            UsageError: Time does not go back.
        """
        if not seconds >= 0:
            raise UsageError(f"a clock advances by 0 seconds or more, not {seconds!r}")
        self._wall += seconds
        self._elapsed += seconds

    def set(self, now: float) -> None:
        """Set the wall clock, as a machine's may be set, also back. The other does not notice."""
        self._wall = now

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back; no time passes."""
        self._wall += seconds
