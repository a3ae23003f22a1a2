"""A chain's output in chunks: the whole they make, and a whole as one chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessageChunk
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.output_parsers import BaseCumulativeTransformOutputParser
from langchain_core.runnables import Runnable, RunnableBinding, RunnableSequence
from langchain_core.runnables.utils import AddableDict

__all__ = ["as_chunk", "merged_input", "replaces", "settled", "whole"]


def merged_input(chunks: Sequence[Any]) -> Any:
    """The input that several chunks make, as LangChain adds them up."""
    merged = chunks[0] if chunks else None
    for chunk in chunks[1:]:
        try:
            merged = merged + chunk
        except TypeError:
            merged = chunk
    return merged


def replaces(chain: Runnable[Any, Any]) -> bool:
    """Whether each chunk of a chain stands for all before it, as a JSON parser's do."""
    last: Any = chain
    while isinstance(last, (RunnableSequence, RunnableBinding)):
        last = last.last if isinstance(last, RunnableSequence) else last.bound
    return isinstance(last, BaseCumulativeTransformOutputParser) and not last.diff


def whole(chunks: Sequence[Any], *, replacing: bool = False) -> tuple[Any, bool]:
    """The value that chunks make, and whether that is certain.

    Texts and message chunks are added up, so are mappings of them key by key. Several chunks of
    any other kind may be meant to be added or to replace each other: that is not certain.

    Args:
        chunks: The chunks.
        replacing: Whether each stands for all before it.
    """
    if not chunks:
        return None, False
    if len(chunks) == 1 or replacing:
        return settled(chunks[-1]), True
    if all(isinstance(chunk, str) for chunk in chunks):
        return "".join(chunks), True
    if all(isinstance(chunk, BaseMessageChunk) for chunk in chunks):
        total = chunks[0]
        for chunk in chunks[1:]:
            total = total + chunk
        return settled(total), True
    if all(isinstance(chunk, AddableDict) for chunk in chunks):
        return _merged_mapping(chunks)
    return None, False


def _merged_mapping(chunks: Sequence[AddableDict]) -> tuple[Any, bool]:
    parts: dict[str, list[Any]] = {}
    for chunk in chunks:
        for key, value in chunk.items():
            held = parts.setdefault(key, [])
            if value is not None:
                held.append(value)
    found = {key: whole(held) if held else (None, True) for key, held in parts.items()}
    return {key: value for key, (value, _) in found.items()}, all(ok for _, ok in found.values())


def settled(value: Any) -> Any:
    """A value as `invoke` would have given it: whole messages and plain mappings."""
    if isinstance(value, BaseMessageChunk):
        return message_chunk_to_message(value)
    if isinstance(value, AddableDict):
        return {key: settled(item) for key, item in value.items()}
    return value


def as_chunk(value: Any) -> Any:
    """A whole value as the one chunk of a stream."""
    if type(value) is not AIMessage:
        return value
    fields = {name: getattr(value, name) for name in AIMessage.model_fields if name != "type"}
    return AIMessageChunk(**fields, chunk_position="last")
