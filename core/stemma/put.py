"""Putting: the value, where it came from, and the conditions under which it may be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stemma.codec import Encoded
from stemma.effects import Ask, Steps
from stemma.entry import Cost, Entry, Vector
from stemma.errors import CodecError, StemmaError, UsageError
from stemma.outcome import Stored, Ticket
from stemma.parts import Parts, kind_of
from stemma.query import Query
from stemma.stores.protocol import Put

__all__ = ["Putting"]


class Putting:
    """The put of one cache, as steps.

    Args:
        parts: What it works with.
        embed: The steps that give a question's vector, or `None` where its text does not fit.
    """

    def __init__(self, parts: Parts, embed: Callable[[Query], Steps[Vector | None]]) -> None:
        self._parts = parts
        self._embed = embed

    def put(
        self,
        ticket: Ticket,
        value: Any,
        *,
        cost: Cost | None = None,
        confidence: float = 1.0,
    ) -> Steps[Stored]:
        """Store a value under the ticket of the miss that made it be computed."""
        encoded = self._encode(ticket, value)
        if isinstance(encoded, Stored):
            return self.done(ticket, encoded)
        (stored,) = yield from self._put_all([(ticket, encoded, cost, confidence)])
        return stored

    def put_many(
        self, values: Sequence[tuple[Ticket, Any]], *, cost: Cost | None = None
    ) -> Steps[list[Stored]]:
        """Store many values in one transaction; `cost` is what a hit of each will save."""
        encoded = [(ticket, self._encode(ticket, value)) for ticket, value in values]
        ready = [(t, e, cost, 1.0) for t, e in encoded if isinstance(e, Encoded)]
        stored = iter((yield from self._put_all(ready)) if ready else ())
        return [
            next(stored) if isinstance(e, Encoded) else self.done(ticket, e)
            for ticket, e in encoded
        ]

    def _encode(self, ticket: Ticket, value: Any) -> Encoded | Stored:
        if ticket.query.mode == "bypass":
            return Stored(refused="bypassed")
        try:
            return ticket.query.codec.encode(value)
        except CodecError as error:
            return Stored(refused="unstorable", detail=str(error))

    def _put_all(
        self, values: Sequence[tuple[Ticket, Encoded, Cost | None, float]]
    ) -> Steps[list[Stored]]:
        try:
            puts = []
            for ticket, encoded, cost, confidence in values:
                vector = yield from self._vector(ticket)
                puts.append(self._record(ticket, encoded, cost, confidence, vector))
            stored = yield Ask(self._parts.store, "put", (puts, self._parts.clock.now()))
        except UsageError:
            raise
        except Exception as error:
            self._parts.fault("put", error, values[0][0].query.scope)
            stored = [Stored(refused="fault", detail=kind_of(error))] * len(values)
        done = []
        for (ticket, encoded, _, _), result in zip(values, stored, strict=True):
            if result.entry is not None:
                self._parts.saw(result.entry.sequence)
                self._parts.join(
                    ticket.query.frame, result.entry, result.entry.sequence, encoded.text
                )
            done.append(self.done(ticket, result))
        return done

    def _vector(self, ticket: Ticket) -> Steps[Vector | None]:
        if ticket.vector is not None or not self._parts.by_meaning(ticket.query):
            return ticket.vector
        try:
            return (yield from self._embed(ticket.query))
        except Exception as error:  # stored all the same: it can still be found by its exact key
            self._parts.fault("embed", error, ticket.query.scope)
            return None

    def _record(
        self,
        ticket: Ticket,
        encoded: Encoded,
        cost: Cost | None,
        confidence: float,
        vector: Vector | None,
    ) -> Put:
        query, now = ticket.query, self._parts.clock.now()
        frame = query.frame
        own = query.key.id
        traced = None
        if frame is not None:
            traced = frame.trace(self._parts.number, query.prompt, own, encoded.text)
        if traced is not None and not traced.complete:
            raise StemmaError(
                "the frame read more than can be recorded; its lineage would be untrue"
            )
        seconds = self._parts.clock.monotonic() - ticket.started
        entry = Entry(
            id=own,
            partition=query.key.partition,
            group=query.key.group,
            tenant=query.scope.tenant,
            pool=query.scope.pool,
            node=query.scope.node,
            model=query.scope.model,
            index=query.scope.index,
            labels=query.labels,
            focus=query.request.focus,
            payload=encoded.payload,
            codec=query.codec.name,
            value=encoded.value,
            hop=query.hop,
            confidence=confidence,
            cost=Cost(seconds=seconds) if cost is None else cost,
            made=now,
            verified=now,
            expires=self._expires(query, confidence, now),
            derived=traced is not None and bool(traced.lineage),
        )
        if traced is None:
            return Put(entry=entry, vector=vector, since=ticket.sequence)
        return Put(
            entry=entry,
            lineage=traced.lineage,
            vector=vector,
            since=ticket.sequence,
            read_at=traced.read_at,
        )

    def _expires(self, query: Query, confidence: float, now: float) -> float | None:
        life = self._parts.life.life(
            query.scope.node,
            hop=query.hop,
            confidence=confidence,
            seed=query.key.id,
            base=query.life,
        )
        return None if life is None else now + life

    def done(self, ticket: Ticket, stored: Stored) -> Stored:
        """Tell the outcome of a put."""
        if self._parts.listeners:
            outcome = "stored" if stored.entry is not None else str(stored.refused)
            self._parts.tell("put", ticket.query.scope, outcome, stored.entry, detail=stored.detail)
        return stored
