"""One call of a chat model that stands behind the cache: what it asks, and how it is made."""

# ruff: noqa: SLF001 - what begins with an underscore is what LangChain has a chat model do

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, Generation

from stemma import Asked, Cleaning, Frame, KnownScope, Request, frames
from stemma_langchain.asking import Sampling, ask, live_scope, samples, several
from stemma_langchain.calls import one_text, take_pending
from stemma_langchain.codec import CODEC
from stemma_langchain.prompts import Turns, plain_prompt, written
from stemma_langchain.replies import refused
from stemma_langchain.runs import runs

__all__ = ["CHANGED", "Manager", "ModelCall"]

CHANGED = (
    "the model changed while it ran. If something in it counts or collects, keep that in a private "
    "attribute, or say what it is with `stemma_identity`"
)

Manager = CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None


class ModelCall:
    """A call under way.

    Args:
        inner: The model.
        messages: What it is told.
        stop: Where the reply ends.
        manager: The callback manager of the run, where LangChain hands one over.
        given: The other arguments of the call.
        sampling: What to do with a call that samples.
        cleaning: What is left out of the key, since it does not shape the reply.
        streams: Whether it is a stream.

    Other fields: `frame` is the frame of the call's run; `scope` is what shapes the reply besides
    the messages; `cached` says whether the cache is asked at all; `result` is what the model gave.
    """

    def __init__(
        self,
        inner: BaseChatModel,
        messages: list[BaseMessage],
        stop: list[str] | None,
        manager: Manager,
        given: Mapping[str, Any],
        *,
        sampling: Sampling,
        cleaning: Cleaning | None,
        streams: bool = False,
    ) -> None:
        self.inner = inner
        self.frame = _frame(messages, manager)
        self._given = {"stop": stop, **given}
        sampled = samples(inner, given)
        self.cached = not sampled or sampling != "never"
        self._meaning = not sampled or sampling == "meaning"
        self._streams = streams and several(inner, given)  # a stream gives but one of the replies
        self.scope = self._scope()
        self.result = ChatResult(generations=[])
        self._written = written(messages)
        self._messages = messages
        self._cleaning = cleaning
        self._manager = manager

    @property
    def whole(self) -> bytes | None:
        """The messages as their own exact key, where that can be had without reading them."""
        return None if self._written is None else plain_prompt(self._written)

    def asked(self, life: float | None) -> Asked:
        """The question; one that has no key, where the messages cannot be written."""
        if self._written is not None:
            return ask(Turns(self._written, self._cleaning), self.scope, self.frame, life)
        return Asked(
            scope=self.scope.fields, request=Request(exact=self._messages), codec=CODEC, life=life
        )

    def generate(self) -> list[ChatGeneration]:
        """Call the model, as often as its rate limiter allows."""
        if self.inner.rate_limiter is not None:
            self.inner.rate_limiter.acquire(blocking=True)
        asked = self.inner._generate
        self.result = _settled(asked(self._messages, **self._named(asked)))
        return self.result.generations

    async def agenerate(self) -> list[ChatGeneration]:
        """As `generate`."""
        if self.inner.rate_limiter is not None:
            await self.inner.rate_limiter.aacquire(blocking=True)
        asked = self.inner._agenerate
        self.result = _settled(await asked(self._messages, **self._named(asked)))
        return self.result.generations

    def stream(self) -> Iterator[ChatGenerationChunk]:
        """As `generate`, in chunks."""
        if self.inner.rate_limiter is not None:
            self.inner.rate_limiter.acquire(blocking=True)
        asked = self.inner._stream
        yield from asked(self._messages, **self._named(asked))

    async def astream(self) -> AsyncIterator[ChatGenerationChunk]:
        """As `stream`."""
        if self.inner.rate_limiter is not None:
            await self.inner.rate_limiter.aacquire(blocking=True)
        asked = self.inner._astream
        async for chunk in asked(self._messages, **self._named(asked)):
            yield chunk

    def refusal(self, generations: Sequence[Generation]) -> str | None:
        """Why what the model gave must not be stored, or `None`."""
        messages = [g.message for g in generations if isinstance(g, ChatGeneration)]
        if not all(type(message) is AIMessage for message in messages):
            return "it is no AI message"  # it could not be streamed as one
        reason = refused(generations)
        if reason is None and self._scope().key != self.scope.key:
            return CHANGED
        return reason

    def _scope(self) -> KnownScope:
        return live_scope(self.inner, self._given, meaning=self._meaning, streams=self._streams)

    def _named(self, method: Callable[..., Any]) -> dict[str, Any]:
        """The arguments; the manager among them if there is one, and the model takes it."""
        if self._manager is None or "run_manager" not in inspect.signature(method).parameters:
            return self._given
        return {**self._given, "run_manager": self._manager}


def _frame(messages: list[BaseMessage], manager: Manager) -> Frame | None:
    """The frame of the run. Where LangChain streams, it does not say which run it is."""
    if manager is not None:
        found = runs.frame_of(manager.run_id)
    else:
        pending = take_pending(one_text(messages[-1].content)) if messages else None
        found = pending.frame if pending is not None else None
    return found if found is not None else frames.current()


def _settled(result: ChatResult) -> ChatResult:
    """A result whose messages say all that the provider said, as `invoke` has them say it."""
    for generation in result.generations:
        info = generation.generation_info if generation.generation_info is not None else {}
        message = generation.message
        message.response_metadata = {**info, **message.response_metadata}
    if len(result.generations) == 1 and result.llm_output is not None:
        (generation,) = result.generations
        message = generation.message
        message.response_metadata = {**result.llm_output, **message.response_metadata}
    return result
