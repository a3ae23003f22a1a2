"""What a provider says of a reply, and what the reply has cost.

LlamaIndex has no one place for it: providers leave it in the reply's `raw`, which is their own
object, or among its `additional_kwargs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse

__all__ = ["USAGE", "Reply", "part", "said_of", "usage_of"]

Reply = ChatResponse | CompletionResponse
"""What a model gives."""

USAGE: Mapping[str, tuple[str, ...]] = {
    "prompt_tokens": ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count"),
    "completion_tokens": (
        *("completion_tokens", "output_tokens", "candidates_token_count", "eval_count"),
    ),
    "total_tokens": ("total_tokens", "total_token_count"),
}
"""LlamaIndex's names for counts of tokens, and the providers'."""


def part(thing: Any, name: str) -> Any:
    """A part of a mapping or an object, or `None`."""
    if isinstance(thing, Mapping):
        return thing.get(name)
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def said_of(reply: Reply) -> Iterator[Any]:
    """Where a provider may say something of a reply."""
    yield reply.additional_kwargs
    if isinstance(reply, ChatResponse):
        yield reply.message.additional_kwargs
    if reply.raw is None:
        return
    yield reply.raw
    for name in ("choices", "candidates"):
        choices = part(reply.raw, name)
        if isinstance(choices, (list, tuple)) and choices:
            yield choices[0]


def usage_of(reply: Reply) -> dict[str, int]:
    """The tokens that a call has cost, by LlamaIndex's names; empty where nobody says."""
    for said in said_of(reply):
        for usage in (part(said, "usage"), part(said, "usage_metadata"), said):
            counted = {name: _count(usage, names) for name, names in USAGE.items()}
            if any(counted.values()):
                both = counted["prompt_tokens"] + counted["completion_tokens"]
                return {**counted, "total_tokens": max(both, counted["total_tokens"])}
    return {}


def _count(usage: Any, names: tuple[str, ...]) -> int:
    counts = (part(usage, name) for name in names)
    return next((count for count in counts if isinstance(count, int)), 0)
