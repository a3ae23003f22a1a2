"""Copying answers into pools: what is known of them, the decision, the copy, and the journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stemma.codec import Codec
from stemma.effects import Ask, Steps
from stemma.entry import QUARANTINED, Edge, Entry, Judged, Lineage, Offer
from stemma.errors import CodecError, UsageError
from stemma.journal import CROSSING
from stemma.lineage.validity import judge
from stemma.outcome import Stored
from stemma.policies.life import over
from stemma.policies.pools import REFUSALS, Candidate, Decision, Resting, agreed, approved
from stemma.policies.remembering import asked_by
from stemma.reporters import Ledger
from stemma.scope import Labels
from stemma.stores.protocol import Ancestry, Fetched, Judgement, Put
from stemma.verdicts import counting, probability, verdict

if TYPE_CHECKING:
    from stemma.parts import Parts

__all__ = ["Promoting", "Promotion"]

LOOKED = 128
"""Answers to one request that are compared with a fresh one: those with an equal value first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Promotion:
    """That an answer was copied into a pool, or why it was not.

    Args:
        pool: The pool; empty where the answer was offered to none.
        original: The id of the answer.
        copy: The copy as it is stored; `None` where it was refused.
        refused: Why, as in `stemma.policies.pools.REFUSALS`; where the store refused it, as
            `Stored` says.
        detail: More words, without any prompt's text.
        witnesses: The tenants who independently gave the answer; of an approval none.
        by: Who approved of it, or who agreed.
        at: When, seconds since 1970-01-01 UTC.
    """

    pool: str
    original: str
    copy: Entry | None = field(default=None, repr=False)
    refused: str | None = None
    detail: str = ""
    witnesses: tuple[str, ...] = ()
    by: str = ""
    at: float

    def __bool__(self) -> bool:
        return self.copy is not None

    def __str__(self) -> str:
        if self.copy is not None:
            return f"copied into pool {self.pool}: {self.copy.id}"
        why = REFUSALS.get(str(self.refused), "the store refused it")
        return f"refused ({self.refused}): {why}" + (f": {self.detail}" if self.detail else "")


class _Found(NamedTuple):
    """An answer with what lies where its copy would lie, as of one sequence of the store."""

    entry: Entry
    offer: Offer
    there: Entry | None
    sequence: int


