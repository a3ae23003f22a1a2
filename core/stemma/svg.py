"""Pieces of SVG that figures in notebooks are made of."""

from __future__ import annotations

import html
from collections.abc import Iterable

__all__ = ["curve", "image", "node", "words"]


def image(
    parts: Iterable[str], *, width: float, height: float, left: float = 0.0, top: float = 0.0
) -> str:
    """A whole image.

    Args:
        parts: What is drawn, the lowest first.
        width: Pixels.
        height: Pixels.
        left: The least x in it.
        top: The least y in it, which grows downwards.
    """
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="{left:g} {top:g} {width:g} {height:g}">'
    )
    return "".join([head, *parts, "</svg>"])


def node(label: str, *parts: str) -> str:
    """The parts of a node, which shows its whole label, a legible text, when it is pointed at."""
    return f"<g><title>{html.escape(label)}</title>{''.join(parts)}</g>"


def words(text: str, at: tuple[float, float], *, size: float = 12.0, more: str = "") -> str:
    """A line of text.

    Args:
        text: Any legible text.
        at: Where its baseline begins.
        size: Of the letters, in pixels.
        more: Further attributes.
    """
    x, y = at
    return (
        f'<text x="{x:g}" y="{y:g}" font-family="sans-serif" font-size="{size:g}"{more}>'
        f"{html.escape(text)}</text>"
    )


def curve(course: str, colour: str, *, dashes: str = "", more: str = "") -> str:
    """A line.

    Args:
        course: The commands of its path.
        colour: Its colour.
        dashes: How long dashes and gaps are, in turn; empty for a full line.
        more: Further attributes.
    """
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path d="{course}" fill="none" stroke="{colour}"{dashed}{more}/>'
