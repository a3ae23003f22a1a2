"""Events, and the listeners that hear them. No event carries the text of a prompt."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

__all__ = ["Event", "Kind", "Listener", "Listeners"]

Kind = Literal[
    "lookup", "put", "recall", "verdict", "judgement", "promotion", "fault", "warning", "quarantine"
]

_log = logging.getLogger("stemma")


class Event(NamedTuple):
    """Something the cache did. A tuple, not a record of the other kind: hits make them, too.

    Args:
        kind: What happened.
        at: Seconds since 1970-01-01 UTC.
        node: The node, where one was concerned.
        tenant: The tenant, where one was concerned.
        outcome: `exact`, `semantic`, a reason of `stemma.REASONS`, `stored`, a refusal, …
        entry: The id of the entry concerned.
        similarity: Of a semantic hit or of the nearest refused candidate.
        seconds: How long it took; for a hit, how long it saved.
        tokens: For a hit, how many tokens it saved.
        detail: More words; for a hit, what allowed it (`Hit.why`).
    """

    kind: Kind
    at: float
    node: str = ""
    tenant: str = ""
    outcome: str = ""
    entry: str | None = None
    similarity: float | None = None
    seconds: float = 0.0
    tokens: int = 0
    detail: str = ""


class Listener(Protocol):
    """Anything that can be called with an event."""

    def __call__(self, event: Event, /) -> object:
        """Hear the event. What it returns is ignored; what it raises is logged."""
        ...


class Listeners:
    """The listeners of one cache. One that raises is logged and never breaks the call."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        self._all: tuple[Listener, ...] = ()

    def add(self, listener: Listener) -> Callable[[], None]:
        """Register a listener; the function returned takes it off again."""
        self._all = (*self._all, listener)

        def remove() -> None:
            self._all = tuple(other for other in self._all if other is not listener)

        return remove

    def __bool__(self) -> bool:
        return bool(self._all)

    def tell(self, event: Event) -> None:
        """Call every listener with the event."""
        for listener in self._all:
            try:
                listener(event)
            except Exception:
                _log.exception("a listener raised on a %s event; the call goes on", event.kind)
