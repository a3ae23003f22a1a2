"""What a class says of its objects, read once per class: what of them counts, and what is noise."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.tools import BaseTool
from pydantic import BaseModel

__all__ = [
    "LANGCHAIN",
    "LIBRARIES",
    "NOISE",
    "STEMMA",
    "Watching",
    "declared",
    "field_names",
    "holds_more",
    "is_from",
    "langchain_bases",
    "name_of",
    "noise_of",
    "private_counts",
    "slots_of",
]

NOISE = frozenset(
    """
    async_client cache callback_manager callbacks client config_factories custom_get_token_ids
    custom_input_type custom_output_type default_request_timeout default_timeout
    disable_streaming http_async_client http_client http_socket_options input_type_ max_concurrency
    max_retries metadata name output_type_ profile rate_limiter request_timeout root_async_client
    root_client show_progress show_progress_bar stream stream_usage streaming tags timeout verbose
    """.split()  # noqa: SIM905 - thirty names read better as words
)
"""Fields of language models and of LangChain's own classes that shape no answer."""


class Watching:
    """What stands before another object, `watched`, and changes nothing that this gives."""

    watched: Any
    stemma_index: str | None = None
    """The identity of the index, where it was named."""


LANGCHAIN = ("langchain", "langgraph")
STEMMA = ("stemma", "stemma_langchain")
LIBRARIES = (*LANGCHAIN, *STEMMA)
_FAKES = "langchain_core.language_models.fake"


def name_of(kind: type) -> str:
    """Module and name."""
    return f"{kind.__module__}.{kind.__qualname__}"


@functools.lru_cache(maxsize=4_096)
def langchain_bases(kind: type) -> frozenset[str]:
    """The names of those of its bases, itself among them, that are LangChain's or LangGraph's."""
    return frozenset(base.__name__ for base in kind.__mro__ if is_from(base, LANGCHAIN))


@functools.lru_cache(maxsize=4_096)
def is_from(kind: type, packages: tuple[str, ...]) -> bool:
    """Whether one of the packages defines it; `langchain` is its partner packages too."""
    top = kind.__module__.partition(".")[0]
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
        if issubclass(kind, BaseLanguageModel) or is_from(_declaring(kind, name), LIBRARIES)
    }
    if issubclass(kind, BaseTool):
        noise.discard("name")  # the model is told it
    if any(base.__module__.startswith(_FAKES) for base in kind.__mro__):
        noise.add("i")  # LangChain's own test models count their calls in a field
    if is_from(kind, LANGCHAIN):
        noise.add("_repr")  # there once it was looked at
    return frozenset(noise)


def _declaring(kind: Any, name: str) -> Any:
    """The class that declares an attribute; where none does, the class itself."""
    for base in kind.__mro__:
        if name in inspect.get_annotations(base) or name in base.__dict__:
            return base
    return kind


@functools.lru_cache(maxsize=4_096)
def field_names(kind: type[BaseModel], noise: frozenset[str]) -> tuple[str, ...]:
    """The fields of a model that count."""
    return tuple(
        name
        for name, field in kind.model_fields.items()
        if name not in noise
        and not (field.exclude is True and is_from(_declaring(kind, name), LIBRARIES))
    )


def slots_of(kind: type) -> tuple[str, ...]:
    """The names of a class's slots, as they are in its `__dict__`."""
    said = kind.__dict__.get("__slots__", ())
    names = (said,) if isinstance(said, str) else tuple(said)
    return tuple(
        f"_{kind.__name__.lstrip('_')}{name}"
        if name.startswith("__") and not name.endswith("__")
        else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    )


@functools.lru_cache(maxsize=4_096)
def holds_more(kind: type) -> bool:
    """Whether objects of a class hold more than attributes and slots: whatever C keeps in them."""
    word = tuple.__itemsize__
    known = object.__basicsize__ + word * sum(len(slots_of(base)) for base in kind.__mro__)
    known += word * (kind.__dictoffset__ > 0) + word * (kind.__weakrefoffset__ > 0)
    return kind.__basicsize__ > known or kind.__itemsize__ > 0


def declared(kind: type, name: str) -> Any:
    """What a class holds under a name, its own or inherited, without a descriptor being asked."""
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)
