"""Stemma for LlamaIndex.

Each face takes the cache first and what it wraps second. Importing this package loads nothing; the
first face that is named loads LlamaIndex and installs the handler that follows its spans.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stemma.tools import cacheable
    from stemma_llamaindex.chat_engine import CachedChatEngine
    from stemma_llamaindex.docstore import WatchedDocumentStore
    from stemma_llamaindex.embedding import CachedEmbedding
    from stemma_llamaindex.embedding_store import EmbeddingKVStore
    from stemma_llamaindex.events import CacheHitEvent
    from stemma_llamaindex.ingestion import CachedTransformation
    from stemma_llamaindex.llm import CachedLLM
    from stemma_llamaindex.query_engine import CachedQueryEngine
    from stemma_llamaindex.reranker import CachedReranker
    from stemma_llamaindex.retriever import CachedRetriever
    from stemma_llamaindex.tools import CachedTool
    from stemma_llamaindex.vector_store import WatchedVectorStore

__all__ = [
    "CacheHitEvent",
    "CachedChatEngine",
    "CachedEmbedding",
    "CachedLLM",
    "CachedQueryEngine",
    "CachedReranker",
    "CachedRetriever",
    "CachedTool",
    "CachedTransformation",
    "EmbeddingKVStore",
    "WatchedDocumentStore",
    "WatchedVectorStore",
    "cacheable",
]

_FACES = {
    "CacheHitEvent": "stemma_llamaindex.events",
    "CachedChatEngine": "stemma_llamaindex.chat_engine",
    "CachedEmbedding": "stemma_llamaindex.embedding",
    "CachedLLM": "stemma_llamaindex.llm",
    "CachedQueryEngine": "stemma_llamaindex.query_engine",
    "CachedReranker": "stemma_llamaindex.reranker",
    "CachedRetriever": "stemma_llamaindex.retriever",
    "CachedTool": "stemma_llamaindex.tools",
    "CachedTransformation": "stemma_llamaindex.ingestion",
    "EmbeddingKVStore": "stemma_llamaindex.embedding_store",
    "WatchedDocumentStore": "stemma_llamaindex.docstore",
    "WatchedVectorStore": "stemma_llamaindex.vector_store",
    "cacheable": "stemma.tools",
}


def __getattr__(name: str) -> Any:
    module = _FACES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        importlib.import_module("stemma_llamaindex.spans")
        face = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("llama_index"):
            raise
        from stemma import MissingDependency  # noqa: PLC0415 - only where it goes wrong

        raise MissingDependency(
            f"{name} needs LlamaIndex: pip install 'stemma-cache[llamaindex]'"
        ) from error
    globals()[name] = face
    return face


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
