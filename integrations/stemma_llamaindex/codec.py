"""LlamaIndex's messages, replies, responses and nodes as stored values.

Each type that is known has a form of its own: its fields, as JSON. Nothing stored is ever revived
by a class name that it carries. Two replies are equal answers when they say the same and call the
same tools, whatever the ids of the calls and whatever they cost.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from llama_index.core.base.base_selector import MultiSelection, SingleSelection
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    ChatResponse,
    CitableBlock,
    CitationBlock,
    CompletionResponse,
    DocumentBlock,
    ImageBlock,
    LogProb,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.schema import (
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.tools import ToolOutput
from pydantic import AnyUrl, BaseModel

from stemma import Form, JsonCodec, storable
from stemma_llamaindex.logprobs import sure_of
from stemma_llamaindex.usage import USAGE, Reply, usage_of

__all__ = ["CODEC", "FORMS", "NOTE", "codec_with", "node_text", "output_form"]

NOTE = "stemma"
"""Where the note of a hit is: in a reply's `additional_kwargs`, a response's or node's metadata."""


def node_text(node: Any) -> str:
    """The text of a node, without its metadata."""
    return str(node.get_content())


def _response_text(response: Any) -> str:
    said = response.response
    return said if isinstance(said, str) else "" if said is None else str(said.model_dump_json())


@functools.lru_cache(maxsize=1_024)
def _defaults(kind: type[BaseModel]) -> Mapping[str, Any]:
    """What each field is where nothing is said, to be compared with: it is slow to be told."""
    return {
        name: field.get_default(call_default_factory=True)
        for name, field in kind.model_fields.items()
    }


def _fields(value: BaseModel, left_out: Iterable[str]) -> dict[str, Any]:
    """The fields of a pydantic object that are not at their default, as they are."""
    return {
        name: held
        for name, default in _defaults(type(value)).items()
        if name not in left_out and (held := getattr(value, name)) != default
    }


def _built(kind: type[BaseModel]) -> Callable[[Any], Any]:
    """Builds an object from fields that were validated before they were stored."""

    def build(values: Any) -> Any:
        return kind.model_construct(**values)

    return build


def _model(
    kind: type[BaseModel],
    *,
    left_out: Sequence[str] = (),
    equal_by: Sequence[str] | None = None,
    text: Callable[[Any], str] = lambda _: "",
) -> Form:
    """The form of a pydantic class: all its fields, or those by which two are equal."""

    def identity(value: Any) -> dict[str, Any]:
        names = equal_by if equal_by is not None else ()
        return {name: getattr(value, name) for name in names}

    return Form(
        tag=f"li.{kind.__name__}",
        kind=kind,
        dump=lambda value: _fields(value, left_out),
        load=_built(kind),
        identity=None if equal_by is None else identity,
        text=text,
    )


def _enum(kind: type[Enum]) -> Form:
    return Form(tag=f"li.{kind.__name__}", kind=kind, dump=lambda v: v.value, load=kind)


# ------------------------------------------------------------------------ messages


def _dump_message(message: ChatMessage) -> dict[str, Any]:
    extra = storable(message.additional_kwargs, without=NOTE)
    return {"role": message.role, "blocks": message.blocks, "extra": extra}


def _load_message(values: Any) -> ChatMessage:
    return ChatMessage.model_construct(
        role=values["role"], blocks=values["blocks"], additional_kwargs=values["extra"]
    )


def _message_text(message: ChatMessage) -> str:
    return message.content if message.content is not None else ""


def _calls(message: ChatMessage) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (block.tool_name, held if isinstance(held := block.tool_kwargs, dict) else {"": held})
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]


def _dump_reply(reply: Any) -> dict[str, Any]:
    said = {"message": reply.message} if isinstance(reply, ChatResponse) else {"text": reply.text}
    return {**said, "logprobs": reply.logprobs, "extra": _unmarked(reply)}


def _unmarked(reply: Reply) -> dict[str, Any]:
    """What came with a reply, and what it cost; of a hit, what it cost before."""
    kept = storable(reply.additional_kwargs, without=NOTE)
    if kept.keys().isdisjoint(USAGE):
        kept |= usage_of(reply)
    note = reply.additional_kwargs.get(NOTE)
    saved = note.get("saved_usage") if isinstance(note, dict) else None
    return {**kept, **saved} if isinstance(saved, dict) else kept


def _load_reply(kind: type[BaseModel]) -> Callable[[Any], Any]:
    def load(values: Any) -> Any:
        return kind.model_construct(
            **{name: held for name, held in values.items() if name != "extra"},
            additional_kwargs=values["extra"],
        )

    return load


# ----------------------------------------------------------------------- responses


def _dump_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if metadata is None:
        return None
    return {name: value for name, value in metadata.items() if name != NOTE}


def _dump_response(response: Any) -> dict[str, Any]:
    metadata = _dump_metadata(response.metadata)
    if metadata is not None:  # in which engines put that of each node, with its note
        metadata = {
            name: _dump_metadata(value) if isinstance(value, dict) else value
            for name, value in metadata.items()
        }
    return {"response": response.response, "nodes": response.source_nodes, "metadata": metadata}


def _load_response(kind: Any) -> Callable[[Any], Any]:
    def load(values: Any) -> Any:
        return kind(
            response=values["response"],
            source_nodes=values["nodes"],
            metadata=values["metadata"],
        )

    return load


