"""The conversation before a question: which of its turns may be compared by meaning.

Of the last turns, those are that are short enough to be embedded whole. Every other turn must be
equal: it says too much for one vector, or lies too far back to weigh anything in one.
"""

from __future__ import annotations

__all__ = ["HORIZON", "LONG", "fixed", "judged"]

HORIZON = 24
"""How many of the last turns may be compared by meaning."""

LONG = 750
"""Turns longer than this, in bytes of UTF-8, must be equal: they may not fit a model's window."""


def judged(before: tuple[str, ...]) -> tuple[str, ...]:
    """The turns that may be compared by meaning, oldest first."""
    return tuple(turn for turn in before[-HORIZON:] if _short(turn))


def fixed(before: tuple[str, ...]) -> list[str | None]:
    """All turns, oldest first, as they must be equal: `None` for those that `judged` gives."""
    far = max(0, len(before) - HORIZON)
    return [None if place >= far and _short(turn) else turn for place, turn in enumerate(before)]


def _short(turn: str) -> bool:
    return turn.strip() != "" and len(turn.encode("utf-8", "surrogatepass")) <= LONG
