"""LangChain's cache key strings, read: what is the question in a prompt, and what is all else.

`BaseCache` is handed two strings. The prompt of a chat model is a JSON list of its messages; of a
completion model it is the text. The other string describes the model: for most models JSON, then
`---`, then the Python form of the call's arguments. Neither is ever trusted to be of that form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.load import dumps
from langchain_core.messages import BaseMessage

from stemma import Cleaning, LeftOut, canonical
from stemma.policies.cleaning import Sweep
from stemma.policies.focus import split

__all__ = [
    "NOISE",
    "ModelString",
    "Prompt",
    "Turns",
    "is_chat",
    "plain_prompt",
    "read_model",
    "read_prompt",
    "written",
]

NOISE = ("id", "usage_metadata", "response_metadata")
"""Fields of a message that never shape an answer, and are left out of keys.

Besides them: ids of content blocks, and the tool call ids, which are numbered in their order.
"""

_SPOKEN = frozenset({"HumanMessage", "HumanMessageChunk", "AIMessage", "AIMessageChunk"})
_USERS = frozenset({"HumanMessage", "HumanMessageChunk"})
_RESULTS = frozenset({"ToolMessage", "ToolMessageChunk"})
_SYSTEM = frozenset({"SystemMessage", "SystemMessageChunk"})
_ROLES = ("system", "developer")

_MESSAGES = '[{"lc"'

_NOT_WRITTEN = '"type": "not_implemented"'
"""What LangChain writes for an object that it cannot write, beside the object's `repr`."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _encoded(value: Any) -> bytes:
    return _encode(value).encode("ascii")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt taken apart.

    Args:
        exact: What must be equal, encoded.
        focus: What may be compared by meaning; `None` if nothing may.
        texts: The texts of all turns, in which earlier reads are recognised.
        before: The users' and the model's turns before the last, as far as they are text alone.
    """

    exact: bytes = field(repr=False)
    focus: str | None = field(repr=False)
    texts: tuple[str, ...] = field(repr=False)
    before: tuple[str, ...] = field(default=(), repr=False)


class Turns:
    """A prompt as its turns: the messages less the noise, or one text where it has none.

    Args:
        prompt: The string LangChain hands to its cache.
        cleaning: What does not shape the reply, and is left out as well.

    Other fields: `whole` is the prompt as it is keyed exactly; `last` is the content of the last
    turn, and `said` that of the turn that is answered, as they came.
    """

    __slots__ = (
        "_cleaning",
        "_kinds",
        "_messages",
        "_place",
        "_text",
        "_texts",
        "last",
        "left_out",
        "said",
        "whole",
    )

    def __init__(self, prompt: str, cleaning: Cleaning | None = None) -> None:
        items = _items(prompt)
        self._messages = None if items is None else [item["kwargs"] for item in items]
        self._kinds = [] if items is None else [item["id"][-1] for item in items]
        messages = self._messages
        self.last: Any = prompt
        self._texts: tuple[str, ...] = (prompt,)
        if messages is not None:
            self.last = messages[-1].get("content") if messages else None
            self._texts = tuple(text for text in map(_text_of, messages) if text)
        self._place = self._answered()
        self.said: Any = self.last
        if messages is not None and self._place is not None:
            self.said = messages[self._place]["content"]
        self._cleaning = cleaning
        sweep = Sweep(cleaning)
        self._text = sweep.text(prompt) if items is None else prompt
        for kind, message in zip(self._kinds, messages or (), strict=True):
            system = kind in _SYSTEM or message.get("role") in _ROLES
            if "content" in message:
                message["content"] = sweep.said(message["content"], system=system)
        self.left_out: tuple[LeftOut, ...] = sweep.left_out
        plain = None if self.left_out else plain_prompt(prompt)
        if plain is None:  # written as LangChain would write it if there were no noise in it
            plain = (self._text if items is None else json.dumps(items)).encode(
                "utf-8", "surrogatepass"
            )
        self.whole: bytes = plain

    def read(
        self, question: str | None, sources: Iterable[str] = (), *, conversation: bool = True
    ) -> Prompt:
        """Tell the question from all else. See `read_prompt`. To be called once.

        Args:
            question: The question of the run, where one is known.
            sources: The texts of the chunks read in the run.
            conversation: Whether the turns before are taken out, to be compared by meaning.
        """
        asked = question if question is None else Sweep(self._cleaning).text(question)
        messages = self._messages
        if messages is None:
            return self._of_text(asked, sources)
        place, focus = self._place, None
        before: tuple[str, ...] = ()
        if place is not None:
            said = messages[place]["content"]
            start, focus, end = split(said, asked, sources, str(self.said))
            if focus is not None:
                messages[place]["content"] = {"$focus": [start, end]}
                before = tuple(self._taken_out()) if conversation else ()
        return Prompt(b"m" + _encoded([self._kinds, messages]), focus, self._texts, before)

    def _of_text(self, question: str | None, sources: Iterable[str]) -> Prompt:
        start, focus, end = split(self._text, question, sources, self._texts[0])
        whole = self._text if focus is None else ""
        exact = b"t" + canonical([whole, start, end]).encode("ascii")
        return Prompt(exact, focus, self._texts)

    def _taken_out(self) -> Iterator[str]:
        """The texts of the turns before the one that is answered, taken out of the messages."""
        for kind, message in zip(self._kinds[: self._place], self._messages or (), strict=False):
            content = message.get("content")
            if kind in _SPOKEN and type(content) is str and not message.get("tool_calls"):
                message["content"] = {"$turn": 0}
                yield content

    def _answered(self) -> int | None:
        """The place of the turn that is answered: a user's last, if it is text alone.

        After it, there may be the model's calls of tools and what these gave: all of it exact.
        """
        messages = self._messages if self._messages is not None else []
        place = len(messages) - 1
        while place >= 0 and _is_of_tools(self._kinds[place], messages[place]):
            place -= 1
        if place < 0 or self._kinds[place] not in _USERS:
            return None
        return place if type(messages[place].get("content")) is str else None


def written(messages: Sequence[BaseMessage]) -> str | None:
    """Messages as LangChain writes them for its cache; `None` if they cannot be written."""
    try:
        prompt = dumps(
            [
                message if message.id is None else message.model_copy(update={"id": None})
                for message in messages
            ]
        )
    except (ValueError, TypeError, RecursionError):
        return None
    return None if _NOT_WRITTEN in prompt else prompt


def is_chat(prompt: str) -> bool:
    """Whether a prompt is a chat model's; else it is a text for a completion model."""
    return prompt.startswith(_MESSAGES)


