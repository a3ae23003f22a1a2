"""Calls of a model: looked up, made, stored when they ended well, whole or streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from typing import Any, TypeVar, cast

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse

from stemma import Asked, Cache, Cost, Hit, Query, Served, Ticket, count_tokens
from stemma_llamaindex.events import tell_hit
from stemma_llamaindex.replies import finish_among, mark_reply, reply_text
from stemma_llamaindex.spans import spans
from stemma_llamaindex.usage import Reply, usage_of

__all__ = ["ModelCalls"]

R = TypeVar("R", ChatResponse, CompletionResponse)


class ModelCalls:
    """How one model is called through the cache.

    Where `asked` is `None`, the call is not to be cached.

    Args:
        cache: The cache.
        refusal: Called with a reply, and the finish reason that its stream has named; says why it
            must not be stored, or `None`.
    """

    def __init__(self, cache: Cache, refusal: Callable[..., str | None]) -> None:
        self._cache = cache
        self._refusal = refusal

    def serve(self, asked: Asked | None, call: Callable[[], R]) -> R:
        """The reply, from the cache or from the model."""
        if asked is None:
            return call()
        made: list[R] = []

        def compute() -> R:
            made.append(call())
            return made[-1]

        served = self._cache.calls.serve(
            asked, compute, admit=self._refusal, priced=lambda ticket: self._cost(ticket, made[-1])
        )
        return cast("R", _given(served))

    async def aserve(self, asked: Asked | None, call: Callable[[], Awaitable[R]]) -> R:
        """As `serve`."""
        if asked is None:
            return await call()
        made: list[R] = []

        async def compute() -> R:
            made.append(await call())
            return made[-1]

        served = await self._cache.calls.aserve(
            asked, compute, admit=self._refusal, priced=lambda ticket: self._cost(ticket, made[-1])
        )
        return cast("R", _given(served))

    def stream(
        self, asked: Asked | None, call: Callable[[], Generator[R, None, None]]
    ) -> Generator[R, None, None]:
        """The reply in chunks; it is looked up now, whenever the chunks are read."""
        query = None if asked is None else self._cache.calls.resolve(asked)
        outcome = self._cache.calls.look(query) if isinstance(query, Query) else query
        if isinstance(outcome, Hit):
            return _replayed(outcome)
        stream = call()
        if outcome is None or outcome.ticket is None:
            return stream
        return spans.followed(self._stored(stream, outcome.ticket))

    async def astream(
        self, asked: Asked | None, call: Callable[[], Awaitable[AsyncGenerator[R, None]]]
    ) -> AsyncGenerator[R, None]:
        """As `stream`."""
        query = None if asked is None else self._cache.calls.resolve(asked)
        outcome = await self._cache.calls.alook(query) if isinstance(query, Query) else query
        if isinstance(outcome, Hit):
            return _areplayed(outcome)
        stream = await call()
        if outcome is None or outcome.ticket is None:
            return stream
        return spans.afollowed(self._astored(stream, outcome.ticket))

    def _stored(self, stream: Generator[R, None, None], ticket: Ticket) -> Generator[R, None, None]:
        chunks = []
        for chunk in stream:
            chunks.append(chunk)
            yield chunk
        # Reached only if the stream ended, and ended well.
        reply = self._whole(chunks)
        if reply is not None:
            self._cache.calls.put(ticket, reply, cost=self._cost(ticket, reply))

    async def _astored(
        self, stream: AsyncGenerator[R, None], ticket: Ticket
    ) -> AsyncGenerator[R, None]:
        chunks = []
        async for chunk in stream:
            chunks.append(chunk)
            yield chunk
        reply = self._whole(chunks)
        if reply is not None:
            await self._cache.calls.aput(ticket, reply, cost=self._cost(ticket, reply))

    def _whole(self, chunks: Sequence[Reply]) -> Reply | None:
        """The reply that a stream has ended with, if it may be stored."""
        if not chunks:
            return None
        last = chunks[-1]
        reason = self._refusal(last, finish_among(chunks))
        told = "".join(chunk.delta for chunk in chunks if chunk.delta is not None)
        if reason is None and told not in ("", reply_text(last)):
            reason = "its chunks do not add up to its last"
        if reason is not None:
            self._cache.warn(f"a streamed reply was not stored: {reason}")
            return None
        return last

    def _cost(self, ticket: Ticket, reply: Reply) -> Cost:
        """What a hit will save: the usage that the provider reports, else counted from texts."""
        seconds = self._cache.engine.parts.clock.monotonic() - ticket.started
        tokens = usage_of(reply).get("total_tokens")
        if tokens is None:
            texts = (*ticket.query.prompt, reply_text(reply))
            tokens = sum(count_tokens(text).tokens for text in texts)
        return Cost(tokens=tokens, seconds=seconds)


def _given(served: Served) -> Reply:
    reply: Reply = served.value
    outcome = served.outcome
    return mark_reply(reply, tell_hit(outcome)) if isinstance(outcome, Hit) else reply


def _chunk(hit: Hit) -> Any:
    """A hit as the one chunk of a stream."""
    reply: Reply = mark_reply(hit.value, tell_hit(hit))
    reply.delta = reply_text(reply)
    return reply


def _replayed(hit: Hit) -> Generator[Any, None, None]:
    chunk = _chunk(hit)
    return (one for one in (chunk,))


async def _one(chunk: Any) -> AsyncGenerator[Any, None]:
    yield chunk


def _areplayed(hit: Hit) -> AsyncGenerator[Any, None]:
    return _one(_chunk(hit))
