"""Whether it is worth asking: a circuit breaker, apart from any I/O.

Closed, calls are let through. A call that was not answered in time opens it until that call comes
back: nobody else waits for the same silence. `failures` failures in a row, or a call that does not
come back, keep it open for `open_for` seconds; then one call is let through, and what becomes of
it decides.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from stemma.errors import StoreUnavailable, UsageError

__all__ = ["Breaker", "Call", "State"]

State = Literal["closed", "open", "half-open"]


class Call:
    """A call that was let through, until it is settled."""

    __slots__ = ("at", "ended", "late", "probe")

    def __init__(self, at: float, *, probe: bool) -> None:
        self.at = at
        self.probe = probe
        self.late = False
        self.ended = False


class Breaker:
    """See the module's text. Every call let through ends in exactly one of the other methods.

    Args:
        failures: How many failures in a row open it, 1 or more. Calls that were under way together
            fail as one.
        open_for: Seconds until one call is let through again, above 0.
        fast: Seconds within which an answer counts as health; a later one proves nothing.
        monotonic: The clock, seconds.
        changed: Called with the new state, outside of the lock.

    Raises:
        UsageError: An argument is out of its range.
    """

    def __init__(
        self,
        *,
        failures: int,
        open_for: float,
        fast: float,
        monotonic: Callable[[], float],
        changed: Callable[[State], object],
    ) -> None:
        if failures < 1:
            raise UsageError(f"failures must be 1 or more, not {failures!r}")
        if not open_for > 0:
            raise UsageError(f"open_for must be above 0 seconds, not {open_for!r}")
        self._most = failures
        self._open_for = open_for
        self._fast = fast
        self._monotonic = monotonic
        self._changed = changed
        self._lock = threading.Lock()
        self._count = 0
        self._failed_at = float("-inf")
        self._opened: float | None = None
        self._probed: float | None = None
        self._late: set[Call] = set()
        self._told: State = "closed"

    @property
    def state(self) -> State:
        """`closed`, `open`, or `half-open`: the next call is let through alone."""
        if self._opened is None:
            return "closed"
        return "open" if self._monotonic() - self._opened < self._open_for else "half-open"

    def admit(self) -> Call:
        """Let a call through.

        Raises:
            StoreUnavailable: It is open, or another call is trying already.
        """
        with self._lock:
            self._refuse()
            now = self._monotonic()
            if self._opened is None:
                return Call(now, probe=False)
            self._probed = now
        self._tell("half-open")
        return Call(now, probe=True)

    def check(self) -> None:
        """Raise where `admit` would.

        Raises:
            StoreUnavailable: It is open, or another call is trying already.
        """
        with self._lock:
            self._refuse()

    def answered(self, call: Call) -> None:
        """The store answered."""
        with self._lock:
            call.ended = True
            if call.late:
                self._came_back(call)
            else:
                fast = self._monotonic() - call.at <= self._fast
                if fast and (call.probe or self._opened is None):
                    self._count = 0
                if call.probe:
                    self._close()
        self._tell()

    def failed(self, call: Call) -> None:
        """The store could not be reached, or said that it is out of order."""
        with self._lock:
            call.ended = True
            if call.late:
                self._came_back(call)
            else:
                self._note(call)
                if call.probe or self._count >= self._most:
                    self._open()
        self._tell()

    def abandoned(self, call: Call) -> None:
        """The caller waits no longer; the call may come back yet, and is settled again then."""
        with self._lock:
            if call.ended:
                return  # in the last moment
            call.late = True
            self._late.add(call)
            self._note(call)
            self._open()
        self._tell()

    def dropped(self, call: Call) -> None:
        """The call was cancelled: that says nothing about the store."""
        with self._lock:
            self._late.discard(call)
            if call.probe and not call.late:
                self._probed = None
        self._tell()

    def _refuse(self) -> None:
        if self._opened is None:
            return
        now = self._monotonic()
        left = self._opened + self._open_for - now
        if self._probed is not None:  # it may be lost: then another one tries
            left = max(left, self._probed + self._open_for - now)
        if left > 0:
            raise StoreUnavailable(
                f"the store did not answer lately; it is asked again within {left:.1f} s"
            )

    def _note(self, call: Call) -> None:
        if call.at >= self._failed_at:
            self._count += 1
            self._failed_at = self._monotonic()

    def _came_back(self, call: Call) -> None:
        self._late.discard(call)
        if not self._late and self._count < self._most and self._probed is None:
            self._close()

    def _open(self) -> None:
        self._opened = self._monotonic()
        self._probed = None

    def _close(self) -> None:
        self._opened = self._probed = None
        self._late.clear()

    def _tell(self, state: State | None = None) -> None:
        with self._lock:
            new = state if state is not None else ("closed" if self._opened is None else "open")
            if new == self._told:
                return
            self._told = new
        self._changed(new)
