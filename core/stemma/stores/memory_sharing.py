"""How answers travel between tenants, out of the dictionaries of the store in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

from stemma.entry import Entry
from stemma.outcome import Quarantine
from stemma.stores.protocol import Serving
from stemma.stores.sharing import Flow, Shared, several
from stemma.stores.shelves import Shelves

__all__ = ["crossed", "descent", "flows", "hold", "offered", "release", "shared"]


def offered(shelves: Shelves, place: str, limit: int) -> tuple[Entry, ...]:
    """See `Sharing.offered`."""
    found = (
        one
        for one in shelves.entries.values()
        if one.offer is not None and one.offer.place.id == place
    )
    return tuple(islice(found, max(limit, 0)))


def descent(shelves: Shelves, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """See `Sharing.descent`."""
    edges, seen, waiting = list[tuple[str, str]](), set(ids), list(dict.fromkeys(ids))
    while waiting:
        parent = waiting.pop()
        for child in sorted(shelves.children.get(parent, ())):
            if child in shelves.entries:
                edges.append((parent, child))
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return tuple(edges)


def crossed(shelves: Shelves, limit: int) -> tuple[tuple[str, str], ...]:
    """See `Sharing.crossed`."""
    found = (
        (edge.parent, child.id)
        for child in reversed(shelves.entries.values())
        for edge in shelves.lineages[child.id].parents
        if (parent := shelves.entries.get(edge.parent)) is not None
        and parent.tenant != child.tenant
    )
    return tuple(islice(dict.fromkeys(found), max(limit, 0)))


def shared(shelves: Shelves) -> tuple[Shared, ...]:
    """See `Sharing.shared`."""
    readers: Counter[tuple[str, str, str]] = Counter()
    for entry in shelves.entries.values():
        read = {(e.source.owner, e.source.document) for e in shelves.lineages[entry.id].sources}
        readers.update((*one, entry.tenant) for one in read)
    return several(Shared(*read, entries) for read, entries in readers.items())


def flows(
    servings: Iterable[Serving],
    now: float,
    half_life: float | None,
    entries: Sequence[str] | None,
) -> tuple[Flow, ...]:
    """See `Sharing.flows`."""
    wanted = None if entries is None else set(entries)
    found: dict[tuple[str, str, str, str, str], Flow] = {}
    for one in servings:
        if wanted is not None and one.entry not in wanted:
            continue
        entry = "" if wanted is None else one.entry
        key = (one.producer, one.tenant, one.pool, one.node, entry)
        weight = max(one.similarity, 0.0) * max(one.confidence, 0.0)
        age = max(now - one.at, 0.0)
        recent = weight if half_life is None else weight * 0.5 ** (age / half_life)
        held = found.get(key)
        found[key] = Flow(
            *key,
            uses=1 if held is None else held.uses + 1,
            weight=weight if held is None else held.weight + weight,
            recent=recent if held is None else held.recent + recent,
            first=one.at if held is None else min(held.first, one.at),
            last=one.at if held is None else max(held.last, one.at),
        )
    return tuple(found[key] for key in sorted(found))


def hold(shelves: Shelves, quarantine: Quarantine) -> Quarantine:
    """See `Sharing.hold`."""
    if quarantine.id in shelves.quarantines:
        return shelves.quarantines[quarantine.id]
    state = shelves.state
    state.sequence += 1
    state.epoch = state.sequence
    stored = tuple(one for one in quarantine.entries if one.entry in shelves.entries)
    receipt = replace(quarantine, entries=stored, sequence=state.sequence)
    shelves.quarantines[receipt.id] = receipt
    for one in stored:
        shelves.hold(one.entry, receipt.id)
    return receipt


def release(shelves: Shelves, id: str, now: float) -> Quarantine | None:
    """See `Sharing.release`."""
    receipt = shelves.quarantines.get(id)
    if receipt is None or receipt.lifted is not None:
        return receipt
    state = shelves.state
    state.sequence += 1
    state.epoch = state.sequence
    shelves.quarantines[id] = receipt = replace(receipt, lifted=now)
    for one in receipt.entries:
        shelves.lift(one.entry, id)
    return receipt
