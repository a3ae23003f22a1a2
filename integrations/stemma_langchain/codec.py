"""LangChain's messages, generations and documents as stored values.

Each type that is known has a form of its own: the fields that a reader can see, as JSON. Nothing
stored is ever revived through LangChain's loader. A message comes back with a fresh id; two
messages are equal answers when they say the same and call the same tools, whatever their ids.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable
from typing import Any

import orjson
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.base import TextAccessor
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, Generation, GenerationChunk
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue

from stemma import Form, JsonCodec, storable
from stemma_langchain.logprobs import sure_of_generation, sure_of_message

__all__ = [
    "CODEC",
    "FORMS",
    "NOTE",
    "MessageCodec",
    "built",
    "document_text",
    "fresh_id",
    "message_text",
]

NOTE = "stemma"
"""Where the note of a hit is, in a message's response metadata and a document's metadata."""

_COMMON = ("content", "additional_kwargs", "response_metadata", "name")
_AI = ("tool_calls", "invalid_tool_calls", "usage_metadata")
_TOOL = ("tool_call_id", "artifact", "status")

_process = secrets.token_hex(8)
_counter = itertools.count()


def fresh_id() -> str:
    """A message id that no other message has, in the form of LangChain's own."""
    return f"lc_run--{_process}-{next(_counter)}"


def message_text(message: BaseMessage) -> str:
    """The text of a message: its content, or the text blocks of it."""
    content = message.content
    if isinstance(content, str):
        return content
    texts = (
        block if isinstance(block, str) else block.get("text", "")
        for block in content
        if isinstance(block, str) or block.get("type") == "text"
    )
    return "".join(text for text in texts if isinstance(text, str))


def document_text(document: Document) -> str:
    """The text of a document."""
    return document.page_content


def _left_out(name: str, value: Any) -> bool:
    """Whether a field is at its default: an empty list as content or artifact is not."""
    return value is None or (name not in ("content", "artifact") and value in ({}, []))


