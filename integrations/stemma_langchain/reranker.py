"""`CachedReranker`: any reranker behind the cache, one score a query and text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, Field, PrivateAttr

from stemma import Cache, Hit, Served, UnkeyableValue, UsageError, digest, frames
from stemma.rerankers import Reranker, as_reranker, best_first
from stemma_langchain.codec import NOTE, document_text
from stemma_langchain.fingerprint import describe, describe_chain
from stemma_langchain.reranking import (
    Compressing,
    Foreign,
    PairScores,
    Unscored,
    with_metadata,
    within_run,
)
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
    _unscored: bool = PrivateAttr(default=False)

    def __init__(self, cache: Cache, inner: Any, **named: Any) -> None:
        super().__init__(**{"cache": cache, "inner": inner, **named})
        if self.pairwise is False and not isinstance(inner, BaseDocumentCompressor):
            raise UsageError("pairwise=False is for document compressors; this scores pairs")
        self._scores_pairs()

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
        texts = [self.text(one) for one in given]
        if not given:
            return []
        asked = self._asked(query, callbacks)
        with within_run(callbacks):
            scorer = self._scorer(asked, dict(zip(texts, given, strict=True)))
            if scorer is not None:
                try:
                    scored = self.cache.reranks.score(query, texts, scorer, life=self.life)
                    return self._noted(self._by_score(given, scored, top_n), marks)
                except Unscored:
                    self._say_unscored()
            listed = self.cache.reranks.rank(
                query, texts, lambda: asked.compress(given), life=self.life, **self._list()
            )
            return self._noted(self._by_list(given, listed, top_n), marks)

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
        texts = [self.text(one) for one in given]
        if not given:
            return []
        asked = self._asked(query, callbacks)

        async def compress() -> Any:
            return await asked.acompress(given)

        with within_run(callbacks):
            scorer = self._scorer(asked, dict(zip(texts, given, strict=True)))
            if scorer is not None:
                try:
                    scored = await self.cache.reranks.ascore(query, texts, scorer, life=self.life)
                    return self._noted(self._by_score(given, scored, top_n), marks)
                except Unscored:
                    self._say_unscored()
            listed = await self.cache.reranks.arank(
                query, texts, compress, life=self.life, **self._list()
            )
            return self._noted(self._by_list(given, listed, top_n), marks)

    @property
    def stemma_identity(self) -> Any:
        """What a chain around it is told of it."""
        reranker = self._scores_pairs()
        inner = reranker.revision if reranker is not None else self._list()
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

    def _asked(self, query: str, callbacks: Callbacks) -> Compressing:
        return Compressing(
            inner=self.inner, query=query, callbacks=callbacks, score_key=self.score_key
        )

    def _scorer(self, asked: Compressing, by_text: Mapping[str, Document]) -> Reranker | None:
        """What scores pair by pair; `None` where the list is scored as a whole."""
        reranker = self._scores_pairs()
        if reranker is not None or not self.pairwise or self._unscored:
            return reranker
        revision = self.model
        if revision is None:
            try:
                said = digest("reranker/1", describe(asked.wide(0).inner))
            except UnkeyableValue:
                return None  # nor has the whole list a key: it is computed, and that is said
            revision = f"{type(self.inner).__name__}@{said[:12]}"
        return PairScores(asked, by_text, revision=revision)

    def _scores_pairs(self) -> Reranker | None:
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

    def _list(self) -> dict[str, Any]:
        """What the whole list is keyed by, besides the query and the texts."""
        if self.model is not None:
            return {"model": self.model, "parameters": getattr(self.inner, "top_n", None)}
        described = describe_chain(self.inner)
        named = described.model if described.model != "" else type(self.inner).__name__
        return {"model": named, "parameters": described.value}

    def _say_unscored(self) -> None:
        self._unscored = True
        self.cache.reranks.warn_once(
            f"unscored {self.score_key}",
            f"a {type(self.inner).__name__} left documents without a score under "
            f"metadata[{self.score_key!r}]; its lists are cached as a whole from now on",
        )

    def _most(self, top_n: int | None) -> int | None:
        """How many documents to give back: as the call says, else this, else the compressor."""
        inner = getattr(self.inner, "top_n", None)
        own = inner if isinstance(self.inner, BaseDocumentCompressor) else None
        return next((most for most in (top_n, self.top_n, own) if most is not None), None)

    def _by_score(
        self, given: Sequence[Document], scored: Sequence[Served], top_n: int | None
    ) -> list[Document]:
        order = best_first([one.value for one in scored])[: self._most(top_n)]
        return [self._given(given[p], scored[p].value, _note(scored[p])) for p in order]

    def _by_list(
        self, given: Sequence[Document], listed: Served, top_n: int | None
    ) -> list[Document]:
        if isinstance(listed.value, Foreign):
            return listed.value.documents[: self._most(top_n)]
        note = _note(listed, list="whole")
        ranking = listed.value[: self._most(top_n)]
        return [self._given(given[place], score, note) for place, score in ranking]

    def _given(self, document: Document, score: float | None, note: dict[str, Any]) -> Document:
        """A copy of a document that went in, with its score and the note of a hit."""
        is_score = score is not None and math.isfinite(score)
        return with_metadata(document, {**({self.score_key: score} if is_score else {}), **note})

    def _noted(self, documents: list[Document], marks: Mapping[int, int]) -> list[Document]:
        """Those not noted yet are sources: a retriever that gave them knows more of them."""
        frame = frames.current()
        if frame is not None:
            sources = [read.source for read in frame.visible() if read.source is not None]
            known = {(source.chunk, source.content) for source in sources}
            found = documents_as_sources(documents, source_key=self.source_key)
            new = [one for one in found if (one[0].chunk, one[0].content) not in known]
            frame.read_sources(new, marks)
        return documents


def _cross_encoder(inner: Any, *, sure: bool) -> BaseCrossEncoder | None:
    """The cross-encoder of a compressor that does nothing but sort by its scores."""
    known = sure or type(inner).__name__ == "CrossEncoderReranker"
    model = getattr(inner, "model", None)
    return model if known and isinstance(model, BaseCrossEncoder) else None


def _note(served: Served, **more: Any) -> dict[str, Any]:
    if not isinstance(served.outcome, Hit):
        return {}
    return {NOTE: {**served.outcome.note(), **more}}
