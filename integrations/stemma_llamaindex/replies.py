"""What a model's reply says of itself: whether it may be stored, and what a hit on it says."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from llama_index.core.base.llms.types import (
    ChatResponse,
    CompletionResponse,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMCompletionEndEvent
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from pydantic import PrivateAttr

from stemma import Frame, frames
from stemma.policies.admission import finish_reason, refusal
from stemma_llamaindex.codec import NOTE
from stemma_llamaindex.usage import USAGE, Reply, part, said_of, usage_of

__all__ = [
    "Replies",
    "finish_among",
    "mark_reply",
    "refused_reply",
    "replies",
    "reply_text",
]


def _finish(reply: Reply) -> str | None:
    for said in said_of(reply):
        names = ("finish_reason", "stop_reason", "finishReason", "done_reason")
        found = {name: part(said, name) for name in names}
        plain = {name: getattr(held, "name", held) for name, held in found.items()}
        reason = finish_reason(plain)
        if reason is not None:
            return reason
    return None


def refused_reply(reply: Any, finish: str | None = None) -> str | None:
    """Why a reply must not be stored, or `None`.

    Args:
        reply: The reply; of a stream, the last chunk.
        finish: The finish reason, where an earlier chunk has said it.
    """
    if not isinstance(reply, (ChatResponse, CompletionResponse)):
        return "this is not a reply of a model"
    finish = finish if finish is not None else _finish(reply)
    if isinstance(reply, CompletionResponse):
        return refusal(finish, reply.text, has_tool_calls=False)
    extra = reply.message.additional_kwargs
    blocks = reply.message.blocks
    calls = any(isinstance(block, ToolCallBlock) for block in blocks)
    other = any(not isinstance(b, (TextBlock, ThinkingBlock, ToolCallBlock)) for b in blocks)
    return refusal(
        finish,
        reply_text(reply) or ("content" if other else ""),
        has_tool_calls=calls or bool(extra.get("tool_calls")) or "function_call" in extra,
        refused=bool(extra.get("refusal")),
    )


def reply_text(reply: Reply) -> str:
    """The text of a reply, as a stream's deltas add up to it."""
    if isinstance(reply, CompletionResponse):
        return reply.text
    return "".join(block.text for block in reply.message.blocks if isinstance(block, TextBlock))


def finish_among(chunks: Iterable[Reply]) -> str | None:
    """The last finish reason that a chunk of a stream has named."""
    found = [reason for chunk in chunks if (reason := _finish(chunk)) is not None]
    return found[-1] if found else None


def mark_reply(reply: Reply, note: dict[str, Any]) -> Reply:
    """Put the note of a hit on a reply: it has cost nothing, and says what was saved."""
    extra = reply.additional_kwargs
    saved = {name: extra[name] for name in USAGE if isinstance(extra.get(name), int)}
    extra.update(dict.fromkeys(saved, 0))
    extra[NOTE] = {**note, "saved_usage": saved or None}
    return reply


class Replies(BaseEventHandler):
    """Hears every reply of every model, in the frame that it was given in.

    What it spent is part of what a hit on the answer will save; a reply that was refused or cut
    off is remembered, because engines drop the finish reason.
    """

    _refused: Any = PrivateAttr(default_factory=weakref.WeakKeyDictionary)
    _counted: Any = PrivateAttr(default_factory=weakref.WeakKeyDictionary)

    @classmethod
    def class_name(cls) -> str:
        """See `BaseEventHandler.class_name`."""
        return "StemmaReplies"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Note a reply."""
        del kwargs
        if not isinstance(event, (LLMChatEndEvent, LLMCompletionEndEvent)):
            return
        frame, reply = frames.current(), event.response
        if frame is None or reply is None:
            return
        raw = reply.raw
        if raw is None or raw is not self._counted.get(frame):
            # A model whose chat is made of its completion tells of one reply twice.
            self._counted[frame] = raw
            frame.spend(usage_of(reply).get("total_tokens", 0))
        reason = refused_reply(reply)
        above: Frame | None = frame if reason is not None else None
        while above is not None:
            self._refused[above] = reason
            above = above.parent

    def refused(self, frame: Frame | None) -> str | None:
        """Why what came of a frame must not be stored: a reply in it was, say, cut off."""
        return None if frame is None else self._refused.get(frame)


replies = Replies()
"""The one handler of this process."""

get_dispatcher().add_event_handler(replies)
