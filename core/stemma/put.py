"""Putting: the value, where it came from, and the conditions under which it may be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stemma.codec import Encoded, JsonCodec
from stemma.effects import Ask, Steps
from stemma.entry import Cost, Entry, Lineage, Offer, Source, SourceEdge, Vector
from stemma.errors import CodecError, StemmaError, UsageError
from stemma.judging import Judging
from stemma.outcome import Stored, Ticket
from stemma.parts import Parts, kind_of
from stemma.policies.life import Aging
from stemma.policies.remembering import asked_by
from stemma.policies.shares import share
from stemma.query import Query
from stemma.ranking import Ranking
from stemma.scope import PURE
from stemma.stores.protocol import Put
from stemma.traffic import Traffic
from stemma.walk import Walk
from stemma.walking import Walking
from stemma.worlds import objection

__all__ = ["Putting"]


OFFERED = frozenset({"answer", "call", "hop"})
"""Nodes whose values a pool may be given copies of; the others' are no answers."""


class _Ready(NamedTuple):
    """A value on its way to the store."""

    ticket: Ticket
    value: Any
    encoded: Encoded
    cost: Cost | None
    confidence: float
    life: float | None


class Putting:
    """The put of one cache, as steps.

    Args:
        parts: What it works with.
        embed: The steps that give a question's vector, or `None` where its text does not fit.
        walking: What tells how an agent came to what is stored.
    """

    def __init__(
        self, parts: Parts, embed: Callable[[Query], Steps[Vector | None]], walking: Walking
    ) -> None:
        self._parts = parts
        self._embed = embed
        self._walking = walking
        self._judging = Judging(parts)
        self._traffic = Traffic(parts)

    def put(
        self,
        ticket: Ticket,
        value: Any,
        *,
        cost: Cost | None = None,
        confidence: float | None = None,
        life: float | None = None,
    ) -> Steps[Stored]:
        """Store a value under the ticket of the miss that made it be computed.

        Args:
            ticket: The ticket.
            value: The value.
            cost: What a hit will save; by default the time since the lookup.
            confidence: How sure the value is to be right, 0 to 1; `None`: as it says itself.
            life: How long it lives at most, seconds; `None`: as the policy says.

        Raises:
            UsageError: The confidence is out of its range.
        """
        if confidence is not None:
            confidence = share("confidence", confidence)
        encoded = self._encode(ticket, value)
        if isinstance(encoded, Stored):
            return self.done(ticket, encoded)
        (stored,) = yield from self._put_all(
            [_Ready(ticket, value, encoded, cost, self._sure(ticket, value, confidence), life)]
        )
        with asked_by(ticket.query.scope.tenant):
            yield from self._judging.judge(ticket, value, encoded, stored.entry)
        if stored.entry is not None:
            yield from self._parts.promoting.consider(stored.entry, ticket.query.codec)
        return stored

    def put_many(
        self, values: Sequence[tuple[Ticket, Any]], *, cost: Cost | None = None
    ) -> Steps[list[Stored]]:
        """Store many values in one transaction; `cost` is what a hit of each will save."""
        encoded = [(ticket, self._encode(ticket, value)) for ticket, value in values]
        ready = [
            _Ready(ticket, value, one, cost, self._sure(ticket, value), None)
            for (ticket, value), (_, one) in zip(values, encoded, strict=True)
            if isinstance(one, Encoded)
        ]
        done = (yield from self._put_all(ready)) if ready else []
        for one, result in zip(ready, done, strict=True):
            if result.entry is not None:
                yield from self._parts.promoting.consider(result.entry, one.ticket.query.codec)
        stored = iter(done)
        return [
            next(stored) if isinstance(e, Encoded) else self.done(ticket, e)
            for ticket, e in encoded
        ]

    def _encode(self, ticket: Ticket, value: Any) -> Encoded | Stored:
        if ticket.query.mode == "bypass":
            return Stored(refused="bypassed")
        query = ticket.query
        if query.scope.pool is not None and query.scope.node not in PURE:
            return Stored(refused="not_admitted", detail="nothing is put into a pool by a tenant")
        frame = query.frame if query.within is None else query.within
        read = () if frame is None else frame.worldly()
        if (why := objection(query.moment, read)) is not None:
            return Stored(refused="not_admitted", detail=why)
        try:
            return ticket.query.codec.encode(value)
        except CodecError as error:
            return Stored(refused="unstorable", detail=str(error))

    def _sure(self, ticket: Ticket, value: Any, given: float | None = None) -> float:
        """How sure a value is: as was given, else as it says itself, where it says that, else 1."""
        codec = ticket.query.codec
        if given is not None or not isinstance(codec, JsonCodec):
            return 1.0 if given is None else given
        try:
            told = codec.sure(value)
            return 1.0 if told is None else share("sure", told)
        except Exception as error:  # a provider wrote something else there: no reason to fail
            self._parts.fault("confidence", error, ticket.query.scope)
            return 1.0

    def _put_all(self, values: Sequence[_Ready]) -> Steps[list[Stored]]:
        now = self._parts.clock.now
        try:
            puts: list[Put] = []
            refused: list[Stored | None] = []
            for one in values:
                vector = yield from self._vector(one)
                admission = yield from self._traffic.admission(one.ticket.query, vector)
                if admission.admitted:
                    aging = self._aging(one, admission.longer)
                    walk = yield from self._walking.walk(one.ticket.query, aging)
                    puts.append(self._record(one, vector, aging, walk))
                    refused.append(None)
                else:
                    refused.append(Stored(refused="not_admitted", detail=admission.why))
            done = iter((yield Ask(self._parts.store, "put", (puts, now()))) if puts else ())
            stored = [next(done) if one is None else one for one in refused]
        except UsageError:
            raise
        except Exception as error:
            self._parts.fault("put", error, values[0].ticket.query.scope)
            stored = [Stored(refused="fault", detail=kind_of(error))] * len(values)
        for one, result in zip(values, stored, strict=True):
            frame = one.ticket.query.frame
            if result.entry is not None:
                self._parts.saw(result.entry.sequence)
                self._parts.join(
                    frame, result.entry, result.entry.sequence, one.encoded.text, "stored"
                )
                self._parts.checking.after(
                    one.ticket.query, one.value, one.encoded.text, result.entry
                )
            self.done(one.ticket, result, one.encoded.value)
        return stored

    def _vector(self, ready: _Ready) -> Steps[Vector | None]:
        ticket = ready.ticket
        if isinstance(ready.value, Ranking):  # only one that may serve other queries can be found
            return ready.value.query if ready.value.vectors is not None else None
        if ticket.vector is not None or not self._parts.by_meaning(ticket.query):
            return ticket.vector
        try:
            return (yield from self._embed(ticket.query))
        except Exception as error:  # stored all the same: it can still be found by its exact key
            self._parts.fault("embed", error, ticket.query.scope)
            return None

    def _record(self, ready: _Ready, vector: Vector | None, aging: Aging, walk: Walk | None) -> Put:
        ticket, encoded, cost = ready.ticket, ready.encoded, ready.cost
        query, now = ticket.query, self._parts.clock.now()
        frame = query.frame if query.within is None else query.within
        own = query.key.id
        traced = None
        if frame is not None:
            traced = frame.trace(self._parts.number, query.prompt, own, encoded.text)
        lineage = Lineage() if traced is None else traced.lineage
        lineage = _with_sources(lineage, (*query.sources, *_candidates(ready.value)))
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
            confidence=ready.confidence,
            cost=Cost(seconds=seconds) if cost is None else cost,
            made=now,
            verified=now,
            expires=_expires(ready, now, aging),
            derived=bool(lineage),
            before=query.request.turns,
            left_out=query.request.left_out,
            walk=walk,
            offer=_offer(query),
        )
        if traced is None:
            return Put(entry=entry, vector=vector, since=ticket.sequence)
        return Put(
            entry=entry,
            lineage=lineage,
            vector=vector,
            since=ticket.sequence,
            read_at=traced.read_at,
        )

    def _aging(self, ready: _Ready, longer: float) -> Aging:
        query, policy = ready.ticket.query, self._parts.life
        base = policy.base[query.scope.node] if query.life is None else query.life
        return policy.aging(
            query.scope.node,
            hop=query.hop,
            confidence=ready.confidence,
            base=None if base is None else base * longer,
            factor=None if query.place is None else query.place.factor,
            floor=None if query.place is None else query.place.floor,
        )

    def refuse(self, ticket: Ticket, value: Any, why: str) -> Stored:
        """Note and tell that a value is not to be stored."""
        encoded = self._encode(ticket, value)
        known = encoded.value if isinstance(encoded, Encoded) else ""
        return self.done(ticket, Stored(refused="not_admitted", detail=why), known)

    def done(self, ticket: Ticket, stored: Stored, value: str = "") -> Stored:
        """Note and tell the outcome of a put; `value` is the value hash, where it has one."""
        query = ticket.query
        if stored.entry is None:
            self._walking.pass_unstored(query, value, "not stored")
            self._note_unstored(ticket)
        if self._parts.listeners:
            outcome = "stored" if stored.entry is not None else str(stored.refused)
            self._parts.tell("put", query.scope, outcome, stored.entry, detail=stored.detail)
        return stored

    def _note_unstored(self, ticket: Ticket) -> None:
        """Note in the frame what a value was read from that is not there to tell of it."""
        query = ticket.query
        if query.frame is None:
            return
        read_at = {self._parts.number: ticket.sequence}
        query.frame.read_sources(((one, "") for one in query.sources), read_at)
        if query.scope.node == "retrieval":
            query.frame.read_unstored(query.scope.index, read_at)


def _expires(ready: _Ready, now: float, aging: Aging) -> float | None:
    lives = (aging.life(ready.ticket.key.id), ready.life)
    return min((now + one for one in lives if one is not None), default=None)


def _offer(query: Query) -> Offer | None:
    """Where its copy would lie in the pool that was named when it was asked."""
    if query.scope.node not in OFFERED or query.scope.pool is not None:
        return None
    return next((Offer(pool=str(scope.pool), place=key) for scope, key in query.pools), None)


def _candidates(value: Any) -> Sequence[Source]:
    """The documents that a ranking holds beyond those that were asked for."""
    return value.beyond if isinstance(value, Ranking) else ()


def _with_sources(lineage: Lineage, sources: Sequence[Source]) -> Lineage:
    if not sources:
        return lineage
    known = {edge.source for edge in lineage.sources}
    more = (SourceEdge(source=one) for one in sources if one not in known)
    return Lineage(parents=lineage.parents, sources=(*lineage.sources, *more))
