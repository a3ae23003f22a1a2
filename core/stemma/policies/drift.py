"""Whether hits have begun to be wrong far more often than they were. Pure."""

from __future__ import annotations

import math

__all__ = ["Drift"]

_TURNED = 0.5
"""The share of wrong hits that is looked for."""

_MOST_USUAL = 0.25
_ALARM = math.log(1_000.0)
"""So much likelier must it be that they have turned: by chance, once in a thousand judgements."""


class Drift:
    """A cumulative sum of log-likelihood ratios (Page, *Continuous inspection schemes*, 1954).

    Args:
        bound: The allowed share of wrong hits among the requests, above 0; among hits, twice that
            is taken to be usual.
    """

    def __init__(self, bound: float) -> None:
        usual = min(2 * bound, _MOST_USUAL)
        self._of_wrong = math.log(_TURNED / usual)
        self._of_right = math.log((1 - _TURNED) / (1 - usual))
        self._sum = 0.0
        self._began = 0

    def note(self, at: int, *, wrong: bool) -> int | None:
        """Note a judgement on what would have been served.

        Args:
            at: The judgement's number.
            wrong: Whether it would have been wrong.

        Returns:
            The number of the judgement with which they turned; `None` where they have not.
        """
        if self._sum == 0.0:
            self._began = at
        self._sum = max(0.0, self._sum + (self._of_wrong if wrong else self._of_right))
        if self._sum < _ALARM:
            return None
        self._sum = 0.0
        return self._began
