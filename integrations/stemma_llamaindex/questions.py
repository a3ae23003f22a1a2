"""What is asked: of a span by its arguments, of a retriever or engine by its query bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import QueryBundle

__all__ = ["bundle_rest", "question_of"]

_NAMES = ("str_or_query_bundle", "query_bundle", "query", "message", "messages", "prompt")
"""Under which arguments LlamaIndex's methods take what they are asked."""


def question_of(arguments: Mapping[str, Any]) -> str | None:
    """The question among the arguments of a method; `None` where it is not one text."""
    event = arguments.get("start_event")
    if event is not None:
        return _text(getattr(event, "user_msg", None))
    return next((_text(arguments[name]) for name in _NAMES if name in arguments), None)


def _text(asked: Any) -> str | None:
    if isinstance(asked, str):
        return asked
    if isinstance(asked, QueryBundle):
        return asked.query_str
    if isinstance(asked, ChatMessage):
        return asked.content
    if isinstance(asked, Sequence) and asked:
        return _text(asked[-1])
    return None


def bundle_rest(bundle: QueryBundle) -> dict[str, Any]:
    """What a query bundle asks besides its question. It must be equal.

    An embedding that is only what the embedder makes of the question is not told from one that
    the caller chose, so it counts as well.
    """
    return {
        "texts": bundle.custom_embedding_strs,
        "image": bundle.image_path,
        "embedding": bundle.embedding,
    }