class Promoting:
    """The promotions of one cache, as steps.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def approve(self, id: str, by: str) -> Steps[Promotion]:
        """Copy an answer that an operator approves of into the pool it was offered to.

        Raises:
            UsageError: There is no such entry.
            StoreError: The store could not do it.
        """
        fetched: Fetched = yield Ask(self._parts.store, "get", ((id,),))
        entry = fetched.entries.get(id)
        if entry is None:
            raise UsageError(f"there is no entry {id!r}")
        if entry.pool is not None:
            there = Decision(refused="occupied", detail=f"it is itself what lies in {entry.pool!r}")
            return self.told(entry, there, by)
        if entry.offer is None:
            return self.told(entry, Decision(refused="not_offered"), by)
        found = yield from self._found(entry.id, entry.offer)
        if found is None:
            return self.told(entry, Decision(refused="invalid", detail="it is gone"), by)
        candidate = yield from self._candidate(found.entry)
        place = yield from self._resting(found)
        decision = approved(self._parts.pool(found.offer.pool), candidate, place)
        return (yield from self._done(found, decision, by))

    def consider(self, entry: Entry, codec: Codec) -> Steps[None]:
        """Copy an answer into its pool if enough tenants gave it. Trouble is nobody's but ours.

        Args:
            entry: The answer that was stored last, or of which something was found since.
            codec: How it and its like are written.
        """
        if entry.offer is None or self._parts.pool(entry.offer.pool).witnesses is None:
            return
        try:
            with asked_by(entry.tenant):  # whose time it takes, whoever has it done
                yield from self._consider(entry, entry.offer, codec)
        except Exception as error:
            self._parts.fault("promotion", error)

    def checked(self, entry: Entry, codec: Codec) -> Steps[None]:
        """`consider` an answer anew, now that a check has looked, where the pool asks for that."""
        asks = entry.offer is not None and self._parts.pool(entry.offer.pool).grounding is not None
        if asks:
            yield from self.consider(entry, codec)

    def _consider(self, entry: Entry, offer: Offer, codec: Codec) -> Steps[None]:
        policy = self._parts.pool(offer.pool)
        offered: Sequence[Entry] = yield Ask(self._parts.store, "offered", (offer.place.id,))
        tenants = {one.tenant for one in offered}
        if policy.witnesses is None or len(tenants) < policy.witnesses:
            return
        found = yield from self._found(entry.id, offer)
        if found is None or found.entry.value != entry.value:
            return  # computed again meanwhile: that put has its own turn
        place = yield from self._resting(found)
        if place.live and found.there is not None and found.there.value == entry.value:
            return
        others = (one for one in offered if one.id != entry.id)
        compared = yield from self._compared(found.entry, others, codec)
        fresh = yield from self._candidate(found.entry)
        decision = agreed(policy, fresh, compared, place)
        if decision.refused == "ungrounded" and fresh.grounded is None:
            return  # a check that looks later has it considered again
        decided = found
        if decision.entry is not None and decision.entry.id != entry.id:
            decided = found._replace(entry=decision.entry)
        yield from self._done(decided, decision, ", ".join(decision.witnesses))

    # ------------------------------------------------------------------ facts

    def _found(self, id: str, offer: Offer) -> Steps[_Found | None]:
        fetched: Fetched = yield Ask(self._parts.store, "get", ((id, offer.place.id),))
        entry = fetched.entries.get(id)
        if entry is None or entry.offer != offer:
            return None
        there = fetched.entries.get(offer.place.id)
        return _Found(entry, offer, there, fetched.sequence)

    def _compared(
        self, fresh: Entry, others: Iterable[Entry], codec: Codec
    ) -> Steps[list[tuple[Candidate, bool | None]]]:
        """The other answers to the same, each with whether it is the same as a fresh one."""
        nearest = sorted(others, key=lambda one: (one.value != fresh.value, one.sequence))
        found: list[tuple[Candidate, bool | None]] = []
        try:
            value = codec.decode(fresh.payload)
        except CodecError:
            return found
        for one in nearest[:LOOKED]:
            same = yield from self._parts.comparing.compared(codec, value, fresh.value, one)
            candidate = yield from self._candidate(one)
            found.append((candidate, None if same is None else same.same))
        return found

    def _candidate(self, entry: Entry) -> Steps[Candidate]:
        """What is known of an answer: everything above it, and whether it could be served."""
        parts, now = self._parts, self._parts.clock.now()
        ancestry: Ancestry | None = yield Ask(parts.store, "ancestry", (entry.id,))
        if ancestry is None:
            return Candidate(entry=entry, invalid="it is gone")
        lineages = [one.lineage for one in ancestry.entries.values()]
        above = {edge.parent for lineage in lineages for edge in lineage.parents} - {entry.id}
        known: Fetched | None = None
        if above:
            known = yield Ask(parts.store, "get", (sorted(above),))
        validity = judge(entry.id, ancestry, now, parts.unsettled.all_owed)
        return Candidate(
            entry=entry,
            above={one: None if known is None else known.entries.get(one) for one in above},
            owners=frozenset(edge.source.owner for one in lineages for edge in one.sources),
            invalid=validity.detail or validity.reason or "",
            believed=self._believed(entry, now),
            grounded=(yield from self._grounded(entry)),
        )

    def _believed(self, entry: Entry, now: float) -> float:
        return self._parts.confidence.confidence(
            entry.confidence,
            age=now - entry.verified,
            agreed=entry.judged.agreed,
            disagreed=entry.judged.disagreed,
        )

    def _grounded(self, entry: Entry) -> Steps[float | None]:
        """What a check found last of its value, where the pool asks for one."""
        if entry.offer is None or self._parts.pool(entry.offer.pool).grounding is None:
            return None
        said = yield from self._said(entry.id)
        of_value = (one for one in reversed(said) if one.value == entry.value)
        return next((one.confidence for one in of_value if one.verdict == "grounded"), None)

    def _resting(self, found: _Found) -> Steps[Resting]:
        """What lies at the place, and what was said of what lay there before."""
        said = yield from self._said(found.offer.place.id)
        moved: dict[str, Judgement] = {}
        told: dict[str, list[Judgement]] = {}
        for one in said:
            if one.verdict in ("promoted", "withdrawn"):
                moved[one.value] = one
            told.setdefault(one.value, []).append(one)
        return Resting(
            entry=found.there,
            live=found.there is not None and (yield from self._live(found.there)),
            withdrawn=frozenset(v for v, one in moved.items() if one.verdict == "withdrawn"),
            wrong=frozenset(value for value, ones in told.items() if _called_wrong(ones)),
        )

    def _live(self, entry: Entry) -> Steps[bool]:
        now = self._parts.clock.now()
        if entry.verdict in QUARANTINED or entry.held or over(entry.made, entry.expires, now):
            return False
        ancestry: Ancestry | None = yield Ask(self._parts.store, "ancestry", (entry.id,))
        return ancestry is not None and judge(entry.id, ancestry, now).reason is None

    def _said(self, id: str) -> Steps[list[Judgement]]:
        """What was said of an entry, in the order in which it was noted."""
        ledger = Ledger(self._parts.store, self._parts.clock.now())
        said: list[Judgement] = yield Ask(ledger, "said", (id,))
        return said

    # --------------------------------------------------------------- the copy

    def _done(self, found: _Found, decision: Decision, by: str) -> Steps[Promotion]:
        original = decision.entry
        if original is None:
            return self.told(found.entry, decision, by)
        vectors = yield Ask(self._parts.store, "vectors", ([original.id],))
        vector = vectors.get(original.id)
        put = Put(
            entry=_copy(original, found.offer, self._believed(original, self._parts.clock.now())),
            lineage=Lineage(
                parents=(Edge(parent=original.id, value=original.value, known="observed"),)
            ),
            vector=None if vector is None else vector.astype(np.float32),
            since=found.sequence,
            replaces=0 if found.there is None else found.there.sequence,
        )
        (stored,) = yield Ask(self._parts.store, "put", ([put], self._parts.clock.now()))
        if stored.entry is None:
            return self.told(original, decision._replace(refused=stored.refused), by, stored)
        self._parts.saw(stored.entry.sequence)
        yield Ask(self._parts.store, "judge", (self._judgement(stored.entry, original, by),))
        return self.told(original, decision, by, stored)

    def _judgement(self, copy: Entry, original: Entry, by: str) -> Judgement:
        return Judgement(
            entry=copy.id,
            value=copy.value,
            verdict="promoted",
            by=by,
            confidence=1.0,
            at=self._parts.clock.now(),
            question=original.id,
        )

    def told(
        self,
        original: Entry,
        decision: Decision,
        by: str,
        stored: Stored | None = None,
        *,
        asked: str = "",
    ) -> Promotion:
        """The outcome, told to the listeners; counted for the tenant who asked, or whose it is."""
        parts, pool = self._parts, "" if original.offer is None else original.offer.pool
        promotion = Promotion(
            pool=pool,
            original=original.id,
            copy=None if stored is None else stored.entry,
            refused=decision.refused,
            detail=decision.detail if stored is None else stored.detail,
            witnesses=decision.witnesses,
            by=by,
            at=parts.clock.now(),
        )
        if promotion.refused is not None:
            outcome = f"{CROSSING}promotion {promotion.refused}"
            parts.journal.count(asked or original.tenant, original.node, outcome)
        words = promotion.refused if promotion.refused is not None else "promoted"
        detail = f"by {by}" if promotion else promotion.detail
        parts.tell("promotion", None, words, original, detail=detail)
        return promotion


def _called_wrong(said: Iterable[Judgement]) -> bool:
    """Whether what was said of a value, in order, comes to its being wrong."""
    return verdict(probability(counting(said))) == "hallucinated"


def _copy(original: Entry, offer: Offer, believed: float) -> Entry:
    """What is put into the pool: the answer, and nothing that only describes its maker's call."""
    return replace(
        original,
        id=offer.place.id,
        partition=offer.place.partition,
        group=offer.place.group,
        pool=offer.pool,
        labels=Labels(),
        left_out=(),
        verdict="unknown",
        derived=True,
        confidence=min(original.confidence, believed),
        judged=Judged(doubted=original.judged.doubted),
        offer=None,
        held="",
    )
