"""What a model call asks of the cache, whichever face it comes through."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any, Literal

from langchain_core.language_models import BaseLanguageModel

from stemma import Asked, Frame, KnownScope, Request, UnkeyableValue, canonical
from stemma_langchain.codec import CODEC
from stemma_langchain.fingerprint import describe, describe_chain
from stemma_langchain.prompts import Turns

__all__ = ["Sampling", "ask", "live_scope", "samples", "several"]

Sampling = Literal["exact", "never", "meaning"]
"""What to do with calls that say they sample: reuse a draw only for the very same call; cache none
of them; or treat them like any other."""

_DELIVERY = frozenset({"stream", "stream_options", "stream_usage"})
"""Arguments of a call that say how the reply is delivered, not what it is."""


def ask(turns: Turns, known: KnownScope, frame: Frame | None, life: float | None) -> Asked:
    """The question of a model call: of its prompt, the run's question may be compared by meaning.

    Args:
        turns: The prompt.
        known: Everything else that shapes the reply.
        frame: The frame of the call's run.
        life: The base life of the reply, seconds; `None`: as the policy says.
    """
    question = frame.focus if frame is not None else None
    read = turns.read(question, () if frame is None else frame.source_texts())
    return Asked(
        scope=known.fields,
        request=Request(
            encoded=read.exact,
            whole=turns.whole,
            focus=read.focus,
            before=read.before,
            meaning=known.meaning,
            left_out=turns.left_out,
        ),
        codec=CODEC,
        prompt=read.texts,
        life=life,
        scope_key=known.key,
    )


def live_scope(
    model: BaseLanguageModel[Any],
    given: Mapping[str, Any],
    *,
    meaning: bool,
    streams: bool = False,
) -> KnownScope:
    """The scope of a call of a model as it is now.

    Args:
        model: The model.
        given: The arguments of the call, `stop` among them. All count but those that say how the
            reply is delivered.
        meaning: Whether prompts may be compared by meaning.
        streams: Whether it is a stream that differs from what `invoke` gives.
    """
    described = describe_chain(model)
    shaping = {name: value for name, value in given.items() if name not in _DELIVERY}
    parameters = [described.value, describe(shaping), streams]
    named = given.get("model")
    fields = {
        "model": named if isinstance(named, str) else described.model,
        "parameters": parameters,
    }
    return KnownScope(fields, _key(parameters, meaning), meaning)


def samples(model: BaseLanguageModel[Any], given: Mapping[str, Any]) -> bool:
    """Whether a call says that its replies are drawn at random: temperature above 0, n above 1."""
    return _above(_said(model, given, "temperature"), 0) or several(model, given)


def several(model: BaseLanguageModel[Any], given: Mapping[str, Any]) -> bool:
    """Whether a call asks for several replies."""
    return _above(_said(model, given, "n"), 1)


def _said(model: BaseLanguageModel[Any], given: Mapping[str, Any], name: str) -> Any:
    further = getattr(model, "model_kwargs", None)
    for held in (given, further):
        if isinstance(held, Mapping) and name in held:
            return held[name]
    return getattr(model, name, None)


def _above(value: Any, least: int) -> bool:
    return isinstance(value, (int, float)) and value > least


def _key(parameters: list[Any], meaning: bool) -> Hashable | None:
    """What stands for a scope in memory: equal for equal values of equal types.

    Their canonical form would do as well, but is four times as slow.
    """
    try:
        return meaning, _frozen(parameters)
    except TypeError:  # a value of another kind
        with suppress(UnkeyableValue):
            return canonical([meaning, parameters])
        return None


def _frozen(value: Any) -> Hashable:
    kind = type(value)
    if kind is str or value is None:
        return value  # type: ignore[no-any-return]
    if kind is list:
        return tuple(map(_frozen, value))
    if kind is dict:
        return (dict, *[(name, _frozen(item)) for name, item in value.items()])
    if kind in (bool, int, float):
        return kind, repr(value)
    raise TypeError(kind)