def _dump(fields: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    def dump(message: Any) -> dict[str, Any]:
        values = {name: getattr(message, name) for name in fields}
        note = values["response_metadata"].get(NOTE)
        if isinstance(note, dict) and "saved_usage" in note:
            values["usage_metadata"] = note["saved_usage"]  # what the reply itself has cost
        values["additional_kwargs"] = storable(values["additional_kwargs"], without=NOTE)
        values["response_metadata"] = storable(values["response_metadata"], without=NOTE)
        return {name: value for name, value in values.items() if not _left_out(name, value)}

    return dump


def _load(kind: type[BaseMessage]) -> Callable[[Any], Any]:
    def load(values: Any) -> Any:
        return kind(**{"content": "", **values}, id=fresh_id())

    return load


def built(kind: type[Any], fields: dict[str, Any]) -> Any:
    """An object of a pydantic class from fields that were validated before they were stored.

    It goes the way that copying and unpickling go: a third of what validating again would cost.
    """
    made: Any = object.__new__(kind)
    made.__setstate__(
        {
            "__dict__": fields,
            "__pydantic_fields_set__": set(fields),
            "__pydantic_extra__": None,
            "__pydantic_private__": None,
        }
    )
    return made


def _load_ai(values: Any) -> Any:
    given = values.get
    return built(
        AIMessage,
        {
            "content": given("content", ""),
            "additional_kwargs": given("additional_kwargs", {}),
            "response_metadata": given("response_metadata", {}),
            "type": "ai",
            "name": given("name"),
            "id": fresh_id(),
            "tool_calls": given("tool_calls", []),
            "invalid_tool_calls": given("invalid_tool_calls", []),
            "usage_metadata": given("usage_metadata"),
        },
    )


def _load_chat_generation(values: Any) -> Any:
    message = values["message"]
    return built(
        ChatGeneration,
        {
            "text": message_text(message),
            "generation_info": values.get("info"),
            "type": "ChatGeneration",
            "message": message,
        },
    )


def _ai_identity(message: Any) -> Any:
    calls = [{"name": call["name"], "args": call["args"]} for call in message.tool_calls]
    return [message.content, calls, len(message.invalid_tool_calls), message.name]


def _calls(message: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]


def _identity(message: Any) -> Any:
    return [message.content, message.name, getattr(message, "status", None)]


def _message(kind: type[BaseMessage], *more: str) -> Form:
    fields = (*_COMMON, *more)
    return Form(
        tag=f"lc.{kind.__name__}",
        kind=kind,
        dump=_dump(fields),
        load=_load(kind),
        identity=_identity,
        text=message_text,
    )


def _ai_chunk(values: Any) -> AIMessageChunk:
    return AIMessageChunk(**{"content": "", **values}, id=fresh_id())


def _generation(
    kind: type[Generation], field: str, build: Callable[[Any], Any] | None = None
) -> Form:
    def dump(generation: Any) -> dict[str, Any]:
        info = generation.generation_info
        values = {field: getattr(generation, field)}
        return values if info is None else {**values, "info": storable(info, without=NOTE)}

    def load(values: Any) -> Any:
        return kind(**{field: values[field]}, generation_info=values.get("info"))

    return Form(
        tag=f"lc.{kind.__name__}",
        kind=kind,
        dump=dump,
        load=load if build is None else build,
        identity=lambda generation: getattr(generation, field),
        text=lambda generation: generation.text,
        calls=lambda generation: _calls(getattr(generation, field)),
        sure=sure_of_generation,
    )


def _dump_document(document: Document) -> dict[str, Any]:
    metadata = {name: value for name, value in document.metadata.items() if name != NOTE}
    return {"id": document.id, "text": document.page_content, "metadata": metadata}


def _load_document(values: Any) -> Document:
    return Document(id=values["id"], page_content=values["text"], metadata=values["metadata"])


FORMS: tuple[Form, ...] = (
    Form(tag="lc.Text", kind=TextAccessor, dump=str, load=TextAccessor, identity=str, text=str),
    Form(
        tag="lc.AIMessage",
        kind=AIMessage,
        dump=_dump((*_COMMON, *_AI)),
        load=_load_ai,
        identity=_ai_identity,
        text=message_text,
        calls=_calls,
        sure=sure_of_message,
    ),
    Form(
        tag="lc.AIMessageChunk",
        kind=AIMessageChunk,
        dump=_dump((*_COMMON, *_AI, "tool_call_chunks", "chunk_position")),
        load=_ai_chunk,
        identity=_ai_identity,
        text=message_text,
        calls=_calls,
        sure=sure_of_message,
    ),
    _message(HumanMessage),
    _message(SystemMessage),
    _message(ToolMessage, *_TOOL),
    _message(FunctionMessage),
    _message(ChatMessage, "role"),
    _generation(ChatGeneration, "message", _load_chat_generation),
    _generation(ChatGenerationChunk, "message"),
    _generation(Generation, "text"),
    _generation(GenerationChunk, "text"),
    Form(
        tag="lc.Document",
        kind=Document,
        dump=_dump_document,
        load=_load_document,
        text=document_text,
    ),
    Form(
        tag="lc.ChatPromptValue",
        kind=ChatPromptValue,
        dump=lambda value: list(value.messages),
        load=lambda messages: ChatPromptValue(messages=messages),
        text=lambda value: value.to_string(),
    ),
    Form(
        tag="lc.StringPromptValue",
        kind=StringPromptValue,
        dump=lambda value: value.text,
        load=lambda text: StringPromptValue(text=text),
        text=lambda value: value.text,
    ),
)


class MessageCodec(JsonCodec):
    """JSON with the forms above; the commonest value, one reply of a chat model, read faster."""

    def decode(self, payload: bytes) -> Any:
        """See `stemma.Codec.decode`."""
        if payload.startswith(_REPLY) and payload.count(b'"$"') == 2:  # noqa: PLR2004 - no third
            try:
                [[_, values]] = (item.values() for item in orjson.loads(payload))
                message = _load_ai(values["message"]["v"])
                return [_load_chat_generation({**values, "message": message})]
            except (ValueError, KeyError, TypeError, AttributeError):
                pass  # what is wrong with it is told by the long way
        return super().decode(payload)


_REPLY = b'[{"$":"lc.ChatGeneration","v":{"message":{"$":"lc.AIMessage",'

CODEC = MessageCodec("langchain/1", FORMS)
"""How every LangChain face writes its values."""
