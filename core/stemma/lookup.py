"""Looking up: exact, then by meaning, then everything an answer depends on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from stemma.codec import Codec
from stemma.contexts import Contexts
from stemma.deciding import Deciding, audited
from stemma.effects import Ask, Steps
from stemma.entry import Entry, Vector
from stemma.errors import CodecError, DamagedDatabase, UsageError
from stemma.indexes.protocol import Near
from stemma.journal import EMBEDDER
from stemma.lineage.frames import Frame
from stemma.lineage.validity import judge
from stemma.outcome import Hit, Miss, Ticket
from stemma.parts import Parts, kind_of
from stemma.policies import context
from stemma.policies.remembering import asked_by
from stemma.policies.threshold import Accepted, Decision
from stemma.query import Query
from stemma.scope import Scope
from stemma.servable import refusal
from stemma.stores.protocol import Fetched, Serving
from stemma.trials import Served
from stemma.walk import Place
from stemma.walking import Walking, plain

__all__ = ["Lookup", "Reuse"]

SAME_REQUEST = "the same request was answered before"

PROOFS = 65_536
"""How many entries' validity is remembered since the last invalidation."""


class Reuse(Protocol):
    """How a question with a `Search` is answered: see `stemma.reusing`."""

    def confirm(self, query: Query, hit: Hit) -> Steps[Hit | Miss]:
        """An exact hit as it may be served."""
        ...

    def semantic(self, query: Query) -> Steps[tuple[Hit | Miss, Vector | None]]:
        """What is found by meaning, and the question's vector."""
        ...


