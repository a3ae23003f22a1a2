"""In whose name something is said (reported, suspected, approved of), and of what."""

from __future__ import annotations

from stemma.errors import UsageError

__all__ = ["named", "named_by"]


def named_by(by: object) -> str:
    """Who says it.

    Raises:
        UsageError: It is no text that says something.
    """
    if not (isinstance(by, str) and by.strip()):
        raise UsageError(f"by must say who, not {by!r}")
    return by


def named(what: str, name: object) -> str:
    """What it is said of: an entry's id, a pool.

    Raises:
        UsageError: It is no text.
    """
    if not isinstance(name, str):
        raise UsageError(f"{what} is named by a text, not {type(name).__name__}")
    return name
