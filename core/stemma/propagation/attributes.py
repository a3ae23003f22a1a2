"""What the nodes and edges of the graphs carry: all of a kind the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stemma.entry import Entry
from stemma.propagation.attenuation import CERTAIN, Attenuation

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Fading", "edge_of", "join", "node_of"]


class Fading(NamedTuple):
    """How the past counts less.

    Args:
        now: As of when, seconds since 1970-01-01 UTC.
        half_life: Seconds after which what happened counts half; `None`: it always counts.
    """

    now: float
    half_life: float | None

    def left(self, at: float) -> float:
        """How much counts of what happened then, 0 to 1; of what is to come, all."""
        age = max(self.now - at, 0.0)
        return 1.0 if self.half_life is None else 0.5 ** (age / self.half_life)


def node_of(entry: Entry) -> dict[str, Any]:
    """An entry's attributes as a node."""
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
        "probability": None,
        "made": entry.made,
    }


def edge_of(kind: str, *, uses: int, **rest: Any) -> dict[str, Any]:
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


def join(
    graph: nx.DiGraph[Any],
    parent: Entry,
    child: Entry,
    known: Attenuation | None,
    fading: Fading,
) -> None:
    """Add an edge from one entry to another, and both; `known` is `None` of a promotion."""
    for one in (parent, child):
        graph.add_node(("entry", one.id), **node_of(one))
    edge = edge_of(
        "promoted" if known is None else "built",
        uses=1,
        built=1,
        recent=max(parent.confidence, 0.0) * fading.left(child.made),
        attenuation=CERTAIN if known is None else known.mean,
        deviation=0.0 if known is None else known.deviation,
        first=child.made,
        last=child.made,
        pools=tuple(sorted({one.pool for one in (parent, child) if one.pool is not None})),
    )
    graph.add_edge(("entry", parent.id), ("entry", child.id), **edge)
