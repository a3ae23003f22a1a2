"""What the cache keeps: entries, and where each came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from stemma.errors import UsageError
from stemma.keys import digest
from stemma.request import Key, LeftOut
from stemma.scope import Labels, Node, Scope
from stemma.walk import Walk

__all__ = [
    "PERSONAL",
    "QUARANTINED",
    "SCHEMA",
    "UNJUDGED",
    "Cost",
    "Edge",
    "Entry",
    "Judged",
    "Known",
    "Lineage",
    "Offer",
    "Source",
    "SourceEdge",
    "Vector",
    "Verdict",
    "arrivals",
    "content_digest",
    "owner_of",
    "personal_bar",
]

PERSONAL = "tenant:"
"""Begins what bars an entry for one tenant alone. No digest does."""

SCHEMA = 1
"""Version of the stored form of an entry."""

Known = Literal["observed", "ambient"]
Verdict = Literal["unknown", "supported", "hallucinated", "suspect"]
"""`suspect`: it was served where it answers wrongly; whether it is right for its own question has
not been seen since."""

QUARANTINED: frozenset[Verdict] = frozenset({"hallucinated", "suspect"})
"""The verdicts under which an entry is not served, and what was built on it neither."""

Vector = np.ndarray[tuple[int], np.dtype[np.float32]]


def content_digest(text: str) -> str:
    """The content hash of a document's text: 32 hexadecimal digits."""
    return digest("content/1", text)


def arrivals(index: str) -> str:
    """What is recalled, as a source, when documents come into an index, or change in it.

    It concerns what is being computed just then from what was found in the index before, and, as a
    source of theirs, values built on retrievals of which nothing else tells what they looked for
    (`Frame.read_unstored`).
    """
    return f"arrivals:{index}"


def personal_bar(tenant: str, what: str) -> str:
    """What bars an entry of a pool from a question, or its value, for one tenant alone."""
    return f"{PERSONAL}{tenant}:{what}"


def owner_of(owner: object) -> str:
    """Whose a source is of which more than its reader may know, as it was declared.

    Args:
        owner: `"public"`: everybody's; `"pool:…"`: that of a pool's members; `None` or empty: its
            reader's alone.

    Raises:
        UsageError: It is none of these.
    """
    if owner is None or owner == "":
        return ""
    if isinstance(owner, str) and (
        owner == "public" or owner.removeprefix("pool:") not in ("", owner)
    ):
        return owner
    raise UsageError(
        f'owner must be "public", "pool:…" with the pool\'s name, or left out, not {owner!r}'
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A chunk of a document outside the cache.

    Args:
        document: The document's id.
        chunk: The chunk's id; the content hash where it has none.
        content: The content hash (`content_digest` of its text).
        owner: `tenant:…`, `pool:…` or `public`; empty means the tenant who read it.
        index: The identity of the index that vouches for this content, or empty where the chunk
            was merely seen (a compressor may have cut it): only an index can say that it changed.
    """

    document: str
    chunk: str
    content: str
    owner: str = ""
    index: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """From an entry to a parent entry, with the parent's value hash as it was read."""

    parent: str
    value: str
    known: Known = "ambient"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceEdge:
    """From an entry to a source."""

    source: Source
    known: Known = "ambient"


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    """What an entry was built from."""

    parents: tuple[Edge, ...] = ()
    sources: tuple[SourceEdge, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.parents or self.sources)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a hit saves: tokens of the model, and seconds of waiting."""

    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What judgements have made of an entry, beside its verdict.

    Args:
        agreed: How many audits agreed with it: fresh answers that came out the same.
        disagreed: How many did not.
        barred: What it may never answer: digests of questions (`Hit.question`) and, where it is
            wrong for its own, of its value. Kept for the entry's id, also when it is replaced.
            Some hold for one tenant alone (`personal_bar`).
        doubted: Whether it was a wrong hit, or lies near one: before it is served by meaning again,
            an audit must agree with it.
        answer: The value hash by which its answer is known, where it says the same as another
            entry in other words; empty where that is its own.
    """

    agreed: int = 0
    disagreed: int = 0
    barred: tuple[str, ...] = ()
    doubted: bool = False
    answer: str = ""


UNJUDGED = Judged()


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Where an entry's copy would lie in a pool: its maker named that pool while making it.

    What is made where no pool is named is offered to none, and never copied into one.

    Args:
        pool: The pool's name.
        place: The partition, the group and the id that the copy would have. Entries of several
            tenants that answer the same request are offered to the same place.
    """

    pool: str
    place: Key


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One cached value, as it is stored.

    Times are seconds since 1970-01-01 UTC. `expires` ends the entry's own life (`None`: never).
    `proven_until` and `epoch` are a proof made at the put: while the store's invalidation epoch is
    still `epoch` and the time is before `proven_until`, every ancestor is valid as well, and
    nothing needs to be walked. `sequence`, `epoch` and `proven_until` are set by the store.
    `before` are the turns of the conversation that are compared by meaning, `left_out` is what
    cleaning left out of the prompt, and `walk` is how an agent came here. `verified` is when it was
    made, or an audit last agreed. `offer` is where a copy of it would lie in a pool. `held` is a
    quarantine that holds it, by its id, or empty; the store fills it in at reading.
    """

    id: str
    partition: str = field(repr=False)
    group: str = field(repr=False)
    tenant: str
    node: Node
    payload: bytes = field(repr=False)
    codec: str = field(repr=False)
    value: str = field(repr=False)
    pool: str | None = None
    model: str = ""
    index: str = ""
    labels: Labels = field(default=Labels(), repr=False)
    focus: str | None = field(default=None, repr=False)
    hop: int = 1
    confidence: float = 1.0
    cost: Cost = Cost()
    made: float = 0.0
    verified: float = field(default=0.0, repr=False)
    expires: float | None = None
    verdict: Verdict = "unknown"
    derived: bool = field(default=False, repr=False)
    schema: int = field(default=SCHEMA, repr=False)
    sequence: int = field(default=0, repr=False)
    epoch: int = field(default=0, repr=False)
    proven_until: float | None = field(default=None, repr=False)
    before: tuple[str, ...] = field(default=(), repr=False)
    left_out: tuple[LeftOut, ...] = field(default=(), repr=False)
    judged: Judged = field(default=UNJUDGED, repr=False)
    walk: Walk | None = field(default=None, repr=False)
    offer: Offer | None = field(default=None, repr=False)
    held: str = ""

    @property
    def answer(self) -> str:
        """What its answer is known by: entries with an equal one gave the same answer."""
        return self.judged.answer or self.value

    @property
    def owner(self) -> str:
        """In whose partition it lies: `tenant:…` or `pool:…`, as `Scope.owner`."""
        return f"tenant:{self.tenant}" if self.pool is None else f"pool:{self.pool}"

    @property
    def key(self) -> Key:
        """Where the entry lives."""
        return Key(self.partition, self.group, self.id)

    def belongs_to(self, scope: Scope) -> bool:
        """Whether the entry may be served in this scope: partition and owner, checked again."""
        return (
            self.partition == scope.partition
            and self.node == scope.node
            and self.pool == scope.pool
            and (scope.pool is not None or self.tenant == scope.tenant)
        )
