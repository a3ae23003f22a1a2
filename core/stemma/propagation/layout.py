"""Where the parts of the tenants' graph lie in a picture: the same graph, the same places.

Lengths are inches; x grows to the right and y downwards. Tenants alone lie on a circle. With pools,
sources, tools or entries there are columns: what is read, who gives more than it takes, pools and
entries, who takes. Exposures move nothing, so that pictures of one graph at different times can be
laid side by side.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stemma.propagation.appearance import number
from stemma.propagation.spots import Arc, Point, Spot, arc, corners, spot

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Layout", "laid_out"]

_MARGIN = 0.15
_COLUMN = 2.3
"""From one column to the next."""
_PITCH = (0.2, 0.95)
"""From one row to the next, at least and at most."""
_TALL = 6.0
"""The height up to which rows keep more than the least distance."""
_BETWEEN = 2
"""The column of pools; what stands to the left of it has its labels there too."""
_FEW, _UPRIGHT = 6, 14
"""So few tenants on a circle are large; so many have upright labels, more have turned ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """All places in a picture.

    Args:
        left: The least x in the picture.
        top: The least y.
        width: Of the picture.
        height: Of the picture.
        spots: Each node's place.
        arcs: Each edge's course.
    """

    left: float
    top: float
    width: float
    height: float
    spots: Mapping[Hashable, Spot] = field(repr=False)
    arcs: Mapping[tuple[Hashable, Hashable], Arc] = field(repr=False)


def laid_out(graph: nx.DiGraph) -> Layout:
    """The places of all nodes and edges of a graph without edges from a node to itself."""
    columns = _columns(graph)
    spots = _round(graph) if columns is None else _in_columns(graph, columns)
    bend = _inwards if columns is None else _aside
    taken = [corner for each in spots.values() for corner in corners(each)] or [(0.0, 0.0)]
    xs, ys = [x for x, _ in taken], [y for _, y in taken]
    return Layout(
        left=min(xs) - _MARGIN,
        top=min(ys) - _MARGIN,
        width=max(xs) - min(xs) + 2 * _MARGIN,
        height=max(ys) - min(ys) + 2 * _MARGIN,
        spots=spots,
        arcs={
            (start, end): arc(spots[start], spots[end], bend(spots[start], spots[end]))
            for start, end in graph.edges
        },
    )


def _columns(graph: nx.DiGraph) -> list[list[Hashable]] | None:
    """What is read, who gives, pools and entries, who takes; `None` if there are only tenants."""
    columns: list[list[Hashable]] = [[], [], [], []]
    read, givers, between, takers = columns
    for node, said in graph.nodes(data=True):
        kind = said.get("kind")
        if kind in {"source", "tool"}:
            read.append(node)
        elif kind in {"pool", "entry"}:
            between.append(node)
        elif _flow(graph.out_edges(node, data=True)) > _flow(graph.in_edges(node, data=True)):
            givers.append(node)
        else:
            takers.append(node)
    return _untangled(graph, columns) if read or between else None


def _flow(edges: Any) -> float:
    """How much goes over some edges, reading apart: their strengths, or if alike their number."""
    kinds = ((said.get("kind"), number(said, "strength")) for _, _, said in edges)
    return math.fsum(
        1e-6 + (0.0 if strength is None else strength)
        for kind, strength in kinds
        if kind not in {"source", "tool"}
    )


def _untangled(graph: nx.DiGraph, columns: list[list[Hashable]]) -> list[list[Hashable]]:
    """Each column in the order in which its edges cross least, nearly: by its neighbours' means."""
    undirected = graph.to_undirected(as_view=True)
    for column in (*columns, *reversed(columns), *columns):
        height = {
            node: (row + 0.5) / len(other) for other in columns for row, node in enumerate(other)
        }
        inside = set(column)
        mean = {}
        for node in column:
            others = [height[each] for each in undirected[node] if each not in inside]
            mean[node] = math.fsum(others) / len(others) if others else height[node]
        column.sort(key=mean.__getitem__)
    return columns


def _in_columns(graph: nx.DiGraph, columns: Sequence[Sequence[Hashable]]) -> dict[Hashable, Spot]:
    rows = max(map(len, columns))
    least, widest = _PITCH
    pitch = min(max(_TALL / rows, least), widest)
    most = _most_answers(graph)
    used = [place for place, column in enumerate(columns) if column]
    spots = {}
    for place, across in zip(used, _centred(len(used), _COLUMN), strict=True):
        towards = 0.0 if place >= _BETWEEN else math.pi
        column = columns[place]
        downs = _centred(len(column), rows * pitch / len(column))
        for node, down in zip(column, downs, strict=True):
            spots[node] = spot(
                *(node, graph.nodes[node], (across, down)),
                largest=min(0.3, 0.38 * pitch),
                most=most,
                towards=towards,
            )
    return spots


def _centred(many: int, apart: float) -> list[float]:
    """So many places at equal distances, with 0 in their middle."""
    return [(place - (many - 1) / 2) * apart for place in range(many)]


def _round(graph: nx.DiGraph) -> dict[Hashable, Spot]:
    many = len(graph)
    radius = max(1.3, many * 0.42 / math.tau) if many > 1 else 0.0
    largest = 0.3 if many <= _FEW else 0.2 if many <= _UPRIGHT else 0.15
    most = _most_answers(graph)
    spots = {}
    for place, (node, said) in enumerate(graph.nodes(data=True)):
        towards = math.tau * place / many - math.pi / 2
        at = (radius * math.cos(towards), radius * math.sin(towards))
        spots[node] = spot(
            *(node, said, at),
            largest=largest,
            most=most,
            towards=towards,
            turned=many > _UPRIGHT,
        )
    return spots


def _most_answers(graph: nx.DiGraph) -> float:
    known = (number(said, "answers") for _, said in graph.nodes(data=True))
    return max((value for value in known if value is not None), default=0.0)


def _inwards(start: Spot, end: Spot) -> Point:
    """Where an edge between two on a circle bends: towards its middle, and to the left a little."""
    across, down = (start.x + end.x) / 2, (start.y + end.y) / 2
    return 0.7 * across + 0.1 * (end.y - start.y), 0.7 * down - 0.1 * (end.x - start.x)


def _aside(start: Spot, end: Spot) -> Point:
    """Where an edge between columns bends: to the left; in a column, to the middle of them all."""
    dx, dy = end.x - start.x, end.y - start.y
    across, down = (start.x + end.x) / 2, (start.y + end.y) / 2
    if dx:
        return across + 0.14 * dy, down - 0.14 * dx
    far = min(0.4 * abs(dy), 1.2) * (1.0 if dy > 0 else 1.3)
    return across + (far if start.x < 0 else -far), down
