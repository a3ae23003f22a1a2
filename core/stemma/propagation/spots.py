"""Nodes and edges as shapes in a picture: inches, y grows downwards."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stemma.legible import cells, short
from stemma.propagation.appearance import label, number

__all__ = ["FONT", "Arc", "Point", "Shape", "Spot", "arc", "corners", "spot"]

FONT = 8.0
"""Points, of the labels."""

_LETTER = 0.62 * FONT / 72
"""How wide a letter of a label is at most, on average."""
_HALF = FONT / 144
"""Half of the height of a label."""
_LETTERS = 24
_GAP = 0.06
"""Between a node and its label."""
_CLEAR = 0.02
"""Between a node and its edges."""

Point = tuple[float, float]
Shape = Literal["circle", "box", "square", "dot"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """A node in the picture.

    Args:
        x: Of its middle.
        y: Of its middle.
        wide: Half of its width.
        tall: Half of its height.
        shape: A tenant is a circle, a pool a box, a source or a tool a square, an entry a dot.
        label: What is written beside it, or, in a box, in it.
        anchor: Where that begins, ends, or has its middle.
        align: Which of these three; in the middle of its height it is always.
        turn: By how many degrees it is turned, against the clock.
    """

    x: float
    y: float
    wide: float
    tall: float
    shape: Shape
    label: str
    anchor: Point
    align: Literal["left", "center", "right"]
    turn: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Arc:
    """An edge in the picture: a quadratic Bézier curve, clear of the nodes it joins."""

    start: Point
    bend: Point
    end: Point


def spot(
    node: Hashable,
    said: Mapping[str, Any],
    at: Point,
    *,
    largest: float,
    most: float,
    towards: float,
    turned: bool = False,
) -> Spot:
    """A node, with its label beside it.

    Args:
        node: Its key.
        said: Its attributes.
        at: Where its middle is.
        largest: The radius of the largest tenant.
        most: How many answers that was given.
        towards: Where its label lies: an angle, clockwise from the right.
        turned: Whether the label points there, and is not upright.
    """
    text = short(label(node, said), _LETTERS)
    if said.get("kind") == "pool":
        return _box(text, at, min(0.17, 1.2 * largest))
    x, y = at
    half, shape = _size(said, largest, most)
    sine, cosine = math.sin(towards), math.cos(towards)
    out = half + _GAP
    upright = abs(cosine) < 0.3 and not turned  # noqa: PLR2004 - above or below
    lift = math.copysign(_HALF, sine) if upright else 0.0
    degrees = -math.degrees(towards) if turned else 0.0
    return Spot(
        x=x,
        y=y,
        wide=half,
        tall=half,
        shape=shape,
        label=text,
        anchor=(x + out * cosine, y + out * sine + lift),
        align="center" if upright else "left" if cosine > 0 else "right",
        turn=degrees if cosine > 0 or not turned else degrees + 180.0,
    )


def corners(spot: Spot) -> list[Point]:
    """Corners of what a node and its label take."""
    x, y = spot.anchor
    long = _wide(spot.label)
    begin = {"left": 0.0, "center": -long / 2, "right": -long}[spot.align]
    cosine, sine = math.cos(math.radians(spot.turn)), math.sin(math.radians(spot.turn))
    return [
        (spot.x - spot.wide, spot.y - spot.tall),
        (spot.x + spot.wide, spot.y + spot.tall),
        *(
            (x + along * cosine + down * sine, y - along * sine + down * cosine)
            for along in (begin, begin + long)
            for down in (-_HALF, _HALF)
        ),
    ]


def arc(start: Spot, end: Spot, bend: Point) -> Arc:
    """A curve that leaves one node towards a point, and comes to the other from there."""
    return Arc(start=_rim(start, bend), bend=bend, end=_rim(end, bend))


def _box(text: str, at: Point, tall: float) -> Spot:
    """A node with its label in it."""
    return Spot(
        x=at[0],
        y=at[1],
        wide=_wide(text) / 2 + 0.12,
        tall=tall,
        shape="box",
        label=text,
        anchor=at,
        align="center",
    )


def _size(said: Mapping[str, Any], largest: float, most: float) -> tuple[float, Shape]:
    kind = said.get("kind")
    if kind == "entry":
        return min(0.07, largest), "dot"
    if kind in {"source", "tool"}:
        return min(0.12, 0.8 * largest), "square"
    answers = number(said, "answers")
    share = max(answers, 0.0) / most if answers is not None and most > 0 else 0.0
    return largest * max(math.sqrt(share), 0.3), "circle"


def _wide(text: str) -> float:
    return cells(text) * _LETTER


def _rim(spot: Spot, towards: Point) -> Point:
    """Where a line from the middle of a node leaves it."""
    dx, dy = towards[0] - spot.x, towards[1] - spot.y
    far = math.hypot(dx, dy)
    across, down = abs(dx) / far, abs(dy) / far
    if spot.shape == "circle":
        out = spot.wide
    elif spot.shape == "dot":
        out = spot.wide / (across + down)
    else:
        out = min(
            spot.wide / across if across else math.inf, spot.tall / down if down else math.inf
        )
    out += _CLEAR
    return spot.x + dx / far * out, spot.y + dy / far * out
