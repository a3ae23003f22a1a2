"""The dictionaries behind the store in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from stemma.entry import Entry, Lineage, Vector
from stemma.outcome import Quarantine, Recall
from stemma.selector import Selector
from stemma.stores.protocol import Judgement, Put
from stemma.stores.rows import Half, half
from stemma.stores.rules import State, Vouched

__all__ = ["Kept", "Shelves"]


class Kept(NamedTuple):
    """A vector, its group, and the sequence at which it was put."""

    group: str
    vector: Half
    sequence: int


class Shelves:
    """The dictionaries, and the rules' view of them (`stemma.stores.rules.Pages`).

    Entries and vectors lie in the order of their sequences: the newest is the last.
    """

    def __init__(self, reach: int) -> None:
        self.state = State()
        self.entries: dict[str, Entry] = {}
        self.lineages: dict[str, Lineage] = {}
        self.vectors: dict[str, Kept] = {}
        self.children: dict[str, set[str]] = {}
        self.by_source: dict[str, set[str]] = {}
        self.sources: dict[tuple[str, str, str], Vouched] = {}
        self.log: deque[tuple[int, str, str]] = deque()
        self.reach = reach
        self.receipts: list[Recall] = []
        self.last_taken: dict[str, int] = {}
        self.judgements: list[Judgement] = []
        self.said_of: dict[str, list[Judgement]] = {}
        self.quarantines: dict[str, Quarantine] = {}
        self.holds: dict[str, dict[str, None]] = {}

    def entry(self, id: str) -> Entry | None:
        """The stored entry."""
        return self.entries.get(id)

    def value(self, id: str) -> str | None:
        """Its value hash."""
        entry = self.entries.get(id)
        return None if entry is None else entry.value

    def lineage(self, id: str) -> Lineage | None:
        """What it was built from, also after it went."""
        return self.lineages.get(id)

    def note(self, judgement: Judgement) -> None:
        """Journal a judgement."""
        self.judgements.append(judgement)
        self.said_of.setdefault(judgement.entry, []).append(judgement)

    def said(self, id: str) -> Sequence[Judgement]:
        """What was judged of it."""
        return self.said_of.get(id, ())

    def hold(self, id: str, quarantine: str) -> None:
        """Have a quarantine hold a stored entry."""
        self.holds.setdefault(id, {})[quarantine] = None
        self.mark(self.entries[id])

    def lift(self, id: str, quarantine: str | None = None) -> None:
        """End a quarantine's hold on it, or all."""
        holds = self.holds.pop(id, {})
        if quarantine is not None:
            holds.pop(quarantine, None)
            if holds:
                self.holds[id] = holds
        if id in self.entries:
            self.mark(self.entries[id])

    def is_parent(self, id: str) -> bool:
        """Whether anything was ever built on it."""
        return bool(self.children.get(id))

    def recalls(self, put: Put, after: int) -> Iterator[tuple[int, Selector]]:  # noqa: ARG002 - the rules look closer
        """The recalls after a sequence, newest first."""
        for receipt in reversed(self.receipts):
            if receipt.sequence <= after:
                return
            yield receipt.sequence, Selector(**receipt.selector)

    def taken(self, id: str) -> int:
        """When a recall last took it back; 0 if none did."""
        return self.last_taken.get(id, 0)

    def vouched(self, owner: str, index: str, chunk: str) -> Vouched | None:
        """What an index last said of a chunk."""
        return self.sources.get((owner, index, chunk))

    def vouch(self, owner: str, index: str, chunk: str, vouched: Vouched) -> None:
        """Enter what an index says of a chunk."""
        self.sources[owner, index, chunk] = vouched

    def store(self, entry: Entry, lineage: Lineage, vector: Vector | None) -> None:
        """Write an entry in place of the one with the same id."""
        kept = None if vector is None else half(vector)
        self.unlink(entry.id)
        self.entries.pop(entry.id, None)
        self.mark(entry)
        self.lineages[entry.id] = lineage
        for edge in lineage.parents:
            self.children.setdefault(edge.parent, set()).add(entry.id)
        for element in _elements(lineage):
            self.by_source.setdefault(element, set()).add(entry.id)
        former = self.vectors.pop(entry.id, None)
        if former is not None and (kept is None or former.group != entry.group):
            self.forget(former.group, entry.id)
        if kept is not None:
            kept.flags.writeable = False
            self.vectors[entry.id] = Kept(entry.group, kept, entry.sequence)

    def mark(self, entry: Entry) -> None:
        """Write an entry of which something was judged, with what holds it."""
        held = next(iter(self.holds.get(entry.id, ())), "")
        self.entries[entry.id] = entry if entry.held == held else replace(entry, held=held)

    def unlink(self, id: str) -> None:
        """Take an entry's edges away: another lineage takes their place."""
        former = self.lineages.get(id, Lineage())
        for table, names in (
            (self.children, {edge.parent for edge in former.parents}),
            (self.by_source, _elements(former)),
        ):
            for name in names:
                table[name].discard(id)
                if not table[name]:
                    del table[name]

    def forget(self, group: str, id: str) -> None:
        """Log that a vector went."""
        self.log.append((self.state.sequence, group, id))
        if len(self.log) > self.reach:
            self.state.forgotten = self.log.popleft()[0]

    def drop(self, ids: Iterable[str]) -> None:
        """Remove entries and vectors; what they were built from stays known."""
        for one in ids:
            del self.entries[one]
            self.holds.pop(one, None)
            kept = self.vectors.pop(one, None)
            if kept is not None:
                self.forget(kept.group, one)

    def selected(self, selector: Selector) -> Iterator[Entry]:
        """The stored entries that a selector selects, newest first."""
        candidates: Iterable[Entry] = reversed(self.entries.values())
        if selector.entry is not None:
            candidates = filter(None, [self.entries.get(selector.entry)])
        elif selector.source is not None:
            named = self.by_source.get(selector.source, set())
            stored = (self.entries[one] for one in named if one in self.entries)
            candidates = sorted(stored, key=lambda entry: -entry.sequence)
        return (one for one in candidates if selector.covers(one, self.lineages[one.id]))

    def reached(self, selector: Selector) -> set[str]:
        """What a recall covers: what is selected, and everything built from it.

        A source or an entry named alone is followed through entries that went before, too.
        """
        waiting = [entry.id for entry in self.selected(selector)]
        if len(selector.parts()) == 1 and selector.source is not None:
            waiting += self.by_source.get(selector.source, ())
        elif len(selector.parts()) == 1 and selector.entry is not None:
            waiting.append(selector.entry)
        reached: set[str] = set()
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += self.children.get(one, ())
        return reached


def _elements(lineage: Lineage) -> set[str]:
    """By what a recall of a source finds an entry: documents and chunks."""
    return {name for edge in lineage.sources for name in (edge.source.document, edge.source.chunk)}
