"""A chain's input, read: what is the question in it, and what must be equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue, StringPromptValue
from langchain_core.runnables import Runnable, RunnableConfig

from stemma import Cleaning, LeftOut
from stemma.policies.cleaning import Sweep
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
        said: The question as it was said: nothing is left out of it.
        before: The turns before it that are compared by meaning, too.
        left_out: What was left out of the question and those turns.
    """

    focus: str | None = field(repr=False)
    exact: Any = field(repr=False)
    said: str | None = field(repr=False)
    before: tuple[str, ...] = field(default=(), repr=False)
    left_out: tuple[LeftOut, ...] = ()


def read_input(given: Any, key: str | None, cleaning: Cleaning | None = None) -> Question:
    """Tell the question from all else in a chain's input.

    The question is the text under `key`, or the whole input where that is a text. Where messages
    stand in its place, it is the last of them if that is a user's; of the turns before it, what
    user and model said must mean the same, and all else be equal. Otherwise nothing may be compared
    by meaning.

    Args:
        given: The input.
        key: The key of a mapping that holds the question.
        cleaning: What is left out of the question, and of the messages in its place.
    """
    if key is not None and isinstance(given, Mapping) and key in given:
        found = _question(given[key], cleaning)
        rest = {name: value for name, value in given.items() if name != key}
        return replace(found, exact=["field", key, found.exact, key_form(rest)])
    found = _question(given, cleaning)
    return replace(found, exact=["whole", found.exact])


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


def _question(value: Any, cleaning: Cleaning | None) -> Question:
    if isinstance(value, str):
        return _text("text", str(value), cleaning)
    if isinstance(value, StringPromptValue):
        return _text("prompt", value.text, cleaning)
    if isinstance(value, PromptValue):
        return _last_turn("prompt", value.to_messages(), cleaning)
    if isinstance(value, BaseMessage):
        return _last_turn("message", [value], cleaning)
    if isinstance(value, (list, tuple)) and _all_messages(value):
        return _last_turn("messages", value, cleaning)
    return Question(None, key_form(value), None)


def _text(kind: str, said: str, cleaning: Cleaning | None) -> Question:
    sweep = Sweep(cleaning)
    return Question(sweep.text(said), kind, said, left_out=sweep.left_out)


def _all_messages(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(item, BaseMessage) for item in values)


def _last_turn(
    kind: str,
    messages: Sequence[BaseMessage],
    cleaning: Cleaning | None = None,
    *,
    conversation: bool = True,
) -> Question:
    prompt = written(messages)
    if prompt is None:
        return Question(None, [kind, list(messages)], None)
    turns = Turns(prompt, cleaning)
    read = turns.read(None, conversation=conversation)
    said = None if read.focus is None else str(turns.said)
    return Question(read.focus, [kind, read.exact], said, read.before, turns.left_out)


def _turns(messages: Sequence[BaseMessage]) -> Any:
    found = _last_turn("turns", messages, conversation=False)
    return [found.exact, found.focus]
