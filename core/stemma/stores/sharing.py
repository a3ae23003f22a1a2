"""What a store tells of how answers travel between tenants, and how it holds them back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from stemma.entry import Entry
from stemma.outcome import Quarantine

__all__ = ["CROSSED", "Flow", "Shared", "Sharing", "several"]

CROSSED = 100_000
"""Edges between tenants that are read at once, the newest."""


class Flow(NamedTuple):
    """Servings of one tenant's entries to another tenant, or to itself, added up.

    A tuple, not a record of the other kind: there may be as many as entries.

    Args:
        producer: Who made what was served; empty where the journal does not say.
        consumer: To whom.
        pool: The pool it lay in; empty where it lay in none.
        node: Its node; empty where the journal does not say.
        entry: The entry's id; empty where those of all entries are added up.
        uses: How often.
        weight: The sum of similarity times confidence, each of them cut off at 0.
        recent: The same, each halved with every half-life since; equal to `weight` without one.
        first: When first, seconds since 1970-01-01 UTC.
        last: When last.
    """

    producer: str
    consumer: str
    pool: str
    node: str
    entry: str
    uses: int
    weight: float
    recent: float
    first: float
    last: float


class Shared(NamedTuple):
    """A document on which entries of several tenants were built, or of others than its owner.

    Args:
        owner: Whose it is: `public`, `pool:…` or `tenant:…`.
        document: Its id.
        tenant: A tenant who has entries that were built on it directly.
        entries: How many.
    """

    owner: str
    document: str
    tenant: str
    entries: int


def several(counted: Iterable[Shared]) -> tuple[Shared, ...]:
    """What `Sharing.shared` tells of all that was read: no document that its owner alone reads."""
    read = sorted(counted)
    tenants: dict[tuple[str, str], set[str]] = {}
    for one in read:
        kind, _, name = one.owner.partition(":")
        who = tenants.setdefault((one.owner, one.document), {name} if kind == "tenant" else set())
        who.add(one.tenant)
    return tuple(one for one in read if len(tenants[one.owner, one.document]) > 1)


@runtime_checkable
class Sharing(Protocol):
    """As for `Store`: atomic methods, plain records, reading never writes."""

    def offered(self, place: str, *, limit: int = 1000) -> tuple[Entry, ...]:
        """The stored entries offered to a place in a pool (`Offer.place.id`), oldest first."""
        ...

    def descent(self, ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """The edges (parent, child) below some entries, over all generations, each once.

        Children are stored; parents may have gone. The ids need not be stored either.
        """
        ...

    def crossed(self, *, limit: int = CROSSED) -> tuple[tuple[str, str], ...]:
        """The edges (parent, child) between stored entries of two tenants, newest children first.

        A pool's entry counts as of who made it. A copy into a pool is an edge within its maker.
        """
        ...

    def shared(self) -> tuple[Shared, ...]:
        """Which documents entries of several tenants, or of others than their owner, are built on.

        By owner, document and tenant. A document owned by a tenant who alone reads it is not there.
        """
        ...

    def flows(
        self, *, now: float, half_life: float | None = None, entries: Sequence[str] | None = None
    ) -> tuple[Flow, ...]:
        """The journalled servings by producer, consumer, pool and node, in that order.

        Args:
            now: Seconds since 1970-01-01 UTC; what was served later counts as of now.
            half_life: Seconds, above 0, after which a serving counts half in `recent`.
            entries: If given, only servings of these, and by entry as well (the last to sort by).
        """
        ...

    def hold(self, quarantine: Quarantine) -> Quarantine:
        """Serve what it names no more, from now on, until it is re-verified or released.

        What is held is still stored, and says so at every reading (`Entry.held`); nothing new is
        built on it. The epoch rises. An entry is held until each quarantine that holds it is
        released, or until one of these is true of it: it was judged `supported`; it was computed
        again with another value, or from another lineage. What is not stored is left out of the
        receipt that is given back. A quarantine with an id that there was before changes nothing:
        the receipt of that one is given back.
        """
        ...

    def release(self, id: str, *, now: float) -> Quarantine | None:
        """End a quarantine: what it alone held is served again. The epoch rises.

        Gives its receipt; `None` if there is no such quarantine. One that was released before
        stays as it is.
        """
        ...

    def quarantines(self, *, limit: int = 1000) -> tuple[Quarantine, ...]:
        """The receipts of quarantines, newest first."""
        ...
