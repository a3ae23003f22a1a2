"""What a lookup, a put and a recall answer: records that say why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from stemma.entry import Entry, Vector
from stemma.legible import counted
from stemma.policies.learning import Trial
from stemma.request import Key
from stemma.scope import Node

if TYPE_CHECKING:
    from stemma.query import Query

__all__ = [
    "REASONS",
    "Held",
    "Hit",
    "Miss",
    "Quarantine",
    "Recall",
    "Recalled",
    "Stored",
    "Ticket",
    "Tier",
]

Tier = Literal["exact", "semantic"]

REASONS: Mapping[str, str] = {
    "cold": "nothing like it is stored",
    "expired": "the stored entry's life is over",
    "below_threshold": "the nearest entry is not near enough",
    "guard:number": "the nearest entry asks about other numbers",
    "guard:unit": "the nearest entry asks about other units",
    "guard:negation": "one of the two is negated",
    "guard:antonym": "the two say opposite things",
    "guard:name": "the nearest entry asks about other names",
    "guard:question": "the nearest entry asks for another kind of thing",
    "guard:order": "the same words in another order",
    "guard:language": "not near enough for a language that the guards do not know",
    "guard:word": "the nearest entry asks about another thing",
    "context": "the conversation before the nearest entry means something else",
    "unproven": "no list found for a near query is known to hold this one's documents",
    "too_few": "the stored list is shorter than what is asked for",
    "intent_drift": "what the agent is after is not what the nearest step was made for",
    "budget": "the hits by meaning that the chain is built on would risk too much together",
    "audit": "it was recomputed to see whether the hit would have been right",
    "source_changed": "a document it was built from has changed",
    "parent_invalid": "an entry it was built from is gone, replaced, expired or quarantined",
    "quarantined": "the stored entry was reported as wrong, or as a wrong hit, or is suspected",
    "reported": "it was reported as a wrong hit for this question",
    "low_confidence": "too little speaks for the stored entry being right",
    "damaged": "the stored record was damaged and has been removed",
    "unreadable": "the stored value could not be read and has been removed",
    "bypassed": "the caller asked not to read the cache",
    "refresh": "the caller asked for a fresh value",
    "no_tenant": "nothing named a tenant",
    "unkeyable": "an argument has no stable key",
    "undeclared": "nothing declares that the tool's results may be kept",
    "writes": "the tool writes, so it is called every time",
    "declined": "the tool's declaration speaks against keeping this call's result",
    "unscoped": "the result belongs to a user or session, and none is named",
    "unresolved": "an argument that names what the tool reads is missing",
    "unsettled": "what it reads is being written, or could not be taken back after a write",
    "fault": "the cache itself failed",
}
"""Every reason a `Miss` can carry, in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A stored value that may be served, and why.

    Args:
        entry: The entry it came from.
        value: The value, a fresh copy each time.
        tier: How it was found.
        similarity: Cosine similarity of the two focuses, −1 to 1; 1 for an exact hit.
        age: Seconds since the value was made.
        why: What allowed it, in words.
        probability: For a semantic hit, the estimated probability that it is right, 0 to 1.
        list: For a retrieval that can serve other queries, how its list is known to be right:
            `"exact"` (the same search), `"prefix"` (a longer one), `"proven"` or `"statistical"`.
        question: The digest of the question it was served to: the id that an entry of its own has,
            or would have. With the entry's id it names the hit, for `Cache.report`.
    """

    entry: Entry
    value: Any = field(repr=False)
    tier: Tier
    similarity: float
    age: float
    why: str
    probability: float = 1.0
    list: str = ""
    question: str = ""

    hit: Literal[True] = field(default=True, repr=False)

    def note(self) -> dict[str, Any]:
        """The hit as plain JSON values: what faces attach to the values they return."""
        note = {
            "hit": True,
            "node": self.entry.node,
            "tier": self.tier,
            "similarity": self.similarity,
            "age": self.age,
            "entry": self.entry.id,
            "question": self.question,
            "saved_tokens": self.entry.cost.tokens,
            "saved_seconds": self.entry.cost.seconds,
        }
        more = {"list": self.list, "pool": self.entry.pool}
        return note | {name: value for name, value in more.items() if value}


@dataclass(frozen=True, kw_only=True, slots=True)
class Miss:
    """No stored value may be served, and why not.

    Args:
        reason: One of `REASONS`.
        ticket: What the later put needs; `None` where nothing can be put.
        nearest: The id of the nearest candidate, where there was one.
        similarity: That candidate's similarity, −1 to 1.
        detail: More words, without any prompt's text.
        trial: What a fresh answer will tell the policy of, where it learns.
    """

    reason: str
    ticket: Ticket | None = field(default=None, repr=False)
    nearest: str | None = None
    similarity: float | None = None
    detail: str = ""
    trial: Trial | None = field(default=None, repr=False)

    hit: Literal[False] = field(default=False, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ticket:
    """What a miss hands to the later put.

    Args:
        query: The question as it was resolved at the lookup: scope, key, tenant, labels, frame.
        sequence: The store's sequence number at the lookup.
        started: The monotonic clock at the lookup, seconds.
        vector: The focus's vector, where it was computed; with its context's (see
            `stemma.policies.context`) where the conversation before it is compared by meaning.
        trial: What the value will tell the policy of, where it learns.
    """

    query: Query = field(repr=False)
    sequence: int
    started: float
    vector: Vector | None = field(default=None, repr=False)
    trial: Trial | None = field(default=None, repr=False)

    @property
    def key(self) -> Key:
        """The exact key under which the value will be stored."""
        return self.query.key


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """The outcome of a put: the entry as stored, or the reason for refusing it.

    Refusals: `recalled` (something it was built from was taken back meanwhile, or documents came
    into the index it was found in), `parent_gone`,
    `overtaken`, `unstorable` (no codec for the value), `too_large`, `not_admitted`, `bypassed`,
    `fault`.
    """

    entry: Entry | None = None
    refused: str | None = None
    detail: str = ""

    def __bool__(self) -> bool:
        return self.entry is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recalled:
    """One entry that a recall takes back."""

    entry: str
    tenant: str
    node: Node
    hop: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """One entry that a quarantine holds.

    Args:
        entry: Its id.
        tenant: Whose it is; of a pool's entry, who made it.
        pool: The pool it lies in, if it does.
        node: Its node.
        hop: Its hop.
        probability: How likely it is wrong, above 0 to 1.
        doubtful: Whether sampling alone may have put it there (`stemma.propagation.quarantine`).
    """

    entry: str
    tenant: str
    node: Node
    hop: int
    probability: float
    pool: str | None = None
    doubtful: bool = False


class _Listing:
    """What is asked of a receipt, whatever it lists. It is true, also where that is nothing."""

    __slots__ = ()

    entries: tuple[Recalled, ...] | tuple[Held, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __bool__(self) -> bool:
        return True

    @property
    def by_node(self) -> dict[str, int]:
        """How many entries of each node."""
        return dict(Counter(item.node for item in self.entries))

    @property
    def by_hop(self) -> dict[int, int]:
        """How many entries of each hop."""
        return dict(sorted(Counter(item.hop for item in self.entries).items()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Recall(_Listing):
    """The receipt of a recall, or with `dry_run` the list of what would go.

    Args:
        selector: What was named, as name and value.
        dry_run: Whether this is only a rehearsal.
        entries: What goes: the entries named, and everything built from them.
        sequence: The store's sequence number of the recall.
        at: When, seconds since 1970-01-01 UTC; 0 of a rehearsal.
    """

    selector: Mapping[str, str]
    dry_run: bool
    entries: tuple[Recalled, ...]
    sequence: int
    at: float = 0.0

    @property
    def by_tenant(self) -> dict[str, int]:
        """How many entries of each tenant."""
        return dict(Counter(item.tenant for item in self.entries))

    def __str__(self) -> str:
        named = ", ".join(f"{name}={value}" for name, value in self.selector.items())
        verb = "would take back" if self.dry_run else "took back"
        nodes = ", ".join(f"{count} {node}" for node, count in sorted(self.by_node.items()))
        entries = counted(len(self), "entry", "entries")
        return f"recall({named}) {verb} {entries}" + (f": {nodes}" if nodes else "")


OWNERS = 10
"""More owners than these a quarantine does not name when it is printed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantine(_Listing):
    """The receipt of a quarantine, or with `dry_run` the list of what would be held.

    Args:
        id: By which it is released; empty of a rehearsal.
        seeds: What was suspected, and how likely each was taken to be wrong, above 0 to 1.
        threshold: How likely an entry had to be wrong, above 0 to 1.
        by: Who suspected it.
        reason: Why, in words.
        at: When, seconds since 1970-01-01 UTC.
        entries: What it holds, the likeliest to be wrong first; also what was released since.
        dry_run: Whether this is only a rehearsal.
        lifted: When it was released as a whole; `None`: it was not.
        sequence: The store's sequence number of it.
        gone: When it is released: which of the entries are not stored any more, by their ids.
    """

    id: str = ""
    seeds: Mapping[str, float]
    threshold: float
    by: str
    reason: str = ""
    at: float
    entries: tuple[Held, ...]
    dry_run: bool = False
    lifted: float | None = None
    sequence: int = 0
    gone: tuple[str, ...] = ()

    @property
    def by_tenant(self) -> dict[str, int]:
        """How many entries of each tenant's own."""
        return dict(Counter(item.tenant for item in self.entries if item.pool is None))

    @property
    def by_pool(self) -> dict[str, int]:
        """How many entries of each pool."""
        return dict(Counter(item.pool for item in self.entries if item.pool is not None))

    def __str__(self) -> str:
        verb = "would hold" if self.dry_run else "held" if self.lifted is None else "released"
        entries = counted(len(self), "entry", "entries")
        owners = [f"{count} in pool {name}" for name, count in sorted(self.by_pool.items())]
        owners += [f"{count} of {name}" for name, count in sorted(self.by_tenant.items())]
        if len(owners) > OWNERS:
            owners[OWNERS:] = [f"and of {counted(len(owners) - OWNERS, 'other', 'others')}"]
        named = f"quarantine {self.id}".rstrip()
        gone = f" ({len(self.gone)} of them gone since)" if self.gone else ""
        return f"{named} {verb} {entries}{gone}" + (f": {', '.join(owners)}" if owners else "")
