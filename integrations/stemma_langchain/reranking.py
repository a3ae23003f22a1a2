"""A document compressor as a reranker of one list, and the run that it is called in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document

from stemma import Frame, frames
from stemma.rerankers import Foreign, Order, places
from stemma_langchain.runs import named_tenant, runs

__all__ = ["Compressing", "uncut", "with_metadata", "within_run"]


class Compressing:
    """A document compressor as a `stemma.rerankers.ListReranker` of some documents.

    It is given copies of the documents.

    Args:
        inner: The compressor.
        query: The query.
        documents: The documents.
        callbacks: The callbacks of the call.
        score_key: Where in the metadata the compressor puts its scores.
    """

    def __init__(
        self,
        inner: BaseDocumentCompressor,
        query: str,
        documents: Sequence[Document],
        *,
        callbacks: Callbacks,
        score_key: str,
    ) -> None:
        self._inner = inner
        self._query = query
        self._documents = documents
        self._callbacks = callbacks
        self._score_key = score_key

    def order(self, chosen: Sequence[int], *, scored: bool) -> Order | Foreign:
        """See `stemma.rerankers.ListReranker`."""
        given = self._given(chosen, scored=scored)
        inner = uncut(self._inner, len(given)) if scored else self._inner
        found = inner.compress_documents(list(given), self._query, self._callbacks)
        return self._order(found, given, chosen, scored=scored)

    async def aorder(self, chosen: Sequence[int], *, scored: bool) -> Order | Foreign:
        """As `order`."""
        given = self._given(chosen, scored=scored)
        inner = uncut(self._inner, len(given)) if scored else self._inner
        found = await inner.acompress_documents(list(given), self._query, self._callbacks)
        return self._order(found, given, chosen, scored=scored)

    def _given(self, chosen: Sequence[int], *, scored: bool) -> list[Document]:
        given = [with_metadata(self._documents[place], {}) for place in chosen]
        if scored:  # the score of an earlier stage must not be taken for this one's
            for one in given:
                one.metadata.pop(self._score_key, None)
        return given

    def _order(
        self,
        found: Sequence[Document],
        given: list[Document],
        chosen: Sequence[int],
        *,
        scored: bool,
    ) -> Order | Foreign:
        at = places(found, given, _id_and_text, _text)  # some copy documents without their ids
        if at is None:
            return Foreign(list(found))
        order: Order = []
        for place, one in zip(at, found, strict=True):
            document = self._documents[chosen[place]]
            if one.page_content != document.page_content:  # the same object, with another text
                return Foreign(list(found))
            said, before = (d.metadata.get(self._score_key) for d in (one, document))
            order.append([place, _number(said) if scored or said is not before else None])
        return order


def uncut(inner: BaseDocumentCompressor, count: int) -> BaseDocumentCompressor:
    """A compressor that gives back so many documents, where it has a cut at all."""
    if "top_n" not in type(inner).model_fields:
        return inner
    return inner.model_copy(update={"top_n": count})


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


def _number(said: Any) -> float | None:
    try:
        return None if said is None else float(said)
    except (TypeError, ValueError):
        return None


def _id_and_text(document: Document) -> tuple[str | None, str]:
    return document.id, document.page_content


def _text(document: Document) -> str:
    return document.page_content


def _inside(one: Frame | None, frame: Frame) -> bool:
    while one is not None and one is not frame:
        one = one.parent
    return one is frame
