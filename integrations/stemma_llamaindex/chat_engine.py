"""`CachedChatEngine`: a chat engine behind the cache, by its conversation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from dataclasses import dataclass
from typing import Any, cast

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.chat_engine.types import (
    AGENT_CHAT_RESPONSE_TYPE,
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.memory import BaseMemory, VectorMemory

from stemma import Cache, Hit, Query, Ticket, UsageError
from stemma_llamaindex.answers import Answering, Call, given
from stemma_llamaindex.prompts import conversation, turns_of
from stemma_llamaindex.spans import spans

__all__ = ["CachedChatEngine"]


class CachedChatEngine(BaseChatEngine):
    """A chat engine whose answers are cached by message and conversation.

    The message may be compared by meaning, and turn by turn what was said before it. All else in
    the conversation must be equal (what tools were called and gave, images), and so must everything
    about the engine that could shape an answer (see `stemma_llamaindex.describing`).
    On a hit the conversation goes on as it would have: the message and the answer are put into
    the engine's memory. A hit says so under the response's `metadata["stemma"]`.

    Args:
        cache: The cache.
        inner: The chat engine; one of LlamaIndex's own, or another that keeps its conversation in
            a memory, as `_memory`.
        version: Change it when the engine changes in a way that its description cannot see.
        identity: What the engine is, as plain values: instead of its description, for engines of
            which no key can be made.
        meaning: Whether messages with the same meaning may share an answer.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        tags: Tags for the entries.
    """

    def __init__(
        self,
        cache: Cache,
        inner: BaseChatEngine,
        *,
        version: str = "",
        identity: Any = None,
        meaning: bool = True,
        life: float | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        memory = getattr(inner, "_memory", None)
        if not isinstance(inner, BaseChatEngine) or not isinstance(memory, BaseMemory):
            raise UsageError(
                "the second argument must be a chat engine with a memory (`_memory`), in which a "
                f"hit can go on with the conversation; this is a {type(inner).__name__}"
            )
        if isinstance(memory, VectorMemory):
            raise UsageError("a VectorMemory cannot tell which conversation came before a message")
        self.cache = cache
        self.inner = inner
        self._memory = memory
        self._answering = Answering(
            cache,
            inner,
            version=version,
            identity=identity,
            output=None,
            meaning=meaning,
            life=life,
            tags=tags,
            memory=memory,
        )

    @property
    def chat_history(self) -> list[ChatMessage]:
        """The engine's own."""
        return self.inner.chat_history

    def reset(self) -> None:
        """The engine's own."""
        self.inner.reset()

    def chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> AGENT_CHAT_RESPONSE_TYPE:
        """The answer, from the cache or from the engine."""
        before = self._memory.get_all() if chat_history is None else chat_history
        call = self._begin(message, before)
        served = self.cache.answers.serve(
            call.asked,
            lambda: self.inner.chat(message, chat_history),
            admit=lambda answer: self._answering.admit(call, answer),
            priced=lambda ticket: self._answering.cost(call, ticket),
        )
        if isinstance(served.outcome, Hit):
            self._go_on(message, chat_history, served.value)
            return cast("AgentChatResponse", given(served.outcome))
        return cast("AGENT_CHAT_RESPONSE_TYPE", served.value)

    async def achat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> AGENT_CHAT_RESPONSE_TYPE:
        """As `chat`."""
        before = await self._memory.aget_all() if chat_history is None else chat_history
        call = self._begin(message, before)

        async def compute() -> Any:
            return await self.inner.achat(message, chat_history)

        served = await self.cache.answers.aserve(
            call.asked,
            compute,
            admit=lambda answer: self._answering.admit(call, answer),
            priced=lambda ticket: self._answering.cost(call, ticket),
        )
        if isinstance(served.outcome, Hit):
            await self._ago_on(message, chat_history, served.value)
            return cast("AgentChatResponse", given(served.outcome))
        return cast("AGENT_CHAT_RESPONSE_TYPE", served.value)

    def stream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> StreamingAgentChatResponse:
        """The answer in pieces; on a hit, in one."""
        before = self._memory.get_all() if chat_history is None else chat_history
        call = self._begin(message, before)
        query = self.cache.answers.resolve(call.asked)
        outcome = self.cache.answers.look(query) if isinstance(query, Query) else query
        if isinstance(outcome, Hit):
            self._go_on(message, chat_history, outcome.value)
            answer = given(outcome)
            return _streaming(answer, chat_stream=_replay(answer))
        response = self.inner.stream_chat(message, chat_history)
        if outcome.ticket is None:
            return response
        stream = spans.followed(self._stored(response, call, outcome.ticket))
        return _streaming(response, chat_stream=stream)

    async def astream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> StreamingAgentChatResponse:
        """As `stream_chat`."""
        before = await self._memory.aget_all() if chat_history is None else chat_history
        call = self._begin(message, before)
        query = self.cache.answers.resolve(call.asked)
        outcome = await self.cache.answers.alook(query) if isinstance(query, Query) else query
        if isinstance(outcome, Hit):
            await self._ago_on(message, chat_history, outcome.value)
            answer = given(outcome)
            return _streaming(answer, achat_stream=_areplay(answer))
        response = await self.inner.astream_chat(message, chat_history)
        if outcome.ticket is None:
            return response
        stream = spans.afollowed(self._astored(response, call, outcome.ticket))
        return _streaming(response, achat_stream=stream)

    # ----------------------------------------------------------------- inside

    def _begin(self, message: str, before: list[ChatMessage]) -> Call:
        rest, said = conversation(turns_of(before))
        return self._answering.begin(message, {"before": rest}, said)

    def _go_on(
        self, message: str, history: list[ChatMessage] | None, answer: AgentChatResponse
    ) -> None:
        """Go on with the conversation as the engine would have."""
        if history is not None:
            self._memory.set(history)
        for said in _said(message, answer):
            self._memory.put(said)

    async def _ago_on(
        self, message: str, history: list[ChatMessage] | None, answer: AgentChatResponse
    ) -> None:
        if history is not None:
            await self._memory.aset(history)
        for said in _said(message, answer):
            await self._memory.aput(said)

    def _stored(
        self, response: StreamingAgentChatResponse, call: Call, ticket: Ticket
    ) -> Generator[ChatResponse, None, None]:
        pieces: list[str] = []
        for piece in response.response_gen:
            pieces.append(piece)
            yield _piece(pieces)
        answer = _whole(response)
        if not self._answering.refuses_stream(call, answer):
            cost = self._answering.cost(call, ticket)
            self.cache.answers.put(ticket, answer, cost=cost)

    async def _astored(
        self, response: StreamingAgentChatResponse, call: Call, ticket: Ticket
    ) -> AsyncGenerator[ChatResponse, None]:
        pieces: list[str] = []
        async for piece in response.async_response_gen():
            pieces.append(piece)
            yield _piece(pieces)
        answer = _whole(response)
        if not self._answering.refuses_stream(call, answer):
            cost = self._answering.cost(call, ticket)
            await self.cache.answers.aput(ticket, answer, cost=cost)


