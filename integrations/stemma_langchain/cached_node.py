"""`cached_node`: a LangGraph node's function behind the cache, as a hop with its true lineage."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.types import Send

from stemma import Asked, Cache, Cost, Frame, Hit, Served, Ticket, UsageError
from stemma.nodes.hop import hop
from stemma_langchain.checking import checked_cache, checked_life
from stemma_langchain.fingerprint import describe
from stemma_langchain.graph_codec import GraphCodec
from stemma_langchain.injected import configured
from stemma_langchain.node_keys import InputWalk
from stemma_langchain.node_results import inner_parts, refused_part
from stemma_langchain.replies import mark, refused_output
from stemma_langchain.runs import runs

__all__ = ["cached_node"]

_UNSEEN = frozenset({"previous", "store"})
"""What LangGraph may inject and no key can hold."""


def cached_node(
    cache: Cache,
    function: Callable[..., Any],
    *,
    step: str | None = None,
    arguments: Sequence[str] | None = None,
    semantic: Sequence[str] = (),
    path: bool = True,
    version: str | None = None,
    life: float | None = None,
    tags: Iterable[str] = (),
    allowed: Iterable[type] = (),
) -> Callable[..., Any]:
    """A node's function that is run once for equal arguments after an equal path of hops.

    Use it as `builder.add_node("plan", cached_node(cache, plan, arguments=["question"]))`. It takes
    what the function takes, config and runtime included, and is a coroutine function if that is.

    What the function reads inside (cached retrievals, model calls, documents) becomes the parents
    of what it returns, and what it returns a parent of what follows in the run: taking back a
    document takes back all of it. A hit runs nothing and returns a fresh copy: messages have new
    ids, those of a model usage zero with the saved usage and the note of the hit under
    `response_metadata["stemma"]`.

    Not stored: errors, interrupts, and all of a run that goes on after one; `Command` and `Send`;
    empty results; replies cut off or refused, and failed tools; results that replace or remove a
    message of the state; values of classes that the codec does not know.

    Without a tenant (see `NodeCache`) or a stable key the function is called as ever.

    Args:
        cache: The cache.
        function: The function, sync or async; the state is its first argument.
        step: The step's name; by default the function's.
        arguments: The parts of the state that it reads, which must be equal; by default all of it.
            Of messages the ids do not count. Besides, what it takes as `config` (its configurable
            values, less those that only tell runs apart) and as `runtime` (its context) counts.
        semantic: The names of those that may be compared by meaning, where they are texts.
        path: Whether the hops before it in the run must be equal, too.
        version: Change it when the function changes. By default its code and what it captured
            are part of the key, as of when it was wrapped; give a version where they have no
            stable key.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        tags: Tags for the entries.
        allowed: The user's own classes that results may hold (see `GraphCodec`).

    Raises:
        UsageError: It is no function, or takes `store` or `previous`, which no key can hold; or
            another argument is wrong.
    """
    checked_cache(cache)
    checked_life(life)
    step = _checked(function, step, arguments, semantic)
    node = _Node(
        cache=cache,
        step=step,
        arguments=None if arguments is None else tuple(arguments),
        semantic=tuple(semantic),
        path=path,
        identity=describe(function) if version is None else {"version": version},
        codec=GraphCodec(allowed),
        life=life,
        tags=tuple(tags),
    )
    if inspect.iscoroutinefunction(function):

        async def anode(state: Any, *args: Any, **kwargs: Any) -> Any:
            with cache.hop(node.step) as frame:
                call = node.call(frame, state, kwargs)
                served = await cache.hops.aserve(
                    call.asked,
                    functools.partial(function, state, *args, **kwargs),
                    admit=call.refusal,
                    priced=call.cost,
                )
            return _given(served)

        return functools.wraps(function)(anode)

    def sync(state: Any, *args: Any, **kwargs: Any) -> Any:
        with cache.hop(node.step) as frame:
            call = node.call(frame, state, kwargs)
            served = cache.hops.serve(
                call.asked,
                functools.partial(function, state, *args, **kwargs),
                admit=call.refusal,
                priced=call.cost,
            )
        return _given(served)

    return functools.wraps(function)(sync)


def _checked(function: Any, step: str | None, arguments: Any, semantic: Any) -> str:
    """The step's name, of arguments that may be."""
    if not (inspect.isroutine(function) or isinstance(function, functools.partial)):
        raise UsageError(f"cached_node takes a function, not {type(function).__name__}")
    parameters = inspect.signature(function).parameters
    if unseen := sorted(_UNSEEN & set(parameters)):
        raise UsageError(f"a node that takes {', '.join(unseen)} reads what no key can hold")
    if isinstance(arguments, str) or isinstance(semantic, str):
        raise UsageError("arguments and semantic must be lists of names, not one text")
    if arguments is not None and (unknown := sorted(set(semantic) - set(arguments))):
        raise UsageError(f"semantic names {', '.join(unknown)}, not among the arguments")
    named = getattr(function, "__name__", None) if step is None else step
    if not isinstance(named, str) or named == "":
        raise UsageError("this function has no name: give step=")
    return named


