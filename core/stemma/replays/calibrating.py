"""Which setting suits a log: every one of them put to it, in its order and in others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from stemma.errors import UsageError
from stemma.policies.shares import error_bound
from stemma.policies.verified import VerifiedPolicy
from stemma.policy_file import PolicyFile
from stemma.replays.answers import Prepared
from stemma.replays.contenders import Contender, orders, put, static, strict, verified
from stemma.replays.log import Request
from stemma.replays.replay import replay
from stemma.replays.tally import Interval

__all__ = [
    "BOUNDS",
    "RATES",
    "THRESHOLDS",
    "Calibrated",
    "Setting",
    "calibrate",
    "needed",
    "policy_file",
    "recommended",
]

THRESHOLDS = (0.80, 0.85, 0.88, 0.90, 0.92, 0.95, 0.98)
BOUNDS = (0.01, 0.02, 0.05)
RATES = ("hits", "semantic", "error_decided", "error_a_hit")
"""What is told of each setting."""

FEWEST = 200
"""Requests that reach the decision, below which nothing is recommended."""

RECURRING = 20
"""Requests that another wording could answer, below which nothing is recommended."""

_Z = 1.959964
"""The normal quantile at 97.5 %."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A policy with its setting, and what it made of a log.

    Args:
        policy: `threshold`, `verified` or `verified-strict`.
        value: The threshold, or the bound on the error.
        rates: See `stemma.replays.tally.tally`, with intervals over the orders.
        decided: How many requests of the log reach the semantic decision.
    """

    policy: str
    value: float
    rates: Mapping[str, Interval] = field(repr=False)
    decided: int

    @property
    def name(self) -> str:
        """As people say it: `threshold 0.9`, `verified 0.02`."""
        return f"{self.policy} {self.value:g}"

    @property
    def at_most(self) -> float:
        """Of the error over the requests that reach the decision: the end of its 95 % interval.

        The higher of two: over the orders, and over as many requests of the same kind (Wilson).
        """
        error = self.rates["error_decided"]
        return max(error["high"], _highest(error["mean"], self.decided))


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibrated:
    """A log put to every setting.

    Args:
        settings: In the order in which they are shown.
        max_error: The wanted error, over the requests that reach the decision.
        best: What is recommended, if anything: the one that hits most among those whose error is
            surely not above it, or `verified` where it hits about as much.
        why_not: Why there is none, in words.
    """

    settings: Sequence[Setting]
    max_error: float
    best: Setting | None
    why_not: str = ""


def needed(max_error: float) -> int:
    """How many requests must reach the decision for an error to be told from none at all."""
    return max(FEWEST, math.ceil(_Z**2 * (1.0 - max_error) / max_error))


def calibrate(
    given: Prepared,
    *,
    max_error: float,
    number: int = 5,
    seed: int = 0,
    begun: Callable[[str], object] = lambda _: None,
) -> Calibrated:
    """Put a log to thresholds and to the policies that learn, and choose among them.

    Args:
        given: The log.
        max_error: The wanted error, over the requests that reach the decision; above 0.
        number: In how many orders, the log's own among them.
        seed: Of the other orders, and of the audits.
        begun: Told the name of each setting before it is tried.

    Raises:
        UsageError: The wanted error is out of its range, or `number` is.
    """
    wanted, requests = error_bound(max_error), given.requests
    if wanted == 0:
        raise UsageError("an error of 0 needs no calibration: exact hits only")
    if number < 2:  # noqa: PLR2004 - one order has no interval
        raise UsageError(f"orders must be at least 2, not {number}")
    streams = orders(requests, number, seed)
    decided = len({one.text for one in requests})
    settings = []
    for policy, value, contender in _tried(wanted, given.embedder):
        begun(f"{policy} {value:g}")
        rates = put(contender, streams, given.at)
        settings.append(Setting(policy=policy, value=value, rates=rates, decided=decided))
    why_not = _too_little(requests, wanted)
    best = recommended(settings, wanted)
    if best is None and not why_not:
        why_not = (
            f"no setting keeps its error surely within {wanted:g} on this log and serves anything "
            "by meaning; a longer log makes the intervals narrower"
        )
    return Calibrated(
        settings=settings,
        max_error=wanted,
        best=None if why_not else best,
        why_not=why_not,
    )


def policy_file(found: Calibrated, given: Prepared) -> PolicyFile:
    """What is recommended, as a file: with the weights that `verified` came to on the log.

    Raises:
        UsageError: Nothing is recommended.
    """
    best = found.best
    if best is None:
        raise UsageError(f"there is no policy to write: {found.why_not}")
    weights, verifier = {}, ""
    if best.policy == "verified":
        policy = VerifiedPolicy(best.value, embedder=given.embedder, seed=0)
        replay(given.requests, given.at, policy)
        weights, verifier = policy.record()["weights"], policy.identity["verifier"]
    return PolicyFile(
        policy=best.policy,
        setting=best.value,
        embedder=given.embedder,
        verifier=verifier,
        weights=weights,
        calibrated={
            "log": given.log.digest,
            "requests": len(given.requests),
            "answers": len({one.group for one in given.requests}),
            "skipped": len(given.skipped),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "max_error": found.max_error,
            "error_at_most": best.at_most,
            "rates": {name: dict(best.rates[name]) for name in RATES},
        },
    )


def recommended(settings: Sequence[Setting], wanted: float) -> Setting | None:
    """The one that hits most among those whose error is surely not above the wanted one.

    `verified`, where it hits about as much: it goes on judging when the traffic changes. A bound
    above the wanted error is none of them: in the long run it is spent, whatever this log took.
    """
    fit = [
        one
        for one in settings
        if one.at_most <= wanted
        and one.rates["semantic"]["mean"] > 0
        and (one.policy == "threshold" or one.value <= wanted)
    ]
    if not fit:
        return None
    best = max(fit, key=_hits)
    equal = [one for one in fit if one.rates["hits"]["high"] >= _hits(best)]
    return max((one for one in equal if one.policy == "verified"), key=_hits, default=best)


def _hits(one: Setting) -> float:
    return one.rates["hits"]["mean"]


def _tried(wanted: float, embedder: str) -> list[tuple[str, float, Contender]]:
    bounds = sorted({*BOUNDS, wanted, wanted / 2})
    return [
        *(("threshold", one, static(one, guards=True)) for one in THRESHOLDS),
        *(("verified-strict", one, strict(one, embedder)) for one in sorted({*BOUNDS, wanted})),
        *(("verified", one, verified(one, embedder)) for one in bounds),
    ]


def _too_little(requests: Sequence[Request], wanted: float) -> str:
    """Why a log says too little to recommend anything; empty where it says enough."""
    groups: dict[str, set[str]] = {}
    for one in requests:
        groups.setdefault(one.group, set()).add(one.text)
    decided = len({one.text for one in requests})
    least = needed(wanted)
    if decided < least:
        return (
            f"the log has {decided} different requests, and an error of {wanted:g} needs at least "
            f"{least}"
        )
    if len(groups) == 1:
        return "all requests have the same answer: no hit could be wrong here"
    recurring = sum(len(texts) - 1 for texts in groups.values())
    if recurring < RECURRING:
        return (
            f"only {recurring} requests ask in other words for an answer that was given before, "
            f"and at least {RECURRING} are needed"
        )
    return ""


def _highest(share: float, number: int) -> float:
    """The upper end of Wilson's 95 % interval of a share."""
    if number == 0:
        return 1.0
    centre = share + _Z**2 / (2 * number)
    half = _Z * math.sqrt(share * (1.0 - share) / number + _Z**2 / (4 * number**2))
    return (centre + half) / (1.0 + _Z**2 / number)
