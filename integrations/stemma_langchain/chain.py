"""`CachedChain`: a whole chain behind the cache, by its question."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
)
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableLike, coerce_to_runnable
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import ConfigurableFieldSpec
from langchain_core.utils.pydantic import TypeBaseModel

from stemma import (
    Asked,
    Cache,
    Cleaning,
    Cost,
    Frame,
    Hit,
    Miss,
    Request,
    Served,
    Ticket,
    UnkeyableValue,
    UsageError,
    canonical,
    frames,
)
from stemma.policies.cleaning import checked
from stemma_langchain.codec import CODEC
from stemma_langchain.fingerprint import (
    Described,
    describe,
    describe_chain,
    store_identities,
)
from stemma_langchain.inputs import Question, configured, read_input
from stemma_langchain.outputs import as_chunk, merged_input, replaces, whole
from stemma_langchain.replies import mark, refused_output
from stemma_langchain.runs import runs

__all__ = ["CachedChain"]


CHANGED = (
    "the chain changed while it ran. If something in it counts or collects, keep that out of its "
    "public fields and of what its functions capture, or say what it is with `stemma_identity`"
)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of the chain that is under way."""

    asked: Asked
    described: Described = field(repr=False)
    frame: Frame | None
    marks: Mapping[int, int] = field(repr=False)
    tokens: int


