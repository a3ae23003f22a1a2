"""A node cache: lookup, put and get_or_compute, with async twins, for any node.

Each node has a module with one function that turns what it is asked into an `Asked`: which part
makes the scope, which must be equal, which may be compared by meaning. Everything else is here.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from stemma.codec import Codec, JsonCodec
from stemma.context import Context
from stemma.effects import arun, run
from stemma.engine import TERMS, Admit, Engine, Lasting, Priced, Served, Terms
from stemma.entry import Cost, Source
from stemma.errors import TenantRequired, UnkeyableValue, UsageError
from stemma.journal import CROSSING
from stemma.lineage import frames
from stemma.lineage.frames import Frame
from stemma.nodes.batch import Batch, look_all, serve_all
from stemma.nodes.computation import AsyncFramed, Framed
from stemma.outcome import Hit, Miss, Stored, Ticket
from stemma.policies.threshold import Policy
from stemma.query import Query
from stemma.request import Key, Request, whole_key
from stemma.scope import Node, Scope
from stemma.search import Search
from stemma.walk import Place
from stemma.worlds import Moment

__all__ = ["JSON", "Asked", "KnownScope", "NodeCache", "Surroundings"]

JSON = JsonCodec()

WORLD = "(world)"
"""The factor that a private world's version is: no keyword of `using` is written like this."""

SCOPES = 1_024
"""How many scopes with a `scope_key` are remembered."""

Compute = Callable[[], Awaitable[Any]] | Callable[[], Any]

