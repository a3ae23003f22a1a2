"""Ways in which documents reach an index and are updated: with the cache's hooks, and without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, RecordManager, index
from langchain_core.vectorstores import VectorStore

from evals.rag.exact_store import ExactStore
from evals.rag.sections import Section
from stemma import Cache
from stemma_langchain import WatchedRecordManager, WatchedVectorStore

__all__ = ["WAYS", "Opened", "Way"]

Sections = Mapping[str, Section]


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """An index that can be filled and brought up to date.

    Args:
        searched: The store that the retriever is made of.
        show: Makes the index hold these sections and no others.
    """

    searched: VectorStore
    show: Callable[[Sections], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way.

    Args:
        opened: Makes it of a cache and a store.
        told: Whether the cache is told of the changes.
        precise: Whether it is told the vectors of new documents.
    """

    opened: Callable[[Cache, ExactStore], Opened]
    told: bool = True
    precise: bool = True


def _indexing(store: VectorStore, manager: RecordManager) -> Callable[[Sections], None]:
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


def _indexing_watched(cache: Cache, store: ExactStore) -> Opened:
    watched = WatchedVectorStore(cache, store)
    return Opened(searched=watched, show=_indexing(watched, InMemoryRecordManager("manual")))


def _indexing_recorded(cache: Cache, store: ExactStore) -> Opened:
    manager = WatchedRecordManager(cache, InMemoryRecordManager("manual"), store)
    return Opened(searched=store, show=_indexing(store, manager))


def _indexing_alone(cache: Cache, store: ExactStore) -> Opened:  # noqa: ARG001 - it is not told
    return Opened(searched=store, show=_indexing(store, InMemoryRecordManager("manual")))


def _own_ids(cache: Cache, store: ExactStore) -> Opened:
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

    return Opened(searched=watched, show=show)


WAYS: Mapping[str, Way] = {
    "without": Way(opened=_indexing_alone, told=False),
    "WatchedVectorStore, add and delete": Way(opened=_own_ids),
    "WatchedVectorStore, indexing API": Way(opened=_indexing_watched),
    "WatchedRecordManager, indexing API": Way(opened=_indexing_recorded, precise=False),
}
"""By name; without any hook first."""
