"""Model calls between their start and their question to the LLM cache.

LangChain's cache is told neither run nor tenant nor the model's parameters as they are. A callback
is, just before: what it hears waits here, in the context that the lookup runs in as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from stemma import Frame, UnkeyableValue, canonical

__all__ = [
    "Calls",
    "Live",
    "Pending",
    "begin_call",
    "live",
    "one_text",
    "take_pending",
    "waiting_calls",
]

Scalar = str | int | float | bool | None
Live = tuple[tuple[str, Scalar | tuple[str, str]], ...]
"""A model's parameters; what is not a scalar is written out."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A model call that has started and will ask the LLM cache next.

    Args:
        run: The run's id.
        frame: The frame it belongs to.
        last: The content of the last message; a single block of text is the text.
        live: The model's parameters as they are now; LangChain's own string for them is computed
            once per model and misses later changes.
    """

    run: UUID
    frame: Frame
    last: Any
    live: Live


@dataclass(slots=True, eq=False)
class Calls:
    """The model calls of one `generate`: they all start before the first asks the cache.

    Args:
        size: How many they will be.
        before: Calls started earlier in this context that have not asked yet.
        started: The runs of those that have started.
        waiting: Those of them that have not asked yet.
    """

    size: int
    before: Calls | None
    started: list[UUID] = field(default_factory=list)
    waiting: list[Pending] = field(default_factory=list)

    def end(self, run: UUID) -> None:
        """One of the runs has ended; if it never asked, it will not any more."""
        self.waiting[:] = [pending for pending in self.waiting if pending.run != run]


_calls: ContextVar[Calls | None] = ContextVar("stemma_langchain_calls", default=None)


def waiting_calls() -> list[Pending]:
    """The chat calls started last in this context that have not asked the cache yet, in order.

    A call asks right after it has started; one that streams never asks.
    """
    calls = _calls.get()
    while calls is not None and not calls.waiting:
        calls = calls.before
    return calls.waiting if calls is not None else []


def take_pending(last: Any) -> Pending | None:
    """The waiting call whose last turn has this content; of equal ones, the first to start.

    A turn of several blocks may have been rewritten on its way to the callbacks, so for those the
    first such call is taken.
    """
    waiting = waiting_calls()
    for place, pending in enumerate(waiting):
        if pending.last == last or not (isinstance(last, str) or isinstance(pending.last, str)):
            return waiting.pop(place)
    return None


def begin_call(size: int, pending: Pending, is_open: Callable[[UUID], bool]) -> Calls:
    """Note a call that starts, among `size` that start together before the first asks.

    Args:
        size: How many they are.
        pending: The call.
        is_open: Whether a run has not ended.
    """
    calls = _calls.get()
    if calls is None or len(calls.started) >= calls.size or not is_open(calls.started[0]):
        while calls is not None and not any(is_open(one.run) for one in calls.waiting):
            calls = calls.before
        calls = Calls(size=size, before=calls)
        _calls.set(calls)
    calls.started.append(pending.run)
    calls.waiting.append(pending)
    return calls


_TEXT_BLOCK = {"type", "text", "id"}


def one_text(content: Any) -> Any:
    """A message's content; the text itself where it is a single block of text."""
    if not isinstance(content, list) or len(content) != 1:
        return content
    only = content[0]
    if isinstance(only, dict) and only.get("type") == "text" and only.keys() <= _TEXT_BLOCK:
        return only.get("text")
    return only if isinstance(only, str) else content


def live(named: Mapping[str, Any]) -> Live:
    """A model's parameters from what LangChain tells its callbacks."""
    given = named.get("options") or {}
    found: list[tuple[str, Scalar | tuple[str, str]]] = []
    for name, value in (named.get("invocation_params") or {}).items():
        if value is None or isinstance(value, (str, int, float, bool)):
            found.append((name, value))
        elif name not in given:  # the call's own arguments are in LangChain's string as they are
            with suppress(UnkeyableValue):
                found.append((name, ("canonical", canonical(value))))
    return tuple(found)
