"""Which of the near entries may answer a question: the policy's decision, as steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stemma.aligning import Aligning
from stemma.effects import Steps
from stemma.entry import Entry
from stemma.hearing import Pair
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
        self._aligning = Aligning(parts)

    def decide(self, query: Query, near: Sequence[tuple[Entry, float]]) -> Steps[Decision]:
        """What may be served of some entries, or why nothing may.

        Args:
            query: The question.
            near: Entries that may be served by themselves, with their similarities to it.

        Raises:
            UsageError: The policy asks for what this embedder's tokens cannot tell.
        """
        asked = str(query.request.focus)
        candidates = [
            Candidate(one.id, str(one.focus), similarity, one.answer) for one, similarity in near
        ]
        decision = yield from self._decided(query, asked, candidates)
        while decision.look:
            candidates = yield from self._aligning.aligned(asked, candidates, decision.look)
            decision = yield from self._decided(query, asked, candidates)
        if query.policy is not None:
            return decision
        return (yield from self._judged(query, near, decision))

    def _decided(
        self, query: Query, asked: str, candidates: Sequence[Candidate]
    ) -> Steps[Decision]:
        scope = query.scope
        if query.policy is not None:
            return query.policy.decide(asked, candidates)
        return (yield from self._parts.policies.decide(scope.tenant, scope.node, asked, candidates))

    def _judged(
        self, query: Query, near: Sequence[tuple[Entry, float]], decision: Decision
    ) -> Steps[Decision]:
        """The decision, after a judge was asked of a candidate in the grey band."""
        hearing, grey, trial = self._parts.hearing, decision.grey, decision.trial
        band = hearing.band
        if band is None or grey is None or grey.probability < band.low or not hearing.trusted:
            return decision
        if band.when == "after":
            return decision if trial is None else replace(decision, trial=replace(trial, grey=True))
        stored = next(entry for entry, _ in near if entry.id == grey.id)
        pair = Pair("questions", str(query.request.focus), str(stored.focus))
        if not (yield from hearing.before(query.scope, pair, stored)):
            return replace(decision, detail=f"{decision.detail}; {band.by} did not say yes")
        if trial is not None and hearing.audits():
            audited = replace(trial, approved=True)
            return replace(decision, reason="audit", detail=f"{band.by} said yes", trial=audited)
        if trial is not None:
            yield from hearing.learn(query.scope, trial, stored, right=True, by=band.by)
        why = f"similarity {grey.similarity:.3f}, and {band.by} says that it asks for the same"
        accepted = (replace(grey, why=why),)
        return replace(decision, accepted=accepted, reason="", detail="", trial=None)


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
