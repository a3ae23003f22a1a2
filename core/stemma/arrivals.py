"""Documents that come into an index, change or go: what is taken back for it.

* What was built on a chunk that **changed or went** is recalled by its source.
* A **new** chunk recalls every stored retrieval from that index among whose first k it belongs:
  those to whose query it is nearer than their k-th chunk. That is told exactly for searches by
  similarity. A retrieval whose filter would have kept the chunk out is recalled all the same, and a
  retrieval of another kind (MMR, hybrid, scores cut off, vectors unknown) is recalled whatever the
  chunk: the rule errs on that side only.
* A list that the new chunk enters behind the first k is cut off there, so that it proves no more
  than is true (`stemma.ranking.narrowed`).
* What is being computed just then, from a search made before, is refused at its put: the recall of
  `arrivals(index)` stands in the journal for that. It is made twice, and what was stored in between
  is looked at as well: a list that served another query before it was cut off.
* What was built on a retrieval that is not stored (nothing was found, metadata without a stored
  form), and a retrieval by something built around the index (parent documents, ensembles), have
  `arrivals(index)` as a source, and go with any chunk that comes, changes or goes.

What is needed of the stored lists (`_Lists`) is kept in memory from one call to the next, and
follows the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from stemma import forking
from stemma.codec import JsonCodec
from stemma.effects import Ask, Steps
from stemma.embedders.protocol import Matrix
from stemma.entry import Entry, Lineage, Vector, arrivals
from stemma.errors import CodecError, StoreUnavailable, UsageError
from stemma.outcome import Recall
from stemma.parts import Parts
from stemma.policies.neighbours import unit
from stemma.ranking import RankingCodec, narrowed
from stemma.selector import Selector
from stemma.stores.protocol import Fetched, Put, Store
from stemma.taking_back import recall_all, together

__all__ = ["Arrivals"]

PORTION = 256
"""Stored lists that are read, or written, at a time."""

BLOCK = 1_024
"""New chunks that are compared at a time."""

FEW = 1_024
"""Lists that are kept in memory without asking whether they are still stored."""

AGAIN = 1e-4
"""How far a similarity may be off, where a text was embedded once more, in another batch."""

_CODEC = RankingCodec(JsonCodec())  # the documents in a list are not read here


class _List(NamedTuple):
    """What counts of one stored retrieval; without a query where nothing is known of it."""

    sequence: int
    query: Vector | None = None
    radius: float = 0.0
    floor: float = 0.0


class _Survey(NamedTuple):
    """What new chunks do to the stored lists: which go, and how near the others are reached."""

    taken: dict[str, int]
    reached: dict[str, tuple[int, float]]


class Arrivals:
    """What one cache knows of the lists that each index gave.

    Args:
        parts: What the cache works with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: dict[str, _Lists] = {}
        self._lock = forking.Lock()

    def note(
        self,
        index: str,
        added: Sequence[object | None],
        changed: Iterable[str],
        removed: Iterable[str],
    ) -> Steps[Recall]:
        """Take back what documents that came, changed or went have made untrue.

        Raises:
            UsageError: An argument is wrong.
            StoreError: The store could not do it. Not everything was taken back.
        """
        if not isinstance(index, str) or index == "":
            raise UsageError("index must be the identity of an index: a text that is not empty")
        gone = list(dict.fromkeys((*_texts("changed", changed), *_texts("removed", removed))))
        vectors = [None if one is None else unit(one) for one in added]
        named = [*gone, arrivals(index)] if gone else []
        try:
            receipts = yield from recall_all(self._parts, [Selector(source=one) for one in named])
            if vectors:
                receipts += yield from self._arrived(index, vectors)
        except StoreUnavailable as error:
            raise StoreUnavailable(f"not all was taken back, do it again: {error}") from error
        named_here = {"index": index, "added": str(len(vectors)), "gone": str(len(gone))}
        receipt = together(self._parts, receipts, named_here)
        self._parts.saw(receipt.sequence)
        self._parts.tell("recall", None, "recalled", detail=str(receipt))
        return receipt

    def _arrived(self, index: str, vectors: Sequence[Vector | None]) -> Steps[list[Recall]]:
        with self._lock:
            lists = self._known.setdefault(index, _Lists(index))
        known = [one for one in vectors if one is not None]
        receipts: list[Recall] = []
        after = 0
        for _ in range(2):
            (barrier,) = yield from recall_all(self._parts, [Selector(source=arrivals(index))])
            receipts.append(barrier)
            told = (self._parts.store, after, known, len(known) < len(vectors))
            survey: _Survey = yield Ask(lists, "survey", told)
            taken = [Selector(entry=one) for one in survey.taken]
            receipts += yield from recall_all(self._parts, taken)
            lists.forget(survey.taken)
            receipts += yield from self._narrow(survey)
            after = barrier.sequence
        return receipts

    def _narrow(self, survey: _Survey) -> Steps[list[Recall]]:
        """Cut off the lists that new chunks have entered behind the first k.

        One that cannot be, since another change came between, is taken back.
        """
        store, ids, missed = self._parts.store, list(survey.reached), list[str]()
        for start in range(0, len(ids), PORTION):
            fetched: Fetched = yield Ask(store, "get", (ids[start : start + PORTION],))
            puts = []
            for entry in fetched.entries.values():
                sequence, nearest = survey.reached[entry.id]
                if entry.sequence == sequence:
                    puts.append((yield from self._narrowed(entry, nearest, fetched.sequence)))
            done = (yield Ask(store, "put", (puts, self._parts.clock.now()))) if puts else ()
            missed += [
                put.entry.id for put, one in zip(puts, done, strict=True) if one.entry is None
            ]
        return (yield from recall_all(self._parts, [Selector(entry=one) for one in missed]))

    def _narrowed(self, entry: Entry, nearest: float, since: int) -> Steps[Put]:
        lineage: Lineage | None = yield Ask(self._parts.store, "lineage", (entry.id,))
        payload = narrowed(entry.payload, nearest)
        return Put(
            entry=replace(entry, payload=payload),
            lineage=Lineage() if lineage is None else lineage,
            vector=_CODEC.decode(payload).query,
            since=since,
            replaces=entry.sequence,
        )


