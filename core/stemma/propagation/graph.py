"""How answers travel between tenants, as a store knows it: who was served, who built on whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from stemma.entry import Entry
from stemma.parts import Parts
from stemma.policies.changes import check_number
from stemma.propagation.attenuation import CERTAIN, Attenuation, Passing
from stemma.propagation.attributes import Fading, edge_of, join
from stemma.propagation.audits import JUDGED, audits
from stemma.propagation.descent import Descent, Seeds, descent, named, stored
from stemma.propagation.outbreak import Outbreak, outbreak_of
from stemma.propagation.shown import Shown
from stemma.scope import PURE
from stemma.stats import summed
from stemma.stores.protocol import Store
from stemma.stores.sharing import Flow

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["HALF_LIFE", "MOST", "Propagation", "graph_of"]

HALF_LIFE = 7 * 86_400.0
"""Seconds after which what was served counts half, by default."""

MOST = 2_000
"""Edges between entries that are shown at most, of each kind; of those that cross, the newest."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Propagation(Shown):
    """The tenants' graph. Edges point the way that answers went.

    Prints as a table, shows as a picture in Jupyter.

    Args:
        graph: A `networkx.DiGraph`. Tenants are their names; all other nodes are tuples:
            `("source", owner, document)`, `("tool", name)`, `("entry", id)`. All have `kind` and
            `label`; tenants `answers` and `entries`, entries what is known of them. Edges have
            `kind`, `uses`, `served`, `built`, `strength`, `recent`, `attenuation`, `deviation`,
            `first`, `last` and `pools`.
        fading: As of when it is, and how the past counts less.
        entries: Whether it shows entries.
        passing: How likely errors pass, by what audits told.
        store: What it was read from.
    """

    graph: nx.DiGraph[Any] = field(repr=False)
    fading: Fading
    entries: bool
    passing: Passing = field(repr=False)
    store: Store = field(repr=False)

    def spread(
        self,
        *seeds: Seeds,
        source: str | None = None,
        tenant: str | None = None,
        worlds: int = 1024,
    ) -> Outbreak:
        """How far errors have spread from some entries, read from the store anew.

        Args:
            *seeds: Entries' ids, taken for wrong; or mappings from ids to how likely each is
                wrong, above 0 to 1. They may have gone.
            source: All entries that were built on this document, or chunk, are wrong.
            tenant: All that this tenant made are.
            worlds: How many are sampled, where the reckoning is not exact.

        Raises:
            UsageError: Nothing is named, an entry of which nothing was ever known, or a number is
                out of its range.
            StoreError: The store could not be read.
        """
        suspected = named(self.store, seeds, source=source, tenant=tenant)
        below = descent(self.store, suspected, self.passing)
        graph = self.graph.copy()
        if self.entries:
            self._show(graph, below)
        return outbreak_of(self.store, below, graph=graph, worlds=worlds)

    def _show(self, graph: nx.DiGraph[Any], below: Descent) -> None:
        """Add what was built on some entries to a graph that shows entries."""
        for pair in below.pairs[:MOST]:
            parent, child = map(below.entries.get, pair)
            if parent is not None and child is not None:
                known = self.passing.between(parent.tenant, child.tenant)
                copied = pair in below.copies
                join(graph, parent, child, None if copied else known, self.fading)


class _Built(NamedTuple):
    """An entry that was built on another's."""

    parent: Entry
    child: Entry


@dataclass(slots=True)
class _Way:
    """What went from one tenant to another, added up."""

    served: int = 0
    built: int = 0
    weight: float = 0.0
    recent: float = 0.0
    first: float = math.inf
    last: float = -math.inf
    pools: set[str] = field(default_factory=set)

    def add(self, weight: float, recent: float, first: float, last: float, pool: str) -> None:
        self.weight += weight
        self.recent += recent
        self.first, self.last = min(self.first, first), max(self.last, last)
        if pool:
            self.pools.add(pool)

    def attributes(self, known: Attenuation, answers: int) -> dict[str, Any]:
        """Those of an edge whose consumer had so many answers in all."""
        uses = self.served + self.built
        return edge_of(
            "served" if self.served else "built",
            uses=uses,
            served=self.served,
            built=self.built,
            strength=min(self.weight / max(answers, uses), 1.0),
            recent=self.recent,
            attenuation=known.mean,
            deviation=known.deviation,
            first=self.first,
            last=self.last,
            pools=tuple(sorted(self.pools)),
        )


def graph_of(
    parts: Parts,
    *,
    entries: bool = False,
    sources: bool = True,
    tools: bool = True,
    half_life: float | None = HALF_LIFE,
    now: float | None = None,
) -> Propagation:
    """Read the tenants' graph. See `Cache.propagation`.

    Raises:
        UsageError: A number is out of its range.
        StoreError: The store could not be read.
    """
    at = parts.clock.now() if now is None else now
    check_number("now", at, low=-math.inf)
    check_number("half_life", half_life, low=0.0, open_low=True)
    parts.journal.flush()
    return _Drawing(parts.store, Fading(at, half_life)).drawn(
        entries=entries, sources=sources, tools=tools
    )