class Lookup:
    """The lookup of one cache, as steps. `reuse` is set by who has made it."""

    reuse: Reuse

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._proofs: OrderedDict[str, tuple[int, int, float | None]] = OrderedDict()
        self._quick = "get" in parts.store.quick
        self._contexts = Contexts(parts)
        self.walking = Walking(parts, self._contexts)
        self._deciding = Deciding(parts)

    def at_once(
        self,
        key: str,
        scope: Scope,
        codec: Codec,
        frame: Frame | None,
        place: Place | None = None,
    ) -> Hit | None:
        """The exact hit that needs nothing but one quick read of the store, or `None`.

        The hot path: no steps, no waiting, for sync and async alike. Whatever is not plain (a
        miss, an entry that must be walked, an error) is left to `lookup`.
        """
        if not self._quick:
            return None
        try:
            fetched = self._parts.store.get((key,))
            entry = fetched.entries.get(key)
            if entry is None:
                return None
            now = self._parts.clock.now()
            if refusal(entry, scope, key, self._parts.confidence, now) is not None:
                return None
            if not self._proven(entry, fetched.epoch, now):
                return None
            if not plain(entry, place):
                return None
            hit = _hit(entry, codec, now)
        except DamagedDatabase as error:
            self._parts.fault("lookup", error, scope)  # it is mended: `lookup` will not meet it
            return None
        except Exception:
            return None  # `lookup` meets it again, and tells
        self._parts.saw(fetched.sequence)
        self._served(hit, scope, codec, frame, fetched.sequence)
        return hit

    def lookup(self, query: Query) -> Steps[Hit | Miss]:
        """Look for a value that may be served."""
        started = self._parts.clock.monotonic()
        if query.mode == "bypass":
            return self._missed(query, Miss(reason="bypassed", ticket=self._ticket(query, started)))
        try:
            with asked_by(query.scope.tenant):
                return (yield from self._lookup(query, started))
        except UsageError:
            raise
        except Exception as error:
            self._parts.fault("lookup", error, query.scope)
            ticket = self._ticket(query, started)
            return self._missed(query, Miss(reason="fault", ticket=ticket, detail=kind_of(error)))

    def lookup_exact(self, queries: Sequence[Query]) -> Steps[list[Hit | Miss]]:
        """Look many questions up by their exact keys, with one read of the store."""
        started = self._parts.clock.monotonic()
        try:
            fetched: Fetched = yield Ask(
                self._parts.store, "get", ([query.key.id for query in queries],)
            )
            self._parts.saw(fetched.sequence)
            outcomes: list[Hit | Miss] = []
            for query in queries:
                if query.mode == "bypass":
                    miss = Miss(reason="bypassed", ticket=self._ticket(query, started))
                    outcomes.append(self._missed(query, miss))
                else:
                    found = yield from self.exact(query, fetched)
                    outcomes.append(self.outcome(query, found, started, fetched.sequence))
        except UsageError:
            raise
        except Exception as error:
            self._parts.fault("lookup", error)
            return [
                self._missed(q, Miss(reason="fault", ticket=self._ticket(q, started)))
                for q in queries
            ]
        return outcomes

    def _lookup(self, query: Query, started: float) -> Steps[Hit | Miss]:
        ids = [query.key.id, *(key.id for _, key in query.pools)]
        fetched: Fetched = yield Ask(self._parts.store, "get", (ids,))
        self._parts.saw(fetched.sequence)
        exact = yield from self.exact(query, fetched)
        if isinstance(exact, Hit) or query.mode == "refresh":
            return self.outcome(query, exact, started, fetched.sequence)
        if query.search is not None and query.search.meaning:
            found, vector = yield from self.reuse.semantic(query)
        elif self._parts.by_meaning(query):
            found, vector = yield from self._semantic(query)
        else:
            return self.outcome(query, exact, started, fetched.sequence)
        if isinstance(found, Miss) and found.reason == "cold":
            found = replace(exact, detail=found.detail or exact.detail)
        elif isinstance(found, Miss) and exact.reason != "cold":
            found = replace(found, reason=exact.reason)
        return self.outcome(query, found, started, fetched.sequence, vector)

    def exact(self, query: Query, fetched: Fetched) -> Steps[Hit | Miss]:
        """The outcome by the exact key alone, in the tenant's partition and the pools'."""
        if query.mode == "refresh":
            return Miss(reason="refresh")
        now = self._parts.clock.now()
        miss = Miss(reason="cold")
        for scope, key in ((query.scope, query.key), *query.pools):
            entry = fetched.entries.get(key.id)
            if entry is None:
                if key.id in fetched.damaged:
                    yield from self._remove(key.id)
                    miss = Miss(reason="damaged", nearest=key.id)
                continue
            reason = refusal(entry, scope, key.id, self._parts.confidence, now)
            detail = ""
            if reason is None:
                reason, detail = yield from self.deep_refusal(entry, fetched.epoch, now)
            if reason is None:
                hit = yield from self._read(query, entry, now)
                if isinstance(hit, Hit) and query.search is not None:
                    hit = yield from self.reuse.confirm(query, hit)
                if isinstance(hit, Hit):
                    hit = yield from self.walking.confirm(query, hit)
                if isinstance(hit, Hit):
                    return hit
                reason, detail = hit.reason, hit.detail
            miss = Miss(reason=reason, nearest=entry.id, similarity=1.0, detail=detail)
        return miss

    def _semantic(self, query: Query) -> Steps[tuple[Hit | Miss, Vector | None]]:
        vector = yield from self.embed(query)
        if vector is None:
            return Miss(reason="cold", detail="the text is longer than the model's window"), None
        policy = self._parts.policy if query.policy is None else query.policy
        follows = query.request.turns != ()
        floor = context.floor(policy.floor) if follows else policy.floor
        near = yield from self.near(query, vector, policy.depth, floor)
        if not any(item.similarity >= floor for _, item in near):
            if follows and near:
                return (yield from self._contexts.far(vector, near[0][1].id, policy.floor)), vector
            return _too_far(near), vector
        fetched, readable, refused = yield from self.readable(query, near, floor)
        if refused is not None and not readable:
            return refused, vector
        if follows and readable:
            agreeing = yield from self._contexts.agreeing(query, vector, readable)
            if isinstance(agreeing, Miss):
                return agreeing, vector
            readable = agreeing
        decision = yield from self._deciding.decide(query, readable)
        if decision.grey is not None and decision.accepted:
            # A judge took its time; what was taken back meanwhile must not be served.
            fetched, readable, _ = yield from self.readable(query, near, floor)
        entries = {entry.id: entry for entry, _ in readable}
        return (yield from self._decided(query, decision, entries, fetched.epoch)), vector

    def _decided(
        self, query: Query, decision: Decision, entries: Mapping[str, Entry], epoch: int
    ) -> Steps[Hit | Miss]:
        """The first of what was accepted that its ancestors allow; else why none is served."""
        now = self._parts.clock.now()
        miss = Miss(
            reason=decision.reason,
            nearest=decision.nearest,
            similarity=decision.similarity,
            detail=decision.detail,
            trial=decision.trial,
        )
        for accepted in decision.accepted:
            entry = entries.get(accepted.id)
            if entry is None:
                miss = Miss(reason="cold", detail="it was taken back while a judge was asked")
                continue
            reason, detail = yield from self.deep_refusal(entry, epoch, now)
            if reason is None and entry.judged.doubted:
                return audited(accepted)
            if reason is None:
                hit = yield from self._read(query, entry, now, accepted)
                if isinstance(hit, Hit):
                    hit = yield from self.walking.confirm(query, hit)
                if isinstance(hit, Hit):
                    return hit
                reason, detail = hit.reason, hit.detail
            miss = Miss(
                reason=reason, nearest=entry.id, similarity=accepted.similarity, detail=detail
            )
        return miss

    def embed(self, query: Query) -> Steps[Vector | None]:
        """The vector of a question's focus, or `None` where the text does not fit the window.

        Where the conversation before it is compared by meaning, with its context's beside it.
        """
        focus = query.request.focus
        vector: Vector | None
        if query.request.turns:
            vector = yield from self._contexts.embed(query)
        elif not (yield Ask(self._parts.embedder, "fits", (focus,))):
            vector = None
        else:
            vector = (yield Ask(self._parts.embedder, "embed", ([focus],)))[0]
        if vector is not None:
            scope = query.scope
            self._parts.journal.count(scope.tenant, scope.node, EMBEDDER + scope.embedder)
        return vector

    def near(
        self, query: Query, vector: Vector, depth: int, floor: float
    ) -> Steps[list[tuple[Scope, Near]]]:
        """What the index proposes, in the tenant's group and the pools', nearest first."""
        found: list[tuple[Scope, Near]] = []
        asked = ((query.scope, query.key), *query.pools)
        exact = {key.id for _, key in asked}  # looked at already
        for scope, key in asked:
            proposed = yield Ask(
                self._parts.index,
                "nearest",
                (self._parts.store, key.group, vector, depth, floor),
            )
            found += [(scope, item) for item in proposed if item.id not in exact]
        return sorted(found, key=lambda one: -one[1].similarity)

    def readable(
        self, query: Query, near: Sequence[tuple[Scope, Near]], floor: float
    ) -> Steps[tuple[Fetched, list[tuple[Entry, float]], Miss | None]]:
        """Those of the proposed entries that reach the floor and may be served by themselves.

        With their similarities, in the order given; before them what the store said of them, and
        after them why the first of those that may not be served may not.
        """
        wanted = {item.id: (scope, item) for scope, item in near if item.similarity >= floor}
        fetched: Fetched = yield Ask(self._parts.store, "get", (list(wanted),))
        for damaged in fetched.damaged:
            yield from self._remove(damaged)
        now = self._parts.clock.now()
        found: list[tuple[Entry, float]] = []
        refused: Miss | None = None
        for entry in filter(None, map(fetched.entries.get, wanted)):
            scope, item = wanted[entry.id]
            question = query.key_in(scope.partition).id
            reason = refusal(entry, scope, question, self._parts.confidence, now)
            if reason is None:
                found.append((entry, item.similarity))
            elif refused is None:
                refused = Miss(reason=reason, nearest=entry.id, similarity=item.similarity)
        return fetched, found, refused

    def deep_refusal(self, entry: Entry, epoch: int, now: float) -> Steps[tuple[str | None, str]]:
        """Why an entry may not be served by its ancestors; `None` where nothing is against it.

        The proof made at the put, or at an earlier read, stands while nothing was invalidated, and
        nothing is owed that could not be.
        """
        if self._proven(entry, epoch, now):
            return None, ""
        ancestry = yield Ask(self._parts.store, "ancestry", (entry.id,))
        if ancestry is None:
            return "parent_invalid", "the entry is gone"
        validity = judge(entry.id, ancestry, now, self._parts.unsettled.all_owed)
        if validity.reason is None:
            self._proofs[entry.id] = (ancestry.epoch, entry.sequence, validity.until)
            if len(self._proofs) > PROOFS:
                self._proofs.popitem(last=False)
        return validity.reason, validity.detail

    def _proven(self, entry: Entry, epoch: int, now: float) -> bool:
        if not entry.derived:
            return True
        if self._parts.unsettled.all_owed:
            return False
        if entry.epoch == epoch and (entry.proven_until is None or now < entry.proven_until):
            return True
        proof = self._proofs.get(entry.id)
        if proof is None or proof[:2] != (epoch, entry.sequence):
            return False
        return proof[2] is None or now < proof[2]

    def _read(
        self, query: Query, entry: Entry, now: float, by: Accepted | None = None
    ) -> Steps[Hit | Miss]:
        """The hit of an entry that may be served; an unreadable one is removed."""
        try:
            hit = _hit(entry, query.codec, now, by)
        except CodecError as error:
            yield from self._remove(entry.id)
            return Miss(reason="unreadable", nearest=entry.id, detail=str(error))
        if by is None:
            return hit
        question = query.key_in(entry.partition).id
        if by.trial is not None:
            scope = query.scope
            self._parts.trials.keep(question, Served(scope.tenant, scope.node, by.trial))
        return replace(hit, question=question)

    def _remove(self, id: str) -> Steps[None]:
        try:
            yield Ask(self._parts.store, "remove", ([id],))
        except Exception as error:
            self._parts.fault("remove", error)

    def outcome(
        self,
        query: Query,
        found: Hit | Miss,
        started: float,
        sequence: int,
        vector: Vector | None = None,
    ) -> Hit | Miss:
        """What was found, with its ticket, counted, journalled, and noted in the frame."""
        if isinstance(found, Miss):
            ticket = Ticket(
                query=query,
                sequence=sequence,
                started=started,
                vector=vector,
                trial=found.trial,
            )
            return self._missed(query, replace(found, ticket=ticket))
        # A list that served another query was stored under that: it is what the frame has read.
        kept = query.search is not None and found.tier == "semantic"
        self._served(found, query.scope, query.codec, None if kept else query.frame, sequence)
        return found

    def _served(
        self, hit: Hit, scope: Scope, codec: Codec, frame: Frame | None, sequence: int
    ) -> None:
        parts, entry, cost = self._parts, hit.entry, hit.entry.cost
        serving = Serving(
            entry.id,
            scope.tenant,
            hit.tier,
            hit.similarity,
            parts.clock.now(),
            entry.tenant,
            "" if entry.pool is None else entry.pool,
            entry.node,
            entry.confidence,
        )
        parts.journal.serve(serving, entry.node, cost.seconds, cost.tokens)
        parts.join(frame, entry, sequence, partial(_said, codec, entry.payload), hit.tier)
        if parts.listeners:
            parts.tell("lookup", scope, hit.tier, entry, hit.similarity, cost=cost, detail=hit.why)

    def _missed(self, query: Query, miss: Miss) -> Miss:
        self._parts.journal.count(query.scope.tenant, query.scope.node, miss.reason)
        if self._parts.listeners:
            self._parts.tell(
                "lookup", query.scope, miss.reason, None, miss.similarity, detail=miss.detail
            )
        return miss

    def _ticket(self, query: Query, started: float) -> Ticket:
        return Ticket(query=query, sequence=self._parts.sequence, started=started)


def _hit(entry: Entry, codec: Codec, now: float, by: Accepted | None = None) -> Hit:
    """The hit of an entry that may be served: by its exact key, or as the policy accepted it."""
    if entry.codec != codec.name:
        raise CodecError(f"written by codec {entry.codec}, not {codec.name}")
    value, age = codec.decode(entry.payload), max(0.0, now - entry.made)
    if by is None:
        return Hit(
            entry=entry,
            value=value,
            tier="exact",
            similarity=1.0,
            age=age,
            why=SAME_REQUEST,
            question=entry.id,
        )
    return Hit(
        entry=entry,
        value=value,
        tier="semantic",
        similarity=by.similarity,
        age=age,
        why=by.why,
        probability=by.probability,
    )


def _said(codec: Codec, payload: bytes) -> str:
    return codec.text(codec.decode(payload))


def _too_far(near: Sequence[tuple[Scope, Near]]) -> Miss:
    if not near:
        return Miss(reason="cold")
    nearest = near[0][1]
    return Miss(reason="below_threshold", nearest=nearest.id, similarity=nearest.similarity)
