"""A retrieval chain, embed, search and rerank: with every node behind the cache, and without."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from evals.rag.counted import CountedReranker
from evals.rag.exact_store import ExactStore, cached_retriever
from evals.rag.lists import SEARCHED
from stemma import Cache
from stemma_langchain import CachedReranker

__all__ = ["Answer", "Chain", "cached", "uncached"]

Ranked = Callable[[str, Sequence[Document]], Sequence[Document]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a chain gave for one text.

    Args:
        found: Ids of the documents as they were retrieved.
        ranked: The same after the reranker.
        tier: Of the retrieval's hit, `exact` or `semantic`; empty where the index was searched.
        list: What was said of the list (see `evals.rag.lists`).
        pairs: The text with the text of each document that was to be scored.
        seconds: What the chain took.
    """

    found: Sequence[str]
    ranked: Sequence[str]
    tier: str
    list: str
    pairs: Sequence[tuple[str, str]]
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """Retriever and reranker in turn.

    Args:
        retriever: What embeds and searches.
        ranked: Puts documents into the reranker's order for a query.
    """

    retriever: BaseRetriever
    ranked: Ranked

    def ask(self, text: str) -> Answer:
        """Run it, and look at what it gave."""
        began = time.perf_counter()
        found = self.retriever.invoke(text)
        ranked = self.ranked(text, found)
        seconds = time.perf_counter() - began
        note = found[0].metadata.get("stemma", {}) if found else {}
        return Answer(
            found=_ids(found),
            ranked=_ids(ranked),
            tier=note.get("tier", ""),
            list=note.get("list", SEARCHED),
            pairs=[(text, document.page_content) for document in found],
            seconds=seconds,
        )


def uncached(store: ExactStore, reranker: CountedReranker, k: int) -> Chain:
    """The chain without a cache."""

    def ranked(query: str, documents: Sequence[Document]) -> Sequence[Document]:
        scores = reranker.score(query, [document.page_content for document in documents])
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        return [documents[place] for place in order]

    return Chain(retriever=store.as_retriever(search_kwargs={"k": k}), ranked=ranked)


def cached(cache: Cache, store: ExactStore, reranker: CountedReranker, k: int) -> Chain:
    """The chain with its retriever and reranker cached; the store's embedding model is its own."""
    compressor = CachedReranker(cache, reranker)
    return Chain(
        retriever=cached_retriever(cache, store, k),
        ranked=lambda query, documents: compressor.compress_documents(documents, query),
    )


def _ids(documents: Sequence[Document]) -> list[str]:
    return [str(document.id) for document in documents]
