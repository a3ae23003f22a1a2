"""What happened at each node, and how long it took: heard from the cache, timed by the runs."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from stemma import Event

__all__ = ["NodeTimes", "Watch"]

_WARM = ("exact", "semantic")


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeTimes:
    """Median times of one node, seconds; `None` where it never came to that."""

    cold: float | None
    warm: float | None


@dataclass(slots=True)
class _Times:
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)


class Watch(BaseCallbackHandler):
    """Listens to the cache, and times LangChain's runs.

    It is for a chain that is asked one question at a time: the outcome a node told last is the
    outcome of the run that ends.
    """

    run_inline = True

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self._times: dict[str, _Times] = defaultdict(_Times)
        self._began: dict[UUID, tuple[str, float]] = {}

    def __call__(self, event: Event) -> None:
        """Hear the cache."""
        if event.kind == "lookup":
            self.outcomes[event.node] = event.outcome

    def times(self) -> dict[str, NodeTimes]:
        """The medians so far, by node."""
        return {
            node: NodeTimes(cold=_median(times.cold), warm=_median(times.warm))
            for node, times in self._times.items()
        }

    def took(self, node: str, seconds: float) -> None:
        """Note how long a node took whose outcome was told last."""
        outcome = self.outcomes.get(node)
        if outcome is not None:
            times = self._times[node]
            (times.warm if outcome in _WARM else times.cold).append(seconds)

    def _begin(self, node: str, run_id: UUID) -> None:
        self.outcomes.pop(node, None)
        self._began[run_id] = (node, time.perf_counter())

    def _end(self, run_id: UUID) -> None:
        node, began = self._began.pop(run_id, ("", 0.0))
        if node:
            self.took(node, time.perf_counter() - began)

    def on_retriever_start(self, *_: Any, run_id: UUID, **named: Any) -> None:
        """A retriever begins; only the cached one, not the one inside it, has a node's outcome."""
        if "vectorstore" not in str(named.get("metadata", {}).get("ls_retriever_name", "")):
            self._begin("retrieval", run_id)

    def on_retriever_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """A retriever has ended."""
        self._end(run_id)

    def on_chain_start(self, *_: Any, run_id: UUID, **named: Any) -> None:
        """A chain begins; of these, only the step that reranks is a node."""
        if named.get("name") == "rerank":
            self._begin("rerank", run_id)

    def on_chain_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """A chain has ended."""
        self._end(run_id)

    def on_chat_model_start(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """A model begins."""
        self._begin("call", run_id)

    def on_llm_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """A model has ended."""
        self._end(run_id)


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None
