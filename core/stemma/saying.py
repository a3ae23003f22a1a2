"""In whose name something is said: reported, suspected, approved of."""

from __future__ import annotations

from stemma.errors import UsageError

__all__ = ["named_by"]


def named_by(by: object) -> str:
    """Who says it.

    Raises:
        UsageError: It is no text that says something.
    """
    if not (isinstance(by, str) and by.strip()):
        raise UsageError(f"by must say who, not {by!r}")
    return by
