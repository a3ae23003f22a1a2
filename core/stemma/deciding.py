"""Which of the near entries may answer a question: the policy's decision, as steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stemma.effects import Steps
from stemma.entry import Entry
from stemma.outcome import Miss
from stemma.parts import Parts
from stemma.policies.learning import Trial
from stemma.policies.threshold import Accepted, Candidate, Decision
from stemma.query import Query

__all__ = ["Deciding", "audited"]


class Deciding:
    """The decisions of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def decide(self, query: Query, near: Sequence[tuple[Entry, float]]) -> Steps[Decision]:
        """What may be served of some entries, or why nothing may.

        Args:
            query: The question.
            near: Entries that may be served by themselves, with their similarities to it.
        """
        candidates = [
            Candidate(one.id, str(one.focus), similarity, one.answer) for one, similarity in near
        ]
        scope, asked = query.scope, str(query.request.focus)
        if query.policy is not None:
            return query.policy.decide(asked, candidates)
        return (yield from self._parts.policies.decide(scope.tenant, scope.node, asked, candidates))


def audited(accepted: Accepted) -> Miss:
    """The miss of what may be served by its texts, but lies near a wrong hit: see first."""
    known = accepted.trial
    trial = Trial(candidate=accepted.id, known=()) if known is None else known
    return Miss(
        reason="audit",
        nearest=accepted.id,
        similarity=accepted.similarity,
        detail="a hit near it was reported as wrong",
        trial=replace(trial, audit=True),
    )
