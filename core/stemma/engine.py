"""The engine that serves every node: lookup, put, get_or_compute.

Each operation is written once, as steps (see `stemma.effects`). A fault of the store, the index
or the embedder is a miss and an event, unless the engine was made with `fail="closed"`. What the
caller's own computation raises is the caller's, and passes through untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from stemma import flight
from stemma.effects import Ask, Steps
from stemma.entry import Cost
from stemma.errors import DamagedDatabase
from stemma.flight import Flights, Landing
from stemma.lookup import Lookup
from stemma.outcome import Hit, Miss, Stored, Ticket
from stemma.parts import Parts
from stemma.put import Putting
from stemma.query import Query
from stemma.ranking import Ranking
from stemma.reusing import Reusing
from stemma.stores.protocol import Fetched

__all__ = ["TERMS", "Admit", "Computation", "Engine", "Lasting", "Priced", "Served", "Terms"]

Admit = Callable[[Any], str | None]
"""Says why a computed value must not be stored; `None` if it may be."""

Priced = Callable[[Ticket], Cost]
"""Says, once a value is computed, what a hit will save."""

Lasting = Callable[[Any], float | None]
"""Says how long a computed value lives at most, seconds; `None`: as the policy says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """On what terms a computed value is stored.

    Args:
        admit: Called with the value; gives `None`, or the reason for not storing it.
        priced: Called before the value is stored; by default a hit saves the time it took.
        lasting: Called with the value; gives how long it lives at most.
    """

    admit: Admit | None = None
    priced: Priced | None = None
    lasting: Lasting | None = None


TERMS = Terms()


class Computation(Protocol):
    """What a miss costs: the caller's own function, with an async twin where it has one."""

    def compute(self) -> Any:
        """Compute the value."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """What `get_or_compute` gives back.

    Args:
        value: The value, from the cache or computed now.
        outcome: The hit it came from, or the miss that made it be computed.
        stored: After a miss, whether it was stored, and why not.
    """

    value: Any = field(repr=False)
    outcome: Hit | Miss
    stored: Stored | None = None


class Engine:
    """The operations of one cache. See the module's text."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.flights = Flights()
        self._looking = Lookup(parts)
        self._putting = Putting(parts, self._looking.embed, self._looking.walking)
        self.reusing = self._looking.reuse = Reusing(parts, self._looking, self._putting)
        self.at_once = self._looking.at_once
        self.lookup = self._looking.lookup
        self.lookup_exact = self._looking.lookup_exact
        self.put = self._putting.put
        self.put_many = self._putting.put_many

    def get_or_compute(
        self,
        query: Query,
        computation: Computation,
        terms: Terms = TERMS,
    ) -> Steps[Served]:
        """Look up, else compute once per key however many ask at once, then put."""
        outcome: Hit | Miss | None = None
        if query.mode == "normal" and query.search is None:
            outcome = self.at_once(query.key.id, query.scope, query.codec, query.frame, query.place)
        if outcome is None:
            outcome = yield from self.lookup(query)
        if isinstance(outcome, Hit):
            return Served(value=outcome.value, outcome=outcome)
        if query.mode != "normal":
            return (yield from self._compute(outcome, computation, terms))
        key = query.key.id
        turn = yield Ask(self.flights, "join", (key,))
        if turn == "look":
            outcome = yield from self.lookup(query)
            if isinstance(outcome, Hit):
                return Served(value=outcome.value, outcome=outcome)
        if turn != "lead":
            return (yield from self._compute(outcome, computation, terms))
        return (yield from self._lead(query, outcome, computation, terms))

    def _lead(
        self,
        query: Query,
        miss: Miss,
        computation: Computation,
        terms: Terms,
    ) -> Steps[Served]:
        key = query.key.id
        landing: Landing = "failed"
        led = False
        held = flight.holding()
        flight.hold(held | {key})
        try:
            led = yield from self._lease(key, wait=not held)
            again = yield from self._look_again(query, miss)
            if isinstance(again, Served):
                landing = "stored"
                return again
            miss = again
            served = yield from self._compute(miss, computation, terms)
            landing = _landing(served.stored)
            return served
        finally:
            flight.hold(held)
            if led and self.parts.leases is not None:
                self.parts.leases.release(key, landing)
            self.flights.leave(key, landing)

    def _lease(self, key: str, *, wait: bool) -> Steps[bool]:
        """Wait while another process computes it. A lease spares work; nothing depends on it."""
        if self.parts.leases is None:
            return False
        try:
            led: bool = yield Ask(self.parts.leases, "acquire", (key, wait))
        except Exception as error:
            self.parts.fault("lease", error)
            return False
        return led

    def _look_again(self, query: Query, miss: Miss) -> Steps[Served | Miss]:
        """Between the lookup and taking the lead somebody may have finished, or recalled.

        Gives what is stored now, or the miss with a ticket of this moment: nothing that the
        computation will read has been read yet, so what was recalled until now is no objection.
        """
        try:
            fetched: Fetched = yield Ask(self.parts.store, "get", ([query.key.id],))
        except DamagedDatabase as error:
            self.parts.fault("lookup", error, query.scope)
            return miss
        except Exception:
            return miss  # the lookup has told of it already
        ticket = miss.ticket
        entry = fetched.entries.get(query.key.id)
        if ticket is None:
            return miss
        if entry is not None and entry.sequence > ticket.sequence:
            hit = yield from self._looking.exact(query, fetched)
            if isinstance(hit, Hit):
                self._looking.outcome(query, hit, ticket.started, fetched.sequence)
                return Served(value=hit.value, outcome=hit)
        self.parts.saw(fetched.sequence)
        now = self.parts.clock.monotonic()
        return replace(miss, ticket=replace(ticket, sequence=fetched.sequence, started=now))

    def _compute(self, miss: Miss, computation: Computation, terms: Terms) -> Steps[Served]:
        try:
            value = yield Ask(computation, "compute", foreign=True)
        except Exception as error:
            if miss.ticket is not None:
                self._looking.walking.pass_unstored(miss.ticket.query, repr(error), "failed")
            raise
        if miss.ticket is None:
            return Served(value=value, outcome=miss)
        query = miss.ticket.query
        if query.search is not None and isinstance(value, Ranking):
            self.reusing.learn(query, value)
        refused = terms.admit(value) if terms.admit is not None else None
        if refused is not None:
            stored = self._putting.refuse(miss.ticket, value, refused)
        else:
            cost = terms.priced(miss.ticket) if terms.priced is not None else None
            life = terms.lasting(value) if terms.lasting is not None else None
            stored = yield from self.put(miss.ticket, value, cost=cost, life=life)
        return Served(value=value, outcome=miss, stored=stored)


def _landing(stored: Stored | None) -> Landing:
    if stored is not None and stored.entry is not None:
        return "stored"
    return "failed" if stored is not None and stored.refused == "recalled" else "unstorable"
