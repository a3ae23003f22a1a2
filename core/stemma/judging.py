"""Fresh answers, judged against what would have been served: what a policy learns from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from stemma.codec import Encoded
from stemma.effects import Ask, Steps
from stemma.entry import QUARANTINED, Entry
from stemma.errors import CodecError
from stemma.hearing import Pair
from stemma.outcome import Ticket
from stemma.parts import Parts
from stemma.policies.learning import Learns, Trial
from stemma.policies.same_answer import Sameness
from stemma.query import Query
from stemma.stores.protocol import Finding, Judgement

__all__ = ["Judging"]

NEIGHBOURS = 3
"""Of how many near entries the answers are compared with a fresh one, to find who says the same."""

_Verdicts = dict[str, Sameness | None]


class _Fresh(NamedTuple):
    """A fresh answer with its value hash, and the ticket of the miss that made it be computed."""

    ticket: Ticket
    value: Any
    hash: str


class Judging:
    """The judgements of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def judge(
        self, ticket: Ticket, value: Any, encoded: Encoded, stored: Entry | None
    ) -> Steps[None]:
        """Compare a fresh answer with that of the entry that was tried, and with its neighbours'.

        A policy that learns is told whether the entry would have answered rightly; the store, too,
        if it would have been served. Where nobody can say, nothing is said; and no trouble in
        finding out is the caller's.

        Args:
            ticket: Of the miss that made the answer be computed.
            value: The answer.
            encoded: The same, as it is stored.
            stored: Its entry; `None` where it was not stored.
        """
        fresh, verdicts = _Fresh(ticket, value, encoded.value), _Verdicts()
        try:
            yield from self._tried(fresh, verdicts)
            if stored is not None and isinstance(self._parts.policy, Learns):
                yield from self._alike(fresh, stored, verdicts)
        except Exception as error:
            self._parts.fault("judge", error, ticket.query.scope)

    def _tried(self, fresh: _Fresh, verdicts: _Verdicts) -> Steps[None]:
        """Whether the entry that was tried would have answered rightly."""
        query, trial = fresh.ticket.query, fresh.ticket.trial
        learns = isinstance(self._parts.policy, Learns)
        if trial is None or not (trial.audit or (learns and trial.known)):
            return
        fetched = yield Ask(self._parts.store, "get", ((trial.candidate,),))
        entry = fetched.entries.get(trial.candidate)
        if entry is None:
            return
        verdict = yield from self._compared(fresh, entry)
        verdicts[entry.id] = verdict
        if verdict is None:
            self._put_before_a_judge(fresh, entry, trial)
            return
        yield from self._told(query, entry, trial, right=verdict.same, by=verdict.by)

    def _put_before_a_judge(self, fresh: _Fresh, stored: Entry, trial: Trial) -> None:
        """In the background, where there is one: of the answers, else of grey questions."""
        hearing, query = self._parts.hearing, fresh.ticket.query
        now, before = query.codec.text(fresh.value), _text(query, stored)
        if now.strip() and before and hearing.judges("answers"):
            pair = Pair("answers", now, before)
        elif trial.grey:
            pair = Pair("questions", str(query.request.focus), str(stored.focus))
        else:
            return
        hearing.after(query.scope, pair, stored, partial(self._told, query, stored, trial))

    def _told(
        self, query: Query, entry: Entry, trial: Trial, *, right: bool, by: str
    ) -> Steps[None]:
        """Whoever says so: the policy learns it, and of what would have been served, the store.

        Of a pool's entry only the tenant's own policy does: a tenant whose answers disagree on
        purpose could take it from the others else.
        """
        yield from self._parts.hearing.learn(query.scope, trial, entry, right=right, by=by)
        if trial.audit and entry.pool is None:
            finding: Finding = "agreed" if right else "disagreed"
            yield from self._note(entry, finding, by, query.key_in(entry.partition).id)

    def _alike(self, fresh: _Fresh, stored: Entry, verdicts: _Verdicts) -> Steps[None]:
        """Find the nearest entry that says the same, so that policies see that they agree."""
        for entry in (yield from self._neighbours(fresh.ticket, stored)):
            if entry.id not in verdicts:
                verdicts[entry.id] = yield from self._compared(fresh, entry)
            verdict = verdicts[entry.id]
            if verdict is not None and verdict.same:
                if entry.answer != stored.answer:
                    yield from self._note(stored, "same", verdict.by, entry.id)
                return

    def _neighbours(self, ticket: Ticket, stored: Entry) -> Steps[Iterator[Entry]]:
        """The entries nearest to one that was stored, nearest first."""
        if ticket.vector is None or ticket.query.search is not None:
            return iter(())
        parts = self._parts
        asked = (parts.store, stored.group, ticket.vector, NEIGHBOURS + 1, parts.policy.floor)
        near = yield Ask(parts.index, "nearest", asked)
        ids = [one.id for one in near if one.id != stored.id][:NEIGHBOURS]
        entries = (yield Ask(parts.store, "get", (ids,))).entries if ids else {}
        found = (entries[one] for one in ids if one in entries)
        return (one for one in found if one.verdict not in QUARANTINED)

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

    def _compared(self, fresh: _Fresh, stored: Entry) -> Steps[Sameness | None]:
        codec = fresh.ticket.query.codec
        return self._parts.comparing.compared(codec, fresh.value, fresh.hash, stored)


def _text(query: Query, stored: Entry) -> str:
    """The text of a stored answer; empty where it has none, or it cannot be read."""
    try:
        text = query.codec.text(query.codec.decode(stored.payload))
    except CodecError:
        return ""
    return text if text.strip() else ""