def _dump_agent_response(response: AgentChatResponse) -> dict[str, Any]:
    return {**_dump_response(response), "sources": response.sources}


def _load_agent_response(values: Any) -> AgentChatResponse:
    made: AgentChatResponse = _load_response(AgentChatResponse)(values)
    made.sources = values["sources"]
    return made


def _dump_tool_output(output: ToolOutput) -> dict[str, Any]:
    kept = {"raw_output": output.raw_output} if _is_known(output.raw_output) else {}
    return {
        "tool_name": output.tool_name,
        "blocks": output.blocks,
        "raw_input": storable(output.raw_input, without=NOTE),
        "is_error": output.is_error,
        **kept,
    }


def _is_known(value: Any) -> bool:
    try:
        CODEC.encode(value)
    except Exception:
        return False
    return True


def _load_tool_output(values: Any) -> ToolOutput:
    return ToolOutput(**{"raw_output": None, **values})


def _response(kind: Any) -> Form:
    return Form(
        tag=f"li.{kind.__name__}",
        kind=kind,
        dump=_dump_response,
        load=_load_response(kind),
        identity=lambda response: [response.response, response.source_nodes],
        text=_response_text,
    )


# --------------------------------------------------------------------------- nodes


def _dump_node(node: Any) -> dict[str, Any]:
    fields = _fields(node, ())
    for name in ("metadata", "excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
        if name in fields and NOTE in fields[name]:
            held = fields[name]
            fields[name] = (
                _dump_metadata(held) if name == "metadata" else [k for k in held if k != NOTE]
            )
    return {"id_": node.id_, **fields}


def _node_identity(node: Any) -> dict[str, Any]:
    return {name: held for name, held in _dump_node(node).items() if name != "embedding"}


def _node(kind: type[BaseModel]) -> Form:
    return Form(
        tag=f"li.{kind.__name__}",
        kind=kind,
        dump=_dump_node,
        load=_built(kind),
        identity=_node_identity,
        text=node_text,
    )


FORMS: tuple[Form, ...] = (
    _enum(MessageRole),
    _enum(NodeRelationship),
    _enum(ObjectType),
    Form(tag="li.Url", kind=AnyUrl, dump=str, load=AnyUrl),
    Form(tag="li.Path", kind=type(pathlib.Path()), dump=str, load=pathlib.Path),
    _model(TextBlock, text=lambda block: block.text),
    _model(ImageBlock),
    _model(AudioBlock),
    _model(VideoBlock),
    _model(DocumentBlock),
    _model(CacheControl),
    _model(CachePoint),
    _model(CitableBlock),
    _model(CitationBlock),
    _model(ThinkingBlock, equal_by=("content",)),
    _model(ToolCallBlock, equal_by=("tool_name", "tool_kwargs")),
    _model(LogProb),
    _model(SingleSelection),
    _model(MultiSelection),
    Form(
        tag="li.ChatMessage",
        kind=ChatMessage,
        dump=_dump_message,
        load=_load_message,
        identity=lambda message: [message.role, message.blocks],
        text=_message_text,
        calls=_calls,
    ),
    Form(
        tag="li.ChatResponse",
        kind=ChatResponse,
        dump=_dump_reply,
        load=_load_reply(ChatResponse),
        identity=lambda reply: reply.message,
        text=lambda reply: _message_text(reply.message),
        calls=lambda reply: _calls(reply.message),
        sure=lambda reply: sure_of(reply, _message_text(reply.message)),
    ),
    Form(
        tag="li.CompletionResponse",
        kind=CompletionResponse,
        dump=_dump_reply,
        load=_load_reply(CompletionResponse),
        identity=lambda reply: reply.text,
        text=lambda reply: reply.text,
        sure=lambda reply: sure_of(reply, reply.text),
    ),
    _response(Response),
    _response(PydanticResponse),
    Form(
        tag="li.AgentChatResponse",
        kind=AgentChatResponse,
        dump=_dump_agent_response,
        load=_load_agent_response,
        identity=lambda response: [response.response, response.source_nodes],
        text=_response_text,
    ),
    Form(
        tag="li.ToolOutput",
        kind=ToolOutput,
        dump=_dump_tool_output,
        load=_load_tool_output,
        text=lambda output: output.content,
    ),
    _node(TextNode),
    _node(ImageNode),
    _node(IndexNode),
    _node(Node),
    _node(Document),
    _node(ImageDocument),
    _model(MediaResource, text=lambda resource: resource.text or ""),
    _model(RelatedNodeInfo),
    _model(NodeWithScore, text=lambda found: node_text(found.node)),
)
"""The forms of LlamaIndex's own types."""

CODEC = JsonCodec("llamaindex/1", FORMS)
"""How every LlamaIndex face writes its values."""


def output_form(output: type[BaseModel]) -> Form:
    """The form of objects of the application's own class.

    Args:
        output: The class. What is stored is its fields; they are validated by the class again.
    """
    return Form(
        tag="li.Output",
        kind=output,
        dump=lambda value: value.model_dump(mode="json"),
        load=output.model_validate,
        text=lambda value: value.model_dump_json(),
    )


def codec_with(output: type[BaseModel]) -> JsonCodec:
    """The codec for answers that hold objects of the application's own class."""
    return JsonCodec(CODEC.name, (*FORMS, output_form(output)))
