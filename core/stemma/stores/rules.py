"""The rules of writing, once for all stores that write here: what a put needs, and what it proves.

A store lends its open transaction as `Pages`; the functions decide and write through it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from stemma.codec import MAX_PAYLOAD
from stemma.entry import QUARANTINED, Entry, Lineage, Source, SourceEdge, Vector, arrivals
from stemma.outcome import Stored
from stemma.policies.changes import Watched
from stemma.selector import Selector
from stemma.stores.findings import computed_again, doubted, found, remembered
from stemma.stores.protocol import Judgement, Put
from stemma.verdicts import speaks

__all__ = ["LESSONS", "SERVINGS", "VOID", "Pages", "State", "Vouched", "admit", "elements", "judge"]

SERVINGS = 1_000_000
"""Servings that a store keeps, at least; the oldest go first."""

LESSONS = 8_192
"""Lessons of a tenant and node that a store keeps, at least; the oldest go first."""

VOID = -1
"""The epoch of an entry whose ancestors must be walked: it is never the store's epoch."""


@dataclass(slots=True)
class State:
    """The numbers of a store.

    Args:
        sequence: Raised by every write.
        epoch: The sequence of the last invalidation.
        recalled: The sequence of the last recall.
        forgotten: The log of removed vectors is complete after this sequence.
        began: Where the sequence began. What was recalled before is not known.
    """

    sequence: int = 0
    epoch: int = 0
    recalled: int = 0
    forgotten: int = 0
    began: int = 0


class Vouched(NamedTuple):
    """What an index said of a chunk.

    Args:
        content: The content hash that it last vouched for.
        seen: The sequence when that was read.
        watched: What its readings so far tell of how often it changes.
    """

    content: str
    seen: int
    watched: Watched = Watched()


class Pages(Protocol):
    """An open write transaction, as the rules see it."""

    state: State

    def entry(self, id: str) -> Entry | None:
        """The stored entry, if it is undamaged."""
        ...

    def value(self, id: str) -> str | None:
        """The entry's value hash; empty if the record is damaged, `None` if there is none."""
        ...

    def lineage(self, id: str) -> Lineage | None:
        """What the entry was built from."""
        ...

    def is_parent(self, id: str) -> bool:
        """Whether anything was ever built on it."""
        ...

    def said(self, id: str) -> Sequence[Judgement]:
        """What was judged of an entry's id so far, in the order in which it was noted.

        The judgement that is being noted may be among it already, as the last.
        """
        ...

    def lift(self, id: str) -> None:
        """End all holds on an entry."""
        ...

    def recalls(self, put: Put, after: int) -> Iterable[tuple[int, Selector]]:
        """The recalls after a sequence that may concern a put, with their sequences."""
        ...

    def taken(self, id: str) -> int:
        """The sequence of the last recall that took this entry back; 0 if none did."""
        ...

    def vouched(self, owner: str, index: str, chunk: str) -> Vouched | None:
        """What the source table says of a chunk."""
        ...

    def vouch(self, owner: str, index: str, chunk: str, vouched: Vouched) -> None:
        """Enter a chunk in the source table."""
        ...

    def store(self, entry: Entry, lineage: Lineage, vector: Vector | None) -> None:
        """Write an entry in place of the one with the same id."""
        ...

    def mark(self, entry: Entry) -> None:
        """Write an entry of which something was judged."""
        ...


def admit(put: Put, pages: Pages) -> Stored:
    """Store one entry if its conditions hold. See `Store.put`."""
    if len(put.entry.payload) > MAX_PAYLOAD:
        return Stored(refused="too_large", detail=f"more than {MAX_PAYLOAD} bytes")
    if put.replaces is not None:
        former = pages.entry(put.entry.id)
        if (0 if former is None else former.sequence) != put.replaces:
            return Stored(refused="overtaken", detail="what it was to replace is no longer there")
    overtaken = _overtaken(put, pages)
    if overtaken is not None:
        return Stored(refused="recalled", detail=overtaken)
    parents = []
    for edge in put.lineage.parents:
        parent = pages.entry(edge.parent)
        failing = _failing(parent, edge.value)
        if parent is None or failing is not None:
            return Stored(refused="parent_gone", detail=f"parent {edge.parent} {failing}")
        parents.append(parent)
    state = pages.state
    state.sequence += 1
    lineage = _owned(put.lineage, put.entry.tenant)
    current = _vouch(put, lineage, pages)
    aged = _aged(put.entry, lineage, parents, pages)
    proven = _proven(aged, parents)
    judged = _replace(aged, lineage, proven, pages, audit=put.replaces is None)
    entry = replace(
        judged,
        sequence=state.sequence,
        epoch=_epoch(parents, pages) if current else VOID,
        proven_until=proven,
    )
    pages.store(entry, lineage, put.vector)
    return Stored(entry=entry)


