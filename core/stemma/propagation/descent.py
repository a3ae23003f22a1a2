"""What was built on some entries, out of a store, and how errors pass down there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from stemma.entry import Entry
from stemma.errors import UsageError
from stemma.namesakes import Namesakes
from stemma.policies.shares import share
from stemma.propagation.attenuation import CERTAIN, Passing
from stemma.propagation.edges import Edges
from stemma.scope import PURE
from stemma.selector import Selector
from stemma.stores.protocol import Store

__all__ = ["Descent", "Seeds", "descent", "named", "stored"]

Seeds = str | Mapping[str, float]
"""An entry's id, which is taken for wrong, or ids with how likely each is wrong."""

_TOGETHER = 2_000
"""Entries that are read at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Descent:
    """Some entries and everything built on them, over all generations.

    Args:
        seeds: How likely some entries are wrong of themselves, above 0 to 1.
        entries: Those that are stored, by id; seeds may have gone.
        pairs: What was built on what: parent and child.
        edges: The same, with how likely errors pass; its names are the ids.
        copies: Those of the pairs that are promotions, original and copy.
    """

    seeds: Mapping[str, float]
    entries: Mapping[str, Entry]
    pairs: tuple[tuple[str, str], ...]
    edges: Edges
    copies: frozenset[tuple[str, str]]

    @property
    def ids(self) -> list[str]:
        """The seeds, and all that was built on them, whether it is still stored or not."""
        return list(dict.fromkeys(chain(self.seeds, chain.from_iterable(self.pairs))))


def stored(store: Store, ids: Iterable[str]) -> dict[str, Entry]:
    """Those of some entries that are stored, read in batches."""
    wanted = list(dict.fromkeys(ids))
    found: dict[str, Entry] = {}
    for start in range(0, len(wanted), _TOGETHER):
        found |= store.get(wanted[start : start + _TOGETHER]).entries
    return found


def named(
    store: Store, seeds: Iterable[Seeds], *, source: str | None = None, tenant: str | None = None
) -> dict[str, float]:
    """How likely each seed is wrong. What was built on the source, or is the tenant's, certainly.

    A tenant's are also the pools' entries that it made. What a pool holds is as wrong where it was
    copied from, and where others agreed (`stemma.namesakes`).

    Raises:
        UsageError: Nothing is named, or an entry of which nothing was ever known.
    """
    found: dict[str, float] = {}
    for some in seeds:
        for one, likely in ({some: 1.0} if isinstance(some, str) else _checked(some)).items():
            found[one] = max(found.get(one, 0.0), likely)
    if not found and source is None and tenant is None:
        raise UsageError("name what is suspected: entries, a source or a tenant")
    there = stored(store, found)
    for one in found:
        if one not in there and store.lineage(one) is None:
            raise UsageError(f"there is no entry {one!r}")
    for entry in there.values():
        for other in Namesakes(store).of(entry):
            found[other.id] = max(found.get(other.id, 0.0), found[entry.id])
    for selector in _selectors(source, tenant):
        rehearsal = store.recall(selector, now=0.0, dry_run=True, cascade=False)
        found |= {one.entry: 1.0 for one in rehearsal.entries if one.node not in PURE}
    return found


def descent(store: Store, seeds: Mapping[str, float], passing: Passing) -> Descent:
    """Read what was built on the seeds. A copy in a pool is certainly as wrong as its original."""
    every = store.descent(list(seeds))
    entries = stored(store, chain(seeds, chain.from_iterable(every)))
    pure = {one for one, entry in entries.items() if entry.node in PURE}
    pairs = every if not pure else _around(pure, every, seeds)
    edges: list[tuple[str, str, float]] = []
    copies: list[tuple[str, str]] = []
    for parent, child in pairs:
        above, below = entries.get(parent), entries.get(child)
        if _copied(above, below):
            copies.append((parent, child))
            edges.append((parent, child, CERTAIN))
        else:
            # Of what has gone, nobody says whose it was: most edges are within a tenant.
            tenants = [one.tenant for one in (above, below) if one is not None] or [""]
            edges.append((parent, child, passing.between(tenants[0], tenants[-1]).mean))
    reached = dict.fromkeys(chain(seeds, chain.from_iterable(pairs)))
    return Descent(
        seeds=seeds,
        entries={one: entries[one] for one in reached if one in entries and one not in pure},
        pairs=tuple((parent, child) for parent, child, _ in edges),
        edges=Edges.between(edges, also=seeds),
        copies=frozenset(copies),
    )


def _around(
    pure: set[str], pairs: Sequence[tuple[str, str]], seeds: Iterable[str]
) -> list[tuple[str, str]]:
    """The edges below the seeds that lead neither to nor through pure values."""
    children: dict[str, list[str]] = {}
    for parent, child in pairs:
        if parent not in pure and child not in pure:
            children.setdefault(parent, []).append(child)
    waiting = list(dict.fromkeys(seeds))
    reached, kept = set(waiting), list[tuple[str, str]]()
    while waiting:
        parent = waiting.pop()
        for child in children.get(parent, ()):
            kept.append((parent, child))
            if child not in reached:
                reached.add(child)
                waiting.append(child)
    return kept


def _copied(parent: Entry | None, child: Entry | None) -> bool:
    """Whether the child is a copy in a pool: only promotion writes there."""
    if child is None or child.pool is None:
        return False
    return parent is None or parent.value == child.value


def _checked(seeds: Mapping[str, float]) -> Mapping[str, float]:
    if not isinstance(seeds, Mapping):
        raise UsageError(
            f"a seed is an entry's id, or ids with probabilities, not {type(seeds).__name__}"
        )
    for one, likely in seeds.items():
        if not isinstance(one, str):
            raise UsageError(f"an entry's id is a text, not {type(one).__name__}")
        if not share(f"the probability of {one!r}", likely):
            raise UsageError(f"the probability of {one!r} must be above 0")
    return seeds


def _selectors(source: str | None, tenant: str | None) -> list[Selector]:
    given = {"source": source, "tenant": tenant}
    return [Selector(**{name: value}) for name, value in given.items() if value is not None]
