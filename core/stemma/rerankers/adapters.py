"""Any reranker as a Stemma reranker: a cross-encoder, LangChain's too, or a callable.

They are known by their methods; no framework is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

from stemma.callables import is_async
from stemma.embedders.adapters import derive_revision as named_revision
from stemma.errors import UnkeyableValue, UsageError
from stemma.keys import canonical, digest
from stemma.rerankers.maxsim import MaxSimReranker
from stemma.rerankers.ordering import as_scores
from stemma.rerankers.protocol import Reranker

__all__ = ["AdaptedReranker", "as_reranker", "derive_revision"]

_SAMPLES = 64
"""Numbers taken of each weight tensor: training changes all tensors, or adds some."""

Score = Callable[[str, list[str]], Any]


def as_reranker(thing: Any, *, revision: str | None = None) -> Reranker:
    """The thing as a `Reranker`.

    Args:
        thing: `"local"` (MaxSim over the local model), a `Reranker` (given back as it is), a
            `sentence_transformers.CrossEncoder`, a LangChain `BaseCrossEncoder`, or a callable
            that turns a query and a list of texts into as many scores, higher is closer.
        revision: What names the model and its version. By default derived, see
            `derive_revision`; pass it where two models would get one name.

    Raises:
        UsageError: It is none of these, or nothing names a function and `revision` was not given,
            or a revision was given to what says its own.
        EmbedderError: `"local"` was asked for and its files are not there.
        MissingDependency: `"local"` was asked for and ONNX Runtime is not installed.
    """
    if revision == "":
        raise UsageError("revision must not be empty; leave it out to have it derived")
    ready = _ready(thing)
    if ready is not None:
        if revision is not None:
            raise UsageError(f"{thing!r} says its own revision; leave revision= out")
        return ready
    score = _method(thing)
    return AdaptedReranker(score, revision=derive_revision(thing) if revision is None else revision)


def derive_revision(thing: Any) -> str:
    """A name for a model from its class and from what it says of itself.

    The class's qualified name with the model's name, as for embedders; then a digest of whatever
    else shapes a score and can be told: plain fields, the longest input, the prompts, the
    activation, and a sample of every tensor of weights, so that a model trained further under the
    same name is another.

    Raises:
        UsageError: It is a lambda, a function made inside another, or a `partial`: their names do
            not tell two models apart. Or it is a cross-encoder whose weights cannot be seen.
    """
    name = " ".join(filter(None, (named_revision(thing), _model_name(thing))))
    said = [_told(one) for one in (thing, getattr(thing, "client", None)) if one is not None]
    return f"{name}@{digest('reranker/1', said)[:12]}" if any(said) else name


class AdaptedReranker:
    """A reranker made of a function from a query and texts to scores.

    Args:
        score: The function.
        revision: What names the model and its version.
    """

    revision: str

    def __init__(self, score: Score, *, revision: str) -> None:
        self._score = score
        self.revision = revision

    def __repr__(self) -> str:
        return f"AdaptedReranker(revision={self.revision!r})"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text, in the function's own range. What it raises passes through.

        Raises:
            RerankerError: It gave something that is not one number a text.
        """
        given = self._score(query, list(texts)) if len(texts) else []
        return as_scores(given, len(texts), self.revision)


def _ready(thing: Any) -> Reranker | None:
    if isinstance(thing, str):
        if thing == "local":
            return MaxSimReranker()
        raise UsageError(f"unknown reranker {thing!r}; 'local', or pass an object")
    if isinstance(thing, type):
        raise UsageError(f"{thing.__qualname__} is a class; pass an instance of it")
    if isinstance(thing, Reranker) and isinstance(thing.revision, str) and _takes(thing.score) > 1:
        return thing
    return None


def _method(thing: Any) -> Score:
    for name in ("predict", "score"):
        pairs = getattr(thing, name, None)
        if callable(pairs) and _takes(pairs) == 1:
            return _of_pairs(pairs)
    if not callable(thing):
        raise UsageError(
            f"a {type(thing).__qualname__} is no reranker: pass 'local', a Stemma reranker, a "
            "cross-encoder, or a function from a query and a list of texts to scores"
        )
    if is_async(thing):
        raise UsageError(
            f"{thing!r} is async only; pass a plain function, which async callers run in a thread, "
            "or an object with revision, score and ascore"
        )
    score: Score = thing
    return score


def _of_pairs(pairs: Callable[[list[tuple[str, str]]], Any]) -> Score:
    return lambda query, texts: pairs([(query, text) for text in texts])


def _takes(function: Callable[..., Any]) -> int:
    """How many positional arguments a function needs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    return sum(
        one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        for one in parameters
    )


def _told(thing: Any) -> dict[str, Any]:
    """What a model says of itself besides its name, in plain values."""
    fields = getattr(type(thing), "model_fields", None)
    names = list(fields) if isinstance(fields, Mapping) else []
    told = {name: getattr(thing, name, None) for name in names}
    if callable(getattr(thing, "named_parameters", None)):
        told |= {
            name: getattr(thing, name, None)
            for name in ("max_length", "prompts", "default_prompt_name")
        }
        told["activation"] = type(getattr(thing, "activation_fn", None)).__qualname__
        told["weights"] = _sampled(thing.named_parameters())
    return {name: value for name, value in told.items() if value is not None and _keyable(value)}


def _model_name(thing: Any) -> str:
    """The name under which a cross-encoder's model was loaded; of a folder, its last part."""
    name = getattr(getattr(thing, "model", None), "name_or_path", None)
    return (
        PurePath(name).name
        if isinstance(name, str) and PurePath(name).is_absolute()
        else name or ""
    )


def _keyable(value: Any) -> bool:
    try:
        canonical(value)
    except UnkeyableValue:
        return False
    return True


def _sampled(tensors: Any) -> str:
    """A digest of some numbers of each tensor, taken evenly over it."""
    digested, count = blake2b(digest_size=16), 0
    for count, (name, tensor) in enumerate(tensors, 1):  # noqa: B007 - how many there were
        flat = tensor.detach().reshape(-1)
        some = flat[:: max(1, len(flat) // _SAMPLES)].float().cpu().numpy()
        digested.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digested.update(some.tobytes())
    if count == 0:
        raise UsageError("the model shows no weights, so nothing names it; pass revision=")
    return digested.hexdigest()
