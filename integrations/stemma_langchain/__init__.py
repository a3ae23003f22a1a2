"""Stemma for LangChain and LangGraph.

```python
import stemma
from stemma_langchain import CachedChain

cache = stemma.open("answers.db", tenant="me")
chain = CachedChain(cache, chain, focus="question")
```

Each face takes the cache first and what it wraps second. Importing this package loads nothing;
the first face that is named loads LangChain and installs the handler that follows its runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stemma.tools import cacheable
    from stemma_langchain.cached_node import cached_node
    from stemma_langchain.cached_tool import CachedTool
    from stemma_langchain.chain import CachedChain
    from stemma_langchain.chat_model import CachedChatModel
    from stemma_langchain.corpus import WatchedRecordManager, WatchedVectorStore
    from stemma_langchain.embedding_store import EmbeddingByteStore
    from stemma_langchain.embeddings import CachedEmbeddings, LocalEmbeddings
    from stemma_langchain.llm_cache import LLMCache
    from stemma_langchain.middleware import CacheMiddleware
    from stemma_langchain.node_cache import NodeCache
    from stemma_langchain.node_keys import node_key
    from stemma_langchain.reranker import CachedReranker
    from stemma_langchain.retriever import CachedRetriever

__all__ = [
    "CacheMiddleware",
    "CachedChain",
    "CachedChatModel",
    "CachedEmbeddings",
    "CachedReranker",
    "CachedRetriever",
    "CachedTool",
    "EmbeddingByteStore",
    "LLMCache",
    "LocalEmbeddings",
    "NodeCache",
    "WatchedRecordManager",
    "WatchedVectorStore",
    "cacheable",
    "cached_node",
    "node_key",
]

_FACES = {
    "CacheMiddleware": "stemma_langchain.middleware",
    "CachedChain": "stemma_langchain.chain",
    "CachedChatModel": "stemma_langchain.chat_model",
    "CachedEmbeddings": "stemma_langchain.embeddings",
    "CachedReranker": "stemma_langchain.reranker",
    "CachedRetriever": "stemma_langchain.retriever",
    "CachedTool": "stemma_langchain.cached_tool",
    "EmbeddingByteStore": "stemma_langchain.embedding_store",
    "LLMCache": "stemma_langchain.llm_cache",
    "LocalEmbeddings": "stemma_langchain.embeddings",
    "NodeCache": "stemma_langchain.node_cache",
    "WatchedRecordManager": "stemma_langchain.corpus",
    "WatchedVectorStore": "stemma_langchain.corpus",
    "cacheable": "stemma.tools",
    "cached_node": "stemma_langchain.cached_node",
    "node_key": "stemma_langchain.node_keys",
}

_BROUGHT = {
    "langchain_core": "LangChain: pip install 'stemma-cache[langchain]'",
    "langchain": "LangChain's agents: pip install 'langchain>=1.0,<2'",
    "langgraph": "LangGraph: pip install 'stemma-cache[langgraph]'",
    "xxhash": "LangGraph: pip install 'stemma-cache[langgraph]'",
}
"""What the faces need, and how to get it."""


def __getattr__(name: str) -> Any:
    module = _FACES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        importlib.import_module("stemma_langchain.runs")
        face = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        missing = next((one for one in _BROUGHT if (error.name or "").startswith(one)), None)
        if missing is None:
            raise
        from stemma import MissingDependency  # noqa: PLC0415 - only where it goes wrong

        raise MissingDependency(f"{name} needs {_BROUGHT[missing]}") from error
    globals()[name] = face
    return face


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
