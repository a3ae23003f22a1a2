"""What a policy has learnt: judgements, the weights that follow, and the bar that they allow."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any

import numpy as np

from stemma import forking
from stemma.errors import UsageError
from stemma.policies.budget import audit_share, doubts, lowest_bar
from stemma.policies.drift import Drift
from stemma.policies.learning import Judgement
from stemma.policies.logistic import Floats, fit
from stemma.policies.shares import at_least
from stemma.policies.standing import KNOWN, LOWEST, NEAR, Standing

__all__ = ["Evidence"]

WINDOW = 4_096
"""How many of the last judgements are kept at least, and half of how many at most."""

_REFIT = 200
"""After so many judgements the weights are fitted again."""

_REBAR = 25
"""After so many the bar is set again; at once where one above it was wrong."""

_RIDGE = 5.0
_DOUBTFUL = 0.1
"""The warm start ends once so many are wrong that twice the bound makes that rarer than this."""

_LEAST = 0.0
"""Log-odds: no budget pays for a hit that is as likely to be wrong as right."""

_SERVED = 1e6

_CLEAR = KNOWN.index("clear")
_WEIGHT, _WRONG, _AT = range(len(KNOWN), len(KNOWN) + 3)
"""Columns of a judgement behind what is known: its weight, whether wrong, at which request."""


class Evidence:
    """Judgements of one policy. Decisions read; only a judgement computes.

    Args:
        prior: The weights of `KNOWN` before anything was judged.
        bound: The allowed share of wrong hits among the requests.
        audits: The share of would-be hits that is audited where they are as doubtful as the bound.
        warm: Whether what is near and clear of guards is served until judgements contradict.

    Raises:
        UsageError: The weights are not those of `KNOWN`.
    """

    def __init__(
        self, *, prior: Mapping[str, float], bound: float, audits: float, warm: bool
    ) -> None:
        if set(prior) != set(KNOWN):
            raise UsageError(f"weights must be given for {', '.join(KNOWN)}, and no others")
        self._prior = tuple(_weight(name, prior[name]) for name in KNOWN)
        self._bound, self._audits, self._warm = bound, audits, warm
        self._lock = forking.Lock()
        self._judged = np.empty((64, len(KNOWN) + 3))
        self._number = self._requests = self._since = 0
        self._whole = True  # nothing that was judged is forgotten
        self._weights, self._bar = self._prior, math.inf
        self._doubts = (0, 0)
        self._drift = Drift(bound) if bound else None

    def __len__(self) -> int:
        return self._number

    @property
    def serves(self) -> bool:
        """Whether enough was judged for anything to be served by the bar."""
        return math.isfinite(self._bar)

    def audits(self, score: float) -> float:
        """The share of would-be hits of this score that is to be computed afresh, above 0."""
        return audit_share(score, self._bound, usual=self._audits)

    def count(self) -> int:
        """One more request has reached the decision; gives how many have."""
        with self._lock:
            self._requests += 1
            return self._requests

    def score(self, row: Sequence[float]) -> float:
        """The log-odds that a candidate of which this is known is right."""
        return _product(self._weights, row)

    def most(self, ceiling: float, standing: Standing) -> float:
        """No candidate that stands so scores higher.

        Args:
            ceiling: The verifier's highest log-odds for it.
            standing: How it stands.
        """
        constant, verified, near, ahead, apart, agreeing, company, both, clear = self._weights
        slope = verified + both * standing.nearness
        return (
            constant
            + slope * (max(ceiling, LOWEST) if slope > 0 else LOWEST)
            + near * standing.nearness
            + ahead * standing.ahead
            + apart * standing.apart
            + agreeing * standing.agreeing
            + company * standing.company
            + max(clear, 0.0)
        )

    def allows(self, row: Sequence[float], score: float) -> bool:
        """Whether a candidate may be served: by what was judged, or by being clear."""
        return score >= self._bar or (self._warm and bool(row[_CLEAR]))

    def may_allow(self, most: float, standing: Standing) -> bool:
        """Whether a candidate that stands so may be served, if it scores as high as it can."""
        return most >= self._bar or (self._warm and standing.nearness >= NEAR)

    def add(self, judgements: Sequence[Judgement]) -> None:
        """Take judgements in, oldest first.

        Raises:
            UsageError: One is of another policy's trial.
        """
        if any(len(one.trial.known) != len(KNOWN) for one in judgements):
            raise UsageError("this judgement is of another policy's trial")
        with self._lock:
            before, alarm = self._since, False
            for one in judgements:
                row, wrong = one.trial.known, not one.right
                self._requests += one.requests
                self._keep((*row, one.trial.weight, float(wrong), float(self._requests)))
                if self._warm and row[_CLEAR]:
                    self._doubt(wrong=wrong)
                if self.score(row) >= self._bar:
                    alarm = alarm or wrong
                    self._watch(wrong=wrong)
            if self._since // _REFIT > before // _REFIT:
                self._fit()
            if alarm or self._since // _REBAR > before // _REBAR:
                self._set_bar()

    def record(self) -> dict[str, Any]:
        """All of it, as plain JSON values."""
        with self._lock:
            return {
                "requests": self._requests,
                "whole": self._whole,
                "warm": self._warm,
                "doubts": list(self._doubts),
                "weights": dict(zip(KNOWN, self._weights, strict=True)),
                "judged": self._judged[: self._number].tolist(),
            }

    def restore(self, record: Mapping[str, Any]) -> None:
        """Go on from a record.

        Raises:
            UsageError: It is no such record.
        """
        try:
            judged = np.array(record["judged"], dtype=np.float64)
            weights = tuple(float(record["weights"][name]) for name in KNOWN)
            requests, warm = int(record["requests"]), bool(record["warm"])
            whole = bool(record["whole"])
            sure, wrong = map(int, record["doubts"])
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError("this is no state of a policy that learns") from error
        if judged.size and judged.shape[1:] != self._judged.shape[1:]:
            raise UsageError("this state of a policy knows other things of its candidates")
        with self._lock:
            self._number = self._since = len(judged)
            if judged.size:
                self._judged = judged
            self._weights, self._requests = weights, requests
            self._warm, self._doubts = self._warm and warm, (sure, wrong)
            self._whole = whole
            self._set_bar()

    def _keep(self, row: tuple[float, ...]) -> None:
        if self._number == 2 * WINDOW:
            self._judged[:WINDOW] = self._judged[WINDOW:]
            self._number, self._whole = WINDOW, False
        elif self._number == len(self._judged):
            self._judged = np.concatenate((self._judged, np.empty_like(self._judged)))
        self._judged[self._number] = row
        self._number += 1
        self._since += 1

    def _doubt(self, *, wrong: bool) -> None:
        """Count a judgement on what is clear; too many wrong ones end the warm start."""
        self._doubts = (self._doubts[0] + 1, self._doubts[1] + wrong)
        if at_least(self._doubts[1], self._doubts[0], 2 * self._bound) < _DOUBTFUL:
            self._warm = False

    def _watch(self, *, wrong: bool) -> None:
        """Once hits have turned, what was learnt before is of other traffic: it is forgotten."""
        turned = None if self._drift is None else self._drift.note(self._since, wrong=wrong)
        if turned is not None:
            kept = min(self._since - turned + 1, self._number)
            self._judged[:kept] = self._judged[self._number - kept : self._number]
            self._number, self._whole = kept, False
            self._weights, self._bar, self._warm = self._prior, math.inf, False

    def _fit(self) -> None:
        judged = self._judged[: self._number]
        found = fit(
            judged[:, : len(KNOWN)],
            1.0 - judged[:, _WRONG],
            np.ones(len(judged)),
            prior=np.array(self._prior),
            ridge=_RIDGE,
        )
        self._weights = tuple(found.tolist())

    def _set_bar(self) -> None:
        judged = self._judged[: self._number]
        before = 0 if self._whole else int(judged[0, _AT])
        scores: Floats = judged[:, : len(KNOWN)] @ np.array(self._weights)
        doubt = doubts(scores)
        if self._warm:  # what is served whatever the bar has its part of the budget first
            scores[judged[:, _CLEAR] > 0] = _SERVED
        bar = lowest_bar(
            scores,
            doubt,
            judged[:, _WEIGHT],
            judged[:, _WRONG],
            requests=self._requests - before,
            bound=self._bound,
        )
        self._bar = max(bar, _LEAST)


def _weight(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise UsageError(f"the weight of {name} must be a number, not {value!r}")
    return float(value)


def _product(weights: Sequence[float], row: Sequence[float]) -> float:
    total: float = sum(map(mul, weights, row))
    return total
