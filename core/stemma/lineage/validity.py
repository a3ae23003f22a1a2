"""Whether an entry is still valid by everything above it. Pure: facts in, verdict out."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from stemma.entry import QUARANTINED
from stemma.policies.life import over
from stemma.stores.protocol import Ancestor, Ancestry

__all__ = ["Validity", "judge"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Validity:
    """The verdict on one entry.

    Args:
        reason: `None` if it is valid, else why not, as in `stemma.REASONS`.
        until: The earliest end among its own life and its ancestors' lives (`None`: no end).
            Until then, and while the store's epoch stands, the verdict stands.
        detail: Which ancestor is at fault.
    """

    reason: str | None
    until: float | None = None
    detail: str = ""


def judge(
    id: str, ancestry: Ancestry, now: float, owed: AbstractSet[str] = frozenset()
) -> Validity:
    """Judge an entry: valid while its own life lasts and every parent and source is valid.

    A parent is valid with the value that was read: one that was recomputed and came out equal
    keeps its children alive, one that came out different ends them.

    Args:
        id: The entry.
        ancestry: What the store says of it and of all above it.
        now: The time.
        owed: Sources that changed, and whose readers could not be taken back yet.
    """
    until: float | None = None
    seen: set[str] = set()
    waiting = [id]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        entry = ancestry.entries.get(current)
        if current in ancestry.overlooked:
            return _invalid(current, "was taken back")
        failed = _own(entry, current == id, now) or (entry and _sources(entry, ancestry, owed))
        if entry is None or failed:
            return failed or _invalid(current, "is gone")
        if entry.expires is not None:
            until = entry.expires if until is None else min(until, entry.expires)
        for edge in entry.lineage.parents:
            parent = ancestry.entries.get(edge.parent)
            if parent is not None and parent.value != edge.value:
                return _invalid(edge.parent, "has another value now")
            waiting.append(edge.parent)
    return Validity(reason=None, until=until)


def _invalid(id: str, what: str) -> Validity:
    return Validity(reason="parent_invalid", detail=f"parent {id} {what}")


def _own(entry: Ancestor | None, itself: bool, now: float) -> Validity | None:
    if entry is None:
        return None
    if entry.verdict in QUARANTINED:
        return Validity(reason="quarantined") if itself else _invalid(entry.id, "is quarantined")
    if over(entry.made, entry.expires, now):
        return Validity(reason="expired") if itself else _invalid(entry.id, "has expired")
    return None


def _sources(entry: Ancestor, ancestry: Ancestry, owed: AbstractSet[str]) -> Validity | None:
    for edge in entry.lineage.sources:
        source = edge.source
        if source.document in owed or source.chunk in owed:
            return Validity(reason="unsettled", detail="a source changed and was not recalled yet")
        known = ancestry.current.get((source.owner, source.index, source.chunk))
        if source.index and known is not None and known != source.content:
            return Validity(
                reason="source_changed", detail=f"a chunk of {source.document} has changed"
            )
    return None
