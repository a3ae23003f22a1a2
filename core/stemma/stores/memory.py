"""The store in memory: everything is gone when the process ends. Same promises otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from stemma import forking
from stemma.entry import Entry, Lineage
from stemma.errors import StoreUnavailable
from stemma.outcome import Quarantine, Recall, Recalled, Stored
from stemma.selector import Selector
from stemma.stores import memory_sharing, rules
from stemma.stores.protocol import (
    Ancestor,
    Ancestry,
    Changes,
    Count,
    Fetched,
    Judgement,
    Lesson,
    Put,
    Serving,
    edge_sources,
)
from stemma.stores.rows import Half
from stemma.stores.rules import admit, judge
from stemma.stores.sharing import CROSSED, Flow, Shared
from stemma.stores.shelves import Kept, Shelves

__all__ = ["MemoryStore"]

T = TypeVar("T")


class MemoryStore:
    """Dictionaries under one lock.

    Args:
        reach: How many removed vectors are remembered for the indexes that follow.
    """

    url = "memory:"
    quick = frozenset(
        {
            "get",
            "put",
            "ancestry",
            "vectors",
            "remove",
            "judge",
            "journal",
            "learn",
            "lineage",
            "sequence",
        }
    )

    def __init__(self, *, reach: int = 10_000) -> None:
        self._lock = forking.Lock(reentrant=True)
        self._shelves: Shelves | None = Shelves(reach)
        self._counts: dict[tuple[str, str, str], Count] = {}
        self._servings: list[Serving] = []
        self._lessons: dict[tuple[str, str], list[Lesson]] = {}
        self._taught = 0

    def __repr__(self) -> str:
        return "MemoryStore()"

    @contextmanager
    def _open(self) -> Iterator[Shelves]:
        with self._lock:
            if self._shelves is None:
                raise StoreUnavailable("this store was closed; open another one")
            yield self._shelves

    def get(self, ids: Sequence[str]) -> Fetched:
        """See `Store.get`."""
        with self._open() as shelves:
            found = {one: shelves.entries[one] for one in ids if one in shelves.entries}
            state = shelves.state
            return Fetched(entries=found, sequence=state.sequence, epoch=state.epoch)

    def put(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:  # noqa: ARG002 - contract
        """See `Store.put`."""
        with self._open() as shelves:
            return tuple(admit(put, shelves) for put in puts)

    def ancestry(self, id: str) -> Ancestry | None:
        """See `Store.ancestry`."""
        with self._open() as shelves:
            found: dict[str, Ancestor] = {}
            waiting = [id]
            while waiting:
                one = shelves.entries.get(waiting.pop())
                if one is None or one.id in found:
                    continue
                lineage = shelves.lineages[one.id]
                found[one.id] = Ancestor(
                    id=one.id,
                    value=one.value,
                    made=one.made,
                    expires=one.expires,
                    verdict=one.verdict,
                    lineage=lineage,
                )
                waiting += (edge.parent for edge in lineage.parents)
            if id not in found:
                return None
            current = {}
            for source in edge_sources(one.lineage for one in found.values()):
                key = (source.owner, source.index, source.chunk)
                if source.index and key in shelves.sources:
                    current[key] = shelves.sources[key].content
            return Ancestry(entries=found, current=current, epoch=shelves.state.epoch)

    def changes(self, after: int) -> Changes:
        """See `Store.changes`."""
        with self._open() as shelves:
            rebuild = 0 < after < shelves.state.forgotten
            start = 0 if rebuild else after
            newer: list[tuple[str, Kept]] = []
            for name, kept in reversed(shelves.vectors.items()):
                if kept.sequence <= start:
                    break
                newer.append((name, kept))
            newer.reverse()
            removed: dict[tuple[str, str], None] = {}
            for sequence, group, name in shelves.log if start else ():
                held = shelves.vectors.get(name)
                if sequence > start and (held is None or held.group != group):
                    removed[group, name] = None
            return Changes(
                ids=[name for name, _ in newer],
                groups=[kept.group for _, kept in newer],
                vectors=[kept.vector for _, kept in newer],
                removed=tuple(removed),
                sequence=shelves.state.sequence,
                rebuild=rebuild,
            )

    def vectors(self, ids: Sequence[str]) -> Mapping[str, Half]:
        """See `Store.vectors`."""
        with self._open() as shelves:
            return {one: shelves.vectors[one].vector for one in ids if one in shelves.vectors}

    def recall(
        self, selector: Selector, *, now: float, dry_run: bool = False, cascade: bool = True
    ) -> Recall:
        """See `Store.recall`."""
        with self._open() as shelves:
            return _recall(shelves, selector, now, dry_run=dry_run, cascade=cascade)

    def recall_all(self, selectors: Sequence[Selector], *, now: float) -> tuple[Recall, ...]:
        """See `stemma.stores.protocol.RecallsMany`."""
        with self._open() as shelves:
            return tuple(
                _recall(shelves, one, now, dry_run=False, cascade=True) for one in selectors
            )

    def remove(self, ids: Sequence[str]) -> int:
        """See `Store.remove`."""
        with self._open() as shelves:
            stored = [one for one in dict.fromkeys(ids) if one in shelves.entries]
            if stored:
                shelves.state.sequence += 1
                shelves.state.epoch = shelves.state.sequence
                shelves.drop(stored)
            return len(stored)

    def judge(self, judgement: Judgement, near: Sequence[str] = ()) -> Entry | None:
        """See `Store.judge`."""
        with self._open() as shelves:
            shelves.note(judgement)
            return judge(judgement, near, shelves)

    def journal(self, servings: Sequence[Serving], counts: Sequence[Count]) -> None:
        """See `Store.journal`."""
        with self._open() as shelves:
            if not servings and not counts:
                return
            shelves.state.sequence += 1
            self._servings += servings
            del self._servings[: -rules.SERVINGS]
            for count in counts:
                key = (count.tenant, count.node, count.outcome)
                held = self._counts.get(key)
                self._counts[key] = count if held is None else _sum(held, count)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """See `Store.learn`."""
        with self._open() as shelves:
            shelves.state.sequence += bool(lessons)
            for lesson in lessons:
                self._taught += 1
                held = self._lessons.setdefault((lesson.tenant, lesson.node), [])
                held.append(replace(lesson, number=self._taught))
                del held[: -rules.LESSONS]

    def lessons(self, tenant: str, node: str, *, after: int = 0) -> tuple[Lesson, ...]:
        """See `Store.lessons`."""
        with self._open():
            held = self._lessons.get((tenant, node), [])
            return tuple(one for one in held if one.number > after)

    def lineage(self, id: str) -> Lineage | None:
        """See `Store.lineage`."""
        with self._open() as shelves:
            return shelves.lineages.get(id)

    def children(self, id: str) -> tuple[str, ...]:
        """See `Store.children`."""
        with self._open() as shelves:
            linked = shelves.children.get(id, set())
            return tuple(sorted(child for child in linked if child in shelves.entries))

    def find(
        self, selector: Selector | None = None, *, limit: int = 100, before: int | None = None
    ) -> tuple[Entry, ...]:
        """See `Store.find`."""
        with self._open() as shelves:
            newest = reversed(shelves.entries.values())
            found = newest if selector is None else shelves.selected(selector)
            older = (one for one in found if before is None or one.sequence < before)
            return tuple(islice(older, max(limit, 0)))

    def counts(self) -> tuple[Count, ...]:
        """See `Store.counts`."""
        with self._open():
            return tuple(self._counts[key] for key in sorted(self._counts))

    def servings(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Serving, ...]:
        """See `Store.servings`."""
        with self._open():
            return _newest(self._servings, lambda one: entry in (None, one.entry), limit)

    def judgements(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Judgement, ...]:
        """See `Store.judgements`."""
        with self._open() as shelves:
            said = shelves.judgements if entry is None else shelves.said(entry)
            return _newest(said, lambda _: True, limit)

    def recalls(self, *, limit: int = 1000) -> tuple[Recall, ...]:
        """See `Store.recalls`."""
        with self._open() as shelves:
            return _newest(shelves.receipts, lambda _: True, limit)

    def offered(self, place: str, *, limit: int = 1000) -> tuple[Entry, ...]:
        """See `Sharing.offered`."""
        with self._open() as shelves:
            return memory_sharing.offered(shelves, place, limit)

    def descent(self, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """See `Sharing.descent`."""
        with self._open() as shelves:
            return memory_sharing.descent(shelves, ids)

    def crossed(self, *, limit: int = CROSSED) -> tuple[tuple[str, str], ...]:
        """See `Sharing.crossed`."""
        with self._open() as shelves:
            return memory_sharing.crossed(shelves, limit)

    def shared(self) -> tuple[Shared, ...]:
        """See `Sharing.shared`."""
        with self._open() as shelves:
            return memory_sharing.shared(shelves)

    def flows(
        self, *, now: float, half_life: float | None = None, entries: Sequence[str] | None = None
    ) -> tuple[Flow, ...]:
        """See `Sharing.flows`."""
        with self._open():
            return memory_sharing.flows(self._servings, now, half_life, entries)

    def hold(self, quarantine: Quarantine) -> Quarantine:
        """See `Sharing.hold`."""
        with self._open() as shelves:
            return memory_sharing.hold(shelves, quarantine)

    def release(self, id: str, *, now: float) -> Quarantine | None:
        """See `Sharing.release`."""
        with self._open() as shelves:
            return memory_sharing.release(shelves, id, now)

    def quarantines(self, *, limit: int = 1000) -> tuple[Quarantine, ...]:
        """See `Sharing.quarantines`."""
        with self._open() as shelves:
            return _newest(list(shelves.quarantines.values()), lambda _: True, limit)

    def sizes(self) -> Mapping[tuple[str, str], int]:
        """See `Store.sizes`."""
        with self._open() as shelves:
            sizes: dict[tuple[str, str], int] = {}
            for entry in shelves.entries.values():
                room = (entry.tenant, entry.node)
                sizes[room] = sizes.get(room, 0) + 1
            return sizes

    def sequence(self) -> int:
        """See `Store.sequence`."""
        with self._open() as shelves:
            return shelves.state.sequence

    def check(self) -> tuple[str, ...]:
        """Memory has nothing to mend: everything was written under one lock."""
        with self._open():
            return ()

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._shelves = None


def _sum(one: Count, other: Count) -> Count:
    return Count(
        tenant=one.tenant,
        node=one.node,
        outcome=one.outcome,
        lookups=one.lookups + other.lookups,
        seconds=one.seconds + other.seconds,
        tokens=one.tokens + other.tokens,
    )


def _newest(items: Sequence[T], wanted: Callable[[T], bool], limit: int) -> tuple[T, ...]:
    return tuple(islice(filter(wanted, reversed(items)), max(limit, 0)))


def _recall(
    shelves: Shelves, selector: Selector, now: float, *, dry_run: bool, cascade: bool
) -> Recall:
    if cascade:
        reached = shelves.reached(selector)
        stored = [shelves.entries[one] for one in reached if one in shelves.entries]
    else:
        stored = list(shelves.selected(selector))
    stored.sort(key=lambda entry: entry.sequence)
    state = shelves.state
    receipt = Recall(
        selector=dict(selector.parts()),
        dry_run=dry_run,
        entries=tuple(
            Recalled(entry=one.id, tenant=one.tenant, node=one.node, hop=one.hop) for one in stored
        ),
        sequence=state.sequence + (not dry_run),
        at=0.0 if dry_run else now,
    )
    if not dry_run:
        state.sequence += 1
        state.epoch = state.recalled = state.sequence
        shelves.receipts.append(receipt)
        shelves.last_taken.update((one.id, state.sequence) for one in stored)
        shelves.drop([one.id for one in stored])
    return receipt