@dataclass(slots=True)
class _Lists:
    """The stored retrievals of one index, as far as the store has been read."""

    index: str
    known: dict[str, _List] = field(default_factory=dict)
    latest: int = 0
    most: int = 0
    lock: forking.Lock = field(default_factory=forking.Lock)

    def survey(self, store: Store, after: int, added: Sequence[Vector], blind: bool) -> _Survey:
        """What new chunks do to the lists that were stored after a sequence.

        Args:
            store: The store.
            after: The sequence.
            added: The new chunks' unit vectors, those that are known.
            blind: Whether there are others, so that every retrieval may have missed one.
        """
        with self.lock:
            self._catch_up(store)
            lists = {name: one for name, one in self.known.items() if one.sequence > after}
        nearest = _nearest(lists, added)
        taken, reached = {}, {}
        for name, one in lists.items():
            near = nearest.get(name)
            if blind or near is None or near >= one.radius - AGAIN:
                taken[name] = one.sequence
            elif near > one.floor - AGAIN:
                reached[name] = (one.sequence, near + AGAIN)
        return _Survey(taken, reached)

    def forget(self, taken: Mapping[str, int]) -> None:
        """Forget lists that have been taken back, unless they were stored again since."""
        with self.lock:
            for name, sequence in taken.items():
                known = self.known.get(name)
                if known is not None and known.sequence == sequence:
                    del self.known[name]

    def _catch_up(self, store: Store) -> None:
        """Read what was stored since; all of it, once half of what is known may be gone."""
        if len(self.known) > max(FEW, self.most):
            self.known.clear()
            self.latest = 0
        full = self.latest == 0
        selector = Selector(index=self.index, node="retrieval")
        latest, before = self.latest, None
        while True:
            found = store.find(selector, limit=PORTION, before=before)
            for entry in found:
                if entry.sequence > self.latest:
                    self.known[entry.id] = _list(entry)
                    latest = max(latest, entry.sequence)
            if len(found) < PORTION or found[-1].sequence <= self.latest:
                break
            before = found[-1].sequence
        self.latest = latest
        if full:
            self.most = 2 * len(self.known)


def _list(entry: Entry) -> _List:
    if not entry.codec.startswith("ranking/"):
        return _List(entry.sequence)
    try:
        ranking = _CODEC.decode(entry.payload)
    except CodecError:
        return _List(entry.sequence)
    if ranking.query is None:
        return _List(entry.sequence)
    # Without vectors it serves no other query, so what comes behind its first k is of no account.
    floor = ranking.radius if ranking.vectors is None else ranking.floor
    return _List(entry.sequence, ranking.query, ranking.radius, floor)


def _nearest(lists: dict[str, _List], added: Sequence[Vector]) -> dict[str, float]:
    """For each list with a query of the same length: how near the nearest of the new chunks is."""
    if not added:
        return {}
    width = len(added[0])
    queries = {k: one.query for k, one in lists.items() if one.query is not None}
    fitting = {k: query for k, query in queries.items() if len(query) == width}
    if not fitting or any(len(one) != width for one in added):
        return {}
    matrix: Matrix = np.stack(list(fitting.values()))
    best = np.full(len(fitting), -1.0, dtype=np.float32)
    for start in range(0, len(added), BLOCK):
        block = np.stack(added[start : start + BLOCK])
        np.maximum(best, (matrix @ block.T).max(axis=1), out=best)
    return dict(zip(fitting, best.tolist(), strict=True))


def _texts(name: str, given: Iterable[str]) -> list[str]:
    found = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(one, str) for one in found):
        raise UsageError(f"{name} must be ids of chunks or documents, which are texts")
    return found
