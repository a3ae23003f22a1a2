"""Fresh answers, judged against what would have been served: what a policy learns from."""

from __future__ import annotations

from stemma.codec import Encoded
from stemma.effects import Ask, Steps
from stemma.entry import Entry
from stemma.errors import CodecError, UnkeyableValue
from stemma.hearing import Pair
from stemma.outcome import Ticket
from stemma.parts import Parts
from stemma.policies.learning import Trial
from stemma.policies.same_answer import Answer, Sameness
from stemma.query import Query

__all__ = ["Judging"]


class Judging:
    """The judgements of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def judge(self, ticket: Ticket, fresh: Encoded) -> Steps[None]:
        """Tell the policy whether the entry that it tried would have answered rightly.

        Where nobody can say, it is told nothing; and no trouble in finding out is the caller's.
        """
        scope, trial = ticket.query.scope, ticket.trial
        if trial is None:
            return
        try:
            fetched = yield Ask(self._parts.store, "get", ((trial.candidate,),))
            entry = fetched.entries.get(trial.candidate)
            if entry is not None:
                yield from self._tell(ticket, fresh, entry, trial)
        except Exception as error:
            self._parts.fault("judge", error, scope)

    def _tell(self, ticket: Ticket, fresh: Encoded, stored: Entry, trial: Trial) -> Steps[None]:
        """What can be told at once is told; the rest is put before a judge in the background."""
        hearing, query = self._parts.hearing, ticket.query
        before = _text(query, stored)
        verdict = yield from self._compared(fresh, stored, before)
        if verdict is not None:
            yield from hearing.learn(query.scope, trial, stored, right=verdict.same, by=verdict.by)
        elif fresh.text.strip() and before and hearing.judges("answers"):
            hearing.after(query.scope, Pair("answers", fresh.text, before), stored, trial)
        elif trial.grey:
            asked = Pair("questions", str(query.request.focus), str(stored.focus))
            hearing.after(query.scope, asked, stored, trial)

    def _compared(self, fresh: Encoded, stored: Entry, before: str) -> Steps[Sameness | None]:
        if fresh.value == stored.value:
            return Sameness(same=True, by="equal")
        if not fresh.text.strip() or not before:
            return None  # what has no text, such as calls of tools, is the same or it is not said
        similarity = yield from self._similarity(fresh.text, before)
        try:
            return self._parts.same_answer.compared(
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


def _text(query: Query, stored: Entry) -> str:
    """The text of a stored answer; empty where it has none, or it cannot be read."""
    try:
        text = query.codec.text(query.codec.decode(stored.payload))
    except CodecError:
        return ""
    return text if text.strip() else ""
