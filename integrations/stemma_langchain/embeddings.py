"""Embedding models behind the cache, and Stemma's own embedders for LangChain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.embeddings import Embeddings

from stemma import (
    Asked,
    Cache,
    Embedder,
    EmbedderError,
    Hit,
    Miss,
    Request,
    UnkeyableValue,
    UsageError,
    VectorCodec,
)
from stemma.embedders import as_embedder
from stemma_langchain.fingerprint import describe, embedding_identity

__all__ = ["CachedEmbeddings", "LocalEmbeddings"]

Role = Literal["query", "document"]
Vector = list[float]

_CODEC = VectorCodec()


class LocalEmbeddings(Embeddings):
    """A Stemma embedder as a LangChain embedding model.

    With it a vector store and the cache share one model:

    ```python
    embeddings = LocalEmbeddings()
    cache = stemma.open("answers.db", tenant="me", embedder=embeddings.embedder)
    store = InMemoryVectorStore(CachedEmbeddings(cache, embeddings))
    ```

    Args:
        embedder: The embedder, or what `stemma.open` takes for one; by default the local model.
    """

    def __init__(self, embedder: Embedder | Any = "local") -> None:
        self.embedder: Embedder = as_embedder(embedder)

    @property
    def stemma_identity(self) -> str:
        """The embedder's revision."""
        return self.embedder.revision

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        """Vectors of length 1, one a text."""
        vectors: list[Vector] = self.embedder.embed(texts).astype(float).tolist() if texts else []
        return vectors

    def embed_query(self, text: str) -> Vector:
        """The vector of a text, of length 1."""
        return self.embed_documents([text])[0]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Texts that are looked up together: each text once, with its outcome."""

    texts: tuple[str, ...]
    found: dict[str, Hit]
    missing: dict[str, Miss | None]
    """With the miss of each text that was looked up; blank ones are not."""


class CachedEmbeddings(Embeddings):
    """An embedding model whose vectors are cached, exactly, by text and role.

    Texts embedded as a query and as a document never share a vector, nor do two models, two
    lengths or two instructions. Each vector comes back to its own text, bit by bit as it was.
    What is missing is computed in one call with each missing text once. Blank texts go to the
    model and are not cached; vectors with numbers that are not finite are not stored.

    Args:
        cache: The cache.
        embeddings: The embedding model.
        model: Its name and revision, for the key and for `recall(model=…)`; by default derived
            (see `embedding_identity`). Give it where the model says nothing of itself.
        dimensions: The length asked for, where that is set outside the model.
        instruction: The instruction or prefix, where that is set outside the model.
        batch_size: How many missing texts the model is given at a time; by default all at once.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
    """

    def __init__(
        self,
        cache: Cache,
        embeddings: Embeddings,
        *,
        model: str | None = None,
        dimensions: int | None = None,
        instruction: str = "",
        batch_size: int | None = None,
        life: float | None = None,
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if batch_size is not None and batch_size < 1:
            raise UsageError(f"batch_size must be at least 1, not {batch_size}")
        if model == "":
            raise UsageError("model must not be empty; leave it out to have it derived")
        self.cache = cache
        self.embeddings = embeddings
        self.model = model
        self.dimensions = dimensions
        self.instruction = instruction
        self.batch_size = batch_size
        self.life = life

    @property
    def stemma_identity(self) -> str:
        """The identity of the model behind it: a cached model gives the same vectors."""
        return self.model if self.model is not None else embedding_identity(self.embeddings)

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        """The vectors of documents, in the order of their texts."""
        asked = self._asked(texts, "document")
        batch = _batch(texts, asked, self.cache.embeddings.look_all(list(asked.values())))
        computed: dict[str, Vector] = {}
        for part in self._parts(batch.missing):
            vectors = _matched(part, self.embeddings.embed_documents(part))
            self.cache.embeddings.put_all(_storable(batch, vectors))
            computed |= vectors
        return _in_order(batch, computed)

    async def aembed_documents(self, texts: list[str]) -> list[Vector]:
        """As `embed_documents`."""
        asked = self._asked(texts, "document")
        batch = _batch(texts, asked, await self.cache.embeddings.alook_all(list(asked.values())))
        computed: dict[str, Vector] = {}
        for part in self._parts(batch.missing):
            vectors = _matched(part, await self.embeddings.aembed_documents(part))
            await self.cache.embeddings.aput_all(_storable(batch, vectors))
            computed |= vectors
        return _in_order(batch, computed)

    def embed_query(self, text: str) -> Vector:
        """The vector of a query."""
        asked = self._asked([text], "query").get(text)
        if asked is None:
            return self.embeddings.embed_query(text)
        served = self.cache.embeddings.serve(
            asked, lambda: _floats(self.embeddings.embed_query(text)), admit=_refusal
        )
        vector: Vector = served.value
        return vector

    async def aembed_query(self, text: str) -> Vector:
        """As `embed_query`."""
        asked = self._asked([text], "query").get(text)
        if asked is None:
            return await self.embeddings.aembed_query(text)

        async def compute() -> Vector:
            return _floats(await self.embeddings.aembed_query(text))

        served = await self.cache.embeddings.aserve(asked, compute, admit=_refusal)
        vector: Vector = served.value
        return vector

    def _asked(self, texts: Sequence[str], role: Role) -> dict[str, Asked]:
        """The question for each text that is not blank, each once."""
        said: dict[str, Any] = {
            "role": role,
            "dimensions": self.dimensions,
            "dtype": "",
            "instruction": self.instruction,
        }
        try:
            model = self.stemma_identity
        except UnkeyableValue:  # the question has no key either, which is told where it is asked
            model, key = "", None
            said["model"] = describe(self.embeddings)
        else:
            key = (model, role, self.dimensions, self.instruction)
        scope = {"model": model, "parameters": said}
        return {
            text: Asked(
                scope=scope,
                request=Request(exact=text, meaning=False),
                codec=_CODEC,
                life=self.life,
                scope_key=key,
            )
            for text in texts
            if text.strip()
        }

    def _parts(self, missing: Iterable[str]) -> Iterator[list[str]]:
        texts = list(missing)
        size = self.batch_size if self.batch_size is not None else max(1, len(texts))
        for start in range(0, len(texts), size):
            yield texts[start : start + size]


def _batch(texts: Sequence[str], asked: dict[str, Asked], outcomes: Sequence[Hit | Miss]) -> _Batch:
    found: dict[str, Hit] = {}
    missed: dict[str, Miss] = {}
    for text, outcome in zip(asked, outcomes, strict=True):
        if isinstance(outcome, Hit):
            found[text] = outcome
        else:
            missed[text] = outcome
    missing = {text: missed.get(text) for text in texts if text not in found}
    return _Batch(tuple(texts), found, missing)


def _matched(texts: Sequence[str], vectors: Sequence[Any]) -> dict[str, Vector]:
    if len(vectors) != len(texts):
        raise EmbedderError(
            f"the embedding model gave {len(vectors)} vectors for {len(texts)} texts; which is "
            "whose cannot be told, so none was used or stored"
        )
    return dict(zip(texts, map(_floats, vectors), strict=True))


def _storable(batch: _Batch, vectors: dict[str, Vector]) -> list[tuple[Any, Vector]]:
    pairs = []
    for text, vector in vectors.items():
        miss = batch.missing[text]
        if miss is not None and miss.ticket is not None and _refusal(vector) is None:
            pairs.append((miss.ticket, vector))
    return pairs


def _in_order(batch: _Batch, computed: dict[str, Vector]) -> list[Vector]:
    """Every vector to its own text; equal texts get equal lists that are not the same object."""
    return [
        list(batch.found[text].value) if text in batch.found else list(computed[text])
        for text in batch.texts
    ]


def _floats(vector: Sequence[Any]) -> Vector:
    if type(vector) is list and all(type(value) is float for value in vector):
        return vector
    return [float(value) for value in vector]


def _refusal(vector: Vector) -> str | None:
    if not vector:
        return "the vector is empty"
    return None if all(map(math.isfinite, vector)) else "the vector holds what is not a number"
