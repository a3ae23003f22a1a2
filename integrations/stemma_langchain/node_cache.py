"""`NodeCache`: Stemma behind LangGraph's cache of nodes and tasks."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Self

from langgraph.cache.base import BaseCache, FullKey, Namespace

from stemma import (
    Asked,
    Cache,
    CacheFault,
    Frame,
    Hit,
    Miss,
    Request,
    canonical,
    frames,
)
from stemma.context import said
from stemma_langchain.checking import checked_cache, checked_life
from stemma_langchain.graph_codec import GraphCodec
from stemma_langchain.node_keys import known
from stemma_langchain.node_results import inner_parts, refused_part
from stemma_langchain.replies import mark
from stemma_langchain.runs import runs
from stemma_langchain.tickets import RunTicket, Waiting, late_ticket, one_for, run_of

__all__ = ["NodeCache"]

TAG = "langgraph"
"""The tag of every entry that is made here; those of a namespace have one more."""

_CONTROL = frozenset({"__error__", "__interrupt__", "__resume__"})
"""Channels to which a node writes that did not simply finish."""


class _Unkeyable:
    """Stands for an input that has no stable key; has none itself."""


class NodeCache(BaseCache[Any]):
    """LangGraph's cache of node and task results, over a Stemma cache.

    Use it as `builder.compile(cache=NodeCache(cache))` or `@entrypoint(cache=NodeCache(cache))`,
    with `CachePolicy(key_func=node_key)` on the nodes and tasks that may be cached.

    Each result is a hop of the tenant that the run names in `metadata["tenant"]`, else of the one
    that `cache.using` says, else of the cache's default; without one, nothing is cached. The
    interface does not say what a node has read, so a result counts as built on all that its run had
    read until then: more than is true, never less (`cached_node` tells precisely).

    A hit is a fresh copy: messages have new ids, those of a model usage zero with the saved usage
    and the note of the hit under `response_metadata["stemma"]`. Not stored are: values of classes
    that the codec does not know (`allowed`); replies that were cut off or refused; results that
    replace or remove a message of their own run; all of a run that goes on after an interrupt,
    since somebody's answer is no part of the input.

    Keys of other functions than `node_key`, LangGraph's default among them, do not say whose run it
    is: they work as long as nothing but the cache's default tenant is ever named.

    Nothing that goes wrong in here is raised in a graph: it is a miss, and an event.

    Args:
        cache: The cache.
        version: Change it when nodes change: LangGraph tells them apart by module and name alone.
        life: Base life of what is stored without a `ttl`, seconds; by default as the cache's policy
            says. A `ttl` is the longest life.
        allowed: The user's own classes that results may hold (see `GraphCodec`).

    Raises:
        UsageError: An argument is wrong.
    """

    def __init__(
        self,
        cache: Cache,
        *,
        version: str = "",
        life: float | None = None,
        allowed: Iterable[type] = (),
    ) -> None:
        checked_cache(cache)
        checked_life(life)
        self.allowed = tuple(allowed)
        self._codec = GraphCodec(self.allowed)
        super().__init__(serde=self._codec)
        self.cache = cache
        self.version = version
        self.life = life
        self._in_runs = False  # whether a run has ever asked here …
        self._named = False  # … and something was said of whose run it is
        self._waiting = Waiting()

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """The stored results of those keys that have one."""
        try:
            asked = self._asked(keys)
            outcomes = self.cache.hops.look_all([one for one, _ in asked.values()])
            return self._given(asked, outcomes)
        except Exception as error:
            self._failed("lookup", error)
            return {}

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, Any]:
        """As `get`."""
        try:
            asked = self._asked(keys)
            outcomes = await self.cache.hops.alook_all([one for one, _ in asked.values()])
            return self._given(asked, outcomes)
        except Exception as error:
            self._failed("lookup", error)
            return {}

    def set(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> None:
        """Store results, each with its longest life in seconds or `None`, if they may be."""
        try:
            puts = self._puts(pairs)
            self.cache.hops.put_all([(one.ticket, value) for one, value in puts])
            for one, _ in puts:
                one.spread()
        except Exception as error:
            self._failed("put", error)

    async def aset(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> None:
        """As `set`."""
        try:
            puts = self._puts(pairs)
            await self.cache.hops.aput_all([(one.ticket, value) for one, value in puts])
            for one, _ in puts:
                one.spread()
        except Exception as error:
            self._failed("put", error)

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Remove the current tenant's results of some namespaces, or all that were made here.

        A namespace is meant as it is: one that it begins with, or that begins with it, is another.

        Raises:
            TenantRequired: Nothing names a tenant. `cache.clear(tag="langgraph")` is for all.
            StoreError: The store could not do it.
        """
        for named in self._named_by(namespaces):
            self.cache.clear(**named)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """As `clear`."""
        for named in self._named_by(namespaces):
            await self.cache.aclear(**named)

    # ------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a handle: what is copied with it goes on using the same cache

    def __reduce__(self) -> tuple[partial[NodeCache], tuple[Cache]]:
        made = partial(NodeCache, version=self.version, life=self.life, allowed=self.allowed)
        return made, (self.cache,)

    def _failed(self, where: str, error: Exception) -> None:
        """Fail open: LangGraph would let whatever is raised here fail the run."""
        if isinstance(error, CacheFault):  # asked for, with `fail="closed"`
            raise error
        self.cache.engine.parts.fault(where, error)

    def _named_by(self, namespaces: Sequence[Namespace] | None) -> list[dict[str, str]]:
        tenant, _ = self.cache.context(frames.current())
        tags = [TAG] if namespaces is None else [_tag(one) for one in namespaces]
        return [{"tenant": tenant, "node": "hop", "tag": tag} for tag in tags]

    def _asked(
        self, keys: Sequence[FullKey]
    ) -> dict[FullKey, tuple[Asked, AbstractSet[str] | None]]:
        """What to look for, by key; with the ids of the run's messages (see `RunTicket`)."""
        frame = frames.current()
        if run_of(frame) is not None:
            self._in_runs = True
            self._named |= bool(said()) or (frame is not None and frame.tenant is not None)
        seen = known(frame)
        asked: dict[FullKey, tuple[Asked, AbstractSet[str] | None]] = {}
        for full in keys:
            problem = seen.keys.get(full[1]) if seen is not None else None
            if problem:
                self.cache.warn(f"a result of {full[0][-1:]} is not cached: {problem}")
            if problem is not None or self._may_ask(frame):
                ids = seen.ids if seen is not None and problem is not None else None
                asked[full] = self._ask(full, unkeyable=bool(problem)), ids
        return asked

    def _may_ask(self, frame: Frame | None) -> bool:
        """Whether whose call it is can be told without the help of `node_key`."""
        if not self._named or run_of(frame) is None:
            return True
        words = "a key does not say whose run it is: use CachePolicy(key_func=node_key)"
        self.cache.warn(words)
        self.cache.hops.warn_once("node_key", words)
        return False

    def _ask(self, full: FullKey, *, unkeyable: bool = False) -> Asked:
        namespace, key = full
        step = canonical(["langgraph", self.version, list(namespace)])
        return Asked(
            scope={"template": step},
            scope_key=step,
            request=Request(exact=_Unkeyable() if unkeyable else key, meaning=False),
            codec=self._codec,
            life=self.life,
            tags=(TAG, _tag(namespace)),
        )

    def _given(
        self,
        asked: Mapping[FullKey, tuple[Asked, AbstractSet[str] | None]],
        outcomes: Sequence[Hit | Miss],
    ) -> dict[FullKey, Any]:
        found: dict[FullKey, Any] = {}
        run = run_of(frames.current())
        for (full, (_, ids)), outcome in zip(asked.items(), outcomes, strict=True):
            if isinstance(outcome, Hit):
                mark(list(inner_parts(outcome.value)), outcome.note())
                found[full] = outcome.value
            elif outcome.ticket is not None and run is not None:
                self._waiting.add(full, RunTicket(outcome.ticket, run, ids))
        return found

    def _puts(self, pairs: Mapping[FullKey, tuple[Any, int | None]]) -> list[tuple[RunTicket, Any]]:
        puts: list[tuple[RunTicket, Any]] = []
        for full, (value, ttl) in pairs.items():
            one = self._found(full)
            if one is None:
                continue
            refused = _refusal(one, value)
            if refused is not None:
                scope = one.ticket.query.scope
                self.cache.engine.parts.tell("put", scope, "not_admitted", detail=refused)
                continue
            puts.append((one if ttl is None else one.living(float(max(0, ttl))), value))
        return puts

    def _found(self, full: FullKey) -> RunTicket | None:
        """The ticket of the run that asked, or of a direct call; `None` where it cannot be told.

        LangGraph may call from a thread that knows nothing of the run.
        """
        run = run_of(frames.current())
        waiting = self._waiting.under(full, run, only_own=self._named)
        if waiting:
            return one_for(waiting)
        if run is not None or (self._in_runs and not said()):
            return None
        query = self.cache.hops.resolve(self._ask(full))
        return None if isinstance(query, Miss) else RunTicket(late_ticket(self.cache, query))


def _refusal(one: RunTicket, value: Any) -> str | None:
    if one.run is None:
        return None
    if any(map(runs.resumed, one.frames)):
        return "the run goes on after an interrupt: somebody's answer is no part of the input"
    if isinstance(value, (deque, list)) and any(_channel(write) in _CONTROL for write in value):
        return "the node did not simply finish"
    of_replies = map(runs.refused, one.frames)
    of_parts = (refused_part(part, one.ids) for part in inner_parts(value))
    return next(filter(None, itertools.chain(of_replies, of_parts)), None)


def _tag(namespace: Namespace) -> str:
    return f"{TAG}:{canonical(list(namespace))}"


def _channel(write: Any) -> Any:
    return write[0] if isinstance(write, (tuple, list)) and write else None
