"""What a model's reply says of itself: whether it may be stored, what it cost, what a hit saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, Generation

from stemma import Cache, Cost, Hit, Ticket, count_tokens
from stemma.policies.admission import finish_reason, refusal
from stemma_langchain.codec import NOTE, message_text

__all__ = [
    "call_cost",
    "handed_out",
    "mark",
    "mark_message",
    "parts",
    "refused",
    "refused_message",
    "refused_output",
    "spent",
]

_ANSWERS = ("answer", "output", "output_text", "result", "text")
"""Keys under which chains give the answer itself beside other things."""


def refused(generations: Sequence[Generation]) -> str | None:
    """Why these generations must not be stored, or `None` (see `stemma.policies.admission`)."""
    if not generations:
        return "there is no reply"
    return next(filter(None, map(_refused_generation, generations)), None)


def refused_message(message: BaseMessage, info: dict[str, Any] | None = None) -> str | None:
    """Why a message must not be stored, or `None`.

    Args:
        message: The message.
        info: What the provider said beside it.
    """
    finish = finish_reason(message.response_metadata)
    extra = message.additional_kwargs
    calls = bool(getattr(message, "tool_calls", None)) or "function_call" in extra
    return refusal(
        finish if finish is not None else finish_reason(info if info is not None else {}),
        message_text(message) or ("content" if _has_other_content(message.content) else ""),
        has_tool_calls=calls,
        refused=bool(extra.get("refusal")),
    )


def refused_output(output: Any) -> str | None:
    """Why the output of a chain must not be stored, or `None`.

    Nothing, a blank text, an empty mapping or list, a blank answer beside other things, and every
    model's reply that must not be stored itself.
    """
    if output is None:
        return "the chain gave nothing"
    if isinstance(output, str):
        return None if output.strip() else "the answer is empty"
    if isinstance(output, (dict, list)) and not output:
        return "the answer is empty"
    if isinstance(output, dict):
        for name in _ANSWERS:
            said = output.get(name)
            if isinstance(said, str) and not said.strip():
                return "the answer is empty"
    replies = (one for one in parts(output) if isinstance(one, AIMessage))
    return next(filter(None, map(refused_message, replies)), None)


def spent(generations: Iterable[Generation]) -> int:
    """The tokens that the provider says a call has cost; 0 where it does not say."""
    reported = 0
    for generation in generations:
        if isinstance(generation, ChatGeneration):
            usage = getattr(generation.message, "usage_metadata", None)
            reported = max(reported, int(usage.get("total_tokens") or 0)) if usage else reported
    return reported


def call_cost(cache: Cache, ticket: Ticket, generations: Sequence[Generation]) -> Cost:
    """What a hit will save: the usage that the provider reports, else counted from the texts."""
    seconds = cache.engine.parts.clock.monotonic() - ticket.started
    reported = spent(generations)
    if reported:
        return Cost(tokens=reported, seconds=seconds)
    texts = [*ticket.query.prompt, *(generation.text for generation in generations)]
    return Cost(tokens=sum(count_tokens(text).tokens for text in texts), seconds=seconds)


def handed_out(hit: Hit) -> list[Generation]:
    """A model call's generations from a hit, with the note of the hit on each message."""
    generations: list[Generation] = hit.value
    note = hit.note()
    for generation in generations:
        if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
            mark_message(generation.message, note)
    return generations


def mark(value: Any, note: dict[str, Any]) -> Any:
    """Put the note of a hit on every reply and document in a value that was just read."""
    for part in parts(value):
        if isinstance(part, AIMessage):
            mark_message(part, note)
        elif isinstance(part, Document):
            part.metadata[NOTE] = dict(note)
    return value


def mark_message(message: AIMessage, note: dict[str, Any]) -> None:
    """Put the note of a hit on a message: it has cost nothing, and says what was saved."""
    saved = message.usage_metadata
    message.response_metadata[NOTE] = {**note, "saved_usage": saved}
    message.usage_metadata = UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)


def parts(value: Any) -> Iterator[Any]:
    """What a value is made of: what is in its mappings, lists and tuples, else itself."""
    if isinstance(value, dict):
        for item in value.values():
            yield from parts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from parts(item)
    else:
        yield value


def _refused_generation(generation: Any) -> str | None:
    if not isinstance(generation, Generation):
        return "this is not a reply of a model"
    info = generation.generation_info if generation.generation_info is not None else {}
    if isinstance(generation, ChatGeneration):
        return refused_message(generation.message, info)
    return refusal(finish_reason(info), generation.text, has_tool_calls=False)


def _has_other_content(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") not in ("text", "thinking", "reasoning")
        for block in content
    )
