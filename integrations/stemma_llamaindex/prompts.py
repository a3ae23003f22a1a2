"""A model's prompt, taken apart: what is the question in it, and what is all else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import IOBase
from pathlib import Path
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock
from pydantic import AnyUrl, BaseModel

from stemma import Cleaning, Request, UnkeyableValue, canonical, digest
from stemma.policies.cleaning import Sweep
from stemma.policies.focus import split
from stemma_llamaindex.codec import NOTE

__all__ = ["Prompt", "conversation", "read_messages", "read_text", "turns_of"]

_SPOKEN = (MessageRole.USER.value, MessageRole.ASSISTANT.value)
_SYSTEM = (MessageRole.SYSTEM.value, MessageRole.DEVELOPER.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """A prompt taken apart.

    Args:
        request: The request: the exact part, and what may be compared by meaning.
        texts: The texts of all turns, in which earlier reads are recognised.
    """

    request: Request
    texts: tuple[str, ...] = field(repr=False)


def read_messages(
    messages: Sequence[ChatMessage],
    question: str | None,
    sources: Iterable[str],
    *,
    meaning: bool,
    cleaning: Cleaning | None = None,
) -> Prompt:
    """Take a chat prompt apart.

    The focus is the run's question where it occurs exactly once in the last turn, if that is a
    user's; else that whole turn (see `stemma.policies.focus`). What user and model said before must
    mean the same; everything else must be equal. Where the run's question was asked before, and
    the last turn is something else, all must be equal: then it is what a tool gave to an agent
    that works with texts alone.

    Args:
        messages: The messages.
        question: The run's question, where one is known.
        sources: The texts of what the run has retrieved.
        meaning: Whether the focus may be compared by meaning.
        cleaning: What does not shape the reply, and is left out of all this.
    """
    sweep = Sweep(cleaning)
    turns = [
        {**turn, "said": sweep.said(turn["said"], system=turn["role"] in _SYSTEM)}
        for turn in turns_of(messages)
    ]
    texts = tuple(text for one in messages if (text := one.content))
    whole = _whole(turns)
    start, focus, end = "", None, ""
    asked = question if question is None else Sweep(cleaning).text(question)
    if turns and _is_asked(turns[-1], turns[:-1], asked):
        start, focus, end = split(turns[-1]["said"], asked, sources, messages[-1].content)
    before: tuple[str, ...] = ()
    if focus is not None:
        rest, before = conversation(turns[:-1])
        turns = [*rest, {**turns[-1], "said": {"$focus": [start, end]}}]
    request = Request(
        exact=turns,
        focus=focus,
        before=before,
        whole=whole,
        meaning=meaning,
        left_out=sweep.left_out,
    )
    return Prompt(request=request, texts=texts)


def _is_asked(last: dict[str, Any], before: Sequence[dict[str, Any]], asked: str | None) -> bool:
    """Whether the last turn is what a user asks."""
    if not _is_users_text(last):
        return False
    if asked is None or asked.strip() in ("", last["said"].strip()):
        return True
    return not any(_is_users_text(turn) and asked in turn["said"] for turn in before)


def _is_users_text(turn: dict[str, Any]) -> bool:
    return turn["role"] == MessageRole.USER.value and type(turn["said"]) is str


def read_text(
    prompt: str,
    question: str | None,
    sources: Iterable[str],
    *,
    meaning: bool,
    cleaning: Cleaning | None = None,
) -> Prompt:
    """Take a completion prompt apart, as `read_messages` does the last turn of a chat."""
    sweep = Sweep(cleaning)
    text = sweep.text(prompt)
    asked = question if question is None else Sweep(cleaning).text(question)
    start, focus, end = split(text, asked, sources, prompt)
    request = Request(
        exact=[text if focus is None else "", start, end],
        focus=focus,
        whole=_whole(text),
        meaning=meaning,
        left_out=sweep.left_out,
    )
    return Prompt(request=request, texts=(prompt,))


def conversation(turns: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """What user and model said, as far as it is text alone, and the turns without it."""
    rest, before = [], []
    for turn in turns:
        said = turn["said"]
        if turn["role"] in _SPOKEN and type(said) is str and not turn["extra"].get("tool_calls"):
            before.append(said)
            rest.append({**turn, "said": {"$turn": 0}})
        else:
            rest.append(turn)
    return rest, tuple(before)


def _whole(prompt: Any) -> bytes | None:
    """The prompt as it is keyed exactly, whatever its focus; `None` where no key can be made."""
    try:
        return canonical(prompt).encode("ascii")
    except UnkeyableValue:
        return None  # which the request's own exact part tells


def turns_of(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Messages as plain values: without notes of hits, tool calls numbered in their order."""
    calls: dict[str, str] = {}
    return [_turn(message, calls) for message in messages]


def _turn(message: ChatMessage, calls: dict[str, str]) -> dict[str, Any]:
    blocks = message.blocks
    said: Any = [_plain(block, calls) for block in blocks]
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        said = blocks[0].text
    extra = {name: held for name, held in message.additional_kwargs.items() if name != NOTE}
    if isinstance(extra.get("tool_call_id"), str):
        extra["tool_call_id"] = _number(extra["tool_call_id"], calls)
    if isinstance(extra.get("tool_calls"), (list, tuple)):
        extra["tool_calls"] = [_renumbered(call, calls) for call in extra["tool_calls"]]
    return {"role": message.role.value, "said": said, "extra": extra}


def _number(given: str, calls: dict[str, str]) -> str:
    return calls.setdefault(given, f"call-{len(calls)}")


def _renumbered(call: Any, calls: dict[str, str]) -> Any:
    plain = call.model_dump(mode="json") if isinstance(call, BaseModel) else call
    if isinstance(plain, dict) and isinstance(plain.get("id"), str):
        return {**plain, "id": _number(plain["id"], calls)}
    return plain


def _plain(held: Any, calls: dict[str, str]) -> Any:
    """A block, or a part of one, as plain values; what it names on the disk, by its content."""
    if isinstance(held, ToolCallBlock) and held.tool_call_id is not None:
        number = _number(held.tool_call_id, calls)
        return {"call": number, "tool": held.tool_name, "with": held.tool_kwargs}
    if isinstance(held, BaseModel):
        return {name: _plain(getattr(held, name), calls) for name in type(held).model_fields}
    if isinstance(held, list):
        return [_plain(one, calls) for one in held]
    if isinstance(held, AnyUrl):
        return str(held)
    if isinstance(held, Path):
        return _file(held)
    return held


def _file(path: Path) -> Any:
    try:
        return {"file": digest("file/1", path.read_bytes())}
    except OSError:
        return IOBase()  # of which no key can be made, as of any open file