class _Drawing:
    """Draws the graph of one store."""

    def __init__(self, store: Store, fading: Fading) -> None:
        import networkx as nx  # noqa: PLC0415 - it takes longer to import than all of Stemma

        self._store, self._fading = store, fading
        self._passing = Passing(audits(store), **fading._asdict())
        self._graph: nx.DiGraph[Any] = nx.DiGraph()

    def drawn(self, *, entries: bool, sources: bool, tools: bool) -> Propagation:
        flows = self._store.flows(**self._fading._asdict())
        served = [one for one in flows if one.consumer and one.node not in PURE]
        built = self._built()
        self._tenants(served)
        self._ways(served, built)
        if sources or tools:
            self._shared(sources=sources, tools=tools)
        if entries:
            self._entries(built)
        return Propagation(
            graph=self._graph,
            fading=self._fading,
            entries=entries,
            passing=self._passing,
            store=self._store,
        )

    def _tenants(self, served: Sequence[Flow]) -> None:
        answers: Counter[str] = Counter()
        held: Counter[str] = Counter()
        for flow in served:
            answers[flow.consumer] += flow.uses
        for row in summed(self._store.counts(), self._store.sizes()).rows:
            if row.tenant and row.node not in PURE:
                answers[row.tenant] += sum(row.misses.values())
                held[row.tenant] += row.entries
        producers = (flow.producer for flow in served if flow.producer)
        for name in sorted({*answers, *held, *producers}):
            self._graph.add_node(
                name, kind="tenant", label=name, answers=answers[name], entries=held[name]
            )

    def _built(self) -> list[_Built]:
        pairs = self._store.crossed()
        found = stored(self._store, chain.from_iterable(pairs))
        return [
            _Built(found[parent], found[child])
            for parent, child in pairs
            if {parent, child} <= found.keys()
            and not {found[parent].node, found[child].node} & PURE
        ]

    def _ways(self, served: Sequence[Flow], built: Sequence[_Built]) -> None:
        ways: dict[tuple[str, str], _Way] = {}
        for flow in served:
            if flow.producer and flow.producer != flow.consumer:
                way = ways.setdefault((flow.producer, flow.consumer), _Way())
                way.served += flow.uses
                way.add(flow.weight, flow.recent, flow.first, flow.last, flow.pool)
        counted = set[tuple[str, str]]()
        for parent, child in built:
            way = ways.setdefault((parent.tenant, child.tenant), _Way())
            once = (parent.tenant, child.id)  # an answer counts once, of however many it is made
            weight = 0.0 if once in counted else max(parent.confidence, 0.0)
            way.built += once not in counted
            counted.add(once)
            recent = weight * self._fading.left(child.made)
            way.add(weight, recent, child.made, child.made, parent.pool or "")
        for (producer, consumer), way in sorted(ways.items()):
            for name in (producer, consumer):
                if name not in self._graph:
                    self._graph.add_node(name, kind="tenant", label=name, answers=0, entries=0)
            known = self._passing.between(producer, consumer)
            answers = self._graph.nodes[consumer]["answers"]
            self._graph.add_edge(producer, consumer, **way.attributes(known, answers))

    # ------------------------------------------------------------ sources and tools

    def _shared(self, *, sources: bool, tools: bool) -> None:
        """Documents, and what tools read, to the tenants who have entries built on them."""
        from stemma.tools.resources import kind_of  # noqa: PLC0415 - tools are made with a cache

        reads: dict[tuple[tuple[str, ...], str], int] = {}
        for one in self._store.shared():
            tool = kind_of(one.document)
            if one.tenant not in self._graph or not (sources if tool is None else tools):
                continue
            node: tuple[str, ...] = ("source", one.owner, one.document)
            if tool is not None:
                node = ("tool", tool)
            # A resource is several documents, itself and what it lies in: not more entries.
            reads[node, one.tenant] = max(reads.get((node, one.tenant), 0), one.entries)
        for (node, tenant), uses in reads.items():
            if node != ("tool", ""):
                self._graph.add_node(node, kind=node[0], label=node[-1])
                whole = max(self._graph.nodes[tenant]["entries"], uses)
                self._graph.add_edge(
                    node, tenant, **edge_of(node[0], uses=uses, strength=uses / whole)
                )

    # ------------------------------------------------------------ entries

    def _entries(self, built: Sequence[_Built]) -> None:
        """The entries that cross, with what was promoted, and to whom that was served."""
        for parent, child in built[:MOST]:
            known = self._passing.between(parent.tenant, child.tenant)
            join(self._graph, parent, child, known, self._fading)
        copies = self._copies()
        for original, copy in copies:
            join(self._graph, original, copy, None, self._fading)
        ids = sorted({copy.id for _, copy in copies})
        for flow in self._store.flows(**self._fading._asdict(), entries=ids):
            if flow.consumer in self._graph and flow.consumer != flow.producer:
                answers = self._graph.nodes[flow.consumer]["answers"]
                way = _Way(served=flow.uses)
                way.add(flow.weight, flow.recent, flow.first, flow.last, flow.pool)
                attributes = way.attributes(Attenuation(), answers)
                attributes |= {"attenuation": CERTAIN, "deviation": 0.0}
                self._graph.add_edge(("entry", flow.entry), flow.consumer, **attributes)

    def _copies(self) -> list[_Built]:
        """What was promoted, original and copy, of what is stored of both."""
        said = self._store.judgements(limit=JUDGED)
        pairs = dict.fromkeys(
            (one.question, one.entry) for one in said if one.verdict == "promoted"
        )
        chosen = list(pairs)[:MOST]
        found = stored(self._store, chain.from_iterable(chosen))
        return [_Built(found[a], found[b]) for a, b in chosen if a in found and b in found]
