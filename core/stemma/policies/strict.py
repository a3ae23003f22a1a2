"""The strict policy: each entry has a curve of its own, and each request a bound on its error.

As described for vCache (arXiv 2502.03771), written from the description. Of an entry it is known at
which similarities its answer was right. A logistic curve through these says how likely it is right
at another one; of the curve, the pessimistic end of its confidence region counts. If that is not
sure enough, the answer is computed afresh as often as the bound asks for, and judged.
"""

from __future__ import annotations

import math
import random
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from stemma import forking
from stemma.errors import UsageError
from stemma.policies.learning import Judgement, Trial, must_agree
from stemma.policies.logistic import fit
from stemma.policies.shares import error_bound
from stemma.policies.threshold import Accepted, Candidate, Decision, nearest_first

__all__ = ["StrictPolicy"]

LEAST = 4
"""Judgements of an entry before it may serve at all."""

ENTRIES = 65_536
"""How many entries' judgements are kept: those judged last."""

_BORN = ((0.0, False), (1.0, True))
"""What is taken for known of every entry: nothing alike is wrong, the same is right."""

_RIDGE = 1e-3
_GRID = tuple((k + 0.5) / 50 for k in range(50))
_QUANTILES = tuple(NormalDist().inv_cdf(1.0 - one) for one in _GRID)
_PARTED = 0.21
"""Where a gap parts right from wrong no likelihood says how sure the threshold is; its variance is
then taken for this over the number of judgements, as simulated for vCache (0.035 with six)."""


@dataclass(frozen=True)
class _Curve:
    """What is known of one entry.

    Args:
        judged: The similarities, and whether its answer was right there.
    """

    judged: tuple[tuple[float, bool], ...] = _BORN

    def with_one(self, similarity: float, *, right: bool) -> _Curve:
        """The curve with one more judgement."""
        return _Curve((*self.judged, (similarity, right)))

    def surely(self, similarity: float) -> float:
        """How likely its answer is right there at least, 0 to 1; 0 while too little is known."""
        if len(self.judged) < LEAST + len(_BORN):
            return 0.0
        at, slope, spread = self._fitted
        return max(
            (1.0 - one) * _logistic(slope * (similarity - min(1.0, max(0.0, at + q * spread))))
            for one, q in zip(_GRID, _QUANTILES, strict=True)
        )

    @cached_property
    def _fitted(self) -> tuple[float, float, float]:
        """The curve's threshold, its slope, and the threshold's standard deviation."""
        rows = np.array([(1.0, similarity) for similarity, _ in self.judged])
        right = np.array([float(one) for _, one in self.judged])
        found = fit(rows, right, np.ones(len(rows)), prior=np.zeros(2), ridge=_RIDGE)
        slope = max(float(found[1]), 1e-6)
        at = min(1.0, max(0.0, -float(found[0]) / slope))
        guess = 1.0 / (1.0 + np.exp(-(rows @ found)))
        if self._parted:
            return at, slope, math.sqrt(_PARTED / len(rows))
        bend = (rows.T * (guess * (1.0 - guess))) @ rows + _RIDGE * np.eye(2)
        grown = np.array((-1.0 / slope, float(found[0]) / slope**2))
        return at, slope, math.sqrt(float(grown @ np.linalg.solve(bend, grown)))

    @property
    def _parted(self) -> bool:
        highest = max(similarity for similarity, right in self.judged if not right)
        return highest < min(similarity for similarity, right in self.judged if right)


class StrictPolicy:
    """Serves the nearest entry, where its own judgements bound the error of this very request.

    Needs several judgements of an entry before it serves, so it serves little; there is no guard
    and no neighbour in it. It is what `verified` is measured against.

    Args:
        max_error: How likely a request may be answered wrongly, 0 to 0.5. 0 serves nothing by
            meaning.
        embedder: The revision of the embedder whose similarities are decided on.
        seed: Of the choice of what is computed afresh; by default another one each time.

    Raises:
        UsageError: The bound is out of its range.
    """

    name = "verified-strict"
    depth = 1
    floor = -1.0

    def __init__(
        self, max_error: float = 0.02, *, embedder: str = "", seed: int | None = None
    ) -> None:
        self.max_error = error_bound(max_error)
        self.embedder = embedder
        self._curves: OrderedDict[str, _Curve] = OrderedDict()
        self._lock = forking.Lock()
        self._seed = seed
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def __repr__(self) -> str:
        return f"StrictPolicy(max_error={self.max_error:g}, entries={len(self._curves)})"

    def decide(self, asked: str, candidates: Sequence[Candidate]) -> Decision:  # noqa: ARG002
        """See `Policy.decide`; only the nearest is considered."""
        ranked = nearest_first(candidates)
        if not ranked:
            return Decision(reason="cold")
        nearest = ranked[0]
        sure = self._curves.get(nearest.id, _NEW).surely(nearest.similarity)
        allowed = 1.0 - self.max_error
        if self.max_error == 0:
            fresh = 1.0
        else:
            fresh = 0.0 if sure >= allowed else 1.0 - self.max_error / (1.0 - sure)
        trial = Trial(candidate=nearest.id, known=(nearest.similarity,))
        if fresh and self._random.random() <= fresh:
            detail = f"surely right in {sure:.0%}, and {allowed:.1%} are asked for"
            return Decision((), "below_threshold", nearest.id, nearest.similarity, detail, trial)
        why = f"at similarity {nearest.similarity:.3f} it was right before"
        served = Accepted(nearest.id, nearest.similarity, max(sure, allowed), why, trial)
        return Decision((served,), "", nearest.id, nearest.similarity)

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Learns.identity`."""
        return {"policy": self.name, "version": 1, "embedder": self.embedder}

    def anew(self) -> StrictPolicy:
        """See `Learns.anew`."""
        other = StrictPolicy(self.max_error, embedder=self.embedder, seed=self._seed)
        with self._lock:
            other._curves = self._curves.copy()
        return other

    def learn(self, *judgements: Judgement) -> None:
        """See `Learns.learn`."""
        if any(len(one.trial.known) != 1 for one in judgements):
            raise UsageError("this judgement is of another policy's trial")
        with self._lock:
            for one in judgements:
                curve = self._curves.pop(one.trial.candidate, _NEW)
                judged = curve.with_one(one.trial.known[0], right=one.right)
                self._curves[one.trial.candidate] = judged
            while len(self._curves) > ENTRIES:
                self._curves.popitem(last=False)

    def record(self) -> dict[str, Any]:
        """See `Learns.record`."""
        with self._lock:
            curves = {entry: curve.judged[len(_BORN) :] for entry, curve in self._curves.items()}
        return {
            **self.identity,
            "entries": {entry: [list(one) for one in judged] for entry, judged in curves.items()},
        }

    def restore(self, record: Mapping[str, Any]) -> None:
        """See `Learns.restore`."""
        must_agree(record, self.identity)
        try:
            curves = OrderedDict(
                (str(entry), _Curve((*_BORN, *((float(at), bool(right)) for at, right in judged))))
                for entry, judged in record["entries"].items()
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError("this is no state of a strict policy") from error
        with self._lock:
            self._curves = curves


_NEW = _Curve()


def _logistic(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(min(value, 30.0), -30.0)))
