"""`CachedRetriever`: any retriever behind the cache, by its exact query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, Field, PrivateAttr

from stemma import Asked, Cache, Hit, Request, Served, frames
from stemma_langchain.codec import CODEC
from stemma_langchain.describing import is_plain
from stemma_langchain.fingerprint import describe, index_identity
from stemma_langchain.replies import mark
from stemma_langchain.runs import runs
from stemma_langchain.sources import documents_as_sources

__all__ = ["CachedRetriever"]


class CachedRetriever(BaseRetriever):
    """A retriever whose results are cached by query, index and every parameter of the search.

    The documents it gives, cached or not, are sources of whatever is built from them, with the
    identity of the index that vouches for them. A hit gives fresh copies each time, with the note
    of the hit under `metadata["stemma"]`; on a miss, documents are just what the retriever gave.

    Not stored are: empty results; documents with metadata that the codec has no form for; results
    for arguments without a stable key.

    Args:
        cache: The cache.
        retriever: The retriever, or any runnable that gives documents for a text.
        index: The identity of its index, for the key and for `recall(index=…)`; by default
            derived from the vector store (see `index_identity`). Never of its contents.
        source_key: Where a document's metadata names what it is a chunk of.
        k: How many documents to ask for, where the call does not say; by default as the retriever
            is set. At most so many are given back.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        owner: `"public"` if the documents belong to everyone; by default they are the tenant's.
        tags: Tags for the entries, and as with any retriever for its runs.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    cache: Cache = Field(exclude=True, repr=False)
    retriever: Runnable[str, list[Document]]
    index: str | None = None
    source_key: str = "source"
    k: int | None = Field(default=None, ge=1)
    life: float | None = Field(default=None, gt=0)
    owner: Literal["public"] | None = None

    _told: bool = PrivateAttr(default=False)

    def __init__(
        self, cache: Cache, retriever: Runnable[str, list[Document]], **named: Any
    ) -> None:
        if named.get("tags") is not None:
            named["tags"] = list(named["tags"])
        super().__init__(**{"cache": cache, "retriever": retriever, **named})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        marks, index = self._begin(run_manager.run_id)
        kwargs = self._searched_with(kwargs)

        def compute() -> list[Document]:
            config = {"callbacks": run_manager.get_child()}
            found = self.retriever.invoke(query, config, **kwargs)  # type: ignore[arg-type]
            return self._given(found, kwargs, marks, index)

        asked = self._asked(query, index, kwargs)
        return self._served(
            self.cache.retrievals.serve(asked, compute, admit=_refusal), marks, index
        )

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        marks, index = self._begin(run_manager.run_id)
        kwargs = self._searched_with(kwargs)

        async def compute() -> list[Document]:
            config = {"callbacks": run_manager.get_child()}
            found = await self.retriever.ainvoke(query, config, **kwargs)  # type: ignore[arg-type]
            return self._given(found, kwargs, marks, index)

        asked = self._asked(query, index, kwargs)
        return self._served(
            await self.cache.retrievals.aserve(asked, compute, admit=_refusal), marks, index
        )

    @property
    def stemma_identity(self) -> Any:
        """What a chain around it is told of it."""
        return {"retriever": self._settings(), "index": self.index, "k": self.k}

    def _settings(self) -> Any:
        """The retriever itself; where the index was named, its plain settings without the store."""
        if self.index is None:
            return describe(self.retriever)
        fields = getattr(type(self.retriever), "model_fields", {})
        values = {name: getattr(self.retriever, name) for name in fields if name not in _UNSEARCHED}
        plain = {name: value for name, value in values.items() if is_plain(value)}
        return describe([type(self.retriever).__qualname__, plain])

    def _begin(self, run: UUID) -> tuple[Mapping[int, int], str]:
        """The sequence numbers known before anything is read, and the index."""
        runs.noted(run)
        marks = frames.marks()
        return marks, self.index if self.index is not None else index_identity(self.retriever)

    def _searched_with(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        # Every retriever can be called with a `k`, whether it minds it or not; a function cannot.
        if self.k is None or not isinstance(self.retriever, BaseRetriever):
            return kwargs
        return {"k": self.k, **kwargs}

    def _asked(self, query: str, index: str, kwargs: dict[str, Any]) -> Asked:
        searched = {name: value for name, value in kwargs.items() if name not in _UNSEARCHED}
        return Asked(
            scope={
                "index": index,
                "parameters": {
                    "retriever": self._settings(),
                    "k": self.k,
                    "kwargs": describe(searched),
                },
            },
            request=Request(focus=query, meaning=False),
            codec=CODEC,
            prompt=(query,),
            life=self.life,
            tags=tuple(self.tags) if self.tags is not None else (),
        )

    def _given(
        self, found: list[Document], kwargs: dict[str, Any], marks: Mapping[int, int], index: str
    ) -> list[Document]:
        """What the retriever gave, noted as sources before anything is stored."""
        most = kwargs.get("k", self.k)
        documents = found[:most] if isinstance(most, int) and len(found) > most else found
        self._note(documents, marks, index)
        return documents

    def _served(self, served: Served, marks: Mapping[int, int], index: str) -> list[Document]:
        documents: list[Document] = served.value
        if isinstance(served.outcome, Hit):
            self._note(documents, marks, index)
            mark(documents, served.outcome.note())
        return documents

    def _note(self, documents: list[Document], marks: Mapping[int, int], index: str) -> None:
        frame = frames.current()
        if frame is not None:
            frame.read_sources(
                documents_as_sources(
                    documents,
                    source_key=self.source_key,
                    index=index,
                    owner=self.owner if self.owner is not None else "",
                ),
                marks,
            )
        if not self._told and any(document.id is None for document in documents):
            self._told = True
            self.cache.warn(
                "documents of a cached retriever have no ids; their content hashes stand for them, "
                "so a changed document cannot be told from a new one"
            )


_UNSEARCHED = frozenset({"run_id", "verbose"})
"""Arguments of `invoke` that are about the run, not the search."""


def _refusal(documents: Any) -> str | None:
    if not isinstance(documents, list) or not all(isinstance(d, Document) for d in documents):
        return "the retriever gave something else than a list of documents"
    return None if documents else "no documents were found"
