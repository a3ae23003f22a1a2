"""Runnables with the chat models in them replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableParallel,
    RunnableSequence,
    RunnableWithFallbacks,
)

__all__ = ["rebound"]

Replace = Callable[[BaseChatModel], BaseChatModel]


def rebound(thing: Runnable[Any, Any], replace: Replace) -> Runnable[Any, Any]:
    """A runnable as it was built around a model, with every chat model in it replaced.

    It is looked for in sequences, parallel steps, bindings and fallbacks: of those LangChain's
    `bind_tools` and `with_structured_output` are made. The runnable itself is left as it is.
    """
    if isinstance(thing, BaseChatModel):
        return replace(thing)
    if isinstance(thing, RunnableBinding):
        return _with(thing, bound=rebound(thing.bound, replace))
    if isinstance(thing, RunnableSequence):
        first, *middle, last = (rebound(step, replace) for step in thing.steps)
        return _with(thing, first=first, middle=middle, last=last)
    if isinstance(thing, RunnableParallel):
        steps = {name: rebound(step, replace) for name, step in thing.steps__.items()}
        return _with(thing, steps__=steps)
    if isinstance(thing, RunnableWithFallbacks):
        others = [rebound(other, replace) for other in thing.fallbacks]
        return _with(thing, runnable=rebound(thing.runnable, replace), fallbacks=others)
    return thing


def _with(thing: Any, **parts: Any) -> Runnable[Any, Any]:
    made: Runnable[Any, Any] = thing.model_copy(update=parts)
    return made
