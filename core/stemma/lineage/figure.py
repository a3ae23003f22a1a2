"""A family tree as a figure: SVG, one column a generation, sources on the left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stemma.legible import legible, short
from stemma.svg import curve, image, node, words

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["drawn"]

_WIDTH, _HEIGHT = 230, 30
_ACROSS, _DOWN = 60, 44
"""From the end of one column to the next, and from one row to the next."""
_MARGIN = 20
_LETTERS = 31

_FILL = {
    "source": "#dfe8d8",
    "retrieval": "#d6e4f0",
    "call": "#f3e3c8",
    "answer": "#f0d3cf",
    "hop": "#e5d9ef",
    "gone": "#eeeeee",
}

_Places = Mapping[object, tuple[float, float]]


def drawn(graph: nx.DiGraph, middle: object) -> str:
    """The graph as SVG.

    An observed edge is a full line, an ambient one a dashed line. An ambient edge that goes without
    saying, because the same is reached over others, is left out.

    Args:
        graph: As a `FamilyTree` has it.
        middle: The node that the tree is of.
    """
    import networkx as nx  # noqa: PLC0415 - it takes longer to import than all of Stemma

    acyclic = nx.DiGraph(graph.edges)
    acyclic.add_nodes_from(graph)
    while not nx.is_directed_acyclic_graph(acyclic):  # an entry replaced by what was built on it
        acyclic.remove_edge(*nx.find_cycle(acyclic)[-1][:2])
    needed = set(nx.transitive_reduction(acyclic).edges)
    places = _placed(graph, [list(nodes) for nodes in nx.topological_generations(acyclic)])
    parts = [
        _line(places, start, end, observed=known == "observed")
        for start, end, known in graph.edges(data="known")
        if known == "observed" or (start, end) in needed
    ]
    parts += [
        _box(places[key], str(said["label"]), str(said["kind"]), middle=key == middle)
        for key, said in graph.nodes(data=True)
    ]
    wide = max(x for x, _ in places.values()) + _WIDTH + _MARGIN
    tall = max(y for _, y in places.values()) + _HEIGHT + _MARGIN
    return image(parts, width=wide, height=tall)


def _placed(graph: nx.DiGraph, columns: list[list[object]]) -> _Places:
    """Where each box is: columns in the middle, but between the rows of the first one."""
    most = max(map(len, columns))
    places = {}
    for depth, nodes in enumerate(columns):
        top = (most - len(nodes)) / 2
        if depth and top == int(top):
            top += 0.5  # so that the lines that pass by the column are not behind its boxes
        for row, key in enumerate(sorted(nodes, key=lambda n: str(graph.nodes[n]["label"]))):
            x = _MARGIN + depth * (_WIDTH + _ACROSS)
            places[key] = (x, _MARGIN + _DOWN * (top + row))
    return places


def _line(places: _Places, start: object, end: object, *, observed: bool) -> str:
    (x1, y1), (x2, y2) = places[start], places[end]
    x1, y1, y2 = x1 + _WIDTH, y1 + _HEIGHT / 2, y2 + _HEIGHT / 2
    bend, half = x2 - _ACROSS, x2 - _ACROSS / 2
    course = f"M{x1:g} {y1:g} H{bend:g} C{half:g} {y1:g} {half:g} {y2:g} {x2:g} {y2:g}"
    return curve(course, "#666", dashes="" if observed else "4 3")


def _box(place: tuple[float, float], label: str, kind: str, *, middle: bool) -> str:
    x, y = place
    frame = (
        f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'fill="{_FILL.get(kind, "#fff")}" stroke="{"#222" if middle else "#999"}"/>'
    )
    whole = legible(label)
    return node(whole, frame, words(short(whole, _LETTERS), (x + 8, y + 20)))