class _Node(NamedTuple):
    """What is the same for all calls of a node."""

    cache: Cache
    step: str
    arguments: tuple[str, ...] | None
    semantic: tuple[str, ...]
    path: bool
    identity: Any
    codec: GraphCodec
    life: float | None
    tags: tuple[str, ...]

    def call(self, frame: Frame, state: Any, injected: Mapping[str, Any]) -> _Call:
        walk = InputWalk()
        arguments = {
            **{name: walk.describe(part) for name, part in _parts_of(state, self.arguments)},
            "$function": self.identity,
            "$injected": walk.describe(_injected(injected)),
        }
        asked = hop(
            self.step,
            arguments=arguments,
            semantic=self.semantic,
            path=self.path,
            codec=self.codec,
            life=self.life,
            tags=self.tags,
        )
        if self.arguments is not None:  # to know all of its messages
            walk.describe(state)
        return _Call(self.cache, frame, asked, frozenset(walk.ids))


class _Call(NamedTuple):
    """One call of a node."""

    cache: Cache
    frame: Frame
    asked: Asked
    ids: frozenset[str]

    def refusal(self, result: Any) -> str | None:
        if runs.resumed(self.frame):
            return "the run goes on after an interrupt: somebody's answer is no part of the state"
        reason = runs.refused(self.frame)
        if reason is None:
            reason = refused_output(result)
        if reason is not None:
            return reason
        for part in inner_parts(result):
            if isinstance(part, Send):
                return "where the graph goes is not stored"
            if (reason := refused_part(part, self.ids)) is not None:
                return reason
        return None

    def cost(self, ticket: Ticket) -> Cost:
        seconds = self.cache.engine.parts.clock.monotonic() - ticket.started
        return Cost(tokens=self.frame.spent.tokens, seconds=seconds)


def _parts_of(state: Any, names: tuple[str, ...] | None) -> Iterator[tuple[str, Any]]:
    """Those parts of a state that it has: one that it lacks is not one that is `None`."""
    if isinstance(state, Mapping):
        yield from (
            (name, state[name]) for name in (state if names is None else names) if name in state
        )
    elif names is not None:
        yield from ((name, getattr(state, name)) for name in names if hasattr(state, name))
    else:
        yield "$state", state


def _injected(given: Mapping[str, Any]) -> dict[str, Any]:
    """What counts of the config and the runtime that a function takes."""
    counted: dict[str, Any] = {}
    config = given.get("config")
    if isinstance(config, Mapping):
        counted["configurable"] = configured(config)
    if "runtime" in given:
        counted["context"] = getattr(given["runtime"], "context", None)
    return counted


def _given(served: Served) -> Any:
    if isinstance(served.outcome, Hit):
        mark(list(inner_parts(served.value)), served.outcome.note())
    return served.value
