"""LangChain's cache key strings, read: what is the question in a prompt, and what is all else.

`BaseCache` is handed two strings. The prompt of a chat model is a JSON list of its messages; of a
completion model it is the text. The other string describes the model: for most models JSON, then
`---`, then the Python form of the call's arguments. Neither is ever trusted to be of that form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from stemma import canonical

__all__ = ["NOISE", "ModelString", "Prompt", "Turns", "read_model", "read_prompt"]

NOISE = ("id", "usage_metadata", "response_metadata")
"""Fields of a message that never shape an answer, and are left out of keys.

Besides them: ids of content blocks, and the tool call ids, which are numbered in their order.
"""

_SORTED = orjson.OPT_SORT_KEYS


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt taken apart.

    Args:
        exact: What must be equal, encoded.
        focus: What may be compared by meaning; `None` if nothing may.
        texts: The texts of all turns, in which earlier reads are recognised.
    """

    exact: bytes = field(repr=False)
    focus: str | None = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)


class Turns:
    """A prompt as its turns: the messages less the noise, or one text where it has none.

    Args:
        prompt: The string LangChain hands to its cache.
    """

    __slots__ = ("_messages", "_text")

    def __init__(self, prompt: str) -> None:
        self._text = prompt
        self._messages = _messages(prompt)

    @property
    def last(self) -> Any:
        """The content of the last turn."""
        if self._messages is None:
            return self._text
        return self._messages[-1].get("content") if self._messages else None

    def read(self, question: str | None, sources: Iterable[str] = ()) -> Prompt:
        """Tell the question from all else. See `read_prompt`. To be called once."""
        messages = self._messages
        if messages is None:
            return _of_text(self._text, question, sources)
        texts = tuple(text for text in map(_text_of, messages) if text)
        focus: str | None = None
        turn = _last_user_turn(messages)
        if turn is not None:
            message, said = turn
            before, focus, after = _split(said, question, sources)
            if focus is not None:
                message["content"] = {"$focus": [before, after]}
        return Prompt(b"m" + orjson.dumps(messages, option=_SORTED), focus, texts)


def read_prompt(prompt: str, question: str | None, sources: Iterable[str] = ()) -> Prompt:
    """Take a prompt apart.

    The focus is the run's question where it occurs exactly once in the last user turn; all else in
    the prompt, the retrieved chunks among it, must then be equal. Otherwise the focus is the whole
    last user turn, unless it holds the text of a retrieved chunk: by meaning, a chunk would drown
    the question.

    Args:
        prompt: The string LangChain hands to its cache.
        question: The question of the run, where one is known.
        sources: The texts of the chunks read in the run.
    """
    return Turns(prompt).read(question, sources)


def _of_text(prompt: str, question: str | None, sources: Iterable[str]) -> Prompt:
    before, focus, after = _split(prompt, question, sources)
    exact = b"t" + canonical([prompt if focus is None else "", before, after]).encode("ascii")
    return Prompt(exact, focus, (prompt,))


def _split(said: str, question: str | None, sources: Iterable[str]) -> tuple[str, str | None, str]:
    if question is not None and question.strip() != "":
        before, found, after = said.partition(question)
        if found and question not in after:
            return before, question, after
    if any(text and text in said for text in sources):
        return "", None, ""
    return "", said, ""


def _messages(prompt: str) -> list[dict[str, Any]] | None:
    """The messages' own fields, less the noise; `None` if this is not LangChain's form of them."""
    if not prompt.startswith('[{"lc"'):
        return None
    try:
        found = orjson.loads(prompt)
        return _cleaned(found) if all(_is_message(item) for item in found) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_message(item: Any) -> bool:
    return bool(item["type"] == "constructor" and "messages" in item["id"][:-1] and item["kwargs"])


def _cleaned(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls: dict[str, str] = {}
    messages = []
    for item in found:
        message: dict[str, Any] = item["kwargs"]
        for noise in NOISE:
            message.pop(noise, None)
        message["$kind"] = item["id"][-1]
        content = message.get("content")
        if type(content) is list:
            message["content"] = _one_text(content)
        if message.get("tool_calls") or "tool_call_id" in message:
            _renumber(message, calls)
        messages.append(message)
    return messages


def _one_text(blocks: list[Any]) -> Any:
    """Content blocks without their ids; a single text block is the text itself."""
    for block in blocks:
        if type(block) is dict:
            block.pop("id", None)
    if len(blocks) == 1:
        only = blocks[0]
        if type(only) is str:
            return only
        if only.keys() == {"type", "text"} and only["type"] == "text":
            return only["text"]
    return blocks


def _renumber(message: dict[str, Any], calls: dict[str, str]) -> None:
    """Tool-call ids are random; in the key they are numbered in the order they appear."""
    for call in message.get("tool_calls") or ():
        call["id"] = calls.setdefault(str(call.get("id")), f"call-{len(calls)}")
    if "tool_call_id" in message:
        given = str(message["tool_call_id"])
        message["tool_call_id"] = calls.setdefault(given, f"call-{len(calls)}")
    extra = message.get("additional_kwargs")
    if extra and extra.get("tool_calls"):
        for call in extra["tool_calls"]:
            call["id"] = calls.setdefault(str(call.get("id")), f"call-{len(calls)}")


def _last_user_turn(messages: list[dict[str, Any]]) -> tuple[dict[str, Any], str] | None:
    """The last message, if it is a user's and is text alone."""
    if not messages:
        return None
    last = messages[-1]
    said = last.get("content")
    if last["$kind"] not in ("HumanMessage", "HumanMessageChunk") or type(said) is not str:
        return None
    return last, said


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if type(content) is str:
        return content
    if type(content) is not list:
        return ""
    texts = (
        block if type(block) is str else block.get("text", "")
        for block in content
        if type(block) in (str, dict)
    )
    return "\n".join(text for text in texts if type(text) is str)


@dataclass(frozen=True, slots=True)
class ModelString:
    """What the model's string says.

    Args:
        name: The model's name, for recall by model; empty where it is not said.
        sampled: Whether it says that answers are drawn at random (temperature above 0, n above 1).
    """

    name: str
    sampled: bool


_NAME = re.compile(r"""['"](?:model|model_name|model_id|deployment_name)['"][:,]\s*['"]([^'"]+)""")
_TEMPERATURE = re.compile(r"""['"]temperature['"][:,]\s*([0-9.eE+-]+)""")
_SEVERAL = re.compile(r"""['"]n['"][:,]\s*([0-9]+)""")


def read_model(llm_string: str) -> ModelString:
    """What can be told of a model from LangChain's string for it; the call's arguments win."""
    names = _NAME.findall(llm_string)
    temperatures = _TEMPERATURE.findall(llm_string)
    several = _SEVERAL.findall(llm_string)
    return ModelString(
        name=names[-1] if names else "",
        sampled=(bool(temperatures) and _above_zero(temperatures[-1]))
        or (bool(several) and int(several[-1]) > 1),
    )


def _above_zero(number: str) -> bool:
    try:
        return float(number) > 0
    except ValueError:
        return False
