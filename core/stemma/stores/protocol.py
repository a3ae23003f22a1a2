"""What a store is.

A store keeps five things and hands out one number:

* **entries**, by id; **vectors**, by entry; **edges**, from entries to parents and to sources;
* the **source table**: the content hash by which each index last vouched for a chunk;
* the **journal**: recalls, judgements, servings, counters and lessons, append-only;
* the **sequence**: one number for the whole store, raised by every write transaction. The
  **epoch** is the sequence of the last *invalidation*: a recall, a removal, a verdict, a changed
  source, or a parent replaced by another value. While the epoch stands, nothing that was valid by
  its ancestors has ceased to be.

Every method is atomic, may be called from any thread, and takes and gives plain records. Reading
never writes. A store raises `StoreError` or gives the truth; a record that fails its checksum is
not given, but named as damaged.

A store may have native async twins (`aget`, `aput`, …); where it has none, the engine calls the
methods named in `quick` in place and the others in a worker thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from stemma.entry import PERSONAL, Entry, Lineage, Source, Vector, Verdict
from stemma.outcome import Recall, Stored
from stemma.selector import Selector
from stemma.stores.sharing import Sharing

__all__ = [
    "Ancestor",
    "Ancestry",
    "Changes",
    "Count",
    "Fetched",
    "Finding",
    "Judgement",
    "Lesson",
    "Put",
    "RecallsMany",
    "Serving",
    "Store",
    "edge_sources",
]


class Fetched(NamedTuple):
    """What `Store.get` found. A tuple, not a record of the other kind: one is made at every read.

    Args:
        entries: The undamaged entries among those asked for, by id.
        damaged: The ids whose records failed their checksum.
        sequence: The store's sequence at reading.
        epoch: The store's epoch at reading.
    """

    entries: Mapping[str, Entry]
    sequence: int
    epoch: int
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Put:
    """One entry to be stored, and the conditions of storing it.

    Args:
        entry: The entry; its `sequence`, `epoch` and `proven_until` are filled in by the store.
        lineage: What it was built from.
        vector: The focus's vector, float32, of any length, or `None`. Kept as float16.
        since: The store's sequence at the lookup: recalls of the entry's own attributes (tenant,
            tag, model, …) after it refuse the put. 0: every recall ever does.
        read_at: By parent id and by chunk id, the sequence at which each was read; `since` where
            one is missing.
        replaces: The sequence of the entry that it must take the place of; 0: of none; `None`: of
            any, or none.
    """

    entry: Entry
    lineage: Lineage = Lineage()
    vector: Vector | None = field(default=None, repr=False)
    since: int
    read_at: Mapping[str, int] = field(default_factory=dict)
    replaces: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ancestor:
    """An entry somewhere above another: what its validity depends on."""

    id: str
    value: str
    made: float
    expires: float | None
    verdict: Verdict
    lineage: Lineage


@dataclass(frozen=True, kw_only=True, slots=True)
class Ancestry:
    """An entry with everything above it.

    Args:
        entries: The entry itself and all its ancestors that exist, by id.
        current: For every source in those lineages that an index vouches for (`Source.index` is
            not empty): the content hash that this owner's index last vouched for, keyed by
            (owner, index, chunk).
        epoch: The store's epoch at reading.
        overlooked: Which of the entries a recall since their puts covers: they are there only
            because what the recall went by was damaged.
    """

    entries: Mapping[str, Ancestor]
    current: Mapping[tuple[str, str, str], str]
    epoch: int
    overlooked: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """What an index must do to follow the store.

    Args:
        ids: Entries with a vector, put after the sequence asked for.
        groups: Their groups.
        vectors: Their vectors, float16; rows may differ in length between groups.
        removed: (group, id) of entries removed after it, that had a vector.
        sequence: The sequence up to which this is complete.
        rebuild: Whether the log of removals no longer reaches back that far: the index must be
            emptied before this is applied, and `ids` holds everything.
    """

    ids: Sequence[str]
    groups: Sequence[str]
    vectors: Sequence[np.ndarray[tuple[int], np.dtype[np.float16]]]
    removed: Sequence[tuple[str, str]]
    sequence: int
    rebuild: bool = False


class Serving(NamedTuple):
    """An entry was served: to whom, how it was found, when, and who made it.

    A tuple, not a record of the other kind: one is made at every hit.

    Args:
        entry: The entry's id.
        tenant: To whom: the consumer.
        tier: How it was found.
        similarity: Of the two focuses, −1 to 1; 1 for an exact hit.
        at: Seconds since 1970-01-01 UTC.
        producer: Whose entry it is; of a pool's, who made it.
        pool: The pool it lies in; empty where it lies in none.
        node: Its node.
        confidence: What it was stored with, 0 to 1.
    """

    entry: str
    tenant: str
    tier: str
    similarity: float
    at: float
    producer: str = ""
    pool: str = ""
    node: str = ""
    confidence: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """A counter's increment, or its sum: lookups of one tenant and node with one outcome."""

    tenant: str
    node: str
    outcome: str
    lookups: int
    seconds: float = 0.0
    tokens: int = 0


