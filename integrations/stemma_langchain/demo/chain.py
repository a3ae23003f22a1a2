"""The demo's RAG chain: an ordinary LangChain chain with Stemma at every node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from stemma import Cache
from stemma.embedders.local import LocalEmbedder
from stemma.rerankers import MaxSimReranker
from stemma_langchain import (
    CachedChain,
    CachedEmbeddings,
    CachedReranker,
    CachedRetriever,
    LLMCache,
    LocalEmbeddings,
)
from stemma_langchain.demo.server import Endpoint, chat_model

__all__ = ["Rag", "build", "index"]

BATCH = 32
CANDIDATES = 8
"""How many chunks the retriever gives."""
CHUNKS = 2
"""How many of them the reranker keeps for the model."""

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer the question in one short sentence, from the context alone."),
        ("human", "Context:\n{context}\n\nQuestion: {question}"),
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rag:
    """The chain and its parts.

    Args:
        store: The user's own vector store, an embedded Chroma collection.
        embeddings: The local model, cached.
        found: What the model is given for a question: retrieved, then reranked.
        nodes: The chain by its question, with each node cached, but not the answer.
        chain: The whole: a hit on the question skips everything behind it.
    """

    store: Chroma
    embeddings: CachedEmbeddings
    found: Runnable[str, list[Document]]
    nodes: Runnable[str, str]
    chain: Runnable[dict[str, Any], str]


def build(cache: Cache, folder: Path, embedder: LocalEmbedder, endpoint: Endpoint) -> Rag:
    """Put the chain together over an empty collection in a folder."""
    embeddings = CachedEmbeddings(cache, LocalEmbeddings(embedder))
    client = chromadb.PersistentClient(
        path=str(folder), settings=Settings(anonymized_telemetry=False)
    )
    store = Chroma(
        collection_name="stemma-demo",
        embedding_function=embeddings,
        client=client,
        collection_configuration={"hnsw": {"space": "cosine"}},
    )
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": CANDIDATES}))
    reranker = CachedReranker(cache, MaxSimReranker(embedder), top_n=CHUNKS)
    found = {"query": RunnablePassthrough(), "documents": retriever} | _stage(reranker)
    model = chat_model(endpoint, cache=LLMCache(cache))
    context = itemgetter("question") | found | _joined
    chain = RunnablePassthrough.assign(context=context) | PROMPT | model | StrOutputParser()
    return Rag(
        store=store,
        embeddings=embeddings,
        found=found,
        nodes={"question": RunnablePassthrough()} | chain,
        chain=CachedChain(cache, chain, focus="question"),
    )


def _stage(reranker: CachedReranker) -> Runnable[dict[str, Any], list[Document]]:
    return RunnableLambda(
        lambda asked: reranker.compress_documents(asked["documents"], asked["query"]),
        name="rerank",
    )


def _joined(documents: Sequence[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def index(store: Chroma, chunks: Sequence[Document], advance: Callable[[int], None]) -> None:
    """Embed the chunks and put them into the store, telling how many at a time."""
    for start in range(0, len(chunks), BATCH):
        batch = list(chunks[start : start + BATCH])
        store.add_documents(batch, ids=[str(chunk.id) for chunk in batch])
        advance(len(batch))
