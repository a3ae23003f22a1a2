"""A chat model that stands for another, which answers all that LangChain asks a model about."""

# ruff: noqa: SLF001 - what begins with an underscore is what LangChain has a chat model say

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.model_profile import ModelProfile
from langchain_core.messages import BaseMessage

from stemma.describing import SameAs

__all__ = ["TAKEN_OVER", "StandIn"]

TAKEN_OVER = ("callbacks", "metadata", "output_version", "tags", "verbose")
"""Fields that LangChain reads before it calls a model: a stand-in begins with the inner model's."""


class StandIn(BaseChatModel):
    """Is to LangChain, its tracers and its agents what the inner model is.

    Args:
        inner: The model it stands for.
    """

    inner: BaseChatModel

    @property
    def stemma_identity(self) -> SameAs:
        """A chain with it is the chain with the inner model."""
        return SameAs(self.inner)

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    @property
    def _identifying_params(self) -> Any:
        return self.inner._identifying_params

    @property
    def _serialized(self) -> dict[str, Any]:
        return self.inner._serialized

    def __getattr__(self, name: str) -> Any:
        """The inner model's fields can be read here, as agents do to see which model it is."""
        inner = self.__dict__.get("inner")
        if inner is not None and name in type(inner).model_fields:
            return getattr(inner, name)
        return super().__getattr__(name)  # type: ignore[misc]

    def get_token_ids(self, text: str) -> list[int]:
        """The inner model's own."""
        return self.inner.get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        """The inner model's own."""
        return self.inner.get_num_tokens(text)

    def get_num_tokens_from_messages(
        self, messages: list[BaseMessage], tools: Sequence[Any] | None = None
    ) -> int:
        """The inner model's own."""
        return self.inner.get_num_tokens_from_messages(messages, tools)

    def _resolve_model_profile(self) -> ModelProfile | None:
        return self.inner.profile

    def _get_invocation_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        return self.inner._get_invocation_params(stop=stop, **kwargs)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.inner._get_ls_params(stop=stop, **kwargs)

    def _get_ls_params_with_defaults(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> LangSmithParams:
        return self.inner._get_ls_params_with_defaults(stop=stop, **kwargs)

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None]) -> dict[str, Any]:
        return self.inner._combine_llm_outputs(llm_outputs)

    def _should_stream(self, **kwargs: Any) -> bool:
        return not self._kept_whole(kwargs) and self.inner._should_stream(**kwargs)

    def _should_use_protocol_streaming(self, **kwargs: Any) -> bool:
        return not self._kept_whole(kwargs) and self.inner._should_use_protocol_streaming(**kwargs)

    def _kept_whole(self, given: dict[str, Any]) -> bool:
        if self.disable_streaming == "tool_calling":
            return bool(given.get("tools"))
        return self.disable_streaming
