"""A stream of requests put to a policy: what a cache does, over vectors that are known.

As the engine does: the exact key, then the nearest sixteen, the decision, and where nothing is
served a fresh answer, which is judged against what was or would have been served, and stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stemma.entry import Vector
from stemma.policies.learning import Judgement, Learns
from stemma.policies.threshold import Candidate, Decision, Policy
from stemma.replays.alignments import Alignments
from stemma.replays.log import Request

__all__ = ["Comparer", "Outcome", "Replayed", "after", "gold", "replay"]

Comparer = Callable[[str, str], bool]
"""Whether the answers of two groups are the same."""

OTHERS = 3
"""With how many other answers among the neighbours a fresh one is compared to know its like."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request: `exact`, `semantic` or `miss`, and whether it was wrong."""

    kind: str
    wrong: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """A stream after its end.

    Args:
        outcomes: Of each request, in order.
        reusable: Of each request, whether its answer had been given before.
        reworded: Whether it had been given, but not to this very text.
        entries: How many were stored for meaning.
        microseconds: Of each semantic decision.
    """

    outcomes: Sequence[Outcome] = field(repr=False)
    reusable: Sequence[bool] = field(repr=False)
    reworded: Sequence[bool] = field(repr=False)
    entries: int
    microseconds: Sequence[float] = field(repr=False)


def gold(one: str, other: str) -> bool:
    """The groups are the truth."""
    return one == other


class _Stored:
    """The entries that are searched, with their vectors."""

    def __init__(self, size: int, dimensions: int) -> None:
        self.requests: list[Request] = []
        self.answers: list[str] = []
        self._rows = np.empty((size, dimensions), dtype=np.float32)

    def add(self, request: Request, vector: Vector, answer: str) -> None:
        self._rows[len(self.requests)] = vector
        self.requests.append(request)
        self.answers.append(answer)

    def nearest(self, vector: Vector, depth: int, floor: float) -> list[Candidate]:
        near = self._rows[: len(self.requests)] @ vector
        if len(near) > depth:
            chosen = np.argpartition(-near, depth)[:depth]
            chosen = chosen[np.argsort(-near[chosen])]
        else:
            chosen = np.argsort(-near)
        return [
            Candidate(str(at), self.requests[at].text, min(1.0, float(near[at])), self.answers[at])
            for at in chosen.tolist()
            if near[at] >= floor
        ]

    def like(self, request: Request, candidates: Sequence[Candidate], same: Comparer) -> str | None:
        """The nearest of a few answers that a fresh one agrees with."""
        groups = {one.answer: self.requests[int(one.id)].group for one in reversed(candidates)}
        answers = list(dict.fromkeys(one.answer for one in candidates))
        return next((one for one in answers[:OTHERS] if same(groups[one], request.group)), None)


class _Replay:
    """The cache as the stream finds it."""

    def __init__(
        self,
        size: int,
        at: Mapping[str, Vector],
        policy: Policy | None,
        same: Comparer,
        *,
        sparse: bool,
        aligned: Alignments | None,
    ) -> None:
        self.stored = _Stored(size, len(next(iter(at.values()))))
        self.exact: dict[tuple[str, str], str] = {}
        self.taken: list[float] = []
        self._at, self._policy, self._same, self._sparse = at, policy, same, sparse
        self._aligned = aligned

    def ask(self, request: Request) -> Outcome:
        """What becomes of a request."""
        known = self.exact.get((request.tenant, request.text))
        if known is not None:
            return Outcome("exact", known != request.group)
        if self._policy is not None:
            served = self._decided(request, self._policy)
            if served is not None:
                return Outcome("semantic", served != request.group)
        self.exact[request.tenant, request.text] = request.group
        return Outcome("miss")

    def _decided(self, request: Request, policy: Policy) -> str | None:
        """The group of what is served; what was not is judged by the fresh answer, and stored."""
        vector, stored = self._at[request.text], self.stored
        candidates = stored.nearest(vector, policy.depth, policy.floor)
        decision = self._decide(request.text, candidates, policy)
        if decision.accepted:
            return stored.requests[int(decision.accepted[0].id)].group
        agrees, answer = False, f"{len(self.exact)}"
        if isinstance(policy, Learns) and decision.trial is not None:
            tried = int(decision.trial.candidate)
            agrees = self._same(stored.requests[tried].group, request.group)
            policy.learn(Judgement(trial=decision.trial, right=agrees, by="eval"))
            like = stored.answers[tried] if agrees else None
            answer = like or stored.like(request, candidates, self._same) or answer
        if not (self._sparse and agrees):
            stored.add(request, vector, answer)
        return None

    def _decide(self, asked: str, candidates: Sequence[Candidate], policy: Policy) -> Decision:
        """The decision, with the alignments it asks for; the model's runs are not timed."""
        began = time.perf_counter()
        decision = policy.decide(asked, candidates)
        taken = time.perf_counter() - began
        while decision.look and self._aligned is not None:
            look = [one for one in candidates if one.id in decision.look]
            self._aligned.read([asked, *(one.focus for one in look)])
            began = time.perf_counter()
            found = {one.id: self._aligned(asked, one.focus) for one in look}
            candidates = [
                replace(one, aligned=found[one.id]) if one.id in found else one
                for one in candidates
            ]
            decision = policy.decide(asked, candidates)
            taken += time.perf_counter() - began
        self.taken.append(taken * 1e6)
        return decision


def replay(
    requests: Sequence[Request],
    at: Mapping[str, Vector],
    policy: Policy | None,
    *,
    same: Comparer = gold,
    sparse: bool = False,
    aligned: Alignments | None = None,
) -> Replayed:
    """Put a stream to a policy, starting empty.

    Args:
        requests: In this order.
        at: The texts' vectors.
        policy: Decides and learns; `None`: exact hits only.
        same: The comparer.
        sparse: Whether a fresh answer that agrees with its neighbour's is not stored for meaning,
            as published for vCache.
        aligned: What aligns texts, where the policy asks for it.
    """
    cache = _Replay(len(requests), at, policy, same, sparse=sparse, aligned=aligned)
    outcomes = [cache.ask(request) for request in requests]
    entries = len(cache.exact if policy is None else cache.stored.requests)
    return after(requests, outcomes, entries=entries, microseconds=cache.taken)


def after(
    requests: Sequence[Request],
    outcomes: Sequence[Outcome],
    *,
    entries: int,
    microseconds: Sequence[float],
) -> Replayed:
    """What became of a stream, beside what could have been reused of it.

    Args:
        requests: In the order in which they were put.
        outcomes: Of each.
        entries: How many were stored for meaning.
        microseconds: Of each semantic decision.
    """
    given: set[tuple[str, str]] = set()
    asked: set[tuple[str, str, str]] = set()
    reusable, reworded = [], []
    for one in requests:
        answer, text = (one.tenant, one.group), (one.tenant, one.group, one.text)
        reusable.append(answer in given)
        reworded.append(answer in given and text not in asked)
        given.add(answer)
        asked.add(text)
    return Replayed(
        outcomes=outcomes,
        reusable=reusable,
        reworded=reworded,
        entries=entries,
        microseconds=microseconds,
    )
