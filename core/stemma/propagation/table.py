"""The tenants' graph as text: what printing it shows, in 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stemma.legible import called, cells, counted, legible, short
from stemma.propagation.appearance import LINKS, number

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["text"]

ROWS = 20
"""More tenants, or edges, than these are counted and not shown."""

_TENANT, _END, _WAY = 32, 15, 16
"""Columns for the names of tenants, those of either end of an edge, and its kind."""
_KINDS = {
    "tenant": ("tenant", "tenants"),
    "pool": ("pool", "pools"),
    "source": ("source", "sources"),
    "tool": ("tool", "tools"),
    "entry": ("entry", "entries"),
}
_PLAIN = "-"
_TENANTS = ("tenant", "answers", "entries", "exposure", "expected wrong")
_EDGES = ("from", "to", "how", "uses", "strength", "passes")


def text(graph: nx.DiGraph) -> str:
    """How many there are of everything, the tenants, and the edges, the strongest first.

    The tenants most exposed come first, then those that were given most. What is not known is `-`.

    Args:
        graph: As `cache.propagation()` has it.
    """
    tenants = [key for key, said in graph.nodes(data=True) if said.get("kind") == "tenant"]
    tenants.sort(key=lambda key: (*_falling(graph.nodes[key], "exposure", "answers"), called(key)))
    edges = sorted(
        graph.edges,
        key=lambda edge: (*_falling(graph.edges[edge], "strength", "uses"), *map(called, edge)),
    )
    lines = [_counts(graph)]
    if tenants:
        given = [_tenant(key, graph.nodes[key]) for key in tenants[:ROWS]]
        lines += ["", *_aligned([_TENANTS, *given], names=1), *_more(len(tenants), "tenants")]
    if edges:
        ways = [_edge(start, end, graph.edges[start, end]) for start, end in edges[:ROWS]]
        lines += ["", *_aligned([_EDGES, *ways], names=3), *_more(len(edges), "edges")]
    else:
        lines += ["", "no answer has gone from one tenant to another"]
    return "\n".join(lines)


def _counts(graph: nx.DiGraph) -> str:
    found = Counter(str(said.get("kind")) for _, said in graph.nodes(data=True))
    many = [
        (found[kind], *names) for kind, names in _KINDS.items() if found[kind] or kind == "tenant"
    ]
    many.append((graph.number_of_edges(), "edge", "edges"))
    return ", ".join(counted(*one) for one in many)


def _falling(said: Mapping[str, Any], *names: str) -> tuple[float, ...]:
    """A key that puts what is largest first, and what is not known last."""
    known = (number(said, name) for name in names)
    return tuple(1.0 if value is None else -value for value in known)


def _tenant(key: Any, said: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        short(called(key), _TENANT),
        _number(said, "answers"),
        _number(said, "entries"),
        _share(said, "exposure"),
        _number(said, "wrong", ",.1f"),
    )


def _edge(start: Any, end: Any, said: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        short(called(start), _END),
        short(called(end), _END),
        short(_how(said), _WAY),
        _number(said, "uses"),
        _share(said, "strength"),
        _share(said, "attenuation"),
    )


def _how(said: Mapping[str, Any]) -> str:
    """What kind of edge it is; of servings, through which pools too."""
    kind, pools = str(said.get("kind", _PLAIN)), said.get("pools")
    if kind == "served" and pools:
        return f"via {', '.join(map(legible, pools))}"
    return LINKS[kind][2] if kind in LINKS else legible(kind)


def _number(said: Mapping[str, Any], name: str, form: str = ",.0f") -> str:
    value = number(said, name)
    return _PLAIN if value is None else f"{value:{form}}"


def _share(said: Mapping[str, Any], name: str) -> str:
    return _number(said, name, ".1%")


def _more(number_of: int, what: str) -> list[str]:
    return [f"… and {number_of - ROWS} more {what}"] if number_of > ROWS else []


def _aligned(rows: Sequence[Sequence[str]], *, names: int) -> list[str]:
    """Columns; the first so many hold names, and lean to the left."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        padded = []
        for place, (cell, wide) in enumerate(zip(row, widths, strict=True)):
            blank = " " * (wide - cells(cell))
            padded.append(cell + blank if place < names else blank + cell)
        lines.append("  ".join(padded).rstrip())
    return lines
