"""How the parts of the tenants' graph look, in every picture of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from stemma.legible import called, legible
from stemma.plotting import COLOURS

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "EXPOSED",
    "LINKS",
    "UNKNOWN",
    "WIDTHS",
    "greatest",
    "label",
    "link",
    "number",
    "shade",
    "told",
    "width",
    "wrong",
]

EXPOSED = (
    "#fff7ec",
    "#fee8c8",
    "#fdd49e",
    "#fdbb84",
    "#fc8d59",
    "#ef6548",
    "#d7301f",
    "#b30000",
    "#7f0000",
)
"""From not exposed to exposed: each darker than the one before, whatever eyes look at it."""

Line = Literal["solid", "dashed", "dotted"]

UNKNOWN = "#c9ced3"
"""Where no spread was reckoned."""

_POOLED = "pooled"
LINKS: Mapping[str, tuple[str, Line, str]] = {
    "served": (COLOURS[0], "solid", "served"),
    _POOLED: (COLOURS[2], "solid", "served, through a pool too"),
    "built": (COLOURS[4], "solid", "built on"),
    "promoted": ("#a6761d", "solid", "promoted"),
    "source": (COLOURS[3], "dashed", "read"),
    "tool": (COLOURS[3], "dotted", "tool used"),
}
"""The colour, the line and the name of each kind of edge; an unknown kind looks like `built`."""

WIDTHS = (0.6, 5.0)
"""Points, of an edge with a strength of 0 and of 1."""

_FILL = {"pool": "#d6e4f0", "source": "#dfe8d8", "tool": "#e5d9ef"}
_WRONG = {"tenant": "exposure", "entry": "probability"}
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def link(said: Mapping[str, Any]) -> str:
    """Which of `LINKS` an edge is."""
    kind = str(said.get("kind"))
    if kind == "served" and said.get("pools"):
        return _POOLED
    return kind if kind in LINKS else "built"


def number(said: Mapping[str, Any], name: str) -> float | None:
    """A number among attributes; `None` where it is missing, no number, or not finite."""
    value = said.get(name)
    try:
        told = float(value) if value is not None else math.nan
    except (TypeError, ValueError):
        return None
    return told if math.isfinite(told) else None


def label(key: Any, said: Mapping[str, Any]) -> str:
    """What is written beside a node: its label if it has one, else its key."""
    own = said.get("label")
    return legible(own) if isinstance(own, str) and own else called(key)


def wrong(said: Mapping[str, Any]) -> float | None:
    """What a node's colour says: a tenant's exposure, or how likely an entry is wrong."""
    return number(said, _WRONG.get(str(said.get("kind")), ""))


def told(key: Any, said: Mapping[str, Any]) -> str:
    """A node in words: its label, how much it was given, and how much of that may be wrong."""
    answers, likely = number(said, "answers"), wrong(said)
    parts = [] if answers is None else [f"{answers:,.0f} answers"]
    parts += [] if likely is None else [f"{likely:.1%} expected to be wrong"]
    return f"{label(key, said)}: {', '.join(parts)}" if parts else label(key, said)


def greatest(graph: nx.DiGraph) -> float | None:
    """The upper end of the colours' scale: a round number that nothing in the graph is above.

    `None` where no spread was reckoned.
    """
    known = [wrong(said) for _, said in graph.nodes(data=True)]
    most = max((value for value in known if value is not None), default=None)
    return None if most is None else next((end for end in _ENDS if most <= end), 1.0)


def shade(said: Mapping[str, Any], most: float | None) -> str:
    """The colour of a node, as `#rrggbb`.

    Args:
        said: Its attributes.
        most: What is darkest, above 0; what is above it looks the same.
    """
    kind = said.get("kind")
    if kind in _FILL:
        return _FILL[kind]
    exposure = wrong(said)
    if exposure is None or most is None:
        return UNKNOWN
    place = min(max(exposure / most, 0.0), 1.0) * (len(EXPOSED) - 1)
    at = min(int(place), len(EXPOSED) - 2)
    mixed = zip(_channels(EXPOSED[at]), _channels(EXPOSED[at + 1]), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * (place - at)):02x}" for low, high in mixed)


def width(said: Mapping[str, Any]) -> float:
    """How wide an edge is, in points, by its strength; thin where that is not known."""
    strength = number(said, "strength")
    thin, wide = WIDTHS
    return thin if strength is None else thin + (wide - thin) * min(max(strength, 0.0), 1.0)


def _channels(colour: str) -> Iterable[int]:
    return bytes.fromhex(colour[1:])
