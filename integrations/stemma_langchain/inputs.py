"""A chain's input, read: what is the question in it, and what must be equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue, StringPromptValue
from langchain_core.runnables import Runnable, RunnableConfig

from stemma_langchain.prompts import Turns, written

__all__ = ["Question", "configured", "key_form", "read_input"]

_DEPTH = 60

_THREADS = frozenset(
    {"checkpoint_id", "checkpoint_map", "checkpoint_ns", "run_id", "thread_id", "thread_ts"}
)
"""What LangGraph adds to a configuration to find its own state; it reaches no model."""


@dataclass(frozen=True, slots=True)
class Question:
    """A chain's input taken apart.

    Args:
        focus: The question, which may be compared by meaning; `None` if there is none.
        exact: All else of the input, which must be equal.
    """

    focus: str | None = field(repr=False)
    exact: Any = field(repr=False)


def read_input(given: Any, key: str | None) -> Question:
    """Tell the question from all else in a chain's input.

    The question is the text under `key`, or the whole input where that is a text. Where messages
    stand in its place, it is the last of them if that is a user's, and the turns before it must be
    equal. Otherwise nothing may be compared by meaning.

    Args:
        given: The input.
        key: The key of a mapping that holds the question.
    """
    if key is not None and isinstance(given, Mapping) and key in given:
        focus, turns = _question(given[key])
        rest = {name: value for name, value in given.items() if name != key}
        return Question(focus, ["field", key, turns, key_form(rest)])
    focus, turns = _question(given)
    return Question(focus, ["whole", turns])


def configured(config: RunnableConfig, chain: Runnable[Any, Any]) -> dict[str, Any]:
    """What the configuration of a run sets that may shape the answer.

    All of `configurable` counts, except what LangGraph adds for itself; that counts, too, if the
    chain declares it (as a chain with message history declares its session).
    """
    given = config.get("configurable")
    if not given:
        return {}
    declared = {spec.id for spec in chain.config_specs}
    return {
        name: value
        for name, value in given.items()
        if name in declared or not (name in _THREADS or name.startswith(("__", "langgraph_")))
    }


def key_form(value: Any, depth: int = 0) -> Any:
    """A value as something that has a key: messages without their noise, documents by content.

    What has no stable form stays as it is; making a key of it will say so.
    """
    if isinstance(value, (str, int, float)) or value is None or depth > _DEPTH:
        return value
    if isinstance(value, BaseMessage):
        return {"message": _turns([value])}
    if isinstance(value, PromptValue):
        return {"prompt": [type(value).__name__, _turns(value.to_messages())]}
    if isinstance(value, Document):
        metadata = key_form(value.metadata, depth + 1)
        return {"document": [value.id, value.page_content, metadata]}
    if isinstance(value, Mapping):
        return {name: key_form(item, depth + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        if _all_messages(value):
            return {"messages": _turns(value)}
        return [key_form(item, depth + 1) for item in value]
    return value


def _question(value: Any) -> tuple[str | None, Any]:
    if isinstance(value, str):
        return str(value), "text"
    if isinstance(value, StringPromptValue):
        return value.text, "prompt"
    if isinstance(value, PromptValue):
        return _last_turn("prompt", value.to_messages())
    if isinstance(value, BaseMessage):
        return _last_turn("message", [value])
    if isinstance(value, (list, tuple)) and _all_messages(value):
        return _last_turn("messages", value)
    return None, key_form(value)


def _all_messages(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(item, BaseMessage) for item in values)


def _last_turn(kind: str, messages: Sequence[BaseMessage]) -> tuple[str | None, Any]:
    prompt = written(messages)
    if prompt is None:
        return None, [kind, list(messages)]
    read = Turns(prompt).read(None)
    return read.focus, [kind, read.exact]


def _turns(messages: Sequence[BaseMessage]) -> Any:
    focus, exact = _last_turn("turns", messages)
    return [exact, focus]
