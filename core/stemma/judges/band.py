"""The grey band: which candidates are put before a judge, when, and when it is believed."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Literal

from stemma.errors import UsageError
from stemma.judges.protocol import Judge
from stemma.policies.shares import share

__all__ = ["AFTER", "BEFORE", "GreyBand", "opinion"]

BEFORE = 1.0
"""Seconds that a request waits for a judge, unless said otherwise."""

AFTER = 30.0
"""Seconds for which a judge is waited for when no request waits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GreyBand:
    """What a judge is asked about, beside a policy that learns.

    Grey is a candidate that the policy likes best and does not trust enough: no guard's certain
    objection stands, its probability falls short of what the policy serves, and is `low` or more.

    Args:
        judge: Who is asked.
        when: `"before"`: while the request waits; the candidate is served if the judge says yes,
            else it is a miss. `"after"`: the request is a miss, and the judge is asked in the
            background where the fresh answer does not tell what was right; it only teaches then.
        low: The least probability, as the policy sees it, that is grey, 0 to 1.
        sure: How likely the judge must find it: from this on it says yes, at 1 − this or below
            no, 0.5 to 1; between the two it has not said anything.
        timeout: Seconds for which the judge is waited for, above 0; by default 1 with `"before"`
            and 30 with `"after"`.
        audits: With `"before"`, the share of what the judge approves that is computed afresh all
            the same, 0 to 1, to see whether it was right. With 0 nobody looks.
        max_wrong: How much of it may be wrong, 0 to 1: where audits contradict that, the judge is
            dismissed, and not asked before a hit any more for as long as the cache is open.

    Raises:
        UsageError: An argument is of the wrong kind or out of its range.
    """

    judge: Judge
    when: Literal["before", "after"] = "before"
    low: float = 0.5
    sure: float = 0.9
    timeout: float | None = None
    audits: float = 0.1
    max_wrong: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.judge, Judge) or isinstance(self.judge, type):
            raise UsageError(
                f"judge must be a Judge, not {self.judge!r}; for a function take FunctionJudge"
            )
        if self.when not in ("before", "after"):
            raise UsageError(f'when must be "before" or "after", not {self.when!r}')
        for name in ("low", "audits", "max_wrong"):
            share(name, getattr(self, name))
        share("sure", self.sure, least=0.5)
        given = self.timeout
        if given is not None and not (_is_number(given) and 0 < given < math.inf):
            raise UsageError(f"timeout must be seconds above 0, not {given!r}")

    @property
    def patience(self) -> float:
        """Seconds for which the judge is waited for."""
        if self.timeout is not None:
            return float(self.timeout)
        return BEFORE if self.when == "before" else AFTER

    @property
    def by(self) -> str:
        """What judgements of this judge are signed with."""
        return f"judge:{self.judge.name}"


def opinion(likely: float | None, sure: float) -> bool | None:
    """What a judge says: yes, no, or nothing where it is not sure enough.

    Args:
        likely: Its probability, 0 to 1, or `None`.
        sure: From this on it is a yes, at 1 − this or below a no, 0.5 to 1.
    """
    if likely is None:
        return None
    if likely >= sure:
        return True
    return False if likely <= 1.0 - sure else None


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
