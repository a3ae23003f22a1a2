"""How often a source changes, by how often it was found changed. Pure."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import NamedTuple

from stemma.errors import UsageError

__all__ = ["DAY", "Prior", "Watched", "change_rate", "check_number"]

DAY = 86_400.0
"""Seconds."""


def check_number(
    name: str,
    value: float | None,
    *,
    low: float,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> None:
    """See that a number, where there is one, is finite and in its range.

    Raises:
        UsageError: It is not.
    """
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{name} must be a number, not {type(value).__name__}")
    inside = (low < value if open_low else low <= value) and (
        value < high if open_high else value <= high
    )
    if not (inside and abs(value) <= sys.float_info.max):
        left, right = "(" if open_low else "[", ")" if open_high or math.isinf(high) else "]"
        raise UsageError(
            f"{name} must be a finite number in {left}{low}, {high}{right}, not {value}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Prior:
    """What is believed of a source's change rate before it was watched: Gamma(changes, seconds).

    Rates of sources lie decades apart, so little is believed: what is seen soon counts for more.

    Args:
        changes: The shape: as if that many changes had been seen …
        seconds: … in that much time.
    """

    changes: float = 0.1
    seconds: float = 3 * DAY

    def __post_init__(self) -> None:
        check_number("changes", self.changes, low=0.0, open_low=True)
        check_number("seconds", self.seconds, low=0.0, open_low=True)


def change_rate(checks: int, changes: int, interval: float, prior: Prior | None = None) -> float:
    """The estimated change rate of a source, per second.

    Checks see whether something changed, not how often, so `changes / time` is too low. The
    estimator of Cho and Garcia-Molina, *Estimating frequency of change* (ACM TOIT 3(3), 2003),
    `−ln((n − X + 0.5) / (n + 0.5)) / interval`, corrects it and stays finite when every check saw a
    change. The changes that it implies over the watched time update the prior: the posterior mean
    of a Gamma prior under Poisson counts.

    Args:
        checks: How often it was looked at, n.
        changes: How many of the looks found it changed since the one before, X.
        interval: Seconds between two looks.
        prior: What is believed before the first look; one change in 30 days by default.

    Raises:
        UsageError: Counts are negative, or more changes than checks, or no positive interval.
    """
    for name, count in (("checks", checks), ("changes", changes)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise UsageError(f"{name} must be a whole number from 0, not {count!r}")
    if changes > checks:
        raise UsageError(f"changes ({changes}) cannot be more than checks ({checks})")
    check_number("interval", interval, low=0.0, open_low=True)
    prior = prior if prior is not None else Prior()
    implied = -checks * math.log((checks - changes + 0.5) / (checks + 0.5))
    return (prior.changes + implied) / (prior.seconds + checks * interval)


class Watched(NamedTuple):
    """What was seen of a source so far.

    Args:
        first: When it was read first, seconds since 1970-01-01 UTC; 0: not known.
        last: When it was read last.
        checks: How often it was read again.
        changes: How many of those readings found another content than the one before.
    """

    first: float = 0.0
    last: float = 0.0
    checks: int = 0
    changes: int = 0

    def again(self, now: float, *, changed: bool) -> Watched:
        """With one more reading. A clock that was set back takes nothing of the time watched."""
        if not self.last:
            return Watched(now, now)
        last = max(self.last, now)
        return Watched(self.first, last, self.checks + 1, self.changes + changed)

    def rate(self, prior: Prior) -> float:
        """The estimated change rate, per second: see `change_rate`."""
        watched = self.last - self.first
        if not self.checks or watched <= 0:
            return prior.changes / prior.seconds
        return change_rate(self.checks, self.changes, watched / self.checks, prior)
