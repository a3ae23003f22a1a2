"""Which entries were built on which, and how often an error passes from one to the other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stemma.errors import UsageError

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Edges", "Outward"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outward:
    """Edges by their parent; those from an entry to itself are left out, they change nothing.

    Args:
        firsts: Where the edges of each entry begin, and, last, how many edges there are.
        children: The child of each edge, as its place among the names.
        attenuations: The attenuation of each edge.
    """

    firsts: list[int]
    children: list[int]
    attenuations: list[float]

    def span(self, node: int) -> range:
        """The edges that lead away from an entry."""
        return range(self.firsts[node], self.firsts[node + 1])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Edges:
    """A directed graph of entries, as arrays with one element an edge.

    Two edges between the same two entries are two ways for an error to pass.

    Args:
        names: The entries, each once, named by anything hashable; `range(n)` serves as well.
        parents: Where each edge begins, as a place among the names.
        children: Where it ends, likewise.
        attenuations: How likely a wrong parent makes a wrong child by this edge, 0 to 1.

    Raises:
        UsageError: The lengths differ, a place is none, a number is out of its range, or a name
            is there twice.

    Example:
        ```python
        edges = Edges.between([("a", "b", 0.9), ("b", "c", 0.5)])
        ```
    """

    names: Sequence[Hashable]
    parents: NDArray[np.int64]
    children: NDArray[np.int64]
    attenuations: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not isinstance(self.names, range) and len(set(self.names)) != len(self.names):
            raise UsageError("an entry is named twice")
        for field, kind in (("parents", np.int64), ("children", np.int64), ("attenuations", float)):
            object.__setattr__(self, field, _column(field, getattr(self, field), kind))
        if not len(self.parents) == len(self.children) == len(self.attenuations):
            raise UsageError(
                f"edges need a parent, a child and an attenuation each, not {len(self.parents)}, "
                f"{len(self.children)} and {len(self.attenuations)} of them"
            )
        for field in ("parents", "children"):
            places = getattr(self, field)
            if places.size and not (places.min() >= 0 and places.max() < len(self.names)):
                raise UsageError(f"{field} must be places among the {len(self.names)} names")
        if not np.all((self.attenuations >= 0.0) & (self.attenuations <= 1.0)):
            raise UsageError("attenuations must be numbers from 0 to 1")

    @classmethod
    def between(
        cls, edges: Iterable[tuple[Hashable, Hashable, float]], *, also: Iterable[Hashable] = ()
    ) -> Edges:
        """The graph of edges given one by one.

        Args:
            edges: Parent, child and attenuation of each.
            also: Entries that have no edge.
        """
        given = list(edges)
        ends = (name for parent, child, _ in given for name in (parent, child))
        names = dict.fromkeys((*ends, *also))
        place = {name: at for at, name in enumerate(names)}
        return cls(
            names=tuple(names),
            parents=np.array([place[parent] for parent, _, _ in given], dtype=np.int64),
            children=np.array([place[child] for _, child, _ in given], dtype=np.int64),
            attenuations=np.array([attenuation for _, _, attenuation in given], dtype=float),
        )

    @classmethod
    def of(cls, graph: nx.DiGraph[Any], *, attenuation: str = "attenuation") -> Edges:
        """The graph that networkx holds.

        Args:
            graph: From parents to children.
            attenuation: The attribute of an edge that holds its attenuation.

        Raises:
            UsageError: The graph is not directed, or an edge lacks the attribute.
        """
        if not graph.is_directed():
            raise UsageError("the graph must be directed, from parents to children")
        edges = list(graph.edges(data=attenuation))
        for parent, child, value in edges:
            if value is None:
                raise UsageError(f"the edge {parent!r} to {child!r} has no {attenuation!r}")
        return cls.between(edges, also=graph.nodes)

    def outward(self) -> Outward:
        """The edges by their parent."""
        kept = np.flatnonzero(self.parents != self.children)
        kept = kept[np.argsort(self.parents[kept], kind="stable")]
        many = np.bincount(self.parents[kept], minlength=len(self.names))
        return Outward(
            firsts=[0, *np.cumsum(many).tolist()],
            children=self.children[kept].tolist(),
            attenuations=self.attenuations[kept].tolist(),
        )


def _column(name: str, given: ArrayLike, kind: type) -> NDArray[Any]:
    """One number an edge, read-only, without turning fractions into places."""
    try:
        column = np.asarray(given)
        column = column.astype(kind, casting="same_kind") if column.size else np.zeros(0, kind)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be numbers, one an edge: {error}") from error
    if column.ndim != 1:
        raise UsageError(f"{name} must have one number an edge, not the shape {column.shape}")
    column.flags.writeable = False
    return column
