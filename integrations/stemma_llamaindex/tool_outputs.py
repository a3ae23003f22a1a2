"""What tools give: how it is written, and when it may be stored."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import ToolOutput
from pydantic import BaseModel

from stemma import Form, Frame, JsonCodec, storable
from stemma_llamaindex.answers import Answer, is_empty
from stemma_llamaindex.codec import FORMS, NOTE, output_form
from stemma_llamaindex.replies import replies

__all__ = ["codec_of_tools", "nodes_in", "output_class", "refused_output"]


def _dump(output: ToolOutput) -> dict[str, Any]:
    """All that a tool gave. One whose own output has no stored form would not come back."""
    return {
        "tool_name": output.tool_name,
        "blocks": output.blocks,
        "raw_input": storable(output.raw_input, without=NOTE),
        "raw_output": output.raw_output,
    }


_WHOLE = Form(
    tag="li.ToolOutput",
    kind=ToolOutput,
    dump=_dump,
    load=lambda values: ToolOutput(**values),
    identity=lambda output: [output.blocks, output.raw_output],
    text=lambda output: output.content,
)


def codec_of_tools(output: type[BaseModel] | None) -> JsonCodec:
    """How the results of a tool are written, with objects of one class of the application's own."""
    own = () if output is None else (output_form(output),)
    return JsonCodec("llamaindex-tool/1", (*FORMS, _WHOLE, *own))


def output_class(function: Callable[..., Any]) -> type[BaseModel] | None:
    """The one class of pydantic objects that a function says it gives; `None` if there is none."""
    try:
        said = typing.get_type_hints(function).get("return")
    except Exception:  # names that are only known to type checkers
        return None
    known = {form.kind for form in FORMS}
    found = {kind for kind in _classes(said) if issubclass(kind, BaseModel) and kind not in known}
    return found.pop() if len(found) == 1 else None


def _classes(annotation: Any) -> Iterator[type]:
    arguments = typing.get_args(annotation)
    if isinstance(annotation, type) and not arguments:
        yield annotation
    for one in arguments:
        yield from _classes(one)


def refused_output(output: Any, frame: Frame | None) -> str | None:
    """Why what a tool gave must not be stored; `None` if it may be.

    Args:
        output: What it gave.
        frame: The frame it was called in, where models were asked.
    """
    if not isinstance(output, ToolOutput):
        return "this is not a ToolOutput"
    if output.is_error or output.exception is not None:
        return "the tool has failed"
    if isinstance(output.raw_output, Answer) and is_empty(output.raw_output):
        return "the answer is empty"
    return replies.refused(frame)


def nodes_in(output: Any) -> Sequence[NodeWithScore]:
    """The nodes that a tool says its output came from, or found."""
    raw = getattr(output, "raw_output", None)
    if isinstance(raw, Answer):
        return raw.source_nodes
    found = raw if isinstance(raw, list) else ()
    return [one for one in found if isinstance(one, NodeWithScore)]
