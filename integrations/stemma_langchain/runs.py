"""LangChain's runs as frames.

One callback handler, installed for everybody by a configure hook, sees every run start and end.
A root run opens a frame; what its retrievers give and what its cached steps read become parents
of what is stored later in it. A root run inside an explicit `trace` or `hop` is a sub-frame of it.
Inside a run, a nested run that is not a step of its parent (LangChain tags those) is a sub-frame
that passes on what it read when it ends; where several of them run side by side, as the items of a
batch or the branches of a parallel step do, none sees what another reads.

The tenant that a run names in its metadata is carried by its frame to the faces that get no
metadata, such as LangChain's LLM cache.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary, WeakSet

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import Generation, LLMResult
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import register_configure_hook

from stemma import Frame, forking, frames
from stemma_langchain.calls import Calls, Pending, begin_call, live, one_text
from stemma_langchain.completions import asking_manager
from stemma_langchain.replies import refused, spent
from stemma_langchain.sources import documents_as_sources

__all__ = ["Runs", "named_tenant", "runs"]

MOST = 20_000
"""Runs that never end (an abandoned stream) are forgotten when there are more than this."""

_STEPS = ("seq:step:", "branch:", "condition:", "exception:")
"""Tags that LangChain gives to the steps of a run that follow one another."""

_BRANCHES = ("map:key:", "graph:step:")
"""Tags that LangChain and LangGraph give to steps that may run side by side."""


@dataclass(slots=True)
class _Run:
    frame: Frame
    owns: bool
    lane: tuple[int, int]
    read_at: Mapping[int, int] = field(default_factory=dict)
    noted: bool = False
    calls: Calls | None = None
    completes: bool = False


class Runs(BaseCallbackHandler):
    """The handler. See the module's text."""

    run_inline = True  # so that context variables set here reach the step itself

    def __init__(self) -> None:
        self._runs: OrderedDict[UUID, _Run] = OrderedDict()
        self._refused: WeakKeyDictionary[Frame, str] = WeakKeyDictionary()
        self._resumed: WeakSet[Frame] = WeakSet()
        self._made: dict[int, tuple[weakref.ref[Any], Frame]] = {}
        self._lock = forking.Lock()

    def __len__(self) -> int:
        return len(self._runs)

    def __bool__(self) -> bool:
        return True

    def frame_of(self, run_id: UUID | None) -> Frame | None:
        """The frame of a run that has not ended."""
        run = self._runs.get(run_id) if run_id is not None else None
        return None if run is None else run.frame

    def noted(self, run_id: UUID) -> None:
        """Say that a face notes the documents of a retriever run, and of those in it, itself."""
        run = self._runs.get(run_id)
        if run is not None:
            run.noted = True

    def here(self) -> Frame | None:
        """The frame of a completion model's call, which asks the cache before its run starts."""
        manager = asking_manager()
        run, tenant = self._enclosing(), None
        if manager is not None:
            above_it = manager.parent_run_id
            run = self._runs.get(above_it) if above_it is not None else None
            tenant = named_tenant(manager.metadata)
        if run is not None:
            above = frames.inside(run.frame)
            if tenant in (None, above.tenant):
                return above
            return Frame(above, exports=True, tenant=tenant, of_run=True)
        if tenant is None and frames.current() is None:
            return None
        return _root_frame(tenant)

    def clear(self) -> bool:
        """Whether `here` can be told: by the call itself, or as no runs stand open side by side."""
        if asking_manager() is not None:
            return True
        last = self._last()
        return last is None or last is self._enclosing()

    def alone(self, frame: Frame) -> bool:
        """Whether no other run than those around a frame, or in it, stands open in this lane.

        Streams that are read in turns in one thread or task share its context: which of them asks
        there cannot be told.
        """
        lane = frames.lane()
        with self._lock:
            open_here = [run.frame for run in self._runs.values() if run.lane == lane]
        return all(_is_in(frame, one) or _is_in(one, frame) for one in open_here)

    def resumed(self, frame: Frame | None) -> bool:
        """Whether a frame is of a graph's run that goes on with somebody's answer."""
        return any(one in self._resumed for one in _upwards(frame))

    def made_in(self, generations: Sequence[Generation]) -> Frame | None:
        """The frame of the completion model's run that has just given this; asked for once."""
        for generation in generations:
            made = self._made.pop(id(generation), None)
            if made is not None and made[0]() is generation:
                return made[1]
        return None

    def _made_now(self, frame: Frame, response: LLMResult) -> None:
        for generation in itertools.chain.from_iterable(response.generations):
            place = id(generation)
            forget = partial(_forget, self._made, place)
            self._made[place] = weakref.ref(generation, forget), frame

    def _enclosing(self) -> _Run | None:
        """The run that LangChain says this code is in; in a batch it does not say."""
        config = var_child_runnable_config.get()
        run_id = getattr(config.get("callbacks"), "parent_run_id", None) if config else None
        return self._runs.get(run_id) if isinstance(run_id, UUID) else None

    def _last(self) -> _Run | None:
        if not self._runs:
            return None
        lane = frames.lane()
        with self._lock:
            return next((run for run in reversed(self._runs.values()) if run.lane == lane), None)

    def own(self, run_id: UUID, question: str | None) -> Frame | None:
        """Give a run a frame of its own, even where it is a step of another; say its question."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        if not run.owns:
            run.frame = Frame(run.frame, exports=True, of_run=True)
            run.owns = True
            frames.enter(run.frame)
        run.frame.focus = question
        return run.frame

    def refused(self, frame: Frame | None) -> str | None:
        """Why what came of a frame must not be stored: a reply in it was, say, cut off."""
        return None if frame is None else self._refused.get(frame)

    # ------------------------------------------------------------------ begin

    def _begin(
        self,
        run_id: UUID,
        parent_run_id: UUID | None,
        tags: Sequence[str] | None,
        metadata: Mapping[str, Any] | None,
        question: Any = None,
    ) -> _Run:
        lane = frames.lane()
        tenant = named_tenant(metadata)
        parent = self._runs.get(parent_run_id) if parent_run_id is not None else None
        if parent is None:
            run = _Run(_root_frame(tenant), owns=True, lane=lane)
            if isinstance(question, str):
                run.frame.focus = question
        else:
            run = _nested(parent, parent_run_id, lane, tags or (), tenant)
        with self._lock:
            self._runs[run_id] = run
            forgotten = self._runs.popitem(last=False)[1] if len(self._runs) > MOST else None
        if forgotten is not None and forgotten.owns:
            forgotten.frame.close()
        frames.enter(run.frame)
        return run

    def _end(self, run_id: UUID) -> None:
        with self._lock:
            run = self._runs.pop(run_id, None)
        if run is not None and run.owns:
            run.frame.close()
        if run is not None and run.calls is not None:
            run.calls.end(run_id)

    def _open(self, run_id: UUID) -> bool:
        return run_id in self._runs

    def _begin_call(self, run_id: UUID, run: _Run, last: Any, named: Mapping[str, Any]) -> None:
        size = named.get("batch_size") or 1
        run.calls = begin_call(size, Pending(run_id, run.frame, last, live(named)), self._open)

    # -------------------------------------------------------------- callbacks

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain, graph or lambda begins."""
        del serialized, kwargs
        run = self._begin(run_id, parent_run_id, tags, metadata, inputs)
        if getattr(inputs, "resume", None) is not None:  # LangGraph's Command(resume=…)
            self._resumed.add(run.frame)

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool begins."""
        del serialized, input_str, kwargs
        self._begin(run_id, parent_run_id, tags, metadata)

    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever begins; a recall from here on is later than what it will give."""
        del serialized, kwargs
        run = self._begin(run_id, parent_run_id, tags, metadata, query)
        run.read_at = frames.marks()
        above = self._runs.get(parent_run_id) if parent_run_id is not None else None
        run.noted = above is not None and above.noted

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model begins."""
        del serialized
        last = one_text(messages[0][-1].content) if messages and messages[0] else None
        run = self._begin(run_id, parent_run_id, kwargs.get("tags"), kwargs.get("metadata"), last)
        self._begin_call(run_id, run, last, kwargs)

    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A completion model begins; it has asked the cache already."""
        del serialized
        asked = prompts[0] if prompts else None
        run = self._begin(run_id, parent_run_id, kwargs.get("tags"), kwargs.get("metadata"), asked)
        run.completes = True

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A retriever has given documents: they are sources of what follows."""
        del kwargs
        run = self._runs.get(run_id)
        if run is not None and not run.noted:
            found = [item for item in documents or () if isinstance(item, Document)]
            run.frame.read_sources(documents_as_sources(found), run.read_at)
        self._end(run_id)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A model has answered: what it spent is part of what a hit will save."""
        del kwargs
        run = self._runs.get(run_id)
        if run is not None:
            run.frame.spend(_tokens(response))
            self._judge(run.frame, response)
            if run.completes:
                self._made_now(run.frame, response)
        self._end(run_id)

    def _judge(self, frame: Frame, response: LLMResult) -> None:
        """A parser drops the finish reason, so it is remembered for whoever stores the answer."""
        reason = next(filter(None, map(refused, response.generations)), None)
        if reason is not None:
            for above in _upwards(frame):
                self._refused[above] = reason

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A chain has ended."""
        del outputs, kwargs
        self._end(run_id)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool has ended."""
        del output, kwargs
        self._end(run_id)

    def _failed(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A run has failed."""
        del error, kwargs
        run = self._runs.get(run_id)
        together = run.calls.started if run is not None and run.calls is not None else ()
        for each in (run_id, *together):  # LangChain may tell nothing more of the others
            self._end(each)

    on_chain_error = on_llm_error = on_retriever_error = on_tool_error = _failed


def named_tenant(metadata: Mapping[str, Any] | None) -> str | None:
    """The tenant that a run names; the empty text, which nobody is, where that is no text."""
    named = metadata.get("tenant") if metadata else None
    return named if named is None or isinstance(named, str) else ""


def _root_frame(tenant: str | None) -> Frame:
    """The frame of a root run: under the user's own trace or hop, where one is open."""
    above = frames.current()
    while above is not None and above.of_run:
        # LangChain names the parent of every nested run. One without a parent is not nested, even
        # if a stream that was opened in the same context is still waiting to be read.
        above = above.parent
    if above is None:
        return Frame(tenant=tenant, of_run=True)
    return Frame(above, exports=True, batch=("root", id(above)), tenant=tenant, of_run=True)


def _upwards(frame: Frame | None) -> Iterator[Frame]:
    while frame is not None:
        yield frame
        frame = frame.parent


def _is_in(frame: Frame, outer: Frame) -> bool:
    return any(one is outer for one in _upwards(frame))


def _forget(made: dict[int, Any], place: int, gone: weakref.ref[Any]) -> None:
    held = made.get(place)
    if held is not None and held[0] is gone:
        made.pop(place, None)


def _nested(
    parent: _Run,
    parent_id: UUID | None,
    lane: tuple[int, int],
    tags: Sequence[str],
    tenant: str | None,
) -> _Run:
    """A run inside another: a step of it, or a sub-frame."""
    above = frames.inside(parent.frame)
    branch = next((tag for tag in tags if tag.startswith(_BRANCHES)), None)
    step = branch is None and any(tag.startswith(_STEPS) for tag in tags)
    if step and above is parent.frame and tenant in (None, above.tenant):
        return _Run(above, owns=False, lane=lane)
    batch: Hashable = None
    if branch is not None:  # of a graph's nodes, those that run together have the same tag
        batch = (parent_id, branch if branch.startswith("graph:") else "")
    elif lane != parent.lane and not step:
        batch = ("task", parent_id, lane[1]) if lane[1] else parent_id
    frame = Frame(above, exports=True, batch=batch, tenant=tenant, of_run=True)
    # In a stream every step begins before any has its input: when it was opened does not tell
    # what it was given, so it sees all that the run around it has read when it stores.
    frame.limit = sys.maxsize
    return _Run(frame, owns=True, lane=lane)


def _tokens(response: LLMResult) -> int:
    return sum(spent(generations) for generations in response.generations)


runs = Runs()
"""The one handler of this process."""

register_configure_hook(ContextVar("stemma_langchain_runs", default=runs), inheritable=True)
