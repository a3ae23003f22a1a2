"""Which entries are held back while it is not known whether they are wrong."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from stemma.errors import UsageError
from stemma.policies.shares import share
from stemma.propagation.spread import Spread

__all__ = ["THRESHOLD", "Suspects", "quarantine"]

THRESHOLD = 0.3
"""How likely an entry must be wrong to be held, by default."""

_ROUNDING = 1e-9
"""What is as likely wrong as the threshold is held, though it was reckoned a little lower."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspects:
    """What is to be held.

    Args:
        threshold: How likely an entry had to be wrong, above 0 to 1; just as likely is enough.
        held: The entries, the likeliest to be wrong first.
        doubtful: Those of them that sampling alone may have put there: less than two standard
            errors above the threshold.
    """

    threshold: float
    held: tuple[Hashable, ...]
    doubtful: tuple[Hashable, ...]


def quarantine(spread: Spread, *, threshold: float = THRESHOLD) -> Suspects:
    """Hold what is likely enough to be wrong.

    Args:
        spread: How likely each entry is wrong.
        threshold: From which probability on, above 0 to 1.

    Raises:
        UsageError: The threshold is out of its range.
    """
    if not share("threshold", threshold):
        raise UsageError("threshold must be above 0: else all entries were held")
    errors = dict(zip(spread.names, spread.standard_errors.tolist(), strict=True))
    held = {name: value for name, value in spread.wrong().items() if value >= threshold - _ROUNDING}
    doubtful = (name for name, value in held.items() if value < threshold + 2.0 * errors[name])
    return Suspects(threshold=threshold, held=tuple(held), doubtful=tuple(doubtful))