def _said(message: str, answer: AgentChatResponse) -> tuple[ChatMessage, ChatMessage]:
    return (
        ChatMessage(role=MessageRole.USER, content=message),
        ChatMessage(role=MessageRole.ASSISTANT, content=answer.response),
    )


def _piece(pieces: list[str]) -> ChatResponse:
    message = ChatMessage(role=MessageRole.ASSISTANT, content="".join(pieces))
    return ChatResponse(message=message, delta=pieces[-1])


def _whole(response: StreamingAgentChatResponse) -> AgentChatResponse:
    return AgentChatResponse(
        response=response.response,
        sources=response.sources,
        source_nodes=response.source_nodes,
    )


@dataclass
class _Streaming(StreamingAgentChatResponse):
    """A streamed response with metadata, as one that is whole has it."""

    metadata: dict[str, Any] | None = None


def _streaming(
    answer: AgentChatResponse | StreamingAgentChatResponse, **stream: Any
) -> StreamingAgentChatResponse:
    """A response that is read straight from a stream: the memory is written elsewhere."""
    return _Streaming(
        sources=answer.sources,
        source_nodes=answer.source_nodes,
        is_writing_to_memory=False,
        metadata=getattr(answer, "metadata", None),
        **stream,
    )


def _replay(answer: AgentChatResponse) -> Generator[ChatResponse, None, None]:
    yield _piece([answer.response])


async def _areplay(answer: AgentChatResponse) -> AsyncGenerator[ChatResponse, None]:
    yield _piece([answer.response])
