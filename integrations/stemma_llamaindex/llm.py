"""`CachedLLM`: any LlamaIndex model behind the cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self, cast

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM, ToolSelection
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.tools.types import BaseTool
from pydantic import Field, InstanceOf, SerializeAsAny

from stemma import Asked, Cache, Cleaning, CodecError, Frame, UsageError, frames
from stemma_llamaindex.calls import ModelCalls
from stemma_llamaindex.codec import CODEC
from stemma_llamaindex.describing import describe, model_name
from stemma_llamaindex.prompts import Prompt, read_messages, read_text
from stemma_llamaindex.replies import refused_reply

__all__ = ["CachedFunctionCallingLLM", "CachedLLM", "Sampling"]

Sampling = Literal["exact", "never", "meaning"]

_TAKEN_OVER = (
    "callback_manager",
    "completion_to_prompt",
    "messages_to_prompt",
    "output_parser",
    "pydantic_program_mode",
    "query_wrapper_prompt",
    "system_prompt",
)
"""What LlamaIndex applies around a model's call, before the model is asked."""


class CachedLLM(LLM):
    """A model whose calls are cached: chat and completion, streamed or not, sync and async.

    Around a model that calls functions it is a `FunctionCallingLLM` itself, so it works wherever
    the model did: in agents, engines and structured prediction.

    Everything about the call must be equal: the model with its settings as they are now, system
    messages, tools and other arguments. What may be compared by meaning is the *focus*: the
    question of the run (of the query engine, chat engine or agent) where it occurs exactly once in
    the last user turn, else that whole turn; and, turn by turn, what user and model said before.
    Ids of tool calls are not part of the key.

    A hit is a copy, without `raw`, with usage zero, and says so under
    `additional_kwargs["stemma"]`, with the saved usage; a streamed one comes as one chunk. Errors,
    refusals, replies cut off or filtered, empty ones, and streams that were not read to their end
    are not stored.

    Args:
        cache: The cache.
        inner: The model.
        sampling: What to do with calls at a temperature above 0: `"exact"` (the default) reuses a
            draw only for the very same call; `"never"` does not cache them; `"meaning"` treats
            them like any other.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        tags: Tags for the entries.
        cleaning: What does not shape the replies, and is left out of key and focus; the model gets
            its prompts as they are. What is detected is detected in system messages alone, so of a
            prompt to complete only what is declared is left out.
    """

    cache: Cache = Field(exclude=True, repr=False)
    inner: SerializeAsAny[LLM]
    sampling: Sampling = "exact"
    life: float | None = Field(default=None, gt=0)
    tags: tuple[str, ...] = ()
    cleaning: InstanceOf[Cleaning] | None = Field(default=None, exclude=True, repr=False)

    def __new__(cls, cache: Any = None, inner: Any = None, **named: Any) -> Self:  # noqa: ARG004
        """The variant that calls functions, where the model does."""
        if cls is CachedLLM and isinstance(inner, FunctionCallingLLM):
            return super().__new__(CachedFunctionCallingLLM)  # type: ignore[return-value]
        return super().__new__(cls)

    def __init__(self, cache: Cache, inner: LLM, **named: Any) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(
                f"the first argument must be a stemma.Cache, not {type(cache).__name__}"
            )
        if isinstance(inner, StructuredLLM):
            raise UsageError("wrap the model itself: CachedLLM(cache, llm).as_structured_llm(…)")
        if not isinstance(inner, LLM):
            raise UsageError(f"the second argument must be an LLM, not {type(inner).__name__}")
        if isinstance(named.get("tags"), str):
            named["tags"] = (named["tags"],)
        taken = {name: getattr(inner, name) for name in _TAKEN_OVER}
        super().__init__(**{**taken, **named, "cache": cache, "inner": inner})

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "callback_manager":  # engines hand theirs on to the model
            self.inner.callback_manager = value

    @classmethod
    def class_name(cls) -> str:
        """See `BaseComponent.class_name`."""
        return "CachedLLM"

    @property
    def metadata(self) -> LLMMetadata:
        """The model's own."""
        return self.inner.metadata

    @property
    def stemma_identity(self) -> Any:
        """What an engine around it is told of it: the model's own identity."""
        return [describe(self.inner), self.sampling]

    def to_payload(self) -> dict[str, Any]:
        """The model's own."""
        return self.inner.to_payload()

    # ------------------------------------------------------------------- calls

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The reply, from the cache or from the model."""
        return self._calls.serve(
            self._chatted(messages, kwargs), lambda: self.inner.chat(messages, **kwargs)
        )

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """As `chat`."""
        return await self._calls.aserve(
            self._chatted(messages, kwargs), lambda: self.inner.achat(messages, **kwargs)
        )

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The completion, from the cache or from the model."""
        return self._calls.serve(
            self._completed(prompt, formatted, kwargs),
            lambda: self.inner.complete(prompt, formatted=formatted, **kwargs),
        )

    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        """As `complete`."""
        return await self._calls.aserve(
            self._completed(prompt, formatted, kwargs),
            lambda: self.inner.acomplete(prompt, formatted=formatted, **kwargs),
        )

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """The reply in chunks; on a hit, in one."""
        asked = self._chatted(messages, kwargs)
        return self._calls.stream(asked, lambda: self.inner.stream_chat(messages, **kwargs))

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        """As `stream_chat`."""
        asked = self._chatted(messages, kwargs)
        return await self._calls.astream(asked, lambda: self.inner.astream_chat(messages, **kwargs))

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        """The completion in chunks; on a hit, in one."""
        return self._calls.stream(
            self._completed(prompt, formatted, kwargs),
            lambda: self.inner.stream_complete(prompt, formatted=formatted, **kwargs),
        )

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        """As `stream_complete`."""
        return await self._calls.astream(
            self._completed(prompt, formatted, kwargs),
            lambda: self.inner.astream_complete(prompt, formatted=formatted, **kwargs),
        )

    # ------------------------------------------------------------- what is asked

    def _chatted(self, messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> Asked | None:
        meaning = self._meaning(kwargs)
        if meaning is None:
            return None
        question, sources = _run(frames.current())
        prompt = read_messages(messages, question, sources, meaning=meaning, cleaning=self.cleaning)
        return self._asked("chat", prompt, kwargs)

    def _completed(self, prompt: str, formatted: bool, kwargs: dict[str, Any]) -> Asked | None:
        meaning = self._meaning(kwargs)
        if meaning is None:
            return None
        question, sources = _run(frames.current())
        read = read_text(prompt, question, sources, meaning=meaning, cleaning=self.cleaning)
        return self._asked("complete", read, {"formatted": formatted, **kwargs})

    def _meaning(self, kwargs: dict[str, Any]) -> bool | None:
        """Whether the call may be found by meaning; `None` if it is not to be cached at all."""
        temperature = kwargs.get("temperature", getattr(self.inner, "temperature", None))
        several = kwargs.get("n", getattr(self.inner, "n", None))
        sampled = (isinstance(temperature, (int, float)) and temperature > 0) or (
            isinstance(several, int) and several > 1
        )
        if sampled and self.sampling == "never":
            return None
        return not sampled or self.sampling == "meaning"

    def _asked(self, method: str, prompt: Prompt, kwargs: dict[str, Any]) -> Asked:
        parameters = {
            "llm": describe(self.inner),
            "method": method,
            "kwargs": describe(_seen(kwargs)),
        }
        return Asked(
            scope={"model": model_name(self.inner), "parameters": parameters},
            request=prompt.request,
            codec=CODEC,
            prompt=prompt.texts,
            life=self.life,
            tags=self.tags,
        )

    # ---------------------------------------------------------------------- inside

    @property
    def _calls(self) -> ModelCalls:
        return ModelCalls(self.cache, self._refusal)

    def _refusal(self, reply: Any, finish: str | None = None) -> str | None:
        """Why a reply must not be stored."""
        return refused_reply(reply, finish)


class CachedFunctionCallingLLM(CachedLLM, FunctionCallingLLM):
    """What `CachedLLM` is around a model that calls functions."""

    def _prepare_chat_with_tools(  # noqa: PLR0917 - LlamaIndex's signature
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        return self._calling._prepare_chat_with_tools_compat(  # noqa: SLF001 - as its base does
            tools,
            user_msg=user_msg,
            chat_history=chat_history,
            verbose=verbose,
            allow_parallel_tool_calls=allow_parallel_tool_calls,
            tool_required=tool_required,
            **kwargs,
        )

    def _validate_chat_with_tools_response(
        self,
        response: ChatResponse,
        tools: Sequence[BaseTool],
        allow_parallel_tool_calls: bool = False,
        **kwargs: Any,
    ) -> ChatResponse:
        return self._calling._validate_chat_with_tools_response(  # noqa: SLF001 - as above
            response, tools, allow_parallel_tool_calls=allow_parallel_tool_calls, **kwargs
        )

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """The model's own."""
        return self._calling.get_tool_calls_from_response(
            response, error_on_no_tool_call=error_on_no_tool_call, **kwargs
        )

    @property
    def _calling(self) -> FunctionCallingLLM:
        return cast("FunctionCallingLLM", self.inner)

    def _refusal(self, reply: Any, finish: str | None = None) -> str | None:
        """Besides: the model must find the same tool calls in the copy that a hit will give."""
        reason = super()._refusal(reply, finish)
        if reason is not None or not isinstance(reply, ChatResponse):
            return reason
        try:
            copy = CODEC.decode(CODEC.encode(reply).payload)
        except CodecError as error:
            return str(error)
        if self._calls_in(copy) != self._calls_in(reply):
            return "its tool calls would not come back as they were"
        return None

    def _calls_in(self, reply: ChatResponse) -> list[tuple[str, Any]] | str:
        try:
            calls = self.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
        except Exception as error:  # whatever the model's own code makes of the copy
            return type(error).__name__
        return [(call.tool_name, call.tool_kwargs) for call in calls]


def _seen(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call as the model sees them: of a tool that is still one, its metadata."""
    tools = kwargs.get("tools")
    if not isinstance(tools, (list, tuple)):
        return kwargs
    seen = [one.metadata if isinstance(one, BaseTool) else one for one in tools]
    return {**kwargs, "tools": seen}


def _run(frame: Frame | None) -> tuple[str | None, Iterable[str]]:
    """The question of the run, and the texts of what it has retrieved."""
    return (None, ()) if frame is None else (frame.focus, frame.source_texts())
