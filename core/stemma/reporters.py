"""Who may report what, and how far they are believed when they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from stemma.effects import Ask, Steps
from stemma.entry import Entry
from stemma.errors import UsageError
from stemma.journal import CROSSING, REPORTER
from stemma.stores.protocol import Judgement, Store
from stemma.verdicts import TRUSTED, believed, settled

if TYPE_CHECKING:
    from stemma.parts import Parts

__all__ = [
    "HOUR",
    "MOST",
    "OVERTURNED",
    "UPHELD",
    "Ledger",
    "Reported",
    "Speaker",
    "limited",
    "settle",
    "speaker",
]

Reported = Literal["hallucinated", "supported", "unknown", "wrong_hit"]

MOST = 20
"""Reports against shared entries that count of a tenant within an hour."""

HOUR = 3_600.0

UPHELD, OVERTURNED = f"{REPORTER}upheld", f"{REPORTER}overturned"

_READ = 100_000
"""Judgements that are read at once, at most."""

_EMPTY = 0.5
"""The weight of a word that says no more than a coin."""

_AGAINST = ("hallucinated", "wrong_hit")


@dataclass(frozen=True, kw_only=True, slots=True)
class Speaker:
    """Who reports an entry.

    Args:
        tenant: In whose name; empty: an operator's.
        weight: How far they are believed of this entry, 0 to 1.
        shared: Whether it is a tenant's word of what other tenants read as well.
        limited: Whether it counts for nothing, since they reported too much of late.
    """

    tenant: str = ""
    weight: float = TRUSTED
    shared: bool = False
    limited: bool = False


class Ledger:
    """What a store's journal tells of reports and of those who made them.

    Args:
        store: The store.
        now: Seconds since 1970-01-01 UTC.
    """

    def __init__(self, store: Store, now: float) -> None:
        self._store = store
        self._now = now

    def said(self, entry: str) -> list[Judgement]:
        """What was said of an entry, in the order in which it was noted."""
        return list(reversed(self._store.judgements(entry=entry, limit=_READ)))

    def served(self, entry: str, tenant: str) -> tuple[str, str]:
        """Whose entry a tenant was last served by this id, and out of which pool; empty: none."""
        flows = self._store.flows(now=self._now, entries=(entry,))
        mine = [(one.last, one.producer, one.pool) for one in flows if one.consumer == tenant]
        _, producer, pool = max(mine, default=(0.0, "", ""))
        return producer, pool

    def record(self, tenant: str) -> tuple[int, int]:
        """How many of a tenant's reports of shared entries were upheld, and how many overturned."""
        sums = {UPHELD: 0, OVERTURNED: 0}
        for one in self._store.counts():
            if one.tenant == tenant and one.outcome in sums:
                sums[one.outcome] += one.lookups
        return sums[UPHELD], sums[OVERTURNED]

    def spent(self, tenant: str) -> bool:
        """Whether a tenant has reported as much within the last hour as counts."""
        since, limit = self._now - HOUR, 256
        while True:
            said = self._store.judgements(limit=limit)
            if len(said) < limit or said[-1].at <= since:
                break
            if limit >= _READ:
                return True  # so much was said that it cannot be told
            limit *= 8
        counted = (one for one in said if one.tenant == tenant and one.at > since and one.value)
        against = (one for one in counted if one.verdict in _AGAINST)
        return sum(_EMPTY < one.weight < TRUSTED for one in against) >= MOST


def speaker(
    parts: Parts,
    ledger: Ledger,
    tenant: str,
    entry: str,
    known: Entry | None,
    *,
    named: bool,
    asked: Entry | None,
) -> Steps[Speaker]:
    """Who reports an entry, and how far they are believed.

    Args:
        parts: What the cache works with.
        ledger: The journal.
        tenant: In whose name; empty: an operator's.
        entry: The entry's id.
        known: The entry, as it is stored or was served; `None` where that is not known.
        named: Whether the report names the hit, and not the entry alone.
        asked: The own entry of the question that it was served to, where there is one.

    Raises:
        UsageError: It is not the tenant's to report.
        StoreError: The store could not be read.
    """
    if not tenant:
        return Speaker()
    yield Ask(parts.journal, "flush")
    sure = named or (known is not None and known.tenant == tenant)
    if known is not None and (sure or known.pool is None):
        producer, pool = known.tenant, known.pool
    else:
        producer, pool = yield Ask(ledger, "served", (entry, tenant))
    foreign = not pool and producer != tenant
    if asked is not None:  # a note that was made up may name anybody's
        foreign |= not pool if asked.pool is not None else asked.tenant != tenant
    if foreign:
        parts.journal.count(tenant, "", f"{CROSSING}report")
        raise UsageError(f"{tenant!r} has no entry {entry!r}, and was served none out of a pool")
    if not pool:
        return Speaker(tenant=tenant)
    weight = believed(*(yield Ask(ledger, "record", (tenant,))))
    return Speaker(tenant=tenant, weight=weight, shared=True)


def limited(ledger: Ledger, speaker: Speaker, verdict: Reported) -> Steps[Speaker]:
    """The speaker as what they report now counts: for nothing, where it is too much of it."""
    spent = (
        speaker.shared and verdict in _AGAINST and (yield Ask(ledger, "spent", (speaker.tenant,)))
    )
    return replace(speaker, weight=_EMPTY, limited=True) if spent else speaker


def settle(parts: Parts, said: Sequence[Judgement], judgement: Judgement, node: str) -> None:
    """Count the tenants' reports of an entry that an operator's upholds, and that it overturns."""
    for tenant, upheld in settled(said, judgement).items():
        parts.journal.count(tenant, node, UPHELD if upheld else OVERTURNED)
