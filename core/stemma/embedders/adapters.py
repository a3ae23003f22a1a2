"""Any embedder as a Stemma embedder: LangChain's, LlamaIndex's, sentence-transformers', a callable.

They are known by their methods; no framework is imported. What the cache embeds are questions, so
an embedder that treats questions and documents differently is always asked for its question side.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from stemma.callables import is_async
from stemma.embedders.hashing import HashingEmbedder
from stemma.embedders.health import unit_rows
from stemma.embedders.local import LocalEmbedder
from stemma.embedders.protocol import Embedder, Matrix
from stemma.embedders.sentence_transformer import (
    is_sentence_transformer,
    query_prompt,
    query_side,
    weights_revision,
)
from stemma.errors import EmbedderError, UsageError

__all__ = ["ASSUMED_WINDOW", "AdaptedEmbedder", "as_embedder", "derive_revision"]

ASSUMED_WINDOW = 256
"""Tokens, where nobody says how many the model reads: the smallest window in common use."""

_ASCII_PER_TOKEN = 3
"""Characters; English has 4 to 5, code and numbers about 3. Of other scripts, 1 is assumed."""

_IDENTIFYING = (
    "model",
    "model_name",
    "model_id",
    "model_name_or_path",
    "deployment",
    "deployment_name",
    "azure_deployment",
    "dimension",
    "dimensions",
    "output_dimensionality",
    "size",
    "query_instruction",
    "embed_instruction",
)
_LANGCHAIN_DEFAULT = "langchain_core.embeddings.embeddings"

Embed = Callable[[list[str]], Any]
AsyncEmbed = Callable[[list[str]], Awaitable[Any]]


def as_embedder(thing: Any, *, revision: str | None = None, window: int | None = None) -> Embedder:
    """The thing as an `Embedder`.

    Args:
        thing: `"local"`, `"hashing"`, an `Embedder` (given back as it is), a LangChain
            `Embeddings`, a LlamaIndex `BaseEmbedding`, a `SentenceTransformer`, or a callable that
            turns a list of texts into as many vectors.
        revision: What names the model and its version. By default derived, see
            `derive_revision`; pass it where two models would get one name.
        window: Tokens that the model reads; a text estimated to be longer is never matched by
            meaning. By default what the thing says (`max_seq_length`), else 256.

    Raises:
        UsageError: It is none of these, `window` is below 1, an argument does not go with it, or
            nothing names a function and `revision` was not given.
        EmbedderError: `"local"` was asked for and its files are not there.
        MissingDependency: `"local"` was asked for and ONNX Runtime is not installed.
    """
    if window is not None and window < 1:
        raise UsageError(f"window must be 1 token or more, not {window}")
    ready = _ready(thing)
    if ready is not None:
        if revision is not None or window is not None:
            raise UsageError(
                f"{thing!r} says its own revision and window; leave revision= and window= out"
            )
        return ready
    embed, native = _methods(thing)
    if window is None:
        window = _window(thing)
    named = derive_revision(thing) if revision is None else revision
    return AdaptedEmbedder(embed, native, revision=named, window=window)


def derive_revision(thing: Any) -> str:
    """A name for a model from its class and from what it says of itself.

    The class's qualified name, then each attribute among `model`, `model_name`, `deployment`,
    `dimensions` and the like that is a plain text or whole number. Where there is none, that is
    the class's name alone: then, or if the model behind one name changes, pass `revision=`. A
    `SentenceTransformer` is known by its weights and settings (see
    `stemma.embedders.sentence_transformer`), which takes some milliseconds.

    Raises:
        UsageError: It is a lambda, a function made inside another, or a `partial`: their names do
            not tell two models apart.
    """
    if is_sentence_transformer(thing):
        return weights_revision(thing)
    named = thing if inspect.isroutine(thing) else type(thing)
    name = f"{named.__module__}.{named.__qualname__}"
    if isinstance(thing, partial) or "<" in name:
        raise UsageError(
            f"nothing names the model behind {name}; pass revision=, a text that changes when the "
            "model does"
        )
    owner = getattr(thing, "__self__", thing)
    said = [f"{name}={getattr(owner, name, None)}" for name in _IDENTIFYING if _plain(owner, name)]
    return " ".join([name, *said])


class AdaptedEmbedder:
    """An embedder made of a function from texts to vectors. It normalises them.

    `fits` estimates: 3 characters a token for ASCII, 1 for all others. It has `aembed` if and only
    if an async function is given.

    Args:
        embed: Texts to vectors.
        native: The same, async.
        revision: What names the model and its version.
        window: Tokens that the model reads.
    """

    quick = frozenset({"fits"})
    revision: str
    aembed: Callable[[Sequence[str]], Awaitable[Matrix]]

    def __init__(
        self, embed: Embed, native: AsyncEmbed | None = None, *, revision: str, window: int
    ) -> None:
        self._embed = embed
        self._native = native
        self._window = window
        self.revision = revision
        if native is not None:
            self.aembed = partial(self._aembed, native)

    def __repr__(self) -> str:
        return f"AdaptedEmbedder(revision={self.revision!r}, window={self._window})"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of shape (texts, dimensions), each of length 1.

        Raises:
            EmbedderError: The function failed, or gave something unfit.
        """
        try:
            vectors = self._embed(list(texts)) if len(texts) else []
        except Exception as error:
            raise self._failed(error) from error
        return unit_rows(vectors, len(texts))

    def fits(self, text: str) -> bool:
        """Whether the text is estimated to be inside the window."""
        if len(text) > _ASCII_PER_TOKEN * self._window:
            return False
        plain = len(text) if text.isascii() else sum(map(str.isascii, text))
        return plain / _ASCII_PER_TOKEN + (len(text) - plain) <= self._window

    async def _aembed(self, native: AsyncEmbed, texts: Sequence[str]) -> Matrix:
        try:
            vectors = await native(list(texts)) if len(texts) else []
        except Exception as error:
            raise self._failed(error) from error
        return unit_rows(vectors, len(texts))

    def _failed(self, error: Exception) -> EmbedderError:
        return EmbedderError(
            f"the embedder {self.revision!r} failed: {type(error).__name__}: {error}"
        )


