"""Figures of matplotlib, all in one style. matplotlib is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stemma.errors import MissingDependency

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "STYLE", "legibly", "styled"]

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "stemma",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.marker": "o",
    "lines.markersize": 4,
    "legend.frameon": False,
}
"""Settings of matplotlib for every figure of ours."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555")
"""Told apart by everybody."""


@contextmanager
def styled(width: float, height: float, *, layout: str | None = "constrained") -> Iterator[Figure]:
    """An empty figure, in our style as long as one draws on it.

    Args:
        width: Inches.
        height: Inches.
        layout: Who places what is on it, as matplotlib knows it; `None`: whoever draws.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # noqa: PLC0415 - not needed without a figure
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependency("a figure needs matplotlib: pip install matplotlib") from error
    with mpl.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout=layout)  # type: ignore[arg-type]


def legibly(text: str) -> str:
    """A legible text as the present font can draw it: letters it lacks are escaped too."""
    from matplotlib.font_manager import FontProperties, findfont, get_font  # noqa: PLC0415

    has = get_font(findfont(FontProperties())).get_char_index
    return "".join(
        letter if has(ord(letter)) else letter.encode("unicode_escape").decode() for letter in text
    )
