r"""The tenants' graph for other programs: node-link JSON, GraphML and DOT.

In each of them a node is called by its key as `stemma.legible.called` writes it: `acme` for a
tenant, `pool:support` for a pool, `source:acme:terms.md` for a source; what does not print is
escaped, `\n`, `\u202e`. Names that differ in the graph differ there, whatever they are made of.
Nodes and edges stand in the order of these names, attributes in the order of theirs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stemma.legible import called, legible
from stemma.propagation.appearance import LINKS, greatest, label, link, shade, width

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["as_json", "dot", "graphml"]

_Said = Mapping[str, Any]

_SHAPES = {"tenant": "ellipse", "entry": "diamond"}
"""Of Graphviz; anything else is a box."""


def as_json(graph: nx.DiGraph) -> dict[str, Any]:
    """The graph in node-link form, as `networkx.node_link_graph(…, edges="edges")` reads it.

    Args:
        graph: As `cache.propagation()` has it.

    Returns:
        Plain JSON values. A number that is not finite is `None`.
    """
    return {
        "directed": True,
        "multigraph": False,
        "graph": {},
        "nodes": [{"id": name, **_without(said, "id")} for name, said in _nodes(graph)],
        "edges": [
            {"source": start, "target": end, **_without(said, "source", "target")}
            for start, end, said in _edges(graph)
        ],
    }


def graphml(graph: nx.DiGraph) -> str:
    """The graph as GraphML, for Gephi, yEd, igraph and networkx.

    networkx writes it. An attribute has one type all over the graph. What GraphML has no type for,
    as the names of pools, is a text, `billing, support`; what is not known is left out.

    Args:
        graph: As `cache.propagation()` has it.
    """
    import networkx as nx  # noqa: PLC0415 - it takes longer to import than all of Stemma

    nodes, edges = list(_nodes(graph)), list(_edges(graph))
    of_nodes = _types(said for _, said in nodes)
    of_edges = _types(said for _, _, said in edges)
    plain = nx.DiGraph()
    plain.add_nodes_from((name, _typed(said, of_nodes)) for name, said in nodes)
    plain.add_edges_from((start, end, _typed(said, of_edges)) for start, end, said in edges)
    return "\n".join(nx.generate_graphml(plain)) + "\n"


def dot(graph: nx.DiGraph) -> str:
    """The graph in the language of Graphviz, with its looks: `dot -Tsvg` draws it.

    Args:
        graph: As `cache.propagation()` has it.
    """
    most = greatest(graph)
    lines = ["digraph propagation {", "  rankdir=LR;", "  node [style=filled];"]
    for key in sorted(graph, key=called):
        said = graph.nodes[key]
        looks = {
            "label": _on_show(label(key, said)),
            "shape": _SHAPES.get(str(said.get("kind")), "box"),
            "fillcolor": shade(said, most),
        }
        lines.append(f"  {_quoted(called(key))} [{_listed({**_plain(said), **looks})}];")
    for start, end in sorted(graph.edges, key=lambda edge: tuple(map(called, edge))):
        said = graph.edges[start, end]
        colour, line, _ = LINKS[link(said)]
        looks = {"color": colour, "style": line, "penwidth": f"{width(said):.2f}"}
        ends = f"{_quoted(called(start))} -> {_quoted(called(end))}"
        lines.append(f"  {ends} [{_listed({**_plain(said), **looks})}];")
    return "\n".join([*lines, "}", ""])


def _nodes(graph: nx.DiGraph) -> Iterator[tuple[str, dict[str, Any]]]:
    named = ((called(key), said) for key, said in graph.nodes(data=True))
    for name, said in sorted(named, key=lambda one: one[0]):
        yield name, _plain(said)


def _edges(graph: nx.DiGraph) -> Iterator[tuple[str, str, dict[str, Any]]]:
    named = ((called(start), called(end), said) for start, end, said in graph.edges(data=True))
    for start, end, said in sorted(named, key=lambda one: one[:2]):
        yield start, end, _plain(said)


def _plain(said: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as JSON values, in the order of their names."""
    told = {legible(str(name)): _value(value) for name, value in said.items()}
    return dict(sorted(told.items()))


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return legible(value) if value else ""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, set | frozenset):
        return sorted(map(_value, value), key=json.dumps)
    if isinstance(value, Iterable):
        return [_value(each) for each in value]
    return _value(value.item() if hasattr(value, "item") else str(value))


def _without(said: _Said, *names: str) -> _Said:
    """Attributes without those whose names node-link form has for itself."""
    return {name: value for name, value in said.items() if name not in names}


def _types(all_said: Iterable[_Said]) -> dict[str, type]:
    """The type of each attribute: that of its values, the wider of two numbers, else text."""
    found: dict[str, set[type]] = {}
    for said in all_said:
        for name, value in said.items():
            if value is not None:
                found.setdefault(name, set()).add(type(value))
    return {name: _widest(types) for name, types in found.items()}


def _widest(types: set[type]) -> type:
    if types == {int, float}:
        return float
    return types.pop() if len(types) == 1 and not types & {list, dict} else str


def _typed(said: _Said, types: Mapping[str, type]) -> dict[str, Any]:
    return {
        name: _text(value) if types[name] is str else types[name](value)
        for name, value in said.items()
        if value is not None
    }


def _text(value: Any) -> str:
    """A value as one text: of a list its elements, with their own commas escaped."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(_text(each).replace(",", r"\,") for each in value)
    return legible(json.dumps(value, ensure_ascii=False))


def _listed(said: _Said) -> str:
    """Attributes for Graphviz; their names are quoted as well, for `node` is a word of its own."""
    known = ((name, value) for name, value in said.items() if value is not None)
    return ", ".join(f"{_quoted(name)}={_quoted(_text(value))}" for name, value in known)


def _quoted(text: str) -> str:
    """A legible text for Graphviz: in it, only pairs of backslashes are before quotation marks."""
    return '"' + text.replace('"', r"\"") + '"'


def _on_show(text: str) -> str:
    """A label, in which Graphviz reads backslashes and the entities of HTML."""
    return text.replace("\\", r"\\").replace("&", "&amp;")
