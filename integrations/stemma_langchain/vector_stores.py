"""What can be known of LangChain's vector stores: how they search, what they hold."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore, VectorStoreRetriever

from stemma_langchain.kinds import LANGCHAIN, Watching, is_from

__all__ = [
    "VectorSearch",
    "astored_vectors",
    "by_cosine",
    "documents_by_id",
    "is_chroma",
    "stored_vectors",
    "vector_search",
]

_K = 4
"""How many documents LangChain asks for where nobody says."""

_KNOWN = frozenset({"Chroma", "InMemoryVectorStore"})
_SEARCHES = (
    "similarity_search",
    "asimilarity_search",
    "similarity_search_by_vector",
    "asimilarity_search_by_vector",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorSearch:
    """A retriever that searches a vector store by similarity.

    Args:
        store: The vector store.
        embeddings: What embeds its queries.
        settings: The arguments of each of its searches, without `k`.
        k: How many documents it asks for; anything that it was set to.
        rereads: Whether documents can be read by their ids.
        plain: Whether its search for a text is known to be that for the text's vector and nothing
            else, and to give fewer than were asked for only where there are no more.
        cosine: Whether it is known to rank by cosine similarity. If not, it may rank by products
            or distances, which is the same for vectors of length 1 only.
    """

    store: VectorStore
    embeddings: Embeddings
    settings: Mapping[str, Any] = field(repr=False)
    k: Any
    rereads: bool
    plain: bool
    cosine: bool


def vector_search(retriever: Runnable[str, list[Document]]) -> VectorSearch | None:
    """The vector search that a retriever makes, or `None` where it does something else.

    A class derived from LangChain's may do anything, so only that one itself is known.
    """
    if type(retriever) is not VectorStoreRetriever or retriever.search_type != "similarity":
        return None
    store, settings = retriever.vectorstore, dict(retriever.search_kwargs)
    store = store.watched if isinstance(store, Watching) else store
    embeddings, k = store.embeddings, settings.pop("k", _K)
    by_vector = type(store).similarity_search_by_vector
    if embeddings is None or by_vector is VectorStore.similarity_search_by_vector:
        return None
    return VectorSearch(
        store=store,
        embeddings=embeddings,
        settings=settings,
        k=k,
        rereads=type(store).get_by_ids is not VectorStore.get_by_ids,
        plain=_plain(type(store)),
        cosine=by_cosine(store),
    )


def _plain(kind: type) -> bool:
    """Whether a class searches as a known one does; one that is derived may have its own ways."""
    searching = {_defining(kind, name) for name in _SEARCHES} - {VectorStore}
    return len(searching) == 1 and all(_known(one) for one in searching)


def _known(kind: type) -> bool:
    return kind.__name__ in _KNOWN and is_from(kind, LANGCHAIN)


def _defining(kind: type, name: str) -> type:
    return next(base for base in kind.__mro__ if name in vars(base))


def by_cosine(store: VectorStore) -> bool:
    """Whether a store is known to rank by cosine similarity."""
    if not _plain(type(store)):
        return False
    if not is_chroma(store):
        return True
    told = getattr(getattr(store, "_collection", None), "configuration", None)
    settings = told.values() if isinstance(told, Mapping) else ()
    return any(isinstance(one, Mapping) and one.get("space") == "cosine" for one in settings)


def stored_vectors(
    store: VectorStore, documents: Sequence[Document], embeddings: Embeddings
) -> Sequence[Any]:
    """The vectors of documents: those that the store holds, where it tells; else embedded again.

    Args:
        store: The store that gave the documents.
        documents: The documents.
        embeddings: What embeds them.
    """
    held = _held(store, documents)
    return embeddings.embed_documents(_texts(documents)) if held is None else held


async def astored_vectors(
    store: VectorStore, documents: Sequence[Document], embeddings: Embeddings
) -> Sequence[Any]:
    """As `stored_vectors`."""
    held = await asyncio.to_thread(_held, store, documents)
    return await embeddings.aembed_documents(_texts(documents)) if held is None else held


def _held(store: VectorStore, documents: Sequence[Document]) -> Sequence[Any] | None:
    """The vectors that a store holds, where it tells those of all the documents."""
    ids = [document.id for document in documents if document.id is not None]
    if len(ids) < len(documents):
        return None
    if isinstance(store, InMemoryVectorStore):
        held: Mapping[str, Any] = {
            one: store.store[one]["vector"] for one in ids if one in store.store
        }
    else:
        held = _told(store, ids)
    return [held[one] for one in ids] if all(one in held for one in ids) else None


def _texts(documents: Sequence[Document]) -> list[str]:
    return [document.page_content for document in documents]


def documents_by_id(store: Any, ids: Sequence[str]) -> dict[str, Document]:
    """Those of the documents that a store has.

    Args:
        store: The store.
        ids: The documents' ids.

    Raises:
        NotImplementedError: The store cannot give documents by their ids.
    """
    if not is_chroma(store):
        found = store.get_by_ids(list(ids))
        return {document.id: document for document in found if document.id is not None}
    # LangChain's method for Chroma fails where a document has no metadata.
    told = store.get(ids=list(ids), include=["documents", "metadatas"])
    parts = zip(told["ids"], told["documents"], told["metadatas"], strict=True)
    return {
        name: Document(id=name, page_content=text, metadata={} if said is None else dict(said))
        for name, text, said in parts
        if text is not None
    }


def is_chroma(store: Any) -> bool:
    """Whether a store is one of Chroma's."""
    return any(kind.__name__ == "Chroma" for kind in type(store).__mro__)


def _told(store: Any, ids: list[str]) -> Mapping[str, Any]:
    """The vectors that a Chroma collection holds; of other stores, none."""
    if not is_chroma(store):
        return {}
    told = store.get(ids=ids, include=["embeddings"])
    vectors = told.get("embeddings")
    return {} if vectors is None else dict(zip(told["ids"], vectors, strict=True))
