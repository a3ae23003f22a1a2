"""How far what came of an entry, or of a tenant, lies over the partitions of a store."""

from __future__ import annotations

from collections import Counter

from stemma.entry import QUARANTINED, Entry
from stemma.errors import UsageError
from stemma.lineage.validity import judge
from stemma.parts import Parts
from stemma.propagation.attenuation import Passing
from stemma.propagation.descent import descent, named
from stemma.propagation.exposure import Pollution
from stemma.propagation.exposure import pollution as reckoned
from stemma.stores.protocol import Store

__all__ = ["pollution"]


def pollution(parts: Parts, *, entry: str | None = None, tenant: str | None = None) -> Pollution:
    """Reckon it, of one of the two. See `Cache.pollution`.

    Raises:
        UsageError: Not one of them is named, or nothing was ever known of the entry.
        StoreError: The store could not be read.
    """
    if (entry is None) == (tenant is None):
        raise UsageError("name an entry or a tenant")
    now, store = parts.clock.now(), parts.store
    seeds = named(store, () if entry is None else (entry,), tenant=tenant)
    below = descent(store, seeds, Passing({}, now=now))
    many, stale = Counter[str](), Counter[str]()
    for one in below.entries.values():
        many[one.owner] += 1
        stale[one.owner] += _stale(store, one, now)
    return reckoned(many, stale=stale)


def _stale(store: Store, entry: Entry, now: float) -> bool:
    """Whether it would not be served any more, by itself or by what it was built from."""
    if entry.held or entry.verdict in QUARANTINED:
        return True
    ancestry = store.ancestry(entry.id)
    return ancestry is None or judge(entry.id, ancestry, now).reason is not None
