"""The tenants' graph as a figure of matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stemma.plotting import legibly, styled
from stemma.propagation.appearance import EXPOSED, LINKS, greatest, link, shade, width
from stemma.propagation.excerpt import excerpt
from stemma.propagation.layout import Layout, laid_out
from stemma.propagation.spots import FONT, Arc, Spot

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["figure"]

_ABOVE, _BELOW, _BESIDE = 0.4, 0.7, 0.9
"""Inches for the title, for the legend and remarks, and for the scale of colours."""
_LEAST = 4.5
_READ = "area: answers a tenant was given; width: share of them that came that way"
_RIM = "#444444"


def figure(graph: nx.DiGraph, *, title: str | None = None, most: float | None = None) -> Figure:
    """Tenants as circles, pools as boxes, sources and tools as squares, entries as small diamonds.

    The area of a tenant says how much it was given, its colour how much of that is expected to be
    wrong (grey where no spread was reckoned), the width of an edge its strength. The same graph
    is drawn the same way each time. Of a large graph the most exposed and strongest is drawn, and
    the figure says how much is left out.

    Args:
        graph: As `cache.propagation()` has it.
        title: What stands above.
        most: The exposure that is darkest, above 0 to 1; `None`: a round number that none is
            above. For figures that are compared, name one.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    part = excerpt(graph)
    laid = laid_out(part.graph)
    known = greatest(graph)
    end = known if most is None or known is None else most
    wide = max(laid.width, _LEAST)
    beside = 0.0 if end is None else _BESIDE
    whole = (wide + beside, laid.height + _ABOVE + _BELOW)
    with styled(*whole, layout=None) as drawn:
        place = (0.0, _BELOW / whole[1], wide / whole[0], laid.height / whole[1])
        axes = drawn.add_axes(place)
        axes.set_axis_off()
        slack = (wide - laid.width) / 2
        axes.set_xlim(laid.left - slack, laid.left + laid.width + slack)
        axes.set_ylim(laid.top + laid.height, laid.top)
        for edge, arc in laid.arcs.items():
            _draw_edge(axes, arc, part.graph.edges[edge])
        for node, spot in laid.spots.items():
            _draw_node(axes, spot, shade(part.graph.nodes[node], end))
        if end is not None:
            _draw_scale(drawn, laid, end)
        _write(drawn, part.graph, title, part.remark)
    return drawn


def _draw_edge(axes: Axes, arc: Arc, said: Mapping[str, Any]) -> None:
    from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415 - not needed without a figure
    from matplotlib.path import Path  # noqa: PLC0415

    colour, line, _ = LINKS[link(said)]
    points = width(said)
    curve = Path([arc.start, arc.bend, arc.end], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
    axes.add_patch(
        FancyArrowPatch(
            path=curve,
            arrowstyle="-|>",
            mutation_scale=6.0 + 2.0 * points,
            color=colour,
            linewidth=points,
            linestyle=line,
            alpha=0.65,
            zorder=1,
        )
    )


def _draw_node(axes: Axes, spot: Spot, colour: str) -> None:
    from matplotlib import patches, patheffects  # noqa: PLC0415 - not needed without a figure

    looks: dict[str, Any] = {"facecolor": colour, "edgecolor": _RIM, "linewidth": 0.8, "zorder": 2}
    corner, size = (spot.x - spot.wide, spot.y - spot.tall), (2 * spot.wide, 2 * spot.tall)
    patch: patches.Patch
    if spot.shape == "circle":
        patch = patches.Circle((spot.x, spot.y), spot.wide, **looks)
    elif spot.shape == "dot":
        patch = patches.RegularPolygon((spot.x, spot.y), 4, radius=spot.wide, **looks)
    elif spot.shape == "square":
        patch = patches.Rectangle(corner, *size, **looks)
    else:
        rounded = f"round,pad=0,rounding_size={spot.tall / 2}"
        patch = patches.FancyBboxPatch(corner, *size, boxstyle=rounded, **looks)
    axes.add_patch(patch)
    axes.text(
        *spot.anchor,
        legibly(spot.label),
        fontsize=FONT,
        horizontalalignment=spot.align,
        verticalalignment="center",
        rotation=spot.turn,
        rotation_mode="anchor",
        parse_math=False,
        path_effects=[patheffects.withStroke(linewidth=2.0, foreground="white")],
        zorder=3,
    )


def _draw_scale(drawn: Figure, laid: Layout, end: float) -> None:
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415 - not needed without a figure
    from matplotlib.colors import LinearSegmentedColormap, Normalize  # noqa: PLC0415
    from matplotlib.ticker import PercentFormatter  # noqa: PLC0415

    wide, tall = drawn.get_size_inches()
    long = min(2.4, 0.8 * laid.height)
    bottom = _BELOW + (laid.height - long) / 2
    axes = drawn.add_axes((1.0 - _BESIDE / wide, bottom / tall, 0.14 / wide, long / tall))
    colours = LinearSegmentedColormap.from_list("exposure", EXPOSED)
    scale = ScalarMappable(Normalize(0.0, end), colours)
    decimals = 0 if end >= 0.05 else 1  # noqa: PLR2004 - else ticks would be alike
    bar = drawn.colorbar(scale, cax=axes, format=PercentFormatter(1.0, decimals=decimals))
    bar.set_label("expected to be wrong", fontsize=FONT)
    axes.tick_params(labelsize=FONT)
    axes.grid(visible=False)


def _write(drawn: Figure, graph: nx.DiGraph, title: str | None, remark: str) -> None:
    """The title, the legend of edges, and what was left out."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - not needed without a figure

    tall = drawn.get_size_inches()[1]
    if title is not None:
        drawn.text(
            0.5, 1.0 - 0.25 / tall, legibly(title), ha="center", va="center", parse_math=False
        )
    kinds = {link(said) for _, _, said in graph.edges(data=True)}
    shown = [look for kind, look in LINKS.items() if kind in kinds]
    if shown:
        lines = [Line2D([], [], color=c, linestyle=line, marker="", lw=2) for c, line, _ in shown]
        drawn.legend(
            lines,
            [name for *_, name in shown],
            loc="lower center",
            bbox_to_anchor=(0.5, 0.34 / tall),
            ncols=len(shown),
            fontsize=FONT,
        )
    drawn.text(
        *(0.5, 0.2 / tall),
        "\n".join(line for line in (_READ, remark) if line),
        ha="center",
        va="center",
        fontsize=FONT - 1,
        color=_RIM,
    )
