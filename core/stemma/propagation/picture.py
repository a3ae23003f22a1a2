"""The tenants' graph as SVG, without matplotlib: what a notebook shows of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stemma.propagation.appearance import LINKS, greatest, link, shade, told, width
from stemma.propagation.excerpt import Excerpt, excerpt
from stemma.propagation.layout import laid_out
from stemma.propagation.spots import FONT, Arc, Point, Spot
from stemma.svg import curve, image, node, words

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["svg"]

_INCH, _POINT = 96.0, 96.0 / 72.0
"""Pixels."""
_LINE, _LEAST = 15.0, 330.0
_RIM = "#444444"
_HALO = ' paint-order="stroke" stroke="#fff" stroke-width="2.5"'
_DASHES = {"solid": "", "dashed": "7 4", "dotted": "2 3"}
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}


def svg(graph: nx.DiGraph) -> str:
    """The graph as an SVG image, drawn as `stemma.propagation.drawing.figure` draws it.

    A node tells its figures when it is pointed at.

    Args:
        graph: As `cache.propagation()` has it.
    """
    part = excerpt(graph)
    laid = laid_out(part.graph)
    most = greatest(graph)
    parts = [_edge(arc, part.graph.edges[edge]) for edge, arc in laid.arcs.items()]
    for key, spot in laid.spots.items():
        said = part.graph.nodes[key]
        parts.append(node(told(key, said), _shape(spot, shade(said, most)), _label(spot)))
    left, top = _INCH * laid.left, _INCH * laid.top
    tall = _INCH * laid.height
    remarks = _remarks(part, most)
    for line, (text, colour) in enumerate(remarks, 1):
        at = (left + 10.0, top + tall + line * _LINE - 6.0)
        parts.append(words(text, at, size=_POINT * FONT, more=f' fill="{colour}"'))
    return image(
        parts,
        width=max(_INCH * laid.width, _LEAST),
        height=tall + len(remarks) * _LINE + 6.0,
        left=left,
        top=top,
    )


def _remarks(part: Excerpt, most: float | None) -> list[tuple[str, str]]:
    """Lines beneath the picture, with their colours."""
    kinds = {link(said) for _, _, said in part.graph.edges(data=True)}
    lines = [(f"→ {name}", colour) for kind, (colour, _, name) in LINKS.items() if kind in kinds]
    if most is not None:
        lines.append((f"colour: expected to be wrong, from none to {most:.0%}", _RIM))
    return [*lines, *([(part.remark, _RIM)] if part.remark else [])]


def _edge(arc: Arc, said: Mapping[str, Any]) -> str:
    colour, line, _ = LINKS[link(said)]
    wide = _POINT * width(said)
    (x1, y1), (x2, y2), (x, y) = (_pixels(point) for point in (arc.start, arc.bend, arc.end))
    far = math.hypot(x - x2, y - y2)
    along, across = (x - x2) / far, (y - y2) / far
    long, half = 6.0 + 1.6 * wide, 2.5 + 0.8 * wide
    back = (x - long * along, y - long * across)
    corners = (
        (x, y),
        (back[0] - half * across, back[1] + half * along),
        (back[0] + half * across, back[1] - half * along),
    )
    head = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    return "".join(
        [
            '<g opacity="0.65">',
            curve(
                f"M{x1:.1f} {y1:.1f} Q{x2:.1f} {y2:.1f} {back[0]:.1f} {back[1]:.1f}",
                colour,
                dashes=_DASHES[line],
                more=f' stroke-width="{wide:.1f}"',
            ),
            f'<polygon points="{head}" fill="{colour}"/></g>',
        ]
    )


def _shape(spot: Spot, colour: str) -> str:
    x, y, wide, tall = (_INCH * each for each in (spot.x, spot.y, spot.wide, spot.tall))
    looks = f'fill="{colour}" stroke="{_RIM}"'
    if spot.shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{wide:.1f}" {looks}/>'
    turned = f' transform="rotate(45 {x:.1f} {y:.1f})"' if spot.shape == "dot" else ""
    round_ = f' rx="{tall / 2:.1f}"' if spot.shape == "box" else ""
    return (
        f'<rect x="{x - wide:.1f}" y="{y - tall:.1f}" width="{2 * wide:.1f}" '
        f'height="{2 * tall:.1f}"{round_}{turned} {looks}/>'
    )


def _label(spot: Spot) -> str:
    x, y = _pixels(spot.anchor)
    turned = f' transform="rotate({-spot.turn:.1f} {x:.1f} {y:.1f})"' if spot.turn else ""
    more = f' text-anchor="{_ANCHORS[spot.align]}" dy="0.35em"{_HALO}{turned}'
    return words(spot.label, (x, y), size=_POINT * FONT, more=more)


def _pixels(point: Point) -> Point:
    return _INCH * point[0], _INCH * point[1]