def _ready(thing: Any) -> Embedder | None:
    if isinstance(thing, str):
        if thing == "local":
            return LocalEmbedder()
        if thing == "hashing":
            return HashingEmbedder()
        raise UsageError(f"unknown embedder {thing!r}; 'local' or 'hashing', or pass an object")
    if isinstance(thing, type):
        raise UsageError(f"{thing.__qualname__} is a class; pass an instance of it")
    if isinstance(thing, Embedder) and isinstance(thing.revision, str):
        return thing
    return None


def _methods(thing: Any) -> tuple[Embed, AsyncEmbed | None]:
    if _has(thing, "embed_documents", "embed_query"):
        one = thing.embed_query
        native = _each_async(thing.aembed_query) if _truly_async(thing) else None
        return (lambda texts: [one(text) for text in texts]), native
    if _has(thing, "get_query_embedding", "get_text_embedding_batch"):
        # LlamaIndex's async methods are often the sync ones under another name and would block the
        # event loop; a worker thread never does.
        ask = thing.get_query_embedding
        return (lambda texts: [ask(text) for text in texts]), None
    if is_sentence_transformer(thing):
        return query_side(thing), None
    if _has(thing, "encode"):
        return thing.encode, None
    if not callable(thing):
        raise UsageError(
            f"a {type(thing).__qualname__} is no embedder: pass 'local', a Stemma, LangChain or "
            "LlamaIndex embedder, or a function from a list of texts to vectors"
        )
    if is_async(thing):
        raise UsageError(
            f"{thing!r} is async only; pass a plain function, which async callers run in a thread"
        )
    return thing, None


def _window(thing: Any) -> int:
    """Tokens that the thing says it reads, less those of the prompt it puts before a query."""
    said = getattr(thing, "max_seq_length", None)
    window = said if type(said) is int and said > 0 else ASSUMED_WINDOW
    prompt = query_prompt(thing) if is_sentence_transformer(thing) else ""
    return max(1, window - math.ceil(len(prompt) / _ASCII_PER_TOKEN))


def _has(thing: Any, *methods: str) -> bool:
    return all(callable(getattr(thing, method, None)) for method in methods)


def _truly_async(thing: Any) -> bool:
    """Whether `aembed_query` is its own, not LangChain's default (the sync one in a thread)."""
    method = getattr(type(thing), "aembed_query", None)
    return (
        inspect.iscoroutinefunction(method)
        and getattr(method, "__module__", "") != _LANGCHAIN_DEFAULT
    )


def _each_async(ask: Callable[[str], Awaitable[Any]]) -> AsyncEmbed:
    async def embed(texts: list[str]) -> list[Any]:
        return [await ask(text) for text in texts]

    return embed


def _plain(thing: Any, name: str) -> bool:
    return type(getattr(thing, name, None)) in (str, int)
