"""A model's reply as a stream: the chunks of a stored one, and the reply that chunks make."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from stemma_langchain.outputs import as_chunk

__all__ = ["own_copy", "replayed", "streamed"]

_PIECES = re.compile(r"\s*\S{1,24}|\s+")
"""Words with the space before them; a text without spaces comes in pieces of 24 characters."""


def replayed(generation: ChatGeneration) -> Iterator[ChatGenerationChunk]:
    """A stored reply in chunks whose sum is the reply.

    The text comes word by word, other content block by block, then each tool call; the last chunk
    has all else. No chunk has an id: they are those of the run they are replayed in.
    """
    message = generation.message
    empty: Any = [] if isinstance(message.content, list) else ""
    if not isinstance(message, AIMessage) or message.invalid_tool_calls:
        # Arguments that are no JSON would be mended, and become a call, where chunks are added.
        yield _last(as_chunk(message), generation)
        return
    for piece in _pieces(message.content):
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
    for index, call in enumerate(message.tool_calls):
        args = json.dumps(call["args"])
        chunk = tool_call_chunk(name=call["name"], args=args, id=call["id"], index=index)
        yield ChatGenerationChunk(message=AIMessageChunk(content=empty, tool_call_chunks=[chunk]))
    rest = message.model_copy(update={"content": empty, "tool_calls": []})
    yield _last(as_chunk(rest), generation)


def _last(message: AIMessageChunk, generation: ChatGeneration) -> ChatGenerationChunk:
    message.id = None
    return ChatGenerationChunk(message=message, generation_info=generation.generation_info)


def _pieces(content: str | list[Any]) -> Iterator[Any]:
    if isinstance(content, str):
        yield from _PIECES.findall(content)
    else:
        yield from ([block] for block in content)


def streamed(chunks: Sequence[ChatGenerationChunk]) -> ChatResult:
    """The result that the chunks of a stream make.

    Raises:
        ValueError: There are none.
        TypeError: They do not add up.
    """
    return generate_from_stream(iter(chunks))


def own_copy(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    """A chunk that does not change when its reader changes the one that was passed on."""
    message = chunk.message
    fields = {name: _copied(value) for name, value in vars(message).items()}
    return chunk.model_copy(
        update={
            "message": message.model_copy(update=fields),
            "generation_info": _copied(chunk.generation_info),
        }
    )


def _copied(value: Any) -> Any:
    """Containers copied, with what they hold; a provider's own objects stay as they are."""
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
