"""The family tree of one entry: what it was built from, and what was built on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stemma.entry import Entry, Known, Lineage, Source
from stemma.lineage.figure import drawn
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
        up = _branch(self.graph, self.entry, self.graph.predecessors)
        down = _branch(self.graph, self.entry, self.graph.successors)
        blocks = [["built from", *up]] if up else []
        blocks += [["what was built on it", *down]] if down else []
        return "\n".join([self.graph.nodes[self.entry]["label"], *_hung(blocks)])

    def _repr_svg_(self) -> str:
        return drawn(self.graph, self.entry)


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
    named = "" if entry.node == "hop" else " hop"
    hop = f"{named} {entry.hop}" if entry.hop > 1 else ""
    pool = "" if entry.pool is None else f" in pool {entry.pool}"
    return {"label": f"{entry.node}{hop} {id[:12]} of {entry.tenant}{pool}", "kind": entry.node}


def _climb(store: Store, graph: nx.DiGraph, id: str) -> None:
    waiting = [id]
    while waiting and len(graph) < MOST:
        child = waiting.pop()
        graph.add_node(child)
        lineage = store.lineage(child)
        for node, known in _above(lineage if lineage is not None else Lineage()):
            if isinstance(node, Source):
                name = ("source", node.document, node.chunk)
                graph.add_node(name, label=f"source {_named(node)}", kind="source")
                graph.add_edge(name, child, known=known)
            else:
                if node not in graph:
                    waiting.append(node)
                graph.add_edge(node, child, known=known)


def _named(source: Source) -> str:
    """A chunk by its id, and by its document where the id does not name that."""
    if source.chunk.startswith(source.document):
        return source.chunk
    return f"{source.document} {source.chunk[:8]}"


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


def _branch(
    graph: nx.DiGraph, node: object, towards: Callable[[object], Iterable[object]]
) -> list[str]:
    """The lines of all that is reached from a node. What is seen again is not followed again."""
    seen = {node}

    def below(current: object) -> list[str]:
        blocks = []
        for relative in sorted(towards(current), key=lambda n: str(graph.nodes[n]["label"])):
            again = relative in seen
            if again and graph.nodes[relative]["kind"] == "source":
                continue  # a source is a leaf: it stands where it was seen first
            seen.add(relative)
            edge = graph.edges.get((relative, current), graph.edges.get((current, relative), {}))
            known = " (observed)" if edge.get("known") == "observed" else ""
            mark = " …" if again and graph.degree(relative) > 1 else ""
            head = f"{graph.nodes[relative]['label']}{known}{mark}"
            blocks.append([head, *([] if again else below(relative))])
        return _hung(blocks)

    return below(node)


def _hung(blocks: Sequence[Sequence[str]]) -> list[str]:
    """Blocks of lines, each hung up by its first."""
    lines = []
    for place, (head, *rest) in enumerate(blocks):
        last = place == len(blocks) - 1
        lines.append(f"{'└─' if last else '├─'} {head}")
        lines += [f"{'   ' if last else '│  '}{line}" for line in rest]
    return lines
