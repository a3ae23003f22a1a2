"""Which promotions would have had to be left undone, so that an error had stayed at home."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stemma.policies.changes import check_number

__all__ = ["Cut", "Promotion", "smallest_cut"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Promotion:
    """An edge that somebody chose to make, and that could have been left undone.

    Args:
        parent: The entry that was copied into a pool.
        child: The copy.
        uses: What leaving it undone would have cost, such as how often the copy was served; 0 or
            more.

    Raises:
        UsageError: `uses` is no such number.
    """

    parent: Hashable
    child: Hashable
    uses: float = 1.0

    def __post_init__(self) -> None:
        check_number("uses", self.uses, low=0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """The cheapest promotions without which nothing would have reached another tenant.

    Args:
        promotions: Which, in the order they were given.
        uses: What they cost together.
        stops: Whether any would have stopped it: false where a path crosses without a promotion,
            through a shared source or tool. Then there are no promotions in it.
    """

    promotions: tuple[Promotion, ...]
    uses: float
    stops: bool

    def __str__(self) -> str:
        if not self.stops:
            return "no cut of promotions had stopped it: it crossed without one"
        if not self.promotions:
            return "nothing to cut: no other tenant was reached"
        copied = ", ".join(f"{one.parent} to {one.child}" for one in self.promotions)
        return f"left undone, at a cost of {self.uses:g}, this had stopped it: {copied}"


def smallest_cut(
    promotions: Iterable[Promotion],
    built: Iterable[tuple[Hashable, Hashable]],
    tenants: Mapping[Any, Hashable],
    *,
    seeds: Collection[Hashable],
) -> Cut:
    """The cheapest set of promotions that parts the seeds from other tenants.

    Entries are named by anything hashable but `None`.

    Args:
        promotions: The edges that can be cut. Two between the same entries are cut together.
        built: All others, from parents to children; they cannot be undone.
        tenants: Whose an entry is. What is not named (a pool's entry) is nobody's.
        seeds: Where the error began; their tenants are its home.
    """
    import networkx as nx  # noqa: PLC0415 - it takes longer to import than all of Stemma

    offered = list(promotions)
    home = {tenants[seed] for seed in seeds if seed in tenants}
    source, sink = object(), object()  # no entry can have their name
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from((source, sink))
    for one in offered:
        before = graph.get_edge_data(one.parent, one.child, {"capacity": 0.0})["capacity"]
        graph.add_edge(one.parent, one.child, capacity=before + one.uses)
    for parent, child in built:
        graph.add_edge(parent, child, capacity=math.inf)
    graph.add_edges_from((source, seed) for seed in seeds)
    graph.add_edges_from((e, sink) for e, t in tenants.items() if t not in home and e in graph)
    try:
        uses, (near, _) = nx.minimum_cut(graph, source, sink)
    except nx.NetworkXUnbounded:
        return Cut(promotions=(), uses=0.0, stops=False)
    cut = tuple(one for one in offered if one.parent in near and one.child not in near)
    return Cut(promotions=cut, uses=float(uses), stops=True)