def _replace(
    entry: Entry, lineage: Lineage, proven: float | None, pages: Pages, *, audit: bool
) -> Entry:
    """What it means that an entry takes the place of a former one; gives it with its judgements.

    Proofs of what was built on the former one are void, unless the value is equal and stands for
    as long, under the same verdict. What held the former one holds it no longer, unless the same
    value came of the same lineage again.
    """
    value = pages.value(entry.id)
    if value != entry.value or _origins(lineage) != _origins(pages.lineage(entry.id)):
        pages.lift(entry.id)
    former = pages.entry(entry.id) if value == entry.value else None
    said = pages.said(entry.id)
    if former is None:
        entry = remembered(entry, said)
    wrong = (one.barred for one in said if one.verdict == "wrong_hit")
    barred = tuple(dict.fromkeys(filter(None, wrong)))
    judged = computed_again(entry, former, barred, audit=audit)
    judged = replace(judged, held="" if former is None else former.held)
    stands = (
        former is not None
        and _not_before(proven, former.proven_until)
        and former.verdict == judged.verdict
    )
    if value is not None and not stands and pages.is_parent(entry.id):
        pages.state.epoch = pages.state.sequence
    return judged


def _origins(lineage: Lineage | None) -> set[object] | None:
    """What a value came of, in no order."""
    if lineage is None:
        return None
    parents = {(edge.parent, edge.value) for edge in lineage.parents}
    return {*parents, *(edge.source for edge in lineage.sources)}


def _not_before(end: float | None, former: float | None) -> bool:
    return end is None or (former is not None and end >= former)


def judge(judgement: Judgement, near: Sequence[str], pages: Pages) -> Entry | None:
    """Note a judgement on the entry, if it is there with that value. See `Store.judge`."""
    pages.state.sequence += 1
    entry = pages.entry(judgement.entry)
    if entry is None:
        return None
    other = pages.entry(judgement.question) if judgement.verdict == "same" else None
    judged = found(entry, judgement, _said(judgement, pages), other)
    if judged == entry and entry.value != judgement.value:
        return None
    if entry.held and judgement.verdict == "supported" == judged.verdict:
        pages.lift(entry.id)
        judged = replace(judged, held="")
        pages.state.epoch = pages.state.sequence
    if judged.judged.barred != entry.judged.barred:
        for neighbour in filter(None, map(pages.entry, near)):
            pages.mark(doubted(neighbour))
    if judged != entry:
        if (judged.verdict in QUARANTINED) != (entry.verdict in QUARANTINED):
            pages.state.epoch = pages.state.sequence
        pages.mark(judged)
    return judged


def _said(judgement: Judgement, pages: Pages) -> Sequence[Judgement]:
    """What was said of the entry, this judgement the last; nothing where that does not count."""
    if not speaks(judgement):
        return ()
    said = pages.said(judgement.entry)
    return said if said and said[-1] == judgement else (*said, judgement)


def _failing(parent: Entry | None, value: str) -> str | None:
    if parent is None:
        return "is gone"
    if parent.value != value:
        return "has another value now"
    return "is quarantined" if parent.verdict in QUARANTINED or parent.held else None


def _overtaken(put: Put, pages: Pages) -> str | None:
    """Which recall came between the put's reads and the put, in words."""
    after = min((put.since, *put.read_at.values()))
    if 0 < after < pages.state.began or put.since > pages.state.sequence:
        return "the store was begun anew, or put back, since its reads"
    if after >= pages.state.recalled:
        return None
    for edge in put.lineage.parents:
        if pages.taken(edge.parent) > put.read_at.get(edge.parent, put.since):
            return f"parent {edge.parent} was taken back"
    for sequence, selector in pages.recalls(put, after):
        if _overtook(selector, put, sequence, pages):
            return f"the recall {sequence} covers it"
    return None


def elements(put: Put) -> set[str]:
    """What recalls of a source may name to concern a put."""
    sources = [edge.source for edge in put.lineage.sources]
    indexes = {put.entry.index, *(source.index for source in sources)} - {""}
    return {
        *(source.document for source in sources),
        *(source.chunk for source in sources),
        *map(arrivals, indexes),
    }


