"""What an operation on PostgreSQL is: statements to send, and what to make of their replies.

An operation is written once, as a generator. It yields the statements of one trip to the server,
which go out together, and is sent their rows. Where it runs, on a thread or an event loop, is for
`stemma.stores.postgres_connections`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

__all__ = ["COMMIT", "READ", "WRITE", "Rows", "Say", "Steps"]

T = TypeVar("T")

Rows = list[tuple[Any, ...]]


class Say(NamedTuple):
    """A statement, with the values to bind at each `%s`."""

    text: str
    values: Sequence[Any] | None = None


Steps = Generator[Sequence[Say], list[Rows], T]

COMMIT = Say("COMMIT")
"""The last statement of an operation that writes; without it nothing was."""

WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Begins an operation that writes. Each statement sees what was committed before it: those after
the lock on the row of numbers see everything that earlier writers did."""

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""Begins an operation that reads with more than one statement, all of them at one moment."""
