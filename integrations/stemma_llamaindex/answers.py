"""Whole answers of engines: what is asked, when an answer may be stored, how a hit is given."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.memory import BaseMemory
from pydantic import BaseModel

from stemma import (
    Asked,
    Cache,
    Cost,
    Frame,
    Hit,
    Request,
    Ticket,
    UnkeyableValue,
    UsageError,
    canonical,
    frames,
)
from stemma.describing import Described
from stemma_llamaindex.codec import CODEC, NOTE, codec_with
from stemma_llamaindex.describing import describe_whole
from stemma_llamaindex.events import tell_hit
from stemma_llamaindex.replies import replies
from stemma_llamaindex.sources import note_read

__all__ = ["Answer", "Answering", "Call", "given", "is_empty"]

CHANGED = (
    "the engine changed while it ran. If something in it counts or collects, say what it is with "
    "`stemma_identity`"
)

Answer = Response | PydanticResponse | AgentChatResponse
"""What engines give, once it is whole."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an engine that is under way.

    Args:
        asked: What is asked of the cache.
        described: The engine as it was when it was called.
        frame: The frame of the call.
        began: The sequence numbers known before anything was read.
        tokens: What the frame had spent before.
    """

    asked: Asked
    described: Described = field(repr=False)
    frame: Frame | None
    began: Any = field(repr=False)
    tokens: int


class Answering:
    """What the engines' faces have in common.

    Args:
        cache: The cache.
        inner: The engine.
        version: Change it when the engine changes in a way that its description cannot see.
        identity: What the engine is, as plain values, instead of its description.
        output: The class of the objects that it answers with, if it answers with objects.
        meaning: Whether questions with the same meaning may share an answer.
        life: Base life of what is stored, seconds; `None`: as the cache's policy says.
        tags: Tags for the entries.
        memory: The memory of the engine's conversation, which is told apart from it.
    """

    def __init__(
        self,
        cache: Cache,
        inner: Any,
        *,
        version: str,
        identity: Any,
        output: type[BaseModel] | None,
        meaning: bool,
        life: float | None,
        tags: Iterable[str],
        memory: BaseMemory | None = None,
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(
                f"the first argument must be a stemma.Cache, not {type(cache).__name__}"
            )
        self._cache = cache
        self._inner = inner
        self._version = version
        self._identity = identity
        self._codec = CODEC if output is None else codec_with(output)
        self._meaning = meaning
        self._life = life
        self._tags = (tags,) if isinstance(tags, str) else tuple(tags)
        self._memory = memory
        self._warned = False

    def described(self) -> Described:
        """The engine as it is now, or what it was said to be."""
        if self._identity is not None:
            return Described({"identity": self._identity}, "")
        return describe_whole(self._inner, aside=self._memory)

    def begin(self, question: str, exact: Any, before: tuple[str, ...] = ()) -> Call:
        """A call begins.

        Args:
            question: What is asked.
            exact: What besides the question must be equal.
            before: What was said before it, which must mean the same.
        """
        described = self.described()
        frame = frames.current()
        asked = Asked(
            scope={
                "model": described.model,
                "parameters": {"engine": described.value, "version": self._version},
            },
            request=Request(exact=exact, focus=question, before=before, meaning=self._meaning),
            codec=self._codec,
            prompt=(question,),
            life=self._life,
            tags=self._tags,
        )
        tokens = 0 if frame is None else frame.spent.tokens
        return Call(asked, described, frame, frames.marks(), tokens)

    def admit(self, call: Call, answer: Any) -> str | None:
        """Why an answer must not be stored; `None` if it may be: then its nodes are sources."""
        if not isinstance(answer, Answer):
            return "this is not an answer that is whole"
        if is_empty(answer):
            return "the answer is empty"
        if isinstance(answer, AgentChatResponse) and any(one.is_error for one in answer.sources):
            return "a tool has failed"
        reason = replies.refused(call.frame)
        if reason is None and _key(self.described()) != _key(call.described):
            reason = CHANGED
            if not self._warned:
                self._warned = True
                warnings.warn(f"an answer was not stored: {reason}", RuntimeWarning, stacklevel=2)
        if reason is None and call.frame is not None:
            note_read(self._inner, answer.source_nodes, call.frame, call.began)
        return reason

    def refuses_stream(self, call: Call, answer: Answer) -> bool:
        """Whether a streamed answer, now whole, must not be stored; tells why."""
        reason = self.admit(call, answer)
        if reason is not None:
            self._cache.warn(f"a streamed answer was not stored: {reason}")
        return reason is not None

    def cost(self, call: Call, ticket: Ticket) -> Cost:
        """What a hit will save."""
        spent = 0 if call.frame is None else call.frame.spent.tokens - call.tokens
        seconds = self._cache.engine.parts.clock.monotonic() - ticket.started
        return Cost(tokens=max(0, spent), seconds=seconds)


def is_empty(answer: Answer) -> bool:
    """Whether an answer says nothing, or that nothing was found."""
    said = answer.response
    return said is None or (isinstance(said, str) and said.strip() in ("", "Empty Response"))


def given(hit: Hit) -> Any:
    """The stored answer, with the note of the hit."""
    answer: Answer = hit.value
    answer.metadata = {**(answer.metadata if answer.metadata is not None else {})}
    answer.metadata[NOTE] = tell_hit(hit)
    return answer


def _key(described: Described) -> str:
    try:
        return canonical(described.value)
    except UnkeyableValue:
        return ""
