"""What LlamaIndex's own event handlers are told of the cache."""

from __future__ import annotations

from typing import Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent

from stemma import Hit

__all__ = ["CacheHitEvent", "tell_hit"]

_dispatcher = get_dispatcher(__name__)


class CacheHitEvent(BaseEvent):
    """A face served a stored value instead of asking what it wraps.

    Args:
        node: Which node of the chain: `embedding`, `retrieval`, `rerank`, `call`, `answer`, `hop`.
        tier: How the value was found: `exact` or `semantic`.
        similarity: Cosine similarity of the two questions, −1 to 1; 1 for an exact hit.
        entry: The id of the entry it came from.
        age: Seconds since the value was made.
        saved_tokens: Tokens that the hit has saved.
        saved_seconds: Seconds that the hit has saved.
    """

    node: str
    tier: str
    similarity: float
    entry: str
    age: float
    saved_tokens: int = 0
    saved_seconds: float = 0.0

    @classmethod
    def class_name(cls) -> str:
        """The event's name, for handlers that tell events by it."""
        return "CacheHitEvent"


def tell_hit(hit: Hit) -> dict[str, Any]:
    """Tell the dispatcher of a hit, and give the hit's note for the value that is returned."""
    note = hit.note()
    told = {name: held for name, held in note.items() if name in CacheHitEvent.model_fields}
    _dispatcher.event(CacheHitEvent(**told))
    return note
