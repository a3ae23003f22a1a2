"""A manual in a vector store of LangChain, updated through each hook that there is, and none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, RecordManager, index
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import VectorStore
from pydantic import PrivateAttr

from evals.rag.exact_store import ExactStore, cached_retriever
from evals.rag.updating import Opened, Sections, Way, answer_from, shown
from stemma import Cache, Embedder
from stemma_langchain import (
    CachedChain,
    LLMCache,
    LocalEmbeddings,
    WatchedRecordManager,
    WatchedVectorStore,
)

__all__ = ["WAYS"]

Show = Callable[[Sections], None]


class Citing(BaseChatModel):
    """Answers with the contents that it was shown, and counts its calls."""

    _calls: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "citing"

    @property
    def calls(self) -> int:
        """How often it was called."""
        return self._calls

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: Any = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        self._calls += 1
        said = AIMessage(answer_from(messages[-1].text))
        return ChatResult(generations=[ChatGeneration(message=said)])


def _opened(
    hooked: Callable[[Cache, ExactStore], tuple[VectorStore, Show]],
) -> Callable[[Cache, Embedder, int], Opened]:
    """A way of a hook, which gives the store that is searched, and what updates it."""

    def opened(cache: Cache, embedder: Embedder, k: int) -> Opened:
        store = ExactStore(LocalEmbeddings(embedder))
        searched, show = hooked(cache, store)
        model = Citing(cache=LLMCache(cache))
        chain = _chain(cache, searched, model, k)
        return Opened(
            show=show,
            ask=lambda question: str(chain.invoke(question).text),
            work=lambda: model.calls + store.searches,
        )

    return opened


def _chain(cache: Cache, searched: VectorStore, model: Citing, k: int) -> CachedChain:
    """Retriever, model and the whole answer, all cached."""
    retriever = cached_retriever(cache, searched, k)
    gathered = RunnableParallel(context=retriever | _context, question=RunnablePassthrough())
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    return CachedChain(cache, gathered | prompt | model)


def _context(documents: Sequence[Document]) -> str:
    return shown(document.page_content for document in documents)


def _indexing(store: VectorStore, manager: RecordManager) -> Show:
    """LangChain's indexing API, which gives ids by content and deletes what is gone."""
    manager.create_schema()

    def show(sections: Sections) -> None:
        documents = [
            Document(one.text, metadata={"source": one.path, "section": name})
            for name, one in sections.items()
        ]
        index(
            documents,
            manager,
            store,
            cleanup="full",
            source_id_key="source",
            key_encoder="blake2b",
        )

    return show


def _indexing_watched(cache: Cache, store: ExactStore) -> tuple[VectorStore, Show]:
    watched = WatchedVectorStore(cache, store)
    return watched, _indexing(watched, InMemoryRecordManager("manual"))


def _indexing_recorded(cache: Cache, store: ExactStore) -> tuple[VectorStore, Show]:
    manager = WatchedRecordManager(cache, InMemoryRecordManager("manual"), store)
    return store, _indexing(store, manager)


def _indexing_alone(_: Cache, store: ExactStore) -> tuple[VectorStore, Show]:
    return store, _indexing(store, InMemoryRecordManager("manual"))


def _own_ids(cache: Cache, store: ExactStore) -> tuple[VectorStore, Show]:
    """Sections under ids of their own: a changed one replaces the former."""
    watched = WatchedVectorStore(cache, store)

    def show(sections: Sections) -> None:
        watched.add_documents(
            [
                Document(one.text, id=name, metadata={"source": one.path})
                for name, one in sections.items()
            ]
        )
        gone = [name for name in store.store if name not in sections]
        if gone:
            watched.delete(gone)

    return watched, show


WAYS: Mapping[str, Way] = {
    "without": Way(opened=_opened(_indexing_alone), told=False),
    "WatchedVectorStore, add and delete": Way(opened=_opened(_own_ids)),
    "WatchedVectorStore, indexing API": Way(opened=_opened(_indexing_watched)),
    "WatchedRecordManager, indexing API": Way(opened=_opened(_indexing_recorded), precise=False),
}
"""By name; without any hook first."""
