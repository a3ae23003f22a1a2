"""How far an entry is to be believed when it would be served. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stemma.errors import UsageError
from stemma.policies.shares import share

__all__ = ["ConfidencePolicy", "likelihood"]

_LEAST = -20.0
"""Log-probabilities below count as this: providers write -9999 for what was not among the likely.
"""


def likelihood(logprobs: Iterable[Any]) -> float | None:
    """How sure a model was of a reply: the geometric mean of its tokens' probabilities, 0 to 1.

    It is the same for a text said twice as for one said once, unlike the probability of the whole;
    and a few tokens that the model hardly believed pull it down, unlike the arithmetic mean.

    Args:
        logprobs: The natural logarithm of each token's probability, 0 or less. What is no such
            number (completions have none for their first token) is left out.

    Returns:
        The mean; `None` where there is no number.
    """
    numbers = [
        max(float(one), _LEAST)
        for one in logprobs
        if isinstance(one, (int, float)) and not isinstance(one, bool) and one <= 0.0
    ]
    return math.exp(math.fsum(numbers) / len(numbers)) if numbers else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfidencePolicy:
    """An entry's confidence falls with its age, and rises with audits that agree.

    What an entry was stored with (from log-probabilities, grounding or a verdict) counts as
    `stored_as` audits of that outcome, so that a few audits move it and many replace it. The whole
    halves every `half_life`, counted from the last audit that agreed, or from when it was made.

    Args:
        floor: Below it an entry is refused, 0 to 1; 0 refuses none.
        half_life: Seconds, above 0; `None`: age takes nothing.
        stored_as: How many audits the stored confidence is worth, above 0.

    Raises:
        UsageError: A number is out of its range.
    """

    floor: float = 0.5
    half_life: float | None = None
    stored_as: float = 4.0

    def __post_init__(self) -> None:
        share("floor", self.floor)
        for name in ("half_life", "stored_as"):
            value = getattr(self, name)
            if name == "half_life" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
                raise UsageError(f"{name} must be a number above 0, not {value!r}")

    def confidence(
        self, stored: float, *, age: float = 0.0, agreed: int = 0, disagreed: int = 0
    ) -> float:
        """The confidence now, 0 to 1.

        Args:
            stored: What the entry was stored with, 0 to 1.
            age: Seconds since it was made, or since an audit last agreed with it.
            agreed: How many audits agreed with it.
            disagreed: How many did not.
        """
        return self._now(share("stored", stored), age, agreed, disagreed)

    def refuses(
        self, stored: float, *, age: float = 0.0, agreed: int = 0, disagreed: int = 0
    ) -> bool:
        """Whether the entry must not be served: `low_confidence`."""
        if self.half_life is None and not agreed and not disagreed:
            return stored < self.floor  # what nearly every hit asks
        return self._now(stored, age, agreed, disagreed) < self.floor

    def _now(self, stored: float, age: float, agreed: int, disagreed: int) -> float:
        believed = (stored * self.stored_as + agreed) / (self.stored_as + agreed + disagreed)
        if self.half_life is None:
            return believed
        return believed * float(0.5 ** (max(age, 0.0) / self.half_life))