P = ParamSpec("P")
Q = TypeVar("Q")


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What one node is asked, before the tenant is known.

    Args:
        scope: The fields of the `Scope` that the question itself gives.
        request: The exact part and the focus.
        codec: How the node's values are written.
        prompt: Texts in which earlier reads are recognised, to tell observed edges.
        life: The base life of what will be stored, seconds; `None`: as the policy says.
        tags: Tags to add to those of the surroundings.
        scope_key: Something hashable that stands for `scope`, so that its digest need not be
            computed anew at each call; `None` where there is nothing that stands for all of it.
        pool: The pool it is looked for and stored in, instead of among the tenant's own. Only for
            values that follow from the question alone: all else is copied there (`Cache.pools`).
        search: The vector search behind it, where a list found for another query may serve it.
        policy: What decides by meaning; `None`: the cache's own policy.
        place: Where the agent is that asks; `None` where it is no step of one.
        sources: What the value is read from outside the cache, where that is known beforehand:
            read, as far as recalls go, when the question is asked.
        moment: What of a private world it depends on; `None`: where it is asked in one, all of it.
    """

    scope: Mapping[str, Any]
    request: Request
    codec: Codec = JSON
    prompt: tuple[str, ...] = field(default=(), repr=False)
    life: float | None = None
    tags: tuple[str, ...] = ()
    scope_key: Hashable | None = None
    pool: str | None = None
    search: Search | None = None
    policy: Policy | None = None
    place: Place | None = None
    sources: tuple[Source, ...] = ()
    moment: Moment | None = None


class KnownScope(NamedTuple):
    """The fields of a scope that a question gives, and something hashable that stands for them."""

    fields: Mapping[str, Any]
    key: Hashable | None
    meaning: bool


class Surroundings(Protocol):
    """Where a node cache learns whose call it is."""

    engine: Engine

    def context(self, frame: Frame | None) -> tuple[str, Context]:
        """The tenant and what else has been said. Raises `TenantRequired` if there is none."""
        ...


class NodeCache(Generic[Q, P]):
    """The cache of one node.

    `lookup(asked, …)` gives a `Hit` or a `Miss` with a ticket; `put(ticket, value)` stores;
    `get_or_compute(asked, compute, …)` does both around one computation, which is shared by all
    who ask at once. The arguments after `asked` are those of the node's own function (see
    `stemma.nodes.answer` and its siblings).
    """

    def __init__(
        self,
        node: Node,
        ask: Callable[Concatenate[Q, P], Asked],
        surroundings: Surroundings,
        *,
        traced: bool = True,
    ) -> None:
        self.node = node
        self._ask = ask
        self._surroundings = surroundings
        self._engine = surroundings.engine
        self._traced = traced
        self._scopes: dict[Hashable, Scope] = {}
        self._warned: set[str] = set()
        self.__doc__ = ask.__doc__

    def lookup(self, asked: Q, /, *args: P.args, **kwargs: P.kwargs) -> Hit | Miss:
        """Look for a value that may be served."""
        return self.look(self.query(self._ask(asked, *args, **kwargs)))

    async def alookup(self, asked: Q, /, *args: P.args, **kwargs: P.kwargs) -> Hit | Miss:
        """As `lookup`."""
        return await self.alook(self.query(self._ask(asked, *args, **kwargs)))

    def ticket(self, asked: Q, /, *args: P.args, **kwargs: P.kwargs) -> Ticket:
        """A ticket without a lookup: to store answers that are known already."""
        return self.ticket_for(self.query(self._ask(asked, *args, **kwargs)))

    def put(
        self,
        ticket: Ticket,
        value: Any,
        *,
        cost: Cost | None = None,
        confidence: float | None = None,
    ) -> Stored:
        """Store the value that was computed after a miss.

        Args:
            ticket: What the miss carried.
            value: The value.
            cost: What a hit will save; by default the time since the lookup.
            confidence: How sure the value is to be right, 0 to 1; by default as sure as its model
                was, where it tells that (a reply with log-probabilities), else 1. It shortens its
                life, and decides whether it is served (`ConfidencePolicy`).
        """
        return run(self._engine.put(ticket, value, cost=cost, confidence=confidence))

    async def aput(
        self,
        ticket: Ticket,
        value: Any,
        *,
        cost: Cost | None = None,
        confidence: float | None = None,
    ) -> Stored:
        """As `put`."""
        return await arun(self._engine.put(ticket, value, cost=cost, confidence=confidence))

    def get_or_compute(
        self, asked: Q, compute: Callable[[], Any], /, *args: P.args, **kwargs: P.kwargs
    ) -> Served:
        """Look up, else compute and put. What `compute` raises passes through, unstored.

        Raises:
            UsageError: `compute` is a coroutine function: that is for `aget_or_compute`.
        """
        if inspect.iscoroutinefunction(compute):
            raise UsageError("compute is a coroutine function: await aget_or_compute instead")
        return self._serve(self.query(self._ask(asked, *args, **kwargs)), compute)

    async def aget_or_compute(
        self,
        asked: Q,
        compute: Compute,
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Served:
        """As `get_or_compute`; a `compute` that is not a coroutine function runs in a thread."""
        query = self.query(self._ask(asked, *args, **kwargs))
        return await self._aserve(query, compute)

    # What follows is for wrappers, which build their `Asked` themselves.

    def asked(self, asked: Q, /, *args: P.args, **kwargs: P.kwargs) -> Asked:
        """What the node is asked by these arguments, before the tenant is known."""
        return self._ask(asked, *args, **kwargs)

    def ticket_for(self, query: Query) -> Ticket:
        """A ticket without a lookup, as of now."""
        parts = self._engine.parts
        return Ticket(query=query, sequence=parts.sequence, started=parts.clock.monotonic())

    def query(self, asked: Asked, *, frame: Frame | None = None) -> Query:
        """The question with tenant, labels and frame resolved.

        Raises:
            TenantRequired: Nothing names a tenant.
            UnkeyableValue: A part has no stable key.
        """
        current = frame if frame is not None else frames.current()
        tenant, context = self._surroundings.context(current)
        known = KnownScope(asked.scope, asked.scope_key, asked.request.meaning)
        moment = self._moment(context, current, asked.moment)
        scope = self._scope(known, tenant, context, self._open(tenant, asked.pool), moment)
        alone = asked.place is not None and asked.place.alone
        pools: tuple[tuple[Scope, Key], ...] = ()
        named = self._open(tenant, context.pool)
        if named is not None and named != scope.pool:
            pool = self._scope(known, tenant, context, named, moment)
            pools = ((pool, asked.request.key(pool)),)
        return Query(
            scope=scope,
            key=asked.request.key(scope),
            request=asked.request,
            codec=asked.codec,
            pools=pools,
            labels=context.labelled(asked.tags),
            mode=context.mode,
            frame=(current if current is not None else Frame()) if self._traced else None,
            prompt=asked.prompt,
            life=asked.life,
            hop=1 if current is None or current.hop is None or alone else current.hop,
            search=asked.search,
            policy=asked.policy,
            place=asked.place,
            sources=asked.sources,
            moment=moment,
        )

    def _open(self, tenant: str, pool: str | None) -> str | None:
        """The pool, if the tenant is a member; else it is as if none had been named."""
        parts = self._engine.parts
        if pool is None or parts.pool(pool).admits(tenant):
            return pool
        parts.journal.count(tenant, self.node, f"{CROSSING}lookup not_a_member")
        words = f"{self.node}: tenant {tenant!r} is no member of pool {pool!r}"
        parts.tell("warning", None, "not_a_member", detail=words)
        self.warn_once("not_a_member", f"the pool is left out: {words}")
        return None

    def _moment(
        self, context: Context, frame: Frame | None, asked: Moment | None = None
    ) -> Moment | None:
        """What of a private world the key has to tell of, noted in the frame as something read."""
        if context.world is None or not self._traced:
            return None
        moment = context.world.moment() if asked is None else asked
        if frame is not None:
            frame.moments.add(moment)
        return moment

    def _scope(
        self,
        asked: KnownScope,
        tenant: str,
        context: Context,
        pool: str | None,
        moment: Moment | None,
    ) -> Scope:
        version = None if moment is None else moment.version
        embedder = self._engine.parts.embedder
        revision = embedder.revision if asked.meaning and embedder is not None else ""
        known: Hashable = None
        if asked.key is not None:
            known = (asked.key, tenant, pool, revision, context.surroundings, version)
            scope = self._scopes.get(known)
            if scope is not None:
                return scope
        scope = Scope(
            tenant=tenant,
            node=self.node,
            pool=pool,
            embedder=revision,
            permissions=context.permissions,
            factors=context.factors if version is None else {**context.factors, WORLD: version},
            **asked.fields,
        )
        if known is not None:
            if len(self._scopes) >= SCOPES:
                self._scopes.clear()
            self._scopes[known] = scope
        return scope

    def resolve(self, asked: Asked, *, frame: Frame | None = None) -> Query | Miss:
        """As `query`; where there is no tenant or no stable key, a miss without a ticket.

        For wrappers: they go on without the cache, and warn once.
        """
        try:
            return self.query(asked, frame=frame)
        except TenantRequired as error:
            out = self._out("no_tenant", error)
        except UnkeyableValue as error:
            out = self._out("unkeyable", error)
        current = frame if frame is not None else frames.current()
        if current is not None:
            current.read_sources(((one, "") for one in asked.sources), frames.marks())
            if self.node == "retrieval":
                current.read_unstored(str(asked.scope.get("index", "")), frames.marks())
        return out

    def _out(self, reason: str, error: Exception) -> Miss:
        parts = self._engine.parts
        parts.journal.count("", self.node, reason)
        parts.tell("warning", None, reason, detail=f"{self.node}: {error}")
        self.warn_once(reason, f"the cache is bypassed: {error}")
        return Miss(reason=reason, detail=str(error))

    def warn_once(self, about: str, words: str) -> None:
        """Warn of something; of the same thing only once."""
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(words, RuntimeWarning, stacklevel=2)

    def look(self, query: Query) -> Hit | Miss:
        """`lookup` of a question that is resolved already."""
        hit = self._at_once(query)
        return hit if hit is not None else run(self._engine.lookup(query))

    async def alook(self, query: Query) -> Hit | Miss:
        """As `look`."""
        hit = self._at_once(query)
        return hit if hit is not None else await arun(self._engine.lookup(query))

    def _at_once(self, query: Query) -> Hit | None:
        if query.mode != "normal" or query.search is not None:
            return None
        return self._engine.at_once(
            query.key.id, query.scope, query.codec, query.frame, query.place
        )

    def look_whole(
        self, known: KnownScope, whole: bytes, codec: Codec, frame: Frame | None
    ) -> Hit | None:
        """The exact hit of a request that is encoded as a whole, or `None`: then ask in full.

        The shortest way: it knows the request's scope and key without taking the request apart.
        """
        tenant, context = self._surroundings.context(frame)
        if context.mode != "normal":
            return None
        moment = self._moment(context, frame)
        scope = self._scope(known, tenant, context, None, moment)
        return self._engine.at_once(whole_key(scope.partition, whole), scope, codec, frame)

    def look_all(self, asked: Sequence[Asked]) -> list[Hit | Miss]:
        """Look many questions up by their exact keys, with one read of the store."""
        return run(look_all(self._engine, self._resolved(asked)))

    async def alook_all(self, asked: Sequence[Asked]) -> list[Hit | Miss]:
        """As `look_all`."""
        return await arun(look_all(self._engine, self._resolved(asked)))

    def _resolved(self, asked: Sequence[Asked]) -> list[Query | Miss]:
        return [self.resolve(one) for one in asked]

    def put_all(self, values: Iterable[tuple[Ticket, Any]]) -> list[Stored]:
        """Store many values in one transaction."""
        return run(self._engine.put_many(list(values)))

    async def aput_all(self, values: Iterable[tuple[Ticket, Any]]) -> list[Stored]:
        """As `put_all`."""
        return await arun(self._engine.put_many(list(values)))

    def serve_all(
        self, asked: Sequence[Asked], batch: Batch, *, admit: Admit | None = None
    ) -> list[Served]:
        """`serve` for many questions, each asked once: what is missing is computed in one go.

        Args:
            asked: The questions.
            batch: Asked once for all that is missing, or not at all.
            admit: As for `serve`.
        """
        return run(serve_all(self._engine, self._resolved(asked), batch, admit=admit))

    async def aserve_all(
        self, asked: Sequence[Asked], batch: Batch, *, admit: Admit | None = None
    ) -> list[Served]:
        """As `serve_all`; a batch without `acompute` runs in a thread."""
        return await arun(serve_all(self._engine, self._resolved(asked), batch, admit=admit))

    def serve(
        self,
        asked: Asked,
        compute: Callable[[], Any],
        *,
        frame: Frame | None = None,
        admit: Admit | None = None,
        priced: Priced | None = None,
        lasting: Lasting | None = None,
    ) -> Served:
        """`get_or_compute` for wrappers: without a tenant or a stable key it only computes.

        Args:
            asked: The question.
            compute: What to do on a miss.
            frame: Whose reads are parents of the value; by default the current one's.
            admit: Called with the value; gives `None`, or the reason for not storing it.
            priced: Called before the value is stored; by default a hit saves the time it took.
            lasting: Called with the value; gives how long it lives at most, seconds, or `None`.
        """
        query = self.resolve(asked, frame=frame)
        if isinstance(query, Miss):
            return Served(value=compute(), outcome=query)
        return self._serve(query, compute, Terms(admit=admit, priced=priced, lasting=lasting))

    async def aserve(
        self,
        asked: Asked,
        compute: Compute,
        *,
        frame: Frame | None = None,
        admit: Admit | None = None,
        priced: Priced | None = None,
        lasting: Lasting | None = None,
    ) -> Served:
        """As `serve`."""
        query = self.resolve(asked, frame=frame)
        if isinstance(query, Miss):
            value = compute()
            return Served(value=await value if inspect.isawaitable(value) else value, outcome=query)
        return await self._aserve(
            query, compute, Terms(admit=admit, priced=priced, lasting=lasting)
        )

    def _serve(
        self,
        query: Query,
        compute: Callable[[], Any],
        terms: Terms = TERMS,
    ) -> Served:
        computation = Framed(query, compute)
        return run(self._engine.get_or_compute(query, computation, terms))

    async def _aserve(
        self,
        query: Query,
        compute: Compute,
        terms: Terms = TERMS,
    ) -> Served:
        computation = AsyncFramed(query, compute)
        return await arun(self._engine.get_or_compute(query, computation, terms))
