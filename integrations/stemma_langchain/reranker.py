"""`CachedReranker`: any reranker behind the cache, one score a query and text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, PrivateAttr

from stemma import Cache, Ranked, Reranking, UnkeyableValue, UsageError, digest, frames
from stemma.rerankers import Foreign, PairScores, Reranker, as_reranker
from stemma_langchain.codec import NOTE, document_text
from stemma_langchain.fingerprint import describe, describe_chain
from stemma_langchain.reranking import Compressing, uncut, with_metadata, within_run
from stemma_langchain.runs import runs
from stemma_langchain.sources import documents_as_sources

__all__ = ["CachedReranker"]


class CachedReranker(BaseDocumentCompressor):
    """A reranker whose scores are cached by query, content and revision.

    What scores pair by pair is asked once for the pairs that are missing, each text once; the
    scores stay with their documents whatever the order of the list, and `top_n` may change freely.
    Of what scores a list as a whole, as language models do, the whole list is cached: the same
    texts in the same order.

    Documents come out as copies of those that went in, best first, with their own ids, rights and
    metadata, and the score under `score_key`. A hit says so under `metadata["stemma"]`, with
    `"list": "whole"` where the list was cached as a whole. What comes out are sources of whatever
    is built from it.

    Not stored are: scores that are not finite numbers (they rank last); empty lists; what a
    compressor gives that it was not given, such as extracts.

    Args:
        cache: The cache.
        inner: What reranks: whatever `stemma.rerankers.as_reranker` takes (a Stemma reranker, a
            cross-encoder, a function of a query and texts), or a document compressor.
        model: Its name and revision, for the key and for `recall(model=…)`; by default derived.
        pairwise: Whether a document compressor scores pair by pair, and puts the score of each
            document under `score_key`. By default only LangChain's `CrossEncoderReranker` is
            known to.
        top_n: How many documents to give back at most, where the call does not say; by default
            as the compressor is set, else all.
        score_key: Where in the metadata the score is.
        text: What of a document the reranker reads; by default its text alone.
        source_key: Where a document's metadata names what it is a chunk of.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    cache: Cache = Field(exclude=True, repr=False)
    inner: Any
    model: str | None = Field(default=None, min_length=1)
    pairwise: bool | None = None
    top_n: int | None = Field(default=None, ge=1)
    score_key: str = "relevance_score"
    text: Callable[[Document], str] = document_text
    source_key: str = "source"
    life: float | None = Field(default=None, gt=0)

    _adapted: tuple[Any, Reranker] | None = PrivateAttr(default=None)

    def __init__(self, cache: Cache, inner: Any, **named: Any) -> None:
        super().__init__(**{"cache": cache, "inner": inner, **named})
        if self.pairwise is False and not isinstance(inner, BaseDocumentCompressor):
            raise UsageError("pairwise=False is for document compressors; this scores pairs")
        self._reranker()

    def compress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks = None,
        *,
        top_n: int | None = None,
    ) -> list[Document]:
        """The documents, best first; at most `top_n` of them."""
        given, marks = list(documents), self._begin(callbacks)
        if not given:
            return []
        with within_run(callbacks):
            order = self.cache.reranks.order(self._asked(given, query, callbacks))
            return self._noted(self._ordered(given, order, top_n), marks)

    async def acompress_documents(
        self,
        documents: Sequence[Document],
        query: str,
        callbacks: Callbacks = None,
        *,
        top_n: int | None = None,
    ) -> list[Document]:
        """As `compress_documents`."""
        given, marks = list(documents), self._begin(callbacks)
        if not given:
            return []
        with within_run(callbacks):
            order = await self.cache.reranks.aorder(self._asked(given, query, callbacks))
            return self._noted(self._ordered(given, order, top_n), marks)

    @property
    def stemma_identity(self) -> Any:
        """What a chain around it is told of it."""
        reranker = self._reranker()
        inner = reranker.revision if reranker is not None else self._named()
        return {
            "reranker": inner,
            "pairwise": self.pairwise,
            "top_n": self._most(None),
            "score_key": self.score_key,
            "text": None if self.text is document_text else describe(self.text),
        }

    def _begin(self, callbacks: Callbacks) -> Mapping[int, int]:
        """The sequence numbers known before anything is read; what comes out is noted here."""
        run = getattr(callbacks, "parent_run_id", None)
        if run is not None:
            runs.noted(run)
        return frames.marks()

    def _asked(self, given: list[Document], query: str, callbacks: Callbacks) -> Reranking:
        texts = [self.text(one) for one in given]
        reranker = self._reranker()
        if reranker is not None:
            return Reranking(query=query, texts=texts, reranker=reranker, life=self.life)
        whole = Compressing(self.inner, query, given, callbacks=callbacks, score_key=self.score_key)
        revision = self._revision() if self.pairwise else None
        pairs = None if revision is None else PairScores(whole, texts, revision=revision)
        return Reranking(
            query=query,
            texts=texts,
            reranker=pairs,
            whole=whole,
            named=self._named,
            life=self.life,
        )

    def _reranker(self) -> Reranker | None:
        """What is known to score pairs, as it is now: a compressor's model may be replaced."""
        scores = self.inner
        if isinstance(scores, BaseDocumentCompressor):
            sure = self.pairwise is True
            scores = None if self.pairwise is False else _cross_encoder(scores, sure=sure)
        if scores is None:
            return None
        if self._adapted is None or self._adapted[0] is not scores:
            self._adapted = scores, as_reranker(scores, revision=self.model)
        return self._adapted[1]

    def _revision(self) -> str | None:
        """What names a compressor that scores pairs; `None`: nor has the whole list a key."""
        if self.model is not None:
            return self.model
        try:
            said = digest("reranker/1", describe(uncut(self.inner, 0)))
        except UnkeyableValue:
            return None
        return f"{type(self.inner).__name__}@{said[:12]}"

    def _named(self) -> tuple[str, Any]:
        """The compressor's name, and what else shapes its order."""
        if self.model is not None:
            return self.model, getattr(self.inner, "top_n", None)
        described = describe_chain(self.inner)
        model = described.model if described.model != "" else type(self.inner).__name__
        return model, described.value

    def _most(self, top_n: int | None) -> int | None:
        """How many documents to give back: as the call says, else this, else the compressor."""
        inner = getattr(self.inner, "top_n", None)
        own = inner if isinstance(self.inner, BaseDocumentCompressor) else None
        return next((most for most in (top_n, self.top_n, own) if most is not None), None)

    def _ordered(
        self, given: Sequence[Document], order: list[Ranked] | Foreign, top_n: int | None
    ) -> list[Document]:
        most = self._most(top_n)
        if isinstance(order, Foreign):
            return order.items[:most]
        return [self._marked(given[one.place], one) for one in order[:most]]

    def _marked(self, document: Document, ranked: Ranked) -> Document:
        """A copy of a document that went in, with its score and the note of a hit."""
        more: dict[str, Any] = {}
        if ranked.score is not None:
            more[self.score_key] = ranked.score
        if ranked.hit is not None:
            more[NOTE] = ranked.note()
        return with_metadata(document, more)

    def _noted(self, documents: list[Document], marks: Mapping[int, int]) -> list[Document]:
        """Those not noted yet are sources: a retriever that gave them knows more of them."""
        frame = frames.current()
        if frame is not None:
            found = documents_as_sources(documents, source_key=self.source_key)
            frame.read_sources(found, marks, unless_known=True)
        return documents


def _cross_encoder(inner: Any, *, sure: bool) -> BaseCrossEncoder | None:
    """The cross-encoder of a compressor that does nothing but sort by its scores."""
    known = sure or type(inner).__name__ == "CrossEncoderReranker"
    model = getattr(inner, "model", None)
    return model if known and isinstance(model, BaseCrossEncoder) else None
