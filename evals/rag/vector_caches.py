"""What caches vectors, each behind the same two calls, over a model whose every vector is known."""

from __future__ import annotations

import math
import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.stores import ByteStore, InMemoryByteStore
from pydantic import PrivateAttr

import stemma
from evals.measuring import Skipped
from stemma_langchain import CachedEmbeddings

__all__ = ["FACES", "OURS", "Face", "Made", "Model", "Opened", "vector"]

Vector = list[float]
LENGTH = 384


def vector(model: str, role: str, text: str, length: int = LENGTH) -> Vector:
    """The one right vector: of length 1, its own for every model, role, text and length."""
    lucky = random.Random(zlib.crc32(f"{model}\0{role}\0{text}\0{length}".encode()))
    drawn = [lucky.gauss(0, 1) for _ in range(length)]
    norm = math.hypot(*drawn)
    return [value / norm for value in drawn]


@dataclass(kw_only=True)
class Model:
    """An asymmetric embedding model that counts what it is asked.

    Args:
        name: Its name.
        dimensions: The length asked for.
        lost: How many vectors are missing from what it gives for its next batch.
        broken: Texts that get numbers that are none, once each.
    """

    name: str
    dimensions: int = LENGTH
    lost: int = 0
    broken: set[str] = field(default_factory=set)
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)

    def embed(self, role: str, texts: Sequence[str]) -> list[Vector]:
        """The vectors of texts in a role."""
        self.asked.update((role, text) for text in texts)
        rows = [self._row(role, text) for text in texts]
        kept, self.lost = len(rows) - self.lost, 0
        return rows[:kept]

    def right(self, role: str, text: str) -> Vector:
        """What it gives when all is well."""
        return vector(self.name, role, text, self.dimensions)

    def _row(self, role: str, text: str) -> Vector:
        if text in self.broken:
            self.broken.remove(text)
            return [math.nan] * self.dimensions
        return self.right(role, text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Face:
    """Two calls: vectors of documents, and the vector of a query."""

    documents: Callable[[list[str]], list[Vector]]
    query: Callable[[str], Vector]


Made = Callable[[Model], Face]
"""Puts a model behind one cache; made of two models, both share it."""


class _ForLangChain(Embeddings):
    def __init__(self, inner: Model) -> None:
        self.model = inner.name
        self.dimensions = inner.dimensions
        self._inner = inner

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        return self._inner.embed("document", texts)

    def embed_query(self, text: str) -> Vector:
        return self._inner.embed("query", [text])[0]


def _langchain(embeddings: Embeddings) -> Face:
    return Face(documents=embeddings.embed_documents, query=embeddings.embed_query)


@contextmanager
def _uncached(folder: Path) -> Iterator[Made]:  # noqa: ARG001 - as the others
    yield lambda model: _langchain(_ForLangChain(model))


@contextmanager
def _ours(folder: Path) -> Iterator[Made]:
    with stemma.open(folder / "vectors.db", tenant="me", embedder=None) as cache:
        yield lambda model: _langchain(CachedEmbeddings(cache, _ForLangChain(model)))


@contextmanager
def _backed_by_files(folder: Path) -> Iterator[Made]:
    """With nothing said: no namespace, and queries are not cached."""
    from langchain_classic.embeddings import CacheBackedEmbeddings  # noqa: PLC0415
    from langchain_classic.storage import LocalFileStore  # noqa: PLC0415

    store = LocalFileStore(folder / "vectors")
    yield lambda model: _langchain(
        CacheBackedEmbeddings.from_bytes_store(_ForLangChain(model), store, key_encoder="blake2b")
    )


@contextmanager
def _backed(store: ByteStore) -> Iterator[Made]:
    """As its documentation says: the model's name as namespace, queries in the same store."""
    from langchain_classic.embeddings import CacheBackedEmbeddings  # noqa: PLC0415

    yield lambda model: _langchain(
        CacheBackedEmbeddings.from_bytes_store(
            _ForLangChain(model),
            store,
            namespace=model.name,
            query_embedding_cache=True,
            key_encoder="blake2b",
        )
    )


def _backed_and_told(folder: Path) -> AbstractContextManager[Made]:
    from langchain_classic.storage import LocalFileStore  # noqa: PLC0415

    return _backed(LocalFileStore(folder / "told"))


def _backed_in_memory(folder: Path) -> AbstractContextManager[Made]:  # noqa: ARG001 - as the others
    return _backed(InMemoryByteStore())


def _llamaindex_model() -> Any:
    try:
        from llama_index.core.embeddings import BaseEmbedding  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise Skipped("LlamaIndex is not installed") from missing

    class ForLlamaIndex(BaseEmbedding):
        dimensions: int = LENGTH
        _inner: Model = PrivateAttr()  # it counts, so it must not be part of what this is

        def __init__(self, inner: Model, **named: Any) -> None:
            super().__init__(model_name=inner.name, **named)
            self.dimensions = inner.dimensions
            self._inner = inner

        def _get_query_embedding(self, query: str) -> Vector:
            return self._inner.embed("query", [query])[0]

        async def _aget_query_embedding(self, query: str) -> Vector:
            return self._get_query_embedding(query)

        def _get_text_embedding(self, text: str) -> Vector:
            return self._get_text_embeddings([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[Vector]:
            return self._inner.embed("document", texts)

    return ForLlamaIndex


def _llamaindex(embedding: Any) -> Face:
    return Face(documents=embedding.get_text_embedding_batch, query=embedding.get_query_embedding)


@contextmanager
def _ours_in_llamaindex(folder: Path) -> Iterator[Made]:
    kind = _llamaindex_model()
    from stemma_llamaindex import CachedEmbedding  # noqa: PLC0415 - loads LlamaIndex

    with stemma.open(folder / "vectors.db", tenant="me", embedder=None) as cache:
        yield lambda model: _llamaindex(CachedEmbedding(cache, kind(model)))


@contextmanager
def _embeddings_cache(folder: Path) -> Iterator[Made]:  # noqa: ARG001 - as the others
    kind = _llamaindex_model()
    from llama_index.core.storage.kvstore import SimpleKVStore  # noqa: PLC0415

    store = SimpleKVStore()
    yield lambda model: _llamaindex(kind(model, embeddings_cache=store))


Opened = Callable[[Path], AbstractContextManager[Made]]
"""Opens a cache in a folder, and gives what puts models behind it."""

FACES: Mapping[str, Opened] = {
    "no cache": _uncached,
    "CachedEmbeddings": _ours,
    "CacheBackedEmbeddings": _backed_by_files,
    "CacheBackedEmbeddings, told all": _backed_and_told,
    "CacheBackedEmbeddings, told all, in memory": _backed_in_memory,
    "CachedEmbedding (LlamaIndex)": _ours_in_llamaindex,
    "LlamaIndex's embeddings_cache, in memory": _embeddings_cache,
}
"""What is compared."""

OURS = ("CachedEmbeddings", "CachedEmbedding (LlamaIndex)")
"""Those of them that are Stemma's."""