Finding = Literal[
    "unknown",
    "supported",
    "hallucinated",
    "wrong_hit",
    "agreed",
    "disagreed",
    "same",
    "grounded",
    "promoted",
    "withdrawn",
]
"""What a judgement says: see `Judgement`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """Somebody, or a comparison of answers, said something of an entry's value.

    Args:
        entry: The entry's id.
        value: Its value hash, as it was judged; empty where only its id is known.
        verdict: `supported` or `hallucinated`: the value is right or wrong; `unknown`: what was
            said of that holds no longer. `wrong_hit`: it was
            served to a question that it does not answer. `agreed` or `disagreed`: an audit of a
            hit that it would have been. `same`: it says the same as the value of another entry.
            `grounded`: how far its sources support it. `promoted`: it was copied into a pool.
            `withdrawn`: it was taken out of one, and comes back only if it is approved of.
        by: Who said so.
        confidence: How sure they are, 0 to 1; of `grounded`, how likely its sources support it.
        at: When, seconds since 1970-01-01 UTC.
        question: The digest of the question it is about, which is the id that an entry of its own
            has or would have; of `same`, the other entry's id, of `promoted` and `withdrawn` that
            of the original. Empty: about no question. Of a tenant's `wrong_hit` of a pool's entry:
            what bars it for that tenant alone (`stemma.entry.personal_bar`).
        tenant: The tenant in whose name it was said; empty: nobody's, as an operator's.
        weight: How far who said it was believed when it was said, 0 to 1.
    """

    entry: str
    value: str
    verdict: Finding
    by: str
    confidence: float
    at: float
    question: str = ""
    tenant: str = ""
    weight: float = 1.0

    @property
    def barred(self) -> str:
        """What a `wrong_hit` forbids: the question, or the value where the question is its own."""
        return self.value if self.question == self.entry else self.question

    @property
    def personal(self) -> bool:
        """Whether it is a `wrong_hit` that holds for its tenant alone."""
        return self.verdict == "wrong_hit" and self.question.startswith(PERSONAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """What a policy was told of a candidate: from lessons, in their order, its state comes again.

    Args:
        tenant: Of whom the policy learnt it.
        node: At which node.
        state: What it belongs to: the policy, the embedder and the verifier, as one text.
        writer: Which cache wrote it.
        candidate: The id of the entry that was tried.
        known: What the policy knew of it, finite numbers.
        weight: How many requests it stands for, 1 or more.
        right: Whether it would have answered rightly.
        by: Who said so.
        requests: How many requests its writer decided since its lesson before.
        at: When, Unix time.
        number: Its place among all lessons; filled in by the store.
    """

    tenant: str
    node: str
    state: str
    writer: str
    candidate: str
    known: tuple[float, ...] = field(repr=False)
    weight: float
    right: bool
    by: str
    requests: int
    at: float
    number: int = 0


@runtime_checkable
class RecallsMany(Protocol):
    """What a store may offer besides: several recalls in one transaction."""

    def recall_all(self, selectors: Sequence[Selector], *, now: float) -> tuple[Recall, ...]:
        """As `Store.recall` for each of them in turn; all of them, or none."""
        ...


@runtime_checkable
class Store(Sharing, Protocol):
    """See the module's text for what holds for all methods."""

    url: str
    quick: frozenset[str]

    def get(self, ids: Sequence[str]) -> Fetched:
        """The entries with these ids, with the store's sequence and epoch."""
        ...

    def put(self, puts: Sequence[Put], now: float) -> tuple[Stored, ...]:
        """Store entries, vectors and edges, each under its own conditions, in one transaction.

        An entry is refused with `recalled` if a recall since its reads covers it or anything it
        was built from, or if that cannot be known, since the store was begun anew or put back to
        an older state; and with `parent_gone` if a parent is no longer there with the value that
        was read, or is quarantined; and with `overtaken` if it must replace an entry that is no
        longer there, or none where there is one. A recall of `arrivals(index)` (`stemma.entry`)
        covers what was retrieved from that index, and what was built on it, unless a stored
        retrieval from it is a parent.
        Otherwise it replaces the entry with the same id. Where that
        one had the same value, what was judged of it stays, and unless the put `replaces` it, one
        more audit has agreed with it; where it had another one and anything was built
        on it, the epoch rises. `proven_until` becomes the earliest end among its
        own life and its parents' proofs (`None`: none of them ends). Sources that an index vouches
        for are entered in the source table; where the content differs from what was there, the
        epoch rises. Puts are applied in order, so one may be the parent of a later one.
        """
        ...

    def ancestry(self, id: str) -> Ancestry | None:
        """An entry with everything above it, or `None` where there is no such entry."""
        ...

    def changes(self, after: int) -> Changes:
        """What changed for an index since a sequence; 0 asks for everything."""
        ...

    def vectors(
        self, ids: Sequence[str]
    ) -> Mapping[str, np.ndarray[tuple[int], np.dtype[np.float16]]]:
        """The vectors of these entries, of those that have one."""
        ...

    def recall(
        self, selector: Selector, *, now: float, dry_run: bool = False, cascade: bool = True
    ) -> Recall:
        """Take back the entries selected and, with `cascade`, everything built from them.

        All of it is gone when this returns, and puts that were under way are refused. Edges of
        what goes stay readable by `lineage`. A rehearsal writes nothing.
        """
        ...

    def remove(self, ids: Sequence[str]) -> int:
        """Remove damaged or unreadable entries (not their children: those become invalid)."""
        ...

    def judge(self, judgement: Judgement, near: Sequence[str] = ()) -> Entry | None:
        """Journal a judgement and note it on the entry, if it is there with that value.

        `stemma.stores.findings` says what it makes of the entry, and of the entries `near` a wrong
        hit, which it makes doubted. What a `wrong_hit` bars holds for the entry's id: whatever is
        put under it later is barred from it as well.
        """
        ...

    def journal(self, servings: Sequence[Serving], counts: Sequence[Count]) -> None:
        """Append a batch of servings, and add counters to their sums.

        Of the servings the newest million are kept (`stemma.stores.rules.SERVINGS`).
        """
        ...

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Append lessons, in their order.

        Of a tenant and node, the newest `stemma.stores.rules.LESSONS` are kept.
        """
        ...

    def lessons(self, tenant: str, node: str, *, after: int = 0) -> tuple[Lesson, ...]:
        """The lessons of a tenant and node with a number above one, oldest first.

        A lesson that is read later has a higher number than all that could be read before.
        """
        ...

    def lineage(self, id: str) -> Lineage | None:
        """What an entry was built from, kept also after the entry went; `None` if never known."""
        ...

    def children(self, id: str) -> tuple[str, ...]:
        """The ids of the stored entries with this one as a parent."""
        ...

    def find(
        self, selector: Selector | None = None, *, limit: int = 100, before: int | None = None
    ) -> tuple[Entry, ...]:
        """Stored entries that a selector selects, newest first; put before a sequence."""
        ...

    def counts(self) -> tuple[Count, ...]:
        """The sums of all counters."""
        ...

    def servings(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Serving, ...]:
        """Journalled servings, newest first."""
        ...

    def judgements(self, *, entry: str | None = None, limit: int = 1000) -> tuple[Judgement, ...]:
        """Journalled verdicts, newest first."""
        ...

    def recalls(self, *, limit: int = 1000) -> tuple[Recall, ...]:
        """Journalled recalls (not rehearsals), newest first."""
        ...

    def sizes(self) -> Mapping[tuple[str, str], int]:
        """How many entries are stored, by (tenant, node)."""
        ...

    def sequence(self) -> int:
        """The store's sequence now."""
        ...

    def check(self) -> tuple[str, ...]:
        """Look for damage and contradictions, mend what can be mended, and say what was found."""
        ...

    def close(self) -> None:
        """Release everything. Using the store afterwards raises `StoreUnavailable`."""
        ...


def edge_sources(lineages: Iterable[Lineage]) -> set[Source]:
    """All sources of some lineages."""
    return {edge.source for lineage in lineages for edge in lineage.sources}
