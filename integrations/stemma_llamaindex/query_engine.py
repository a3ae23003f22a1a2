"""`CachedQueryEngine`: a whole query engine behind the cache, by its question."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from typing import Any, cast

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import BaseModel

from stemma import Cache, Hit, Served, Ticket, UsageError
from stemma_llamaindex.answers import Answering, Call, given
from stemma_llamaindex.questions import bundle_rest
from stemma_llamaindex.spans import spans

__all__ = ["CachedQueryEngine"]


class CachedQueryEngine(BaseQueryEngine):
    """A query engine whose whole answers are cached by their question, exactly and by meaning.

    A hit skips retrieval, postprocessors and model. Everything about the engine that could shape
    an answer must be equal (see `stemma_llamaindex.describing`), and so must everything else in
    the query bundle. The engine is called with just what it would have been called with; a
    streamed answer passes through as it comes, is stored only if it was read to its end, and on a
    hit comes in one piece. A hit says so under the response's `metadata["stemma"]`.

    Not stored are: empty answers; answers for which a model's reply was refused, filtered or cut
    off; what the codec has no form for.

    Args:
        cache: The cache.
        inner: The query engine.
        version: Change it when the engine changes in a way that its description cannot see.
        identity: What the engine is, as plain values: instead of its description, for engines of
            which no key can be made.
        output: The pydantic class that it answers with, if it answers with objects; by default
            as its synthesizer says.
        meaning: Whether questions with the same meaning may share an answer.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        tags: Tags for the entries.
    """

    def __init__(
        self,
        cache: Cache,
        inner: BaseQueryEngine,
        *,
        version: str = "",
        identity: Any = None,
        output: type[BaseModel] | None = None,
        meaning: bool = True,
        life: float | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        if not isinstance(inner, BaseQueryEngine):
            raise UsageError(f"the second argument must be a query engine, not {type(inner)}")
        super().__init__(inner.callback_manager)
        self.cache = cache
        self.inner = inner
        self._answering = Answering(
            cache,
            inner,
            version=version,
            identity=identity,
            output=output if output is not None else _output_of(inner),
            meaning=meaning,
            life=life,
            tags=tags,
        )

    @property
    def stemma_identity(self) -> Any:
        """What another engine around it is told of it."""
        return self._answering.described().value

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        call = self._answering.begin(query_bundle.query_str, bundle_rest(query_bundle))
        # A copy, because a retriever leaves the question's embedding in the bundle.
        served = self.cache.answers.serve(
            call.asked,
            lambda: self.inner.query(dataclasses.replace(query_bundle)),
            admit=lambda answer: self._answering.admit(call, answer),
            priced=lambda ticket: self._answering.cost(call, ticket),
        )
        if isinstance(served.outcome, Hit):
            return _given(served.outcome)
        value, ticket = served.value, _ticket(served)
        if isinstance(value, StreamingResponse) and ticket is not None:
            stream = self._stored(value.response_gen, value, call, ticket)
            value.response_gen = spans.followed(stream)
        return cast("RESPONSE_TYPE", value)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        call = self._answering.begin(query_bundle.query_str, bundle_rest(query_bundle))

        async def compute() -> Any:
            return await self.inner.aquery(dataclasses.replace(query_bundle))

        served = await self.cache.answers.aserve(
            call.asked,
            compute,
            admit=lambda answer: self._answering.admit(call, answer),
            priced=lambda ticket: self._answering.cost(call, ticket),
        )
        if isinstance(served.outcome, Hit):
            return _agiven(served.outcome)
        value, ticket = served.value, _ticket(served)
        if isinstance(value, AsyncStreamingResponse) and ticket is not None:
            stream = self._astored(value.response_gen, value, call, ticket)
            value.response_gen = spans.afollowed(stream)
        return cast("RESPONSE_TYPE", value)

    def _stored(
        self,
        stream: Generator[str, None, None],
        response: StreamingResponse,
        call: Call,
        ticket: Ticket,
    ) -> Generator[str, None, None]:
        pieces = []
        for piece in stream:
            pieces.append(piece)
            yield piece
        answer = _whole(pieces, response)
        if not self._answering.refuses_stream(call, answer):
            cost = self._answering.cost(call, ticket)
            self.cache.answers.put(ticket, [answer], cost=cost)

    async def _astored(
        self,
        stream: AsyncGenerator[str, None],
        response: AsyncStreamingResponse,
        call: Call,
        ticket: Ticket,
    ) -> AsyncGenerator[str, None]:
        pieces = []
        async for piece in stream:
            pieces.append(piece)
            yield piece
        answer = _whole(pieces, response)
        if not self._answering.refuses_stream(call, answer):
            cost = self._answering.cost(call, ticket)
            await self.cache.answers.aput(ticket, [answer], cost=cost)

    # ------------------------------------------------ what the engine itself does

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The engine's own."""
        return self.inner.retrieve(query_bundle)

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """The engine's own."""
        return self.inner.synthesize(query_bundle, nodes, additional_source_nodes)

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """The engine's own."""
        return await self.inner.asynthesize(query_bundle, nodes, additional_source_nodes)

    def get_prompts(self) -> dict[str, BasePromptTemplate]:
        """The engine's own."""
        return self.inner.get_prompts()

    def update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        """Change the engine's own; answers to the old ones are not served any more."""
        self.inner.update_prompts(prompts_dict)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        pass


def _output_of(inner: BaseQueryEngine) -> type[BaseModel] | None:
    synthesizer = getattr(inner, "_response_synthesizer", None)
    output = getattr(synthesizer, "_output_cls", None)
    return output if isinstance(output, type) and issubclass(output, BaseModel) else None


def _ticket(served: Served) -> Ticket | None:
    return None if isinstance(served.outcome, Hit) else served.outcome.ticket


def _whole(pieces: list[str], response: StreamingResponse | AsyncStreamingResponse) -> Response:
    return Response("".join(pieces), response.source_nodes, response.metadata)


def _streamed(hit: Hit) -> Response | None:
    """The answer, if it is one that was streamed: it is stored as a list of one."""
    if not isinstance(hit.value, list):
        return None
    return cast("Response", given(dataclasses.replace(hit, value=hit.value[0])))


def _given(hit: Hit) -> RESPONSE_TYPE:
    answer = _streamed(hit)
    if answer is None:
        return cast("RESPONSE_TYPE", given(hit))
    pieces = (str(piece) for piece in (answer.response,))
    return StreamingResponse(pieces, answer.source_nodes, answer.metadata)


def _agiven(hit: Hit) -> RESPONSE_TYPE:
    answer = _streamed(hit)
    if answer is None:
        return cast("RESPONSE_TYPE", given(hit))
    return AsyncStreamingResponse(_one(answer.response), answer.source_nodes, answer.metadata)


async def _one(piece: Any) -> AsyncGenerator[str, None]:
    yield piece
