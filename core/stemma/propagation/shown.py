"""What holds a graph of tenants, as it is printed and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stemma.propagation.picture import svg
from stemma.propagation.table import text

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Shown"]


class Shown:
    """Prints its `graph` as a table, and shows it as a picture in Jupyter."""

    __slots__ = ()

    graph: nx.DiGraph[Any]

    def __str__(self) -> str:
        return text(self.graph)

    def _repr_svg_(self) -> str:
        return svg(self.graph)
