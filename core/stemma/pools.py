"""Pools, as operators see them: what lies ready, what was copied, and what is taken out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stemma.effects import Ask, Steps, arun, run, whole
from stemma.entry import Entry
from stemma.errors import UsageError
from stemma.journal import CROSSING
from stemma.legible import counted
from stemma.outcome import Recall
from stemma.parts import Parts
from stemma.policies.pools import Decision, PoolPolicy, independent
from stemma.promoting import Promotion
from stemma.saying import named, named_by
from stemma.scope import PURE
from stemma.stores.protocol import Judgement, Store
from stemma.taking_back import take_back

__all__ = ["Pools", "Ready", "every"]

PORTION = 1_000
"""Entries that are read at once where all are gone through."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """Answers to one request that are offered to a pool.

    Args:
        pool: The pool.
        place: The id that the copy has, or would have.
        entries: The answers, oldest first.
        witnesses: By the id of the oldest answer with a value, how many independent tenants gave
            that value. Answers in other words, which a comparer may hold equal, count apart here.
        copy: What lies there already.
    """

    pool: str
    place: str
    entries: tuple[Entry, ...] = field(repr=False)
    witnesses: dict[str, int]
    copy: Entry | None = field(default=None, repr=False)

    def __str__(self) -> str:
        answers = counted(len(self.entries), "answer", "answers")
        alike = counted(max(self.witnesses.values()), "tenant", "tenants")
        there = "nothing lies there" if self.copy is None else "an answer lies there already"
        return f"{self.place} in pool {self.pool}: {answers}, {alike} alike; {there}"


class Pools:
    """The pools of a cache: `Cache.pools`.

    Args:
        parts: What the cache works with.
        speaker: Gives the tenant in whose name something is asked; empty: an operator.
    """

    def __init__(self, parts: Parts, speaker: Callable[[], str]) -> None:
        self._parts = parts
        self._speaker = speaker

    def policy(self, pool: str) -> PoolPolicy:
        """What a pool asks for."""
        return self._parts.pool(named("a pool", pool))

    def promote(self, entry: str, *, by: str) -> Promotion:
        """Copy an answer into the pool that was named while it was made.

        Approval stands for witnesses, and replaces what lies there. It does not stand for the rest:
        what is private, held to be wrong, or built on what is gone is refused. Inside
        `using(tenant=…)` a tenant asks, and is refused.

        Args:
            entry: The answer's id.
            by: Who approves.

        Raises:
            UsageError: There is no such entry, or `by` names nobody.
            StoreError: The store could not do it.
        """
        return run(self._promote(entry, by))

    async def apromote(self, entry: str, *, by: str) -> Promotion:
        """As `promote`."""
        return await arun(self._promote(entry, by))

    def revoke(self, copy: str | Promotion, *, by: str) -> Recall:
        """Take a copy out of its pool, and everything that was built on it.

        The same answer does not come back by agreement, only by another approval.

        Args:
            copy: The copy's id, or what its promotion gave.
            by: Who takes it out.

        Raises:
            UsageError: It is no entry of a pool, `by` names nobody, or a tenant asks.
            StoreError: The store could not do it.
        """
        return run(self._revoke(copy, by))

    async def arevoke(self, copy: str | Promotion, *, by: str) -> Recall:
        """As `revoke`."""
        return await arun(self._revoke(copy, by))

    def offers(self, pool: str) -> tuple[Ready, ...]:
        """What lies ready for a pool, by place; those with most witnesses first.

        Goes through all entries.
        """
        return run(self._offers(pool))

    async def aoffers(self, pool: str) -> tuple[Ready, ...]:
        """As `offers`."""
        return await arun(self._offers(pool))

    def entries(self, pool: str) -> tuple[Entry, ...]:
        """What lies in a pool, newest first. Goes through all entries."""
        return run(self._entries(pool))

    async def aentries(self, pool: str) -> tuple[Entry, ...]:
        """As `entries`."""
        return await arun(self._entries(pool))

    # -------------------------------------------------------------- the steps

    def _promote(self, id: str, by: str) -> Steps[Promotion]:
        named_by(by)
        named("an entry", id)
        tenant = self._speaker()
        if not tenant:
            return (yield from self._parts.promoting.approve(id, by))
        entry = (yield Ask(self._parts.store, "get", ((id,),))).entries.get(id)
        if entry is None:
            raise UsageError(f"there is no entry {id!r}")
        refused = Decision(refused="not_an_operator", detail=f"tenant {tenant!r}")
        return self._parts.promoting.told(entry, refused, by, asked=tenant)

    def _revoke(self, copy: str | Promotion, by: str) -> Steps[Recall]:
        named_by(by)
        if isinstance(copy, Promotion):
            if copy.copy is None:
                raise UsageError(f"nothing was copied: {copy.refused}")
            copy = copy.copy.id
        named("an entry", copy)
        entry = (yield Ask(self._parts.store, "get", ((copy,),))).entries.get(copy)
        if entry is None or entry.pool is None or entry.node in PURE:
            raise UsageError(f"there is no entry {copy!r} in a pool")
        if tenant := self._speaker():
            outcome = f"{CROSSING}revocation not_an_operator"
            self._parts.journal.count(tenant, entry.node, outcome)
            raise UsageError(f"tenant {tenant!r} asks; tenants take nothing out of a pool")
        lineage = yield Ask(self._parts.store, "lineage", (copy,))
        withdrawn = Judgement(
            entry=copy,
            value=entry.value,
            verdict="withdrawn",
            by=by,
            confidence=1.0,
            at=self._parts.clock.now(),
            question=next((edge.parent for edge in lineage.parents), copy),
        )
        # Said first: should the rest fail, nobody has to do what cannot be asked for again.
        yield Ask(self._parts.store, "judge", (withdrawn,))
        receipt = yield from take_back(self._parts, {"entry": copy})
        self._parts.tell("promotion", None, "revoked", entry, detail=f"by {by}")
        return receipt

    def _offers(self, pool: str) -> Steps[tuple[Ready, ...]]:
        named("a pool", pool)
        offered = yield from self._all(lambda one: one.offer is not None and one.offer.pool == pool)
        places: dict[str, list[Entry]] = {}
        for one in reversed(offered):
            if one.offer is not None:
                places.setdefault(one.offer.place.id, []).append(one)
        copies = (yield Ask(self._parts.store, "get", (list(places),))).entries if places else {}
        ready = [
            Ready(
                pool=pool,
                place=place,
                entries=tuple(entries),
                witnesses=_witnesses(entries),
                copy=copies.get(place),
            )
            for place, entries in places.items()
        ]
        return tuple(sorted(ready, key=lambda one: -max(one.witnesses.values())))

    def _entries(self, pool: str) -> Steps[tuple[Entry, ...]]:
        named("a pool", pool)
        return tuple((yield from self._all(lambda one: one.pool == pool and one.node not in PURE)))

    def _all(self, wanted: Callable[[Entry], bool]) -> Steps[list[Entry]]:
        """All entries that are wanted, newest first."""
        store = self._parts.store
        return (yield from whole(lambda: [one for one in every(store) if wanted(one)]))


def _witnesses(entries: Sequence[Entry]) -> dict[str, int]:
    alike: dict[str, list[Entry]] = {}
    for one in entries:
        alike.setdefault(one.value, []).append(one)
    return {same[0].id: len(independent(same)) for same in alike.values()}


def every(store: Store) -> Iterator[Entry]:
    """All stored entries, newest first, read in portions."""
    before: int | None = None
    while portion := store.find(limit=PORTION, before=before):
        yield from portion
        before = portion[-1].sequence