class CachedChain(Runnable[Any, Any]):
    """A chain whose whole answers are cached by their question, exactly and by meaning.

    A hit skips retrieval and model. Everything else in the input must be equal, and so must
    everything about the chain that could shape an answer (see `stemma_langchain.fingerprint`):
    its prompts, its model and parameters, its functions, its index, what is bound or configured.

    It can be used wherever the chain could: `invoke`, `batch`, `stream`, their async twins, in a
    pipe, with `with_config` and `bind`. The chain is called with just what it would have been
    called with. On a miss, a stream's chunks pass through as they come, and are stored only if it
    ended well; on a hit, the stored value comes as one chunk.

    On a hit, messages have fresh ids, no usage, and the note of the hit under
    `response_metadata["stemma"]`; documents have it under `metadata["stemma"]`.

    Not stored are: empty answers; replies that were refused, filtered or cut off, also where a
    parser has since dropped the finish reason; what the codec has no form for.

    Args:
        cache: The cache.
        chain: The chain, or anything that can be made one.
        focus: The key under which a mapping as input holds the question. `None`: the input itself
            is the question, if it is a text, a prompt or messages.
        version: Change it when the chain changes in a way that its fingerprint cannot see.
        meaning: Whether questions with the same meaning may share an answer.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        tags: Tags for the entries.
        name: The name of its runs.
        cleaning: What does not shape the answers, and is left out of the question where that is
            compared; the chain gets its input as it is.
    """

    def __init__(
        self,
        cache: Cache,
        chain: RunnableLike[Any, Any],
        focus: str | None = None,
        *,
        version: str = "",
        meaning: bool = True,
        life: float | None = None,
        tags: Iterable[str] = (),
        name: str | None = None,
        cleaning: Cleaning | None = None,
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(
                f"the first argument must be a stemma.Cache, not {type(cache).__name__}"
            )
        if focus is not None and (not isinstance(focus, str) or focus == ""):
            raise UsageError(f"focus must name a key of the input, not be {focus!r}")
        self.cache = cache
        self.chain: Runnable[Any, Any] = coerce_to_runnable(chain)
        self.focus = focus
        self.version = version
        self.meaning = meaning
        self.life = life
        self.tags = (tags,) if isinstance(tags, str) else tuple(tags)
        self.name = name
        self.cleaning = checked(cleaning)
        self._warned = False
        self._told = False

    # ------------------------------------------------------------------ calls

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The answer, from the cache or from the chain."""
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As `invoke`."""
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """The answer in chunks; on a hit, in one."""
        yield from self.transform(iter([input]), config, **kwargs)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """As `stream`."""

        async def one() -> AsyncIterator[Any]:
            yield input

        async for chunk in self.atransform(one(), config, **kwargs):
            yield chunk

    def transform(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """As `stream`, for an input that comes in chunks: they are awaited first."""
        yield from self._transform_stream_with_config(input, self._stream, config, **kwargs)

    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """As `transform`."""
        async for chunk in self._atransform_stream_with_config(
            input, self._astream, config, **kwargs
        ):
            yield chunk

    # --------------------------------------------------- what the chain itself is

    @property
    def InputType(self) -> Any:  # noqa: N802 - LangChain's name
        """The chain's own."""
        return self.chain.InputType

    @property
    def OutputType(self) -> Any:  # noqa: N802 - LangChain's name
        """The chain's own."""
        return self.chain.OutputType

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The chain's own."""
        return self.chain.config_specs

    def get_input_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """The chain's own."""
        return self.chain.get_input_schema(config)

    def get_output_schema(self, config: RunnableConfig | None = None) -> TypeBaseModel:
        """The chain's own."""
        return self.chain.get_output_schema(config)

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """The chain's own."""
        return self.chain.get_graph(config)

    # ----------------------------------------------------------------- inside

    def _invoke(
        self,
        input: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        call = self._call(input, run_manager.run_id, config, kwargs)
        served = self.cache.answers.serve(
            call.asked,
            lambda: self.chain.invoke(input, config, **kwargs),
            admit=lambda output: self._admitted(call, output),
            priced=lambda ticket: self._cost(call, ticket),
        )
        return _given(served)

    async def _ainvoke(
        self,
        input: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        call = self._call(input, run_manager.run_id, config, kwargs)

        async def compute() -> Any:
            return await self.chain.ainvoke(input, config, **kwargs)

        served = await self.cache.answers.aserve(
            call.asked,
            compute,
            admit=lambda output: self._admitted(call, output),
            priced=lambda ticket: self._cost(call, ticket),
        )
        return _given(served)

    def _stream(
        self,
        input: Iterator[Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Iterator[Any]:
        given = list(input)
        call = self._call(merged_input(given), run_manager.run_id, config, kwargs)
        query = self.cache.answers.resolve(call.asked)
        outcome = query if isinstance(query, Miss) else self.cache.answers.look(query)
        if isinstance(outcome, Hit):
            yield as_chunk(mark(outcome.value, outcome.note()))
            return
        chunks = []
        for chunk in self.chain.transform(iter(given), config, **kwargs):
            chunks.append(chunk)
            yield chunk
        # Reached only if the stream ended, and ended well.
        ready = self._ready(call, outcome, chunks)
        if ready is not None:
            ticket, value = ready
            self.cache.answers.put(ticket, value, cost=self._cost(call, ticket))

    async def _astream(
        self,
        input: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        given = [chunk async for chunk in input]
        call = self._call(merged_input(given), run_manager.run_id, config, kwargs)
        query = self.cache.answers.resolve(call.asked)
        outcome = query if isinstance(query, Miss) else await self.cache.answers.alook(query)
        if isinstance(outcome, Hit):
            yield as_chunk(mark(outcome.value, outcome.note()))
            return
        chunks = []
        async for chunk in self.chain.atransform(_again(given), config, **kwargs):
            chunks.append(chunk)
            yield chunk
        ready = self._ready(call, outcome, chunks)
        if ready is not None:
            ticket, value = ready
            await self.cache.answers.aput(ticket, value, cost=self._cost(call, ticket))

    def _call(self, input: Any, run: UUID, config: RunnableConfig, kwargs: dict[str, Any]) -> _Call:
        question = read_input(input, self.focus, self.cleaning)
        if question.focus is None and self.meaning and isinstance(input, Mapping):
            self._warn_of_focus(input)
        frame = runs.own(run, question.said)
        frame = frame if frame is not None else frames.current()
        described = describe_chain(self.chain)
        return _Call(
            asked=self._asked(question, described, config, kwargs),
            described=described,
            frame=frame,
            marks=frames.marks(),
            tokens=0 if frame is None else frame.spent.tokens,
        )

    def _warn_of_focus(self, given: Mapping[str, Any]) -> None:
        if self._told:
            return
        self._told = True
        self.cache.warn(
            f"no question in the input under focus={self.focus!r}, so only equal inputs hit; "
            f"its keys are {', '.join(sorted(map(str, given)))} (meaning=False if that is meant)"
        )

    def _asked(
        self,
        question: Question,
        described: Described,
        config: RunnableConfig,
        kwargs: dict[str, Any],
    ) -> Asked:
        parameters = {
            "chain": described.value,
            "version": self.version,
            "configured": describe(configured(config, self.chain)),
            "kwargs": describe(kwargs),
        }
        return Asked(
            scope={"model": described.model, "parameters": parameters},
            request=Request(
                exact=question.exact,
                focus=question.focus,
                before=question.before,
                meaning=self.meaning,
                left_out=question.left_out,
            ),
            codec=CODEC,
            prompt=() if question.said is None else (question.said,),
            life=self.life,
            tags=self.tags,
        )

    def _ready(self, call: _Call, miss: Miss, chunks: list[Any]) -> tuple[Ticket, Any] | None:
        """What a stream that has ended gives to store, if it may be."""
        if miss.ticket is None:
            return None
        value, certain = whole(chunks, replacing=replaces(self.chain))
        reason = self._admitted(call, value) if certain else "its chunks do not add up to one value"
        if reason is not None:
            self.cache.warn(f"a streamed answer was not stored: {reason}")
            return None
        return miss.ticket, value

    def _admitted(self, call: _Call, output: Any) -> str | None:
        """Why an answer must not be stored. One that may be goes with what comes into its indexes.

        Those that a cached retriever stands before are known better, by what was retrieved.
        """
        reason = self._refusal(call, output)
        if reason is None and call.frame is not None:
            # Only here: of a hit nobody need know them. What cannot be told has no ticket either.
            for index in store_identities(self.chain):
                call.frame.read_unstored(index, call.marks)
        return reason

    def _refusal(self, call: _Call, output: Any) -> str | None:
        """Why an answer must not be stored."""
        reason = refused_output(output)
        if reason is None:
            reason = runs.refused(call.frame)
        if reason is None and _key(describe_chain(self.chain)) != _key(call.described):
            reason = CHANGED
            if not self._warned:
                self._warned = True
                warnings.warn(f"an answer was not stored: {reason}", RuntimeWarning, stacklevel=2)
        return reason

    def _cost(self, call: _Call, ticket: Ticket) -> Cost:
        spent = 0 if call.frame is None else call.frame.spent.tokens - call.tokens
        seconds = self.cache.engine.parts.clock.monotonic() - ticket.started
        return Cost(tokens=max(0, spent), seconds=seconds)


def _given(served: Served) -> Any:
    outcome = served.outcome
    return mark(served.value, outcome.note()) if isinstance(outcome, Hit) else served.value


def _key(described: Described) -> str:
    try:
        return canonical(described.value)
    except UnkeyableValue:
        return ""


async def _again(chunks: list[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk
