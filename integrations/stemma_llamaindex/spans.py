"""LlamaIndex's spans as frames.

One span handler on the root dispatcher sees every span of the process begin and end. A root span
opens a frame; what its retrievers give and what its cached steps read become parents of what is
stored later in it. A root span inside an explicit `trace` or `hop`, or inside another framework's
run, is a sub-frame of that. Inside a span, a question of its own (a query engine asked by another,
by a tool or by an agent) is a sub-frame that passes on what it read when it ends; where several
run side by side in tasks or threads, none sees what another reads.

A streamed response is read after its span has ended, and often only then is its model called. Its
frame stays open until the stream is read or dropped, and what happens in the reading belongs to it.

The tenant of a run is the `"tenant"` of LlamaIndex's `instrument_tags`.
"""

from __future__ import annotations

import inspect
import weakref
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.workflow import Workflow
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import active_instrument_tags
from llama_index_instrumentation.span import BaseSpan, active_span_id
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from pydantic import PrivateAttr

from stemma import Frame, forking, frames
from stemma.context import Context, going_on, said
from stemma_llamaindex.questions import question_of
from stemma_llamaindex.sources import nodes_as_sources

__all__ = ["Spans", "spans"]

MOST = 20_000
"""Spans that never end are forgotten when there are more than this."""

_ASKING: tuple[tuple[type, frozenset[str]], ...] = (
    (BaseQueryEngine, frozenset({"query", "aquery"})),
    (BaseChatEngine, frozenset({"chat", "achat", "stream_chat", "astream_chat"})),
    (Workflow, frozenset({"run"})),
)
"""Whose methods ask a question of their own, rather than being a step of one."""

T = TypeVar("T")

_read_in: ContextVar[str | None] = ContextVar("stemma_llamaindex_read_in", default=None)
"""The span whose stream is being read here."""


@dataclass(slots=True, eq=False)
class _Span:
    """A span that has not ended, or what it has begun has not.

    `above` is the span it is in; `before` the frame that was current when it began; `reading` the
    span in the reading of whose stream it began; `holds` counts what keeps it: itself, the spans
    in it, the streams it gave; `said` is whose it is, and what else `Cache.using` said of it.
    """

    frame: Frame
    owns: bool
    lane: tuple[int, int]
    above: str | None
    before: Frame | None
    reading: str | None
    read_at: Mapping[int, int] = field(default_factory=dict)
    noted: bool = False
    holds: int = 1
    said: Mapping[int, Context] = field(default_factory=said)


class Spans(BaseSpanHandler[BaseSpan]):
    """The handler. See the module's text."""

    _spans: OrderedDict[str, _Span] = PrivateAttr(default_factory=OrderedDict)
    _guard: Any = PrivateAttr(default_factory=forking.Lock)
    _dropped: deque[str] = PrivateAttr(default_factory=deque)
    _written: dict[int, Any] = PrivateAttr(default_factory=dict)

    def __len__(self) -> int:
        return len(self._spans)

    @classmethod
    def class_name(cls) -> str:
        """See `BaseSpanHandler.class_name`."""
        return "StemmaSpans"

    def noted(self) -> None:
        """Say that a face notes the nodes of the current span, and of those in it, itself."""
        span = self._spans.get(active_span_id.get() or "")
        if span is not None:
            span.noted = True

    def followed(self, stream: Generator[T, None, None]) -> Generator[T, None, None]:
        """A stream that the current span gives: what happens in its reading belongs to the span."""
        return self._followed(stream, active_span_id.get())

    def afollowed(self, stream: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """As `followed`."""
        return self._afollowed(stream, active_span_id.get())

    # ------------------------------------------------------------------ begin

    def new_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A span begins. It is remembered here, not among the spans of the handler's base."""
        del tags, kwargs  # workflows leave the tags out; they are where they are set
        self._tidy()
        above, reading = parent_span_id, _read_in.get()
        parent = self._spans.get(above or "")
        if reading is not None and (parent is None or parent.reading != reading):
            above, parent = reading, self._spans.get(reading)
        span = _begun(above, parent, instance, id_, bound_args)
        span.reading = reading
        with self._guard:
            self._spans[id_] = span
            if parent is not None:
                parent.holds += 1
            forgotten = self._spans.popitem(last=False)[1] if len(self._spans) > MOST else None
        if forgotten is not None and forgotten.owns:
            forgotten.frame.close()
        frames.enter(span.frame)

    # -------------------------------------------------------------------- end

    def prepare_to_exit_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """A span ends well: what a retriever gave are sources, and a stream goes on."""
        del bound_args, kwargs
        span = self._spans.get(id_)
        if span is None:
            return
        if span.read_at and not span.noted and isinstance(result, list):
            span.frame.read_sources(nodes_as_sources(result), span.read_at)
        self._follow(id_, span, result)
        self._end(id_, span, instance)

    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        """A span has failed."""
        del bound_args, kwargs, err
        span = self._spans.get(id_)
        if span is not None:
            self._end(id_, span, instance)

    def _end(self, id_: str, span: _Span, instance: Any) -> None:
        if isinstance(instance, StreamingAgentChatResponse):  # its text is in the memory now
            written = self._written.pop(id(instance), None)
            if written is not None:
                written()
        if frames.current() is span.frame:
            frames.enter(span.before)  # a frame that stays open is over for who began it
        self._release(id_)
        self._tidy()

    def _release(self, id_: str | None) -> None:
        while id_ is not None:
            with self._guard:
                span = self._spans.get(id_)
                if span is None:
                    return
                span.holds -= 1
                if span.holds > 0:
                    return
                del self._spans[id_]
            if span.owns:
                span.frame.close()
            id_ = span.above

    def _tidy(self) -> None:
        """Release what streams held that were dropped; the collector itself must take no lock."""
        while self._dropped:
            self._release(self._dropped.popleft())

    # ---------------------------------------------------------------- streams

    def _follow(self, id_: str, span: _Span, result: Any) -> None:
        if isinstance(result, StreamingResponse) and span.owns:
            result.response_gen = self._followed(result.response_gen, id_)
        elif isinstance(result, AsyncStreamingResponse) and span.owns:
            result.response_gen = self._afollowed(result.response_gen, id_)
        elif (
            isinstance(result, StreamingAgentChatResponse)
            and result.is_writing_to_memory
            and not result.is_done
        ):
            place = id(result)  # a thread or a task reads it, in a span of its own
            self._written[place] = self._hold(id_, result)
            weakref.finalize(result, self._written.pop, place, None)

    def _hold(self, id_: str, stream: Any) -> weakref.finalize[Any, Any]:
        """Keep a span until what this gives is called, or the stream is dropped."""
        with self._guard:
            self._spans[id_].holds += 1
        return weakref.finalize(stream, self._dropped.append, id_)

    def _followed(
        self, stream: Generator[T, None, None], id_: str | None
    ) -> Generator[T, None, None]:
        if id_ is None or id_ not in self._spans:
            return stream
        span = self._spans[id_]

        def read() -> Generator[T, None, None]:
            source = iter(stream)  # which need not be a generator
            try:
                while True:
                    try:
                        with _reading(id_, span):
                            chunk = next(source)
                    except StopIteration:
                        return
                    yield chunk
            finally:
                getattr(source, "close", _nothing)()
                done()
                self._tidy()

        reader = read()
        done = self._hold(id_, reader)
        return reader

    def _afollowed(
        self, stream: AsyncGenerator[T, None], id_: str | None
    ) -> AsyncGenerator[T, None]:
        if id_ is None or id_ not in self._spans:
            return stream
        span = self._spans[id_]

        async def read() -> AsyncGenerator[T, None]:
            source = aiter(stream)  # as above
            try:
                while True:
                    try:
                        with _reading(id_, span):
                            chunk = await anext(source)
                    except StopAsyncIteration:
                        return
                    yield chunk
            finally:
                await getattr(source, "aclose", _anothing)()
                done()
                self._tidy()

        reader = read()
        done = self._hold(id_, reader)
        return reader


@contextmanager
def _reading(id_: str, span: _Span) -> Iterator[None]:
    token = _read_in.set(id_)
    try:
        with frames.within(span.frame), going_on(span.said):
            yield
    finally:
        _read_in.reset(token)


def _begun(
    above: str | None,
    parent: _Span | None,
    instance: Any,
    id_: str,
    bound_args: inspect.BoundArguments,
) -> _Span:
    """A span as it begins: a root, a question of its own inside another, or a step."""
    tags = active_instrument_tags.get()
    named = tags.get("tenant")
    tenant = named if named is None or isinstance(named, str) else ""  # which nobody is
    lane, before = frames.lane(), frames.current()
    method = _method(id_)
    asked = question_of(bound_args.arguments)
    read_at: Mapping[int, int] = {}
    if isinstance(instance, BaseRetriever) and method in ("retrieve", "aretrieve"):
        read_at = frames.marks()
    if parent is None:
        frame, owns = _root_frame(tenant), True
    else:
        frame = frames.inside(parent.frame)
        asks = any(isinstance(instance, kind) and method in names for kind, names in _ASKING)
        passed_on = asked == frame.focus and lane == parent.lane
        owns = frame is not parent.frame or tenant not in (None, frame.tenant)
        if owns or (asks and not passed_on):
            frame, owns = _sub_frame(frame, parent.lane, tenant), True
    if owns and asked is not None:
        frame.focus = asked
    return _Span(
        frame,
        owns,
        lane,
        above if parent is not None else None,
        before,
        None,
        read_at,
        parent is not None and parent.noted,
    )


def _method(id_: str) -> str:
    """The method of a span, whose id is the class, the method and a random part."""
    return id_.partition("-")[0].rpartition(".")[2]


def _root_frame(tenant: str | None) -> Frame:
    """The frame of a root span: under the user's own trace or hop, or another framework's run."""
    above = frames.current()
    if above is None:
        return Frame(tenant=tenant, of_run=True)
    if above.of_run:
        return _sub_frame(above, above.lane, tenant)
    return Frame(above, exports=True, batch=("root", id(above)), tenant=tenant, of_run=True)


def _sub_frame(above: Frame, lane: tuple[int, int], tenant: str | None) -> Frame:
    here = frames.lane()
    batch: Any = None
    if here != lane:
        batch = ("task", id(above), here[1]) if here[1] else ("thread", id(above))
    return Frame(above, exports=True, batch=batch, tenant=tenant, of_run=True)


spans = Spans()
"""The one handler of this process."""

get_dispatcher().add_span_handler(spans)


def _nothing() -> None:
    """What a stream does that cannot be closed."""


async def _anothing() -> None:
    """As `_nothing`."""
