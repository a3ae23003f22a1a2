"""`CachedRetriever`: any retriever behind the cache; vector searches by meaning, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Annotated, Any
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr

from stemma import (
    Asked,
    Cache,
    Codec,
    Frame,
    Hit,
    Ranking,
    RankingCodec,
    Request,
    Search,
    Served,
    Source,
    UnkeyableValue,
    frames,
    owner_of,
)
from stemma_langchain.codec import CODEC
from stemma_langchain.describing import is_plain
from stemma_langchain.fingerprint import describe, index_identity, store_identities
from stemma_langchain.replies import mark
from stemma_langchain.runs import runs
from stemma_langchain.searching import Sought
from stemma_langchain.sources import documents_as_sources
from stemma_langchain.vector_stores import VectorSearch, vector_search

__all__ = ["CachedRetriever"]

_RANKINGS = RankingCodec(CODEC)


class CachedRetriever(BaseRetriever):
    """A retriever whose results are cached by query, index and every parameter of the search.

    The documents it gives, cached or not, are sources of whatever is built from them, with the
    identity of the index that vouches for them. A hit gives fresh copies each time, with the note
    of the hit under `metadata["stemma"]`; on a miss, documents are just what the retriever gave.

    Where the retriever is a vector store's own, searching by similarity (`store.as_retriever()`),
    more documents are asked for than are given, and their vectors kept. Then

    * one that asks for fewer is given the first of them, one that asks for more is a miss;
    * a reworded query is served from the list of a near one, if that is *proven* to hold its
      documents, or so likely that 999 in 1,000 places are right (*statistical*): see
      `stemma.policies.neighbours`. The note says which, under `"list"`. Proven means: as far as the
      list was what the index says it is, the nearest documents; an index that only approximates
      them (HNSW) may have missed some of them in the first place;
    * documents are read again by their ids at each hit, where the store can give them so. One that
      is gone, or has other contents or metadata, makes it a miss.

    Not stored are: empty results, unless `negative` is given; documents with metadata that the
    codec has no form for; results for arguments without a stable key.

    Args:
        cache: The cache.
        retriever: The retriever, or any runnable that gives documents for a text.
        index: The identity of its index, for the key and for `recall(index=…)`; by default
            derived from the vector store (see `index_identity`). Never of its contents.
        source_key: Where a document's metadata names what it is a chunk of.
        k: How many documents to ask for, where the call does not say; by default as the retriever
            is set. At most so many are given back.
        candidates: How many times more a vector store is asked for (at most 256 documents), so that
            the list may serve reworded queries; 1: only the same query hits.
        audited: The share of statistical hits that are searched all the same, 0 to 1: the rule is
            calibrated by them, index by index.
        negative: How long an empty result is kept, seconds; by default it is not.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        owner: `"public"` if the documents belong to everyone, `"pool:…"` if to the members of that
            pool; by default they are the tenant's, and nothing built on them is ever shared.
        tags: Tags for the entries, and as with any retriever for its runs.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    cache: Cache = Field(exclude=True, repr=False)
    retriever: Runnable[str, list[Document]]
    index: str | None = None
    source_key: str = "source"
    k: int | None = Field(default=None, ge=1)
    candidates: int = Field(default=8, ge=1)
    audited: float = Field(default=0.02, ge=0, le=1)
    negative: float | None = Field(default=None, gt=0)
    life: float | None = Field(default=None, gt=0)
    owner: Annotated[str, BeforeValidator(owner_of)] = ""

    _told: set[str] = PrivateAttr(default_factory=set)

    def __init__(
        self, cache: Cache, retriever: Runnable[str, list[Document]], **named: Any
    ) -> None:
        if named.get("tags") is not None:
            named["tags"] = list(named["tags"])
        super().__init__(**{"cache": cache, "retriever": retriever, **named})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        call = self._begin(query, run_manager.run_id, kwargs)

        def compute() -> Any:
            if call.sought is not None:
                return call.found(call.sought.search())
            config = {"callbacks": run_manager.get_child()}
            given = self.retriever.invoke(query, config, **call.kwargs)  # type: ignore[arg-type]
            return call.given(given)

        return call.served(
            self.cache.retrievals.serve(
                call.asked, compute, admit=self._refusal, lasting=self._lasting
            )
        )

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        call = self._begin(query, run_manager.run_id, kwargs)

        async def compute() -> Any:
            if call.sought is not None:
                return call.found(await call.sought.asearch())
            config = {"callbacks": run_manager.get_child()}
            given = await self.retriever.ainvoke(query, config, **call.kwargs)  # type: ignore[arg-type]
            return call.given(given)

        return call.served(
            await self.cache.retrievals.aserve(
                call.asked, compute, admit=self._refusal, lasting=self._lasting
            )
        )

    @property
    def stemma_identity(self) -> Any:
        """What a chain around it is told of it."""
        return {"retriever": self._settings(), "index": self.index, "k": self.k}

    def index_identity(self) -> str:
        """The identity of its index, as `recall(index=…)` and `documents_changed` take it."""
        return self.index if self.index is not None else index_identity(self.retriever)

    def _settings(self) -> Any:
        """The retriever itself; where the index was named, its plain settings without the store."""
        if self.index is None:
            return describe(self.retriever)
        fields = getattr(type(self.retriever), "model_fields", {})
        values = {name: getattr(self.retriever, name) for name in fields if name not in _UNSEARCHED}
        plain = {name: value for name, value in values.items() if is_plain(value)}
        return describe([type(self.retriever).__qualname__, plain])

    def _begin(self, query: str, run: UUID, kwargs: dict[str, Any]) -> _Call:
        """One call, with the sequence numbers known before anything is read."""
        runs.noted(run)
        try:
            index = self.index_identity()
        except UnkeyableValue:  # nor has the question a key, which is told where it is asked
            index = ""
        call = _Call(self, frames.marks(), index)
        searched = {name: value for name, value in kwargs.items() if name not in _UNSEARCHED}
        search = vector_search(self.retriever)
        said = self.k if search is None or self.k is not None else search.k
        k = _count(kwargs.get("k", said))
        if search is None or k is None:  # the store may know what to do with another kind of k
            call.search_as_it_does(query, kwargs, searched)
        else:
            searched.pop("k", None)
            call.search_by_vector(query, search, k, searched)
        return call

    def _refusal(self, found: Any) -> str | None:
        if isinstance(found, Ranking):
            empty = len(found) == 0
        elif not isinstance(found, list) or not all(isinstance(one, Document) for one in found):
            return "the retriever gave something else than a list of documents"
        else:
            empty = not found
        return "no documents were found" if empty and self.negative is None else None

    def _lasting(self, found: Any) -> float | None:
        return self.negative if len(found) == 0 else None

    def tell_once(self, what: str) -> None:
        """Warn of something, the first time only."""
        if what not in self._told:
            self._told.add(what)
            self.cache.warn(what)


