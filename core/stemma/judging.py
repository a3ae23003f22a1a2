"""Fresh answers, judged against what would have been served: what a policy learns from."""

from __future__ import annotations

from stemma.codec import Encoded
from stemma.effects import Ask, Steps
from stemma.entry import Entry
from stemma.errors import CodecError, UnkeyableValue
from stemma.outcome import Ticket
from stemma.parts import Parts
from stemma.policies import learning
from stemma.policies.learning import Learns
from stemma.policies.same_answer import Answer, Sameness
from stemma.stores.protocol import Finding, Judgement

__all__ = ["Judging"]


class Judging:
    """The judgements of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def judge(self, ticket: Ticket, fresh: Encoded) -> Steps[None]:
        """Find whether the entry that was tried would have answered rightly, and say so.

        To the policy, where it learns; and of what would have been served, to the store. Where
        nobody can say, nothing is said; and no trouble in finding out is the caller's.
        """
        policy, trial = self._parts.policy, ticket.trial
        if trial is None:
            return
        learner = policy if isinstance(policy, Learns) and trial.known else None
        if learner is None and not trial.audit:
            return
        try:
            fetched = yield Ask(self._parts.store, "get", ((trial.candidate,),))
            entry = fetched.entries.get(trial.candidate)
            verdict = None if entry is None else (yield from self._compared(ticket, fresh, entry))
            if verdict is None:
                return
            if learner is not None:
                learner.learn(learning.Judgement(trial=trial, right=verdict.same, by=verdict.by))
            if trial.audit:
                finding: Finding = "agreed" if verdict.same else "disagreed"
                question = ticket.query.key_in(entry.partition).id
                yield from self._note(entry, finding, verdict.by, question)
        except Exception as error:
            self._parts.fault("judge", error, ticket.query.scope)
            return
        said = "right" if verdict.same else "wrong"
        self._parts.tell("judgement", ticket.query.scope, said, entry, detail=verdict.by)

    def _note(self, entry: Entry, finding: Finding, by: str, question: str) -> Steps[None]:
        judgement = Judgement(
            entry=entry.id,
            value=entry.value,
            verdict=finding,
            by=by,
            confidence=1.0,
            at=self._parts.clock.now(),
            question=question,
        )
        yield Ask(self._parts.store, "judge", (judgement,))

    def _compared(self, ticket: Ticket, fresh: Encoded, stored: Entry) -> Steps[Sameness | None]:
        if fresh.value == stored.value:
            return Sameness(same=True, by="equal")
        codec = ticket.query.codec
        try:
            before = codec.text(codec.decode(stored.payload))
        except CodecError:
            return None
        if not fresh.text.strip() or not before.strip():
            return None  # what has no text, such as calls of tools, is the same or it is not said
        similarity = yield from self._similarity(fresh.text, before)
        try:
            return self._parts.same_answer(
                Answer(text=fresh.text), Answer(text=before), similarity=similarity
            )
        except UnkeyableValue:
            return None

    def _similarity(self, one: str, other: str) -> Steps[float | None]:
        """Of two answers, where the embedder reads the whole of both."""
        for text in (one, other):
            if not (yield Ask(self._parts.embedder, "fits", (text,))):
                return None
        matrix = yield Ask(self._parts.embedder, "embed", ([one, other],))
        return float(matrix[0] @ matrix[1])
