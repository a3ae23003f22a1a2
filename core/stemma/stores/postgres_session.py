"""One run of an operation: what it says first, and how its trips follow one another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from stemma.errors import StoreError
from stemma.stores.postgres_steps import Rows, Say, Steps
from stemma.stores.text import escape

__all__ = ["Drive", "Session"]


class Session:
    """What every operation says first: where the tables are, and on whose behalf it looks.

    Args:
        schema: The schema of the tables.
        tenant: The tenant that the store is confined to, or `None`.
        timeout: How long the server may work on a statement, seconds.
    """

    def __init__(self, schema: str, tenant: str | None, timeout: float) -> None:
        self._numbers = itertools.count(1)
        self._settings = (
            f'"{schema}", pg_catalog',
            "" if tenant is None else escape(tenant),
            "all" if tenant is None else "",
        )
        self._timeout = timeout

    def opening(self, begin: str | None, *, patient: bool) -> tuple[list[Say], int]:
        """The statements that come before an operation's own, and the number to come back."""
        number = next(self._numbers)
        limit = "0" if patient else str(max(1, round(self._timeout * 1000)))
        say = Say(
            """SELECT set_config('search_path', %s, true), set_config('stemma.tenant', %s, true),
            set_config('stemma.reach', %s, true), set_config('statement_timeout', %s, true),
            %s::bigint""",
            (*self._settings, limit, number),
        )
        return [say] if begin is None else [Say(begin), say], number


class Drive:
    """One run of an operation: what to send next, and what to make of the replies."""

    def __init__(self, steps: Steps[Any], opening: Sequence[Say], number: int) -> None:
        self._steps = steps
        self._opening = opening
        self._number = number
        self.first = True
        self.result: Any = None

    def start(self) -> Sequence[Say] | None:
        """The first trip; `None` if there is nothing to ask."""
        try:
            return [*self._opening, *next(self._steps)]
        except StopIteration as stop:
            self.result = stop.value
            return None

    def go_on(self, replies: list[Rows]) -> Sequence[Say] | None:
        """The next trip, `None` after the last."""
        if self.first:
            self.first = False
            said = replies[len(self._opening) - 1]
            if [row[-1] for row in said] != [self._number]:
                raise StoreError("a reply was another call's; the connection was dropped")
            replies = replies[len(self._opening) :]
        try:
            return self._steps.send(replies)
        except StopIteration as stop:
            self.result = stop.value
            return None