def _overtook(selector: Selector, put: Put, sequence: int, pages: Pages) -> bool:
    """Whether a recall of this at `sequence` came between a put's reads and the put.

    Each element counts from when it was read: the entry's own attributes from the lookup, a source
    or parent from its own reading. A recall of something else overtakes nothing.
    """
    for name, value in selector.parts().items():
        if name == "source":
            late = [
                edge.source
                for edge in put.lineage.sources
                if put.read_at.get(edge.source.chunk, put.since) < sequence
            ]
            held = selector.holds(name, value, put.entry, late)
            if not held and not _came_into(value, put, sequence, pages):
                return False
        elif name == "entry" and put.entry.id != value:
            parents = (edge.parent for edge in put.lineage.parents)
            if value not in parents or put.read_at.get(value, put.since) >= sequence:
                return False
        elif put.since >= sequence or not selector.holds(name, value, put.entry, []):
            return False
    return True


def _came_into(named: str, put: Put, sequence: int, pages: Pages) -> bool:
    """Whether documents came into an index between a put's reading from it and the put.

    A stored retrieval from the index among the parents has been looked at when they came: had it
    missed any of them, it would be gone.
    """
    if put.entry.index and arrivals(put.entry.index) == named:
        return put.since < sequence
    late = {
        edge.source.index
        for edge in put.lineage.sources
        if edge.source.index
        and arrivals(edge.source.index) == named
        and put.read_at.get(edge.source.chunk, put.since) < sequence
    }
    parents = (pages.entry(edge.parent) for edge in put.lineage.parents) if late else ()
    return late - {parent.index for parent in parents if parent is not None} != set()


def _owned(lineage: Lineage, tenant: str) -> Lineage:
    """The lineage with every source owned by somebody: by its reader, where nobody was named."""
    if all(edge.source.owner for edge in lineage.sources):
        return lineage
    owner = f"tenant:{tenant}"
    sources = tuple(
        edge
        if edge.source.owner
        else SourceEdge(source=replace(edge.source, owner=owner), known=edge.known)
        for edge in lineage.sources
    )
    return Lineage(parents=lineage.parents, sources=sources)


def _vouch(put: Put, lineage: Lineage, pages: Pages) -> bool:
    """Enter what the put's sources vouch for; gives whether all of it is current.

    An older reading never overrides a newer one: the put then brings an answer to a document that
    has changed since, which is stored, but proves nothing.
    """
    current = True
    for source in (edge.source for edge in lineage.sources if edge.source.index):
        where = (source.owner, source.index, source.chunk)
        seen = put.read_at.get(source.chunk, put.since)
        known = pages.vouched(*where)
        if known is not None and known.content != source.content:
            if seen < known.seen:
                current = False
                continue
            pages.state.epoch = pages.state.sequence
        changed = known is not None and known.content != source.content
        if known is None or changed or seen > known.seen:
            watched = (Watched() if known is None else known.watched).again(
                put.entry.made, changed=changed
            )
            pages.vouch(*where, Vouched(source.content, seen, watched))
    return current


def _aged(entry: Entry, lineage: Lineage, parents: list[Entry], pages: Pages) -> Entry:
    """The entry with its life bounded by how often its sources change, where that counts.

    What bounds the life of a parent does not bound it again: it ends with the parent.
    """
    walk = entry.walk
    if walk is None or walk.aging is None:
        return entry
    sources = {edge.source for edge in lineage.sources if edge.source.index}
    if sources:
        sources -= _bounding(parents, pages)
    known = [pages.vouched(one.owner, one.index, one.chunk) for one in sources]
    rates = [one.watched.rate(walk.aging.prior) for one in known if one is not None]
    if not rates:
        return entry
    aging = replace(walk.aging, change_rate=math.fsum(rates))
    life = aging.life(entry.id)
    ends = (entry.expires, None if life is None else entry.made + life)
    end = min((one for one in ends if one is not None), default=None)
    return replace(entry, expires=end, walk=replace(walk, aging=aging))


def _bounding(parents: list[Entry], pages: Pages) -> set[Source]:
    """The sources whose change rates bound the life of a parent, or of what it is built on."""
    found = set[Source]()
    for parent in parents:
        if parent.walk is not None and parent.walk.aging is not None:
            lineage = pages.lineage(parent.id)
            found |= {edge.source for edge in lineage.sources} if lineage is not None else set()
    return found


def _epoch(parents: list[Entry], pages: Pages) -> int:
    """The epoch of the proof: the store's, unless a parent's own proof is older."""
    now = pages.state.epoch
    older = (parent for parent in parents if parent.epoch != now and pages.lineage(parent.id))
    return min((parent.epoch for parent in older), default=now)


def _proven(entry: Entry, parents: list[Entry]) -> float | None:
    """The earliest end among the entry's own life and its parents' proofs."""
    ends = (entry.expires, *(parent.proven_until for parent in parents))
    return min((end for end in ends if end is not None), default=None)
