"""What may be stored of a model's reply: finished, not refused, not empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["CUT_OFF", "FILTERED", "UNFINISHED", "finish_reason", "refusal"]

CUT_OFF = frozenset(
    {
        "length",  # OpenAI, Ollama, Mistral
        "max_tokens",  # Anthropic, Cohere, Gemini
        "max_output_tokens",  # OpenAI Responses
        "model_length",  # Mistral
        "model_context_window_exceeded",  # Anthropic
        "incomplete",  # OpenAI Responses, the status
        "error_limit",  # Cohere
    }
)
"""Finish reasons of replies that stopped before their end."""

FILTERED = frozenset(
    {
        "content_filter",  # OpenAI, Azure
        "content_filtered",  # Bedrock
        "guardrail_intervened",  # Bedrock
        "refusal",  # Anthropic, OpenAI
        "safety",  # Gemini
        "image_safety",  # Gemini
        "recitation",  # Gemini
        "blocklist",  # Gemini
        "prohibited_content",  # Gemini
        "spii",  # Gemini
        "language",  # Gemini: a language that is not supported
        "error_toxic",  # Cohere
    }
)
"""Finish reasons of replies that were withheld or refused."""

UNFINISHED = frozenset(
    {
        "error",  # Cohere, Mistral, Together
        "failed",  # OpenAI Responses
        "cancelled",  # OpenAI Responses
        "user_cancel",  # Cohere
        "timeout",  # Cohere
        "pause_turn",  # Anthropic: to be continued
        "malformed_function_call",  # Gemini
        "unexpected_tool_call",  # Gemini
        "other",  # Gemini
        "finish_reason_unspecified",  # Gemini
        "load",  # Ollama: the model was only loaded
        "unload",  # Ollama
    }
)
"""Finish reasons of replies that did not come to an end of their own."""


def finish_reason(said: Mapping[str, Any]) -> str | None:
    """The finish reason among what a provider says of its reply, or `None`."""
    for name in ("finish_reason", "stop_reason", "finishReason", "done_reason"):
        reason = said.get(name)
        if isinstance(reason, str):
            return reason
    return None


def refusal(
    finish_reason: str | None, text: str, has_tool_calls: bool, refused: bool = False
) -> str | None:
    """Why a reply must not be stored, in words, or `None` where it may be.

    Args:
        finish_reason: As the provider names it, in any case, with or without a prefix such as
            Gemini's `FinishReason.`; `None` where the provider names none.
        text: The reply's text.
        has_tool_calls: Whether the reply calls tools.
        refused: Whether the provider declared a refusal elsewhere (OpenAI's `refusal` field).
    """
    if refused:
        return "the model declared a refusal"
    reason = finish_reason if finish_reason is not None else ""
    name = reason.casefold().strip().rpartition(".")[2].replace("-", "_").replace(" ", "_")
    name = name.removeprefix("finish_reason_") if name not in UNFINISHED else name
    for group, what in (
        (CUT_OFF, "the reply was cut off"),
        (FILTERED, "the reply was filtered or refused"),
        (UNFINISHED, "the reply did not come to its end"),
    ):
        if name in group:
            return f"{what} (finish reason {name})"
    if not text.strip() and not has_tool_calls:
        return "the reply has neither text nor tool calls"
    return None
