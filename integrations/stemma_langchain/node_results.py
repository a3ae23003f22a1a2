"""What a LangGraph node gives: the messages in it, and whether it may be stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Interrupt, Overwrite, Send

from stemma_langchain.replies import parts, refused_message

__all__ = ["inner_parts", "refused_part"]


def inner_parts(value: Any) -> Iterator[Any]:
    """What a result is made of, also inside what LangGraph wraps values in."""
    for part in parts(value):
        if isinstance(part, (deque, set, frozenset)):
            yield from inner_parts(list(part))
        elif isinstance(part, Send):
            yield part
            yield from inner_parts(part.arg)
        elif isinstance(part, Overwrite):
            yield from inner_parts(part.value)
        else:
            yield part


def refused_part(part: Any, ids: AbstractSet[str] | None) -> str | None:
    """Why a result with this in it must not be stored, or `None`.

    Args:
        part: The part.
        ids: The ids of the messages that the node was given; `None` where they are not known.
            A message with one of them replaces or removes a message of this very run.
    """
    if isinstance(part, (Command, Interrupt)):
        return "what controls the graph is not stored"
    if isinstance(part, BaseException):
        return "an error is not stored"
    if not isinstance(part, BaseMessage):
        return None
    if isinstance(part, RemoveMessage):
        return None if part.id == REMOVE_ALL_MESSAGES else "it removes a message of this run"
    if part.id is not None and (ids is None or part.id in ids):
        return "it may replace a message of this run"
    if isinstance(part, ToolMessage) and part.status == "error":
        return "a tool has failed"
    return refused_message(part) if isinstance(part, AIMessage) else None
