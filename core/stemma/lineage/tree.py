"""The family tree of one entry: what it was built from, and what was built on it."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stemma.entry import Entry, Known, Lineage, Source
from stemma.stores.protocol import Store

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["FamilyTree", "family_tree"]

MOST = 500
"""More relatives than this are not drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FamilyTree:
    """An entry with its ancestors, its sources and its descendants. Prints as a tree.

    Args:
        entry: The id of the entry in the middle.
        graph: A `networkx.DiGraph` from sources and parents to children. Nodes are entry ids and
            `("source", document, chunk)`; they carry `label` and `kind`, edges carry `known`.
    """

    entry: str
    graph: nx.DiGraph = field(repr=False)

    def __str__(self) -> str:
        up = _branch(self.graph, self.entry, self.graph.predecessors, "")
        lines = [self.graph.nodes[self.entry]["label"]]
        if up:
            lines += ["├─ built from", *(f"│  {line}" for line in up)]
        down = _branch(self.graph, self.entry, self.graph.successors, "")
        if down:
            lines += ["└─ what was built on it", *(f"   {line}" for line in down)]
        return "\n".join(lines)

    def _repr_svg_(self) -> str:
        return _drawn(self.graph, self.entry)


def family_tree(store: Store, id: str) -> FamilyTree | None:
    """Read the family of an entry from the store; `None` if nothing was ever known of it."""
    import networkx as nx  # noqa: PLC0415 - it takes longer to import than all of Stemma

    graph = nx.DiGraph()
    if store.lineage(id) is None:
        return None
    _climb(store, graph, id)
    _descend(store, graph, id)
    entries = [node for node in graph if isinstance(node, str)]
    found = store.get(entries).entries
    for node in entries:
        graph.nodes[node].update(_described(node, found.get(node)))
    return FamilyTree(entry=id, graph=graph)


def _described(id: str, entry: Entry | None) -> dict[str, str]:
    if entry is None:
        return {"label": f"(gone) {id[:12]}", "kind": "gone"}
    hop = f" hop {entry.hop}" if entry.hop > 1 else ""
    return {"label": f"{entry.node}{hop} {id[:12]} of {entry.tenant}", "kind": entry.node}


def _climb(store: Store, graph: nx.DiGraph, id: str) -> None:
    waiting = [id]
    while waiting and len(graph) < MOST:
        child = waiting.pop()
        graph.add_node(child)
        lineage = store.lineage(child)
        for node, known in _above(lineage if lineage is not None else Lineage()):
            if isinstance(node, Source):
                name = ("source", node.document, node.chunk)
                label = node.document if node.chunk == node.document else node.chunk
                graph.add_node(name, label=f"source {label}", kind="source")
                graph.add_edge(name, child, known=known)
            else:
                if node not in graph:
                    waiting.append(node)
                graph.add_edge(node, child, known=known)


def _above(lineage: Lineage) -> Iterator[tuple[Source | str, Known]]:
    for edge in lineage.parents:
        yield edge.parent, edge.known
    for source in lineage.sources:
        yield source.source, source.known


def _descend(store: Store, graph: nx.DiGraph, id: str) -> None:
    waiting, seen = [id], {id}
    while waiting and len(graph) < MOST:
        parent = waiting.pop()
        for child in store.children(parent):
            graph.add_edge(parent, child, known="ambient")
            if child not in seen:
                seen.add(child)
                waiting.append(child)


def _branch(graph: nx.DiGraph, node: object, towards: object, indent: str) -> list[str]:
    lines: list[str] = []
    seen = {node}

    def walk(current: object, indent: str) -> None:
        relatives = sorted(towards(current), key=lambda n: str(graph.nodes[n]["label"]))  # type: ignore[operator]
        for place, relative in enumerate(relatives):
            last = place == len(relatives) - 1
            again = relative in seen
            if again and graph.degree(relative) and graph.nodes[relative]["kind"] == "source":
                continue  # a source is a leaf: it stands where it was seen first
            edge = graph.edges.get((relative, current), graph.edges.get((current, relative), {}))
            known = " (observed)" if edge.get("known") == "observed" else ""
            mark = " …" if again and graph.degree(relative) > 1 else ""
            lines.append(
                f"{indent}{'└─' if last else '├─'} {graph.nodes[relative]['label']}{known}{mark}"
            )
            if not again:
                seen.add(relative)
                walk(relative, indent + ("   " if last else "│  "))

    walk(node, indent)
    return lines


_FILL = {
    "source": "#dfe8d8",
    "retrieval": "#d6e4f0",
    "call": "#f3e3c8",
    "answer": "#f0d3cf",
    "hop": "#e5d9ef",
    "gone": "#eeeeee",
}


def _drawn(graph: nx.DiGraph, middle: object) -> str:
    """The tree as SVG: one column per generation, sources on the left."""
    import networkx as nx  # noqa: PLC0415 - it takes longer to import than all of Stemma

    columns: dict[int, list[object]] = {}
    acyclic = nx.DiGraph(graph)
    while not nx.is_directed_acyclic_graph(acyclic):  # an entry replaced by what was built on it
        acyclic.remove_edge(*nx.find_cycle(acyclic)[-1][:2])
    for depth, generation in enumerate(nx.topological_generations(acyclic)):
        columns[depth] = sorted(generation, key=lambda n: str(graph.nodes[n]["label"]))
    width, height, gap = 230, 30, 44
    place = {
        node: (20 + depth * (width + 60), 20 + row * gap)
        for depth, nodes in columns.items()
        for row, node in enumerate(nodes)
    }
    parts = []
    for start, end, data in graph.edges(data=True):
        (x1, y1), (x2, y2) = place[start], place[end]
        dash = "" if data.get("known") == "observed" else ' stroke-dasharray="4 3"'
        parts.append(
            f'<path d="M{x1 + width} {y1 + height / 2} C{x1 + width + 30} {y1 + height / 2} '
            f'{x2 - 30} {y2 + height / 2} {x2} {y2 + height / 2}" fill="none" stroke="#666"{dash}/>'
        )
    for node, (x, y) in place.items():
        data = graph.nodes[node]
        line = "#222" if node == middle else "#999"
        label = html.escape(str(data["label"]))
        parts.append(
            f"<g><title>{label}</title>"
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
            f'fill="{_FILL.get(data["kind"], "#fff")}" stroke="{line}"/>'
            f'<text x="{x + 8}" y="{y + 20}" font-family="sans-serif" font-size="12">'
            f"{html.escape(str(data['label'])[:34])}</text></g>"
        )
    wide = 40 + len(columns) * (width + 60)
    tall = 40 + gap * max(len(nodes) for nodes in columns.values())
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}">'
    return "".join([head, *parts, "</svg>"])
