"""`CachedChatModel`: any chat model behind the cache, called or streamed."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.configurable import RunnableConfigurableFields
from langchain_core.runnables.utils import AnyConfigurableField
from pydantic import ConfigDict, Field, InstanceOf, PrivateAttr

from stemma import Cache, Cleaning, Cost, Hit, Miss, Query, Served, Ticket, UsageError
from stemma_langchain.asking import Sampling
from stemma_langchain.codec import CODEC
from stemma_langchain.model_call import CHANGED, Manager, ModelCall
from stemma_langchain.rebinding import rebound
from stemma_langchain.replay import own_copy, replayed, streamed
from stemma_langchain.replies import call_cost, handed_out
from stemma_langchain.stand_in import TAKEN_OVER, StandIn

__all__ = ["CachedChatModel"]


class CachedChatModel(StandIn):
    """A chat model whose replies are cached, whether they are called for or streamed.

    It can be used wherever the model could: `invoke`, `batch`, `stream` and their async twins, in
    pipes, agents and graphs, with `bind_tools`, `with_structured_output` and `with_config`. What
    was streamed once is a hit for `invoke`, and the other way round.

    Everything that shapes a reply must be equal: all that the model is at the time of the call
    (see `stemma_langchain.fingerprint`), the arguments of the call, tools and response format
    among them, system prompt, images. What may be compared by meaning is the question, and turn by
    turn what user and model said before it (see `stemma_langchain.prompts.read_prompt`). Ids and
    usage do not count.

    A hit has fresh ids, usage zero, and the note of the hit, with the usage that was saved, under
    `response_metadata["stemma"]`. A streamed hit comes in chunks whose sum is the reply. Not
    stored are errors, replies that were refused, cut off or empty, and streams that did not end.

    The inner model's own functions are called as part of this model's run: callbacks and traces
    see one run, with the inner model's name and parameters. Its rate limiter is asked on a miss
    only, its own `cache` never, nor the one that is set for all models.

    Args:
        cache: The cache.
        inner: The model.
        sampling: What to do with calls that say they sample (temperature above 0, or n above 1):
            `"exact"` (the default) reuses a draw only for the very same call; `"never"` does not
            cache them; `"meaning"` treats them like any other.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        cleaning: What does not shape the replies, and is left out of key and focus; the model gets
            its messages as they are.
        **named: Fields of any chat model; callbacks, tags, metadata and output version are the
            inner model's by default. `rate_limiter` would count hits, too.

    Raises:
        UsageError: `cache` or `inner` is of another kind, or `inner` is cached already.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    stemma: Cache = Field(exclude=True, repr=False)
    sampling: Sampling = "exact"
    life: float | None = Field(default=None, gt=0)
    cleaning: InstanceOf[Cleaning] | None = Field(default=None, exclude=True, repr=False)

    _warned: bool = PrivateAttr(default=False)

    def __init__(self, cache: Cache, inner: BaseChatModel, **named: Any) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(
                f"the first argument must be a stemma.Cache, not {type(cache).__name__}"
            )
        if not isinstance(inner, BaseChatModel) or isinstance(inner, CachedChatModel):
            raise UsageError(
                "the second argument must be a chat model that is not cached yet, "
                f"not {type(inner).__name__}; bind tools and arguments to the cached model"
            )
        own = {name: getattr(inner, name) for name in TAKEN_OVER}
        super().__init__(**{**own, **named, "stemma": cache, "inner": inner, "cache": False})

    # ------------------------------------------------------------------ calls

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self._call(messages, stop, run_manager, kwargs)
        hit = self._at_once(call)
        if hit is None and call.cached:
            served = self.stemma.calls.serve(
                call.asked(self.life),
                call.generate,
                frame=call.frame,
                admit=lambda given: self._refusal(call, given),
                priced=lambda ticket: self._cost(ticket, call.result),
            )
            hit = _hit(served)
        elif hit is None:
            call.generate()
        return call.result if hit is None else ChatResult(generations=_given(hit))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = self._call(messages, stop, run_manager, kwargs)
        hit = self._at_once(call)
        if hit is None and call.cached:
            served = await self.stemma.calls.aserve(
                call.asked(self.life),
                call.agenerate,
                frame=call.frame,
                admit=lambda given: self._refusal(call, given),
                priced=lambda ticket: self._cost(ticket, call.result),
            )
            hit = _hit(served)
        elif hit is None:
            await call.agenerate()
        return call.result if hit is None else ChatResult(generations=_given(hit))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        call = self._call(messages, stop, run_manager, kwargs, streams=True)
        query = self._query(call)
        outcome = query if isinstance(query, Miss) else self.stemma.calls.look(query)
        if isinstance(outcome, Hit):
            for chunk in replayed(_given(outcome)[0]):
                if run_manager is not None:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk
            return
        chunks = []
        for chunk in call.stream():
            chunks.append(own_copy(chunk))
            yield chunk
        # Reached only if the stream ended, and ended well.
        result = self._storable(call, outcome, chunks)
        if result is not None and outcome.ticket is not None:
            cost = self._cost(outcome.ticket, result)
            self.stemma.calls.put(outcome.ticket, result.generations, cost=cost)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        call = self._call(messages, stop, run_manager, kwargs, streams=True)
        query = self._query(call)
        outcome = query if isinstance(query, Miss) else await self.stemma.calls.alook(query)
        if isinstance(outcome, Hit):
            for chunk in replayed(_given(outcome)[0]):
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk
            return
        chunks = []
        async for chunk in call.astream():
            chunks.append(own_copy(chunk))
            yield chunk
        result = self._storable(call, outcome, chunks)
        if result is not None and outcome.ticket is not None:
            cost = self._cost(outcome.ticket, result)
            await self.stemma.calls.aput(outcome.ticket, result.generations, cost=cost)

    # ------------------------------------------ what is built around the model

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The model with tools, as the inner model binds them."""
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self._behind(self.inner.bind_tools(tools, **chosen, **kwargs))

    def with_structured_output(
        self, schema: Any, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """The model with a response format, as the inner model asks for it and reads it."""
        made = self.inner.with_structured_output(schema, include_raw=include_raw, **kwargs)
        return self._behind(made)

    def configurable_fields(
        self, **kwargs: AnyConfigurableField
    ) -> RunnableSerializable[LanguageModelInput, AIMessage]:
        """The model with fields of the inner model that each run may set."""
        made: Any = self.inner.configurable_fields(**kwargs)
        return _ConfigurableInner(default=self, fields=made.fields)

    def around(self, inner: BaseChatModel) -> CachedChatModel:
        """This model, with another one inside."""
        if inner is self.inner:
            return self
        return self.model_copy(update={"inner": inner, "profile": inner.profile})

    def _behind(self, made: Runnable[Any, Any]) -> Runnable[Any, Any]:
        met: list[BaseChatModel] = []

        def replace(model: BaseChatModel) -> BaseChatModel:
            met.append(model)
            return self.around(model)

        behind = rebound(made, replace)
        if not met:
            self.stemma.warn(
                f"what {type(self.inner).__name__} built around itself could not be read, "
                "so its calls are not cached"
            )
        return behind

    # ----------------------------------------------------------------- inside

    def _call(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        manager: Manager,
        given: dict[str, Any],
        *,
        streams: bool = False,
    ) -> ModelCall:
        return ModelCall(
            self.inner,
            messages,
            stop,
            manager,
            given,
            sampling=self.sampling,
            cleaning=self.cleaning,
            streams=streams,
        )

    def _at_once(self, call: ModelCall) -> Hit | None:
        """The exact hit, found without taking the messages apart. What is not plain is left."""
        whole = call.whole
        if whole is None or not call.cached:
            return None
        try:
            return self.stemma.calls.look_whole(call.scope, whole, CODEC, call.frame)
        except UsageError:
            return None  # met again, and told, by the long way

    def _query(self, call: ModelCall) -> Query | Miss:
        if not call.cached:
            return Miss(reason="bypassed", detail="it samples")
        return self.stemma.calls.resolve(call.asked(self.life), frame=call.frame)

    def _storable(
        self, call: ModelCall, miss: Miss, chunks: list[ChatGenerationChunk]
    ) -> ChatResult | None:
        """What a stream that has ended gives to store, if it may be."""
        if miss.ticket is None:
            return None
        try:
            result = streamed(chunks)
        except Exception:  # LangChain adds them up as well, and tells
            reason: str | None = "its chunks do not add up to one reply"
        else:
            reason = self._refusal(call, result.generations)
            if reason is None:
                return result
        self.stemma.warn(f"a streamed reply was not stored: {reason}")
        return None

    def _refusal(self, call: ModelCall, generations: Sequence[ChatGeneration]) -> str | None:
        reason = call.refusal(generations)
        if reason == CHANGED and not self._warned:
            self._warned = True
            warnings.warn(f"a reply was not stored: {reason}", RuntimeWarning, stacklevel=2)
        return reason

    def _cost(self, ticket: Ticket, result: ChatResult) -> Cost:
        return call_cost(self.stemma, ticket, result.generations)


class _ConfigurableInner(RunnableConfigurableFields):  # type: ignore[type-arg]
    """Configurable fields of an inner model: the one that a run asks for is behind the cache."""

    def _prepare(self, config: RunnableConfig | None = None) -> tuple[Any, RunnableConfig]:
        face = cast(CachedChatModel, self.default)
        made = RunnableConfigurableFields(default=face.inner, fields=self.fields)
        inner, config = made.prepare(config)
        return face.around(cast(BaseChatModel, inner)), config


def _hit(served: Served) -> Hit | None:
    return served.outcome if isinstance(served.outcome, Hit) else None


def _given(hit: Hit) -> list[ChatGeneration]:
    return cast(list[ChatGeneration], handed_out(hit))
