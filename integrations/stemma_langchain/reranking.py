"""One call of a reranker over documents: what it is given, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document

from stemma import Frame, frames
from stemma.rerankers import Order, places
from stemma_langchain.runs import named_tenant, runs

__all__ = ["Compressing", "Foreign", "PairScores", "Unscored", "with_metadata", "within_run"]


class Unscored(Exception):
    """A compressor that was to score pair by pair has left documents without a score."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a compressor gave that is not among what it was given, such as extracts."""

    documents: list[Document]


@dataclass(frozen=True, kw_only=True, slots=True)
class Compressing:
    """What a document compressor is asked.

    Args:
        inner: The compressor.
        query: The query.
        callbacks: The callbacks of the call.
        score_key: Where in the metadata the compressor puts its scores.
    """

    inner: BaseDocumentCompressor
    query: str
    callbacks: Callbacks
    score_key: str

    def wide(self, count: int) -> Compressing:
        """The same of a compressor that gives back so many documents, where it has such a cut."""
        if "top_n" not in type(self.inner).model_fields:
            return self
        return replace(self, inner=self.inner.model_copy(update={"top_n": count}))

    def compress(self, documents: Sequence[Document]) -> Order | Foreign:
        """The compressor's order of copies of some documents."""
        given = [with_metadata(one, {}) for one in documents]
        found = self.inner.compress_documents(list(given), self.query, self.callbacks)
        return self._order(found, given, documents)

    async def acompress(self, documents: Sequence[Document]) -> Order | Foreign:
        """As `compress`."""
        given = [with_metadata(one, {}) for one in documents]
        found = await self.inner.acompress_documents(list(given), self.query, self.callbacks)
        return self._order(found, given, documents)

    def _order(
        self, found: Sequence[Document], given: list[Document], documents: Sequence[Document]
    ) -> Order | Foreign:
        at = places(found, given, _id_and_text, _text)  # some copy documents without their ids
        if at is None:
            return Foreign(list(found))
        return [
            [place, self._score(one, documents[place])]
            for place, one in zip(at, found, strict=True)
        ]

    def _score(self, found: Document, document: Document) -> float | None:
        """The score that the compressor gave; one that was there before is none of its own."""
        said = found.metadata.get(self.score_key)
        if said is None or said is document.metadata.get(self.score_key):
            return None
        try:
            return float(said)
        except (TypeError, ValueError):
            return None


class PairScores:
    """A compressor that scores pair by pair, as a reranker of some documents.

    Args:
        compressing: What the compressor is asked.
        by_text: The documents, by the text that is scored.
        revision: What names the compressor and its version.
    """

    revision: str

    def __init__(
        self, compressing: Compressing, by_text: Mapping[str, Document], *, revision: str
    ) -> None:
        self._compressing = compressing
        self._by_text = by_text
        self.revision = revision

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text.

        Raises:
            Unscored: The compressor has not scored all of them.
        """
        del query  # the compressor is asked it already
        wide = self._compressing.wide(len(texts))
        return _scores(wide.compress(self._documents(texts)), len(texts))

    async def ascore(self, query: str, texts: Sequence[str]) -> list[float]:
        """As `score`."""
        del query
        wide = self._compressing.wide(len(texts))
        return _scores(await wide.acompress(self._documents(texts)), len(texts))

    def _documents(self, texts: Sequence[str]) -> list[Document]:
        found = [with_metadata(self._by_text[text], {}) for text in texts]
        for one in found:
            one.metadata.pop(self._compressing.score_key, None)
        return found


def _scores(ranking: Order | Foreign, count: int) -> list[float]:
    found = {} if isinstance(ranking, Foreign) else {p: s for p, s in ranking if s is not None}
    if len(found) != count:
        raise Unscored
    return [found[place] for place in range(count)]


def _id_and_text(document: Document) -> tuple[str | None, str]:
    return document.id, document.page_content


def _text(document: Document) -> str:
    return document.page_content


def with_metadata(document: Document, more: Mapping[str, Any]) -> Document:
    """A copy of a document, with more metadata; the document itself stays as it is."""
    return document.model_copy(update={"metadata": {**document.metadata, **more}})


@contextmanager
def within_run(callbacks: Callbacks) -> Iterator[None]:
    """Inside the run that callbacks belong to, and for the tenant that they name.

    A compressor is no runnable: all that it learns of the run it works for is in its callbacks.
    """
    frame = runs.frame_of(getattr(callbacks, "parent_run_id", None))
    above = current = frames.current()
    if frame is not None and not _inside(current, frame):
        above = frame
    tenant = named_tenant(getattr(callbacks, "metadata", None))
    if tenant is not None and (above is None or above.tenant != tenant):
        with frames.entered(Frame(above, exports=True, tenant=tenant, of_run=True)):
            yield
    else:
        with nullcontext() if above is None or above is current else frames.within(above):
            yield


def _inside(one: Frame | None, frame: Frame) -> bool:
    while one is not None and one is not frame:
        one = one.parent
    return one is frame
