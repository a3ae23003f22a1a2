"""How answers travel between tenants, as a store knows it: who was served, who built on whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from stemma.entry import Entry
from stemma.parts import Parts
from stemma.policies.changes import check_number
from stemma.propagation.attenuation import CERTAIN, Attenuation, Passing
from stemma.propagation.audits import audits
from stemma.stats import summed
from stemma.stores.protocol import Store
from stemma.stores.sharing import Flow

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["HALF_LIFE", "MOST", "PURE", "Propagation", "described", "graph_of", "stored"]

HALF_LIFE = 7 * 86_400.0
"""Seconds after which what was served counts half, by default."""

MOST = 2_000
"""Edges between entries that are shown at most, of each kind the newest."""

PURE = frozenset({"embedding", "rerank"})
"""Nodes whose values are functions of contents alone: no answers, and nobody's parents."""

_TOGETHER = 2_000
"""Entries that are read at once."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Propagation:
    """The tenants' graph. Edges point the way that answers went.

    Args:
        graph: A `networkx.DiGraph`. Tenants are their names; all other nodes are tuples:
            `("source", owner, document)`, `("tool", name)`, `("entry", id)`. All have `kind` and
            `label`; tenants `answers` and `entries`, entries what is known of them. Edges have
            `kind`, `uses`, `served`, `built`, `strength`, `recent`, `attenuation`, `deviation`,
            `first`, `last` and `pools`.
        now: As of when, seconds since 1970-01-01 UTC.
        half_life: Seconds after which what happened counts half; `None`: it never does.
    """

    graph: nx.DiGraph[Any] = field(repr=False)
    now: float
    half_life: float | None = None


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
        return _attributes(
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
    return _Drawing(parts.store, at, half_life).drawn(entries=entries, sources=sources, tools=tools)


def stored(store: Store, ids: Iterable[str]) -> dict[str, Entry]:
    """Those of some entries that are stored, without the pure ones, read in batches."""
    found: dict[str, Entry] = {}
    wanted = list(dict.fromkeys(ids))
    for start in range(0, len(wanted), _TOGETHER):
        some = store.get(wanted[start : start + _TOGETHER]).entries
        found |= {key: one for key, one in some.items() if one.node not in PURE}
    return found


class _Drawing:
    """Draws the graph of one store."""

    def __init__(self, store: Store, now: float, half_life: float | None) -> None:
        import networkx as nx  # noqa: PLC0415 - it takes longer to import than all of Stemma

        self._store, self._now, self._half_life = store, now, half_life
        self._passing = Passing(audits(store), now=now, half_life=half_life)
        self._graph: nx.DiGraph[Any] = nx.DiGraph()

    def drawn(self, *, entries: bool, sources: bool, tools: bool) -> Propagation:
        flows = self._store.flows(now=self._now, half_life=self._half_life)
        served = [one for one in flows if one.consumer and one.node not in PURE]
        built = self._built()
        self._tenants(served)
        self._ways(served, built)
        if sources or tools:
            self._shared(sources=sources, tools=tools)
        if entries:
            self._entries(built)
        return Propagation(graph=self._graph, now=self._now, half_life=self._half_life)

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
            if parent in found and child in found
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
            recent = weight * self._decay(child.made)
            way.add(weight, recent, child.made, child.made, parent.pool or "")
        for (producer, consumer), way in sorted(ways.items()):
            for name in (producer, consumer):
                if name not in self._graph:
                    self._graph.add_node(name, kind="tenant", label=name, answers=0, entries=0)
            known = self._passing.between(producer, consumer)
            answers = self._graph.nodes[consumer]["answers"]
            self._graph.add_edge(producer, consumer, **way.attributes(known, answers))

    def _decay(self, at: float) -> float:
        age = max(self._now - at, 0.0)
        return 1.0 if self._half_life is None else 0.5 ** (age / self._half_life)

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
                    node, tenant, **_attributes(node[0], uses=uses, strength=uses / whole)
                )

    # ------------------------------------------------------------ entries

    def _entries(self, built: Sequence[_Built]) -> None:
        """The entries that cross, with what was promoted, and to whom that was served."""
        for parent, child in built[:MOST]:
            known = self._passing.between(parent.tenant, child.tenant)
            self._join(parent, child, "built", known.mean, known.deviation)
        copies = self._copies()
        for original, copy in copies:
            self._join(original, copy, "promoted", CERTAIN, 0.0)
        ids = sorted({copy.id for _, copy in copies})
        for flow in self._store.flows(now=self._now, half_life=self._half_life, entries=ids):
            if flow.consumer in self._graph and flow.consumer != flow.producer:
                answers = self._graph.nodes[flow.consumer]["answers"]
                way = _Way(served=flow.uses)
                way.add(flow.weight, flow.recent, flow.first, flow.last, flow.pool)
                attributes = way.attributes(Attenuation(), answers)
                attributes |= {"attenuation": CERTAIN, "deviation": 0.0}
                self._graph.add_edge(("entry", flow.entry), flow.consumer, **attributes)

    def _copies(self) -> list[_Built]:
        """What was promoted, original and copy, of what is stored of both."""
        said = self._store.judgements(limit=MOST * 5)
        pairs = dict.fromkeys(
            (one.question, one.entry) for one in said if one.verdict == "promoted"
        )
        chosen = list(pairs)[:MOST]
        found = stored(self._store, chain.from_iterable(chosen))
        return [_Built(found[a], found[b]) for a, b in chosen if a in found and b in found]

    def _join(self, parent: Entry, child: Entry, kind: str, mean: float, deviation: float) -> None:
        for one in (parent, child):
            self._graph.add_node(("entry", one.id), **described(one))
        edge = _attributes(
            kind,
            uses=1,
            built=1,
            recent=max(parent.confidence, 0.0) * self._decay(child.made),
            attenuation=mean,
            deviation=deviation,
            first=child.made,
            last=child.made,
            pools=tuple(sorted({one.pool for one in (parent, child) if one.pool})),
        )
        self._graph.add_edge(("entry", parent.id), ("entry", child.id), **edge)


def described(entry: Entry, probability: float | None = None) -> dict[str, Any]:
    """An entry's attributes as a node; `probability` of its being wrong, where that is reckoned."""
    place = entry.tenant if entry.pool is None else f"pool {entry.pool}"
    return {
        "kind": "entry",
        "label": f"{entry.node} {entry.id[:12]} of {place}",
        "tenant": entry.tenant,
        "pool": entry.pool,
        "node": entry.node,
        "hop": entry.hop,
        "verdict": entry.verdict,
        "held": bool(entry.held),
        "probability": probability,
        "made": entry.made,
    }


def _attributes(kind: str, *, uses: int, **rest: Any) -> dict[str, Any]:
    """An edge's attributes: all kinds of edges have the same."""
    unknown = Attenuation()
    return {
        "kind": kind,
        "uses": uses,
        "served": 0,
        "built": 0,
        "strength": 0.0,
        "recent": 0.0,
        "attenuation": unknown.mean,
        "deviation": unknown.deviation,
        "first": None,
        "last": None,
        "pools": (),
        **rest,
    }