class _Call:
    """One call of a cached retriever.

    Args:
        face: The retriever.
        marks: The sequence numbers known before anything was read.
        index: The index's identity.
    """

    asked: Asked

    def __init__(self, face: CachedRetriever, marks: Mapping[int, int], index: str) -> None:
        self._face = face
        self._marks = marks
        self._index = index
        self.sought: Sought | None = None
        self._around: tuple[str, ...] = ()
        self.kwargs: dict[str, Any] = {}
        self._most: int | None = None

    def search_as_it_does(
        self, query: str, kwargs: dict[str, Any], searched: Mapping[str, Any]
    ) -> None:
        """The retriever will be called; only the same call hits."""
        face = self._face
        self.kwargs, self._most = kwargs, face.k
        if type(face.retriever) is not VectorStoreRetriever:
            with suppress(UnkeyableValue):  # of a store that cannot be told, nothing is told
                self._around = store_identities(face.retriever)
        # Every retriever can be called with a `k`, whether it minds it or not; a function cannot.
        if face.k is not None and isinstance(face.retriever, BaseRetriever):
            self.kwargs = {"k": face.k, **kwargs}
            searched = {"k": face.k, **searched}
        most = self.kwargs.get("k", face.k)
        self._most = _count(most)
        parameters = {
            "retriever": face._settings(),  # noqa: SLF001 - the other half of one class
            "k": face.k,
            "kwargs": describe(searched),
        }
        self.asked = self._ask(query, parameters, CODEC, None)

    def search_by_vector(
        self, query: str, search: VectorSearch, k: int, searched: Mapping[str, Any]
    ) -> None:
        """The vector store will be searched; lists found before may serve, whatever their `k`."""
        face = self._face
        self.sought = Sought(
            search,
            query,
            settings=searched,
            k=k,
            times=face.candidates,
            sources=self._as_sources,
            note=self._note,
        )
        parameters = {
            "store": describe(search.store if face.index is None else search.embeddings),
            "settings": describe({**search.settings, **searched}),
        }
        meaning = face.candidates > 1 and query.strip() != ""
        wanted = Search(searcher=self.sought, k=k, meaning=meaning, audited=face.audited)
        self._most = k
        self.asked = self._ask(query, parameters, _RANKINGS, wanted)

    def _ask(self, query: str, parameters: Any, codec: Codec, search: Search | None) -> Asked:
        face = self._face
        return Asked(
            scope={"index": self._index, "parameters": parameters},
            request=Request(focus=query, meaning=False),
            codec=codec,
            prompt=(query,),
            life=face.life,
            tags=tuple(face.tags) if face.tags is not None else (),
            search=search,
        )

    def given(self, found: list[Document]) -> list[Document]:
        """What the retriever gave, noted as sources before anything is stored."""
        most = self._most
        documents = found[:most] if most is not None and len(found) > most else found
        frame = frames.current()
        self._note(documents, frame)
        if frame is not None:
            # What it gives need not be what its stores hold, nor they be the index it goes by.
            for index in self._around:
                frame.read_unstored(index, self._marks)
        return documents

    def found(self, ranking: Ranking) -> Ranking:
        """What a search gave, noted likewise."""
        self._note(_documents(ranking, self._most), frames.current())
        if self.sought is not None and self.sought.odd is not None:
            self._face.tell_once(self.sought.odd)
        return ranking

    def served(self, served: Served) -> list[Document]:
        """The documents of an outcome; of a hit, with its note."""
        value = served.value
        documents = _documents(value, self._most) if isinstance(value, Ranking) else value
        if isinstance(served.outcome, Hit):
            if self.sought is None:
                self._note(documents, frames.current())
            mark(documents, served.outcome.note())
        return list(documents)

    def _as_sources(self, documents: Sequence[Document]) -> list[tuple[Source, str]]:
        face = self._face
        return documents_as_sources(
            documents,
            source_key=face.source_key,
            index=self._index,
            owner=face.owner,
        )

    def _note(self, documents: Sequence[Document], frame: Frame | None) -> None:
        if frame is not None:
            frame.read_sources(self._as_sources(documents), self._marks)
        if any(document.id is None for document in documents):
            self._face.tell_once(
                "documents of a cached retriever have no ids; their content hashes stand for them, "
                "so a changed document cannot be told from a new one"
            )


def _count(k: Any) -> int | None:
    """`k` as a number of documents, from 1; `None` if it is none."""
    number = int(k) if isinstance(k, Integral) else 0
    return number if number >= 1 and k is not True else None


def _documents(ranking: Ranking, k: int | None) -> list[Document]:
    documents = ranking.documents
    return [] if documents is None else list(documents[:k])


_UNSEARCHED = frozenset({"run_id", "verbose"})
"""Arguments of `invoke` that are about the run, not the search."""
