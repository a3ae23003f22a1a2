"""How well a cache keeps tenants apart: what was refused to cross, and what did cross."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stemma.entry import Entry
from stemma.journal import CROSSING
from stemma.legible import counted
from stemma.parts import Parts
from stemma.pools import every
from stemma.scope import PURE
from stemma.stores.protocol import Count
from stemma.stores.sharing import Flow, Shared

__all__ = ["Crossings", "Isolation", "PoolUse", "isolation"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossings:
    """Attempts of one kind that were refused.

    Args:
        tenant: Whose attempt, or whose answer; empty: nobody's.
        tried: `lookup`, `promotion`, `revocation`, `report`, …
        refused: Why, as in `stemma.policies.pools.REFUSALS` and its like.
        count: How many.
    """

    tenant: str
    tried: str
    refused: str
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolUse:
    """What a pool was used for.

    Args:
        pool: Its name.
        entries: Answers that lie in it now.
        producers: Tenants who made what lies in it, or what was served from it.
        consumers: Tenants who were served from it.
        servings: How often.
        crossed: How many of those were of another tenant's answer.
    """

    pool: str
    entries: int
    producers: tuple[str, ...]
    consumers: tuple[str, ...]
    servings: int
    crossed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Isolation:
    """The report. Servings are those that the journal still holds, attempts all there ever were.

    Args:
        refused: What was refused to cross, by tenant, kind and reason.
        pools: What pools were used for.
        sources: Documents on which entries of several tenants were built, or of others than their
            owner.
        crossed: Servings of another tenant's entries, in pools or not; outside of pools there must
            be none.
        servings: All servings.
        leaks: Servings across tenants outside of pools, and stored entries that lie in a partition
            with another owner's, in words: each of them is a fault.
        entries: Entries that were looked through for that.
        partitions: Partitions that they lie in.
    """

    refused: tuple[Crossings, ...]
    pools: tuple[PoolUse, ...]
    sources: tuple[Shared, ...]
    crossed: int
    servings: int
    leaks: tuple[str, ...]
    entries: int
    partitions: int

    def __bool__(self) -> bool:
        """Whether nothing leaked."""
        return not self.leaks

    def as_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        rows = {"sources": [one._asdict() for one in self.sources]}
        return {**dataclasses.asdict(self), **rows}

    def __str__(self) -> str:
        entries = _entries(self.entries)
        lines = [
            f"{entries} in {counted(self.partitions, 'partition', 'partitions')}, of one owner each"
            if not self.leaks
            else f"{counted(len(self.leaks), 'leak', 'leaks')} among {entries}:",
            *(f"  {one}" for one in self.leaks),
            f"{self.crossed} of {self.servings} servings crossed between tenants, through pools",
        ]
        lines += [
            f"pool {pool.pool!r}: {_entries(pool.entries)} of {_tenants(pool.producers)}, "
            f"{counted(pool.servings, 'serving', 'servings')} to {_tenants(pool.consumers)}, "
            f"{pool.crossed} crossed"
            for pool in self.pools
        ]
        lines += [
            f"refused: {one.count} × {one.tried} of {one.tenant or 'nobody'!r}: {one.refused}"
            for one in self.refused
        ]
        lines += [
            f"shared: {one.document!r} of {one.owner or 'nobody'!r}, "
            f"by {_entries(one.entries)} of {one.tenant!r}"
            for one in self.sources
        ]
        return "\n".join(lines)


def _entries(many: int) -> str:
    return counted(many, "entry", "entries")


def _tenants(names: Sequence[str]) -> str:
    return counted(len(names), "tenant", "tenants")


def isolation(parts: Parts) -> Isolation:
    """Look through the journal and all stored entries. See `Cache.isolation`."""
    parts.journal.flush()
    store = parts.store
    entries = _Entries(every(store))
    flows = [flow for flow in store.flows(now=parts.clock.now()) if flow.node not in PURE]
    across = [flow for flow in flows if flow.producer and flow.producer != flow.consumer]
    leaks = [
        f"{flow.uses} servings of {flow.producer!r} to {flow.consumer!r} outside of any pool"
        for flow in across
        if not flow.pool
    ]
    return Isolation(
        refused=_refused(store.counts()),
        pools=_pools(entries, flows),
        sources=store.shared(),
        crossed=sum(flow.uses for flow in across),
        servings=sum(flow.uses for flow in flows),
        leaks=tuple(leaks + entries.leaks()),
        entries=entries.number,
        partitions=len(entries.owners),
    )


class _Entries:
    """What is kept of all stored entries: who owns each partition, who made what in each pool."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.number = 0
        self.owners: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self.pooled: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for one in entries:
            self.number += 1
            owner = ("tenant", one.tenant) if one.pool is None else ("pool", one.pool)
            self.owners[one.partition].add(owner)
            if one.pool is not None and one.node not in PURE:
                self.pooled[one.pool][one.tenant] += 1

    def leaks(self) -> list[str]:
        """Partitions with more than one owner."""
        return [
            f"partition {partition} holds entries of {sorted(owners)}"
            for partition, owners in sorted(self.owners.items())
            if len(owners) > 1
        ]


def _pools(entries: _Entries, flows: Sequence[Flow]) -> tuple[PoolUse, ...]:
    served: defaultdict[str, list[Flow]] = defaultdict(list)
    for flow in flows:
        if flow.pool:
            served[flow.pool].append(flow)
    found = []
    for pool in sorted({*entries.pooled, *served}):
        made, flowed = entries.pooled[pool], served[pool]
        across = (flow.uses for flow in flowed if flow.producer != flow.consumer)
        found.append(
            PoolUse(
                pool=pool,
                entries=made.total(),
                producers=tuple(sorted({*made, *(flow.producer for flow in flowed)})),
                consumers=tuple(sorted({flow.consumer for flow in flowed})),
                servings=sum(flow.uses for flow in flowed),
                crossed=sum(across),
            )
        )
    return tuple(found)


def _refused(counts: Iterable[Count]) -> tuple[Crossings, ...]:
    sums: Counter[tuple[str, str, str]] = Counter()
    for count in counts:
        if count.outcome.startswith(CROSSING):
            tried, _, why = count.outcome.removeprefix(CROSSING).partition(" ")
            sums[count.tenant, tried, why] += count.lookups
    return tuple(
        Crossings(tenant=tenant, tried=tried, refused=why, count=number)
        for (tenant, tried, why), number in sorted(sums.items())
    )
