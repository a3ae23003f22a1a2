"""What of the tenants' graph is drawn, where it is too large for a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stemma.legible import called
from stemma.propagation.appearance import number

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["EDGES", "NODES", "Excerpt", "excerpt"]

NODES, EDGES = 60, 240
"""More than these are not drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """The part of a graph that is drawn.

    Args:
        graph: That part, its nodes in the order of their names.
        nodes: How many nodes were left out.
        edges: How many edges between nodes that are drawn were left out.
    """

    graph: nx.DiGraph = field(repr=False)
    nodes: int
    edges: int

    @property
    def remark(self) -> str:
        """What was left out, in words; empty if nothing was."""
        counted = ((self.nodes, "less exposed or weaker nodes"), (self.edges, "weaker edges"))
        left = [f"{count} {what}" for count, what in counted if count]
        return f"not drawn: {' and '.join(left)}" if left else ""


def excerpt(graph: nx.DiGraph) -> Excerpt:
    """The pools, the most exposed and the most strongly tied, and the strongest edges among them.

    Edges from a node to itself are not drawn, and not counted as left out.
    """
    import networkx as nx  # noqa: PLC0415 - it takes longer to import than all of Stemma

    ties: dict[Any, float] = dict.fromkeys(graph, 0.0)
    strengths = {}
    for start, end, said in graph.edges(data=True):
        if start != end:
            strength = number(said, "strength")
            strengths[start, end] = 0.0 if strength is None else strength
            ties[start] += strengths[start, end]
            ties[end] += strengths[start, end]

    def rank(node: Any) -> tuple[bool, float, float, str]:
        said = graph.nodes[node]
        exposure = number(said, "exposure")
        return (
            said.get("kind") != "pool",
            0.0 if exposure is None else -exposure,
            -ties[node],
            called(node),
        )

    kept = sorted(graph, key=rank)[:NODES]
    drawn = nx.DiGraph()
    drawn.add_nodes_from((node, graph.nodes[node]) for node in sorted(kept, key=called))
    among = [edge for edge in strengths if edge[0] in drawn and edge[1] in drawn]
    among.sort(key=lambda edge: (-strengths[edge], called(edge[0]), called(edge[1])))
    drawn.add_edges_from((*edge, graph.edges[edge]) for edge in among[:EDGES])
    return Excerpt(graph=drawn, nodes=len(graph) - len(drawn), edges=max(0, len(among) - EDGES))