def plain_prompt(prompt: str) -> bytes | None:
    """The prompt, if there can be no noise in it: then it is its own exact key.

    One of these marks stands in every prompt of messages that has noise; texts escape their
    quotes, so what a user writes never looks like that. Of a prompt with noise the key is made of
    what LangChain would have written without it.
    """
    if prompt.startswith(_MESSAGES) and (
        '"id": "' in prompt
        or '"content": [' in prompt
        or '"tool_call' in prompt
        or '_metadata": ' in prompt
    ):
        return None
    return prompt.encode("utf-8", "surrogatepass")


def read_prompt(prompt: str, question: str | None, sources: Iterable[str] = ()) -> Prompt:
    """Take a prompt apart.

    The focus is the run's question where it occurs exactly once in the last user turn, after which
    nothing may stand but calls of tools and what they gave; all else in the prompt, these and the
    retrieved chunks among it, must then be equal. Otherwise the focus is the whole last user turn,
    unless it holds the text of a retrieved chunk: by meaning, a chunk would drown the question. The
    turns of user and model before it must mean the same (`Prompt.before`).

    Args:
        prompt: The string LangChain hands to its cache.
        question: The question of the run, where one is known.
        sources: The texts of the chunks read in the run.
    """
    return Turns(prompt).read(question, sources)


def _items(prompt: str) -> list[dict[str, Any]] | None:
    """LangChain's form of the messages, less the noise; `None` if this is something else."""
    if not prompt.startswith(_MESSAGES):
        return None
    try:
        found = json.loads(prompt)
        return _cleaned(found) if all(_is_message(item) for item in found) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_of_tools(kind: str, message: dict[str, Any]) -> bool:
    return kind in _RESULTS or bool(kind in _SPOKEN - _USERS and message.get("tool_calls"))


def _is_message(item: Any) -> bool:
    return bool(item["type"] == "constructor" and "messages" in item["id"][:-1] and item["kwargs"])


def _cleaned(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls: dict[str, str] = {}
    for item in items:
        message: dict[str, Any] = item["kwargs"]
        for noise in NOISE:
            message.pop(noise, None)
        content = message.get("content")
        if type(content) is list:
            message["content"] = _one_text(content)
        if message.get("tool_calls") or "tool_call_id" in message:
            _renumber(message, calls)
    return items


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
