"""How sure a model was of a reply, by the log-probabilities that its provider gives on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.outputs import Generation

from stemma.policies.confidence import likelihood

__all__ = ["sure_of_generation", "sure_of_message"]


def sure_of_message(message: Any) -> float | None:
    """Of a message: by `logprobs` in its response metadata; `None` where there are none."""
    return _sure(message.response_metadata.get("logprobs"))


def sure_of_generation(generation: Generation) -> float | None:
    """Of a generation: by its message, or by `logprobs` in its generation info."""
    message = getattr(generation, "message", None)
    said = None if message is None else sure_of_message(message)
    if said is not None or generation.generation_info is None:
        return said
    return _sure(generation.generation_info.get("logprobs"))


def _sure(told: Any) -> float | None:
    """As chat models give them (`content`, a `logprob` each), or completions (`token_logprobs`)."""
    if not isinstance(told, Mapping):
        return None
    tokens = told.get("content")
    if isinstance(tokens, Sequence):
        given = [token.get("logprob") for token in tokens if isinstance(token, Mapping)]
        return likelihood(given)
    tokens = told.get("token_logprobs")
    return likelihood(tokens) if isinstance(tokens, Sequence) else None
