"""A manual in a vector index of LlamaIndex, refreshed by it, with the cache's hook and without."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
from llama_index.core.vector_stores.types import VectorStoreQueryResult
from pydantic import PrivateAttr

from evals.rag.exact_store import CANDIDATES
from evals.rag.updating import Opened, Sections, Way, answer_from, shown
from stemma import Cache, Embedder
from stemma_llamaindex import (
    CachedLLM,
    CachedQueryEngine,
    CachedRetriever,
    WatchedVectorStore,
)

__all__ = ["WAYS"]


class Known(BaseEmbedding):
    """An embedding model that looks vectors up."""

    _embedder: Any = PrivateAttr()

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(model_name=embedder.revision)
        self._embedder = embedder

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embeddings([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed(texts).tolist()
        return vectors


class Counting(SimpleVectorStore):
    """LlamaIndex's own store, which compares with every vector; it counts its searches."""

    _searches: int = PrivateAttr(default=0)

    @property
    def searches(self) -> int:
        """How often it was searched."""
        return self._searches

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search."""
        self._searches += 1
        return super().query(query, **kwargs)


class CitingLLM(CustomLLM):
    """Answers with the contents that it was shown, and counts its calls."""

    _calls: int = PrivateAttr(default=0)

    @property
    def metadata(self) -> LLMMetadata:
        """Its name."""
        return LLMMetadata(model_name="citing")

    @property
    def calls(self) -> int:
        """How often it was called."""
        return self._calls

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        """The answer."""
        del formatted
        self._calls += 1
        return CompletionResponse(text=answer_from(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """The same in one piece."""
        whole = self.complete(prompt, formatted, **kwargs)
        yield whole.model_copy(update={"delta": whole.text})


class Answering(CustomQueryEngine):
    """Retrieves, and asks the model with what was found."""

    retriever: Any
    llm: Any

    def custom_query(self, query_str: str) -> Response:
        """Answer a question."""
        found = self.retriever.retrieve(query_str)
        prompt = f"{shown(one.text for one in found)}\n\n{query_str}"
        return Response(self.llm.complete(prompt).text)


def _refreshed(cache: Cache, embedder: Embedder, k: int, *, watched: bool = True) -> Opened:
    """By the index itself: what is new or changed is refreshed, what is gone is deleted."""
    counting, model = Counting(), CitingLLM()
    store = WatchedVectorStore(cache, counting) if watched else counting
    whole = SentenceSplitter(chunk_size=10**6, chunk_overlap=0, tokenizer=str.split)
    index = VectorStoreIndex(
        [],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=Known(embedder),
        transformations=[whole],  # a section is one node, however long
    )
    engines: list[CachedQueryEngine] = []

    def show(sections: Sections) -> None:
        index.refresh_ref_docs(
            [Document(text=one.text, id_=name) for name, one in sections.items()]
        )
        for name in list(index.ref_doc_info):
            if name not in sections:
                index.delete_ref_doc(name, delete_from_docstore=True)
        # A retriever searches among the nodes that the index had when it was made.
        retriever = CachedRetriever(
            cache, index.as_retriever(similarity_top_k=k), candidates=CANDIDATES
        )
        answering = Answering(retriever=retriever, llm=CachedLLM(cache, model))
        engines[:] = [CachedQueryEngine(cache, answering)]

    return Opened(
        show=show,
        ask=lambda question: str(engines[0].query(question)),
        work=lambda: model.calls + counting.searches,
    )


WAYS: Mapping[str, Way] = {
    "LlamaIndex without": Way(opened=partial(_refreshed, watched=False), told=False),
    "LlamaIndex's WatchedVectorStore, refresh and delete": Way(opened=_refreshed),
}
"""By name; without any hook first."""
