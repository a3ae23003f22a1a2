"""What a class says of its objects, read once per class: what of them counts, and what is noise."""

from __future__ import annotations

import functools
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from stemma.classes import declaring, top_package
from stemma.describing import SameAs

__all__ = [
    "LANGCHAIN",
    "LIBRARIES",
    "NOISE",
    "Watching",
    "field_names",
    "is_from",
    "langchain_bases",
    "noise_of",
    "private_counts",
]

NOISE = frozenset(
    """
    _tool_call_schema_memo async_client cache callback_manager callbacks client config_factories
    custom_get_token_ids custom_input_type custom_output_type default_request_timeout
    default_timeout disable_streaming http_async_client http_client http_socket_options
    input_type_ max_concurrency max_retries metadata name output_type_ profile rate_limiter
    request_timeout root_async_client root_client show_progress show_progress_bar stream
    stream_usage streaming tags timeout verbose
    """.split()  # noqa: SIM905 - thirty names read better as words
)
"""Fields of language models and of LangChain's own classes that shape no answer."""


class Watching:
    """What stands before another object, `watched`, and changes nothing that this gives."""

    watched: Any
    stemma_index: str | None = None
    """The identity of the index, where it was named."""

    @property
    def stemma_identity(self) -> SameAs:
        """It is taken for what it stands before."""
        return SameAs(self.watched)


LANGCHAIN = ("langchain", "langgraph")
LIBRARIES = (*LANGCHAIN, "stemma", "stemma_langchain")
_FAKES = "langchain_core.language_models.fake"


@functools.lru_cache(maxsize=4_096)
def langchain_bases(kind: type) -> frozenset[str]:
    """The names of those of its bases, itself among them, that are LangChain's or LangGraph's."""
    return frozenset(base.__name__ for base in kind.__mro__ if is_from(base, LANGCHAIN))


@functools.lru_cache(maxsize=4_096)
def is_from(kind: type, packages: tuple[str, ...]) -> bool:
    """Whether one of the packages defines it; `langchain` is its partner packages too."""
    top = top_package(kind)
    return top in packages or (top.startswith("langchain_") and "langchain" in packages)


def private_counts(kind: Any) -> bool:
    """Of language models it does not: clients and counters, whoever wrote them.

    LangChain has each say in `_identifying_params` what shapes its replies.
    """
    return not (issubclass(kind, BaseLanguageModel) or is_from(kind, LIBRARIES))


@functools.lru_cache(maxsize=4_096)
def noise_of(kind: type) -> frozenset[str]:
    """The names that do not count: any model's, else those that a class of LangChain's declares."""
    noise = {
        name
        for name in NOISE
        if issubclass(kind, BaseLanguageModel) or is_from(declaring(kind, name), LIBRARIES)
    }
    if issubclass(kind, BaseTool):
        noise.discard("name")  # the model is told it
    if any(base.__module__.startswith(_FAKES) for base in kind.__mro__):
        noise.add("i")  # LangChain's own test models count their calls in a field
    if is_from(kind, LANGCHAIN):
        noise.add("_repr")  # there once it was looked at
    return frozenset(noise)


@functools.lru_cache(maxsize=4_096)
def field_names(kind: type[BaseModel], noise: frozenset[str]) -> tuple[str, ...]:
    """The fields of a model that count."""
    return tuple(
        name
        for name, field in kind.model_fields.items()
        if name not in noise
        and not (field.exclude is True and is_from(declaring(kind, name), LIBRARIES))
    )
