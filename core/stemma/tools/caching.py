"""Calling tools through the cache: reads are looked up, writes take back what they concern.

A write takes back twice: before the call, so that what others serve meanwhile is not what they had
read before it; and after it, whether it came to an end, raised or was cancelled, since what it did
is known only then, or not at all. A value that was read before or during the write can then neither
be served nor stored: its put is refused, as that of anything recalled after it was read.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from stemma.cache import Cache
from stemma.callables import is_async
from stemma.codec import Codec
from stemma.effects import Steps, arun, run
from stemma.engine import Admit, Served
from stemma.errors import UsageError
from stemma.lineage import frames
from stemma.nodes.node import JSON, Compute
from stemma.outcome import Miss, Recall
from stemma.selector import Selector
from stemma.taking_back import recall_all, together
from stemma.tools.binding import bound, held_by
from stemma.tools.planning import Call, Live, Planning, Read, Result
from stemma.tools.registry import ToolRegistry
from stemma.tools.resources import Template, concerned

__all__ = ["ToolCaching"]

F = TypeVar("F", bound=Callable[..., Any])

_NOTHING: Mapping[str, Any] = {}


class ToolCaching:
    """Calls tools by their declarations.

    Args:
        cache: The cache; results are kept in its `hops`.
        registry: Declarations by name; those that tools carry themselves count without it.

    Raises:
        UsageError: An argument is of the wrong kind.
    """

    def __init__(self, cache: Cache, registry: ToolRegistry | None = None) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be what stemma.open gave, not {type(cache).__name__}")
        if registry is not None and not isinstance(registry, ToolRegistry):
            raise UsageError(f"registry must be a ToolRegistry, not {type(registry).__name__}")
        self.cache = cache
        self.registry = registry if registry is not None else ToolRegistry()
        self._parts = cache.engine.parts
        self._planning = Planning(cache, self.registry)
        self._unsettled = self._parts.unsettled

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        compute: Callable[[], Any],
        *,
        tool: object | None = None,
        injected: Mapping[str, Any] = _NOTHING,
        agent: str = "",
        codec: Codec = JSON,
        admit: Admit | None = None,
        result: Result | None = None,
    ) -> Served:
        """Call a tool, or serve what an equal call gave before. What it raises passes through.

        Args:
            name: The tool's name.
            arguments: Its arguments, by name: all that `compute` calls it with.
            compute: Calls the tool itself.
            tool: The tool, which may carry a declaration.
            injected: What it is called with besides (state, a store): counts as arguments.
            agent: Who calls; told apart only where the tool's declaration says `path`.
            codec: How results are written.
            admit: Called with a result; gives `None`, or the reason for not storing it.
            result: Gives of a result what the tool's declaration is asked about (`keep`), where a
                framework wraps what the tool gave; by default the result.

        Raises:
            UsageError: An argument is of the wrong kind.
        """
        plan = self._planning.plan(
            Call(
                name=name,
                arguments=arguments,
                injected=injected,
                agent=agent,
                codec=codec,
                admit=admit,
                result=result,
            ),
            tool,
        )
        if isinstance(plan, Read):
            if owed := self._unsettled.owed(plan.ids):
                run(self._take_back(list(owed)))
            plan = self._if_settled(plan)
        if isinstance(plan, Read):
            return self.cache.hops.serve(plan.asked, compute, admit=plan.admit)
        given = self._live(compute, plan)
        if plan.changes and inspect.isawaitable(given):  # it has not written yet
            given = self._alive(functools.partial(_given, given), plan)
        return Served(value=given, outcome=plan.miss)

    async def acall(
        self,
        name: str,
        arguments: Mapping[str, Any],
        compute: Compute,
        *,
        tool: object | None = None,
        injected: Mapping[str, Any] = _NOTHING,
        agent: str = "",
        codec: Codec = JSON,
        admit: Admit | None = None,
        result: Result | None = None,
    ) -> Served:
        """As `call`; a `compute` that is not a coroutine function runs in a thread."""
        plan = self._planning.plan(
            Call(
                name=name,
                arguments=arguments,
                injected=injected,
                agent=agent,
                codec=codec,
                admit=admit,
                result=result,
            ),
            tool,
        )
        if isinstance(plan, Read):
            if owed := self._unsettled.owed(plan.ids):
                await arun(self._take_back(list(owed)))
            plan = self._if_settled(plan)
        if isinstance(plan, Read):
            return await self.cache.hops.aserve(plan.asked, compute, admit=plan.admit)
        return Served(value=await self._alive(compute, plan), outcome=plan.miss)

    def wrap(self, tool: F, *, name: str | None = None) -> F:
        """A function or coroutine function that calls this one through the cache.

        The object that a method is bound to counts as an argument.

        Args:
            tool: The function.
            name: By which it is known; its own by default.

        Raises:
            UsageError: It is no function, or not what its declaration says.
        """
        if not inspect.isroutine(tool):
            raise UsageError(f"only functions can be wrapped, not {type(tool).__name__}")
        known = tool.__name__ if name is None else name
        self.registry.check(known, tool)
        signature, injected = inspect.signature(tool), held_by(tool)

        @functools.wraps(tool)
        def called(*args: Any, **kwargs: Any) -> Any:
            given = bound(signature, args, kwargs)
            compute = functools.partial(tool, *args, **kwargs)
            return self.call(known, given, compute, tool=tool, injected=injected).value

        @functools.wraps(tool)
        async def acalled(*args: Any, **kwargs: Any) -> Any:
            given = bound(signature, args, kwargs)
            compute = functools.partial(tool, *args, **kwargs)
            return (await self.acall(known, given, compute, tool=tool, injected=injected)).value

        return acalled if is_async(tool) else called  # type: ignore[return-value]

    def changed(self, *resources: str, **arguments: Any) -> Recall:
        """Say that resources changed otherwise than by a tool, and take back what was read of them.

        Said in a private world, it is that one where nobody knows any more what they are.

        Args:
            *resources: Resources, or templates with their arguments (`"booking:{id}"`).
            **arguments: The arguments.

        Raises:
            TenantRequired: Nothing names a tenant.
            UsageError: Nothing is named, or an argument is missing.
            StoreError: The store could not do it. Not all was taken back: do it again.
        """
        return run(self._changed(resources, arguments))

    async def achanged(self, *resources: str, **arguments: Any) -> Recall:
        """As `changed`."""
        return await arun(self._changed(resources, arguments))

    # ------------------------------------------------------------ live calls, recalls

    def _live(self, compute: Callable[[], Any], plan: Live) -> Any:
        if plan.writing is not None:
            with plan.writing as writing:
                return writing.came_to(compute(), awaited=True)
        if not plan.written:
            return compute()
        self._unsettled.begin(plan.written)
        try:
            run(self._take_back(plan.written))
            return compute()
        finally:
            self._unsettled.end(plan.written)
            run(self._take_back(plan.written))

    async def _alive(self, compute: Compute, plan: Live) -> Any:
        import asyncio  # noqa: PLC0415 - whoever gets here has loaded it; importing Stemma need not

        if not is_async(compute):
            # As a whole: a thread goes on when whoever awaits it is cancelled.
            given = await asyncio.to_thread(self._live, compute, plan)
            if not inspect.isawaitable(given):
                return given
            compute = functools.partial(_given, given)
        if plan.writing is not None:
            with plan.writing as writing:
                return writing.came_to(await compute())
        if not plan.written:
            return await compute()
        self._unsettled.begin(plan.written)
        try:
            await arun(self._take_back(plan.written))
            return await compute()
        finally:
            self._unsettled.end(plan.written)
            await asyncio.shield(arun(self._take_back(plan.written)))

    def _if_settled(self, read: Read) -> Read | Live:
        """The read; a call past the cache where it is of what is being written, or still owed."""
        moment = read.asked.moment
        written_here = moment is not None and not moment.settled
        if written_here or self._unsettled.writing(read.ids) or self._unsettled.owed(read.ids):
            return self._planning.bypassed(read, Miss(reason="unsettled"))
        return read

    def _take_back(self, ids: Sequence[str]) -> Steps[None]:
        """Take back what was read of these sources. What cannot be done now is owed."""
        try:
            yield from self._recall(ids, ids)
        except Exception as error:
            self._parts.fault("recall", error)

    def _changed(self, resources: Sequence[str], arguments: Mapping[str, Any]) -> Steps[Recall]:
        if not resources:
            raise UsageError("name what changed: at least one resource")
        tenant, said = self.cache.context(frames.current())
        named = [Template(one).named(arguments) for one in resources]
        for text, one in zip(resources, named, strict=True):
            if not one.complete:
                raise UsageError(f"resource {text!r} speaks of an argument that is not given")
        paths = [path for one in named for path in one.paths]
        if said.world is not None:
            said.world.lose(paths)
        owners = ("", *sorted(self.registry.owners))
        ids = [one for owner in owners for one in concerned(paths, tenant, owner)]
        return (yield from self._recall(ids, resources))

    def _recall(self, ids: Sequence[str], named: Sequence[str]) -> Steps[Recall]:
        owed = self._unsettled.owed(ids)
        receipts = yield from recall_all(self._parts, [Selector(source=one) for one in ids])
        self._unsettled.settled(owed)
        receipt = together(self._parts, receipts, {"resources": ", ".join(named)})
        self._parts.tell("recall", None, "recalled", detail=str(receipt))
        return receipt


async def _given(awaitable: Any) -> Any:
    return await awaitable
