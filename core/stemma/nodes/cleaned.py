"""A request of which what does not shape the answer is left out."""

from __future__ import annotations

from typing import Any

from stemma.errors import UsageError
from stemma.policies.cleaning import Cleaning, Sweep
from stemma.request import Request

__all__ = ["cleaned"]


def cleaned(
    focus: str | None,
    *,
    exact: Any,
    before: tuple[str, ...],
    standalone: str | None,
    meaning: bool,
    cleaning: Cleaning | None,
) -> Request:
    """The request of a focus and all that must be equal.

    Args:
        focus: What is asked.
        exact: What must be equal; texts in it count as system messages (see `Sweep.value`).
        before: The conversation before it.
        standalone: What is asked, rewritten so that it needs no conversation; then there is none.
        meaning: Whether the focus may be compared by meaning.
        cleaning: What is left out; `None`: nothing.

    Raises:
        UsageError: `standalone` is no text, or says nothing; or `before` is no turns.
    """
    if not isinstance(before, (tuple, list)) or not all(isinstance(turn, str) for turn in before):
        raise UsageError("before must be the earlier turns, each a text, in their order")
    if standalone is not None:
        if not isinstance(standalone, str) or standalone.strip() == "":
            raise UsageError("standalone must be the whole question as a text, or None")
        focus, before = standalone, ()
    sweep = Sweep(cleaning)
    return Request(
        exact=sweep.value(exact),
        focus=sweep.text(focus) if isinstance(focus, str) else focus,
        before=tuple(sweep.text(turn) for turn in before),
        meaning=meaning,
        left_out=sweep.left_out,
    )
