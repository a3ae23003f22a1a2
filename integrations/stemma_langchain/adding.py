"""Documents on their way into a vector store: what of it is news to the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from stemma import Change, of_length_one
from stemma_langchain.vector_stores import by_cosine, documents_by_id, stored_vectors

__all__ = ["Adding"]


class Adding:
    """Documents on their way into a watched store: what is there of them, before and after.

    Args:
        store: The store.
        documents: The documents.
        ids: Their ids, where they are given.
    """

    def __init__(
        self,
        store: VectorStore,
        documents: Sequence[Document],
        ids: Sequence[str | None] | None,
    ) -> None:
        self._store = store
        self._documents = documents
        self._ids = [] if ids is None else list(ids)
        self._before = self._held(self._ids)

    def half(self) -> Change:
        """What is told where it cannot be known what became of them."""
        return Change.unsure(self._ids, len(self._documents))

    def told(self, ids: Sequence[str] | None) -> Change:
        """What the adding changed, by what the store gave before and gives now.

        Args:
            ids: The ids that the store has given them.
        """
        if ids is None or len(ids) != len(self._documents):
            return self.half()
        now = self._held(ids)
        if now is None or len(now) < len(set(ids)):
            given = zip(ids, self._documents, strict=True)
            now = {name: one.model_copy(update={"id": name}) for name, one in given}
        before = self._before
        fresh = [one for name, one in now.items() if before is None or before.get(name) != one]
        changed = [str(one.id) for one in fresh if before is None or one.id in before]
        return Change(added=self._vectors(fresh), changed=changed)

    def _held(self, ids: Sequence[str | None]) -> dict[str, Document] | None:
        """The documents that the store has under these ids; `None` where it cannot say."""
        named = [one for one in ids if one is not None]
        if not named:
            return {}
        try:
            return documents_by_id(self._store, named)
        except Exception:  # asked for the cache's sake: what was asked for goes on
            return None

    def _vectors(self, documents: Sequence[Document]) -> list[Any]:
        """The vectors of documents that are in the store now; `None` for what has none.

        Or has one of which it is not known how the store compares it.
        """
        embeddings = self._store.embeddings
        if not documents or embeddings is None:
            return [None] * len(documents)
        try:
            given = stored_vectors(self._store, documents, embeddings)
            cosine = by_cosine(self._store)
            return [one if cosine or of_length_one(one) else None for one in given]
        except Exception:
            return [None] * len(documents)
