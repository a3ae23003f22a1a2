"""What a call of a tool means: a read that may come from the cache, or a call that is made live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stemma.cache import Cache
from stemma.codec import Codec
from stemma.context import Context
from stemma.engine import Admit
from stemma.entry import Source
from stemma.errors import TenantRequired, UnkeyableValue, UsageError
from stemma.keys import canonical, digest
from stemma.lineage import frames
from stemma.nodes.hop import hop
from stemma.nodes.node import Asked
from stemma.outcome import Miss
from stemma.policies.arguments import ARGUMENTS
from stemma.tools.policy import ToolPolicy
from stemma.tools.registry import ToolRegistry
from stemma.tools.resources import Template, concerned, source_of, sources_of
from stemma.worlds import EVERYTHING, Moment, Path, World, Writing

__all__ = ["Call", "Live", "Planning", "Read", "Result"]

Result = Callable[[Any], Any]
"""What the tool itself gave, of a result that a framework has wrapped it in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call as it was made.

    Args:
        name: The tool's name.
        arguments: Its arguments, by name.
        injected: What it is given besides, by name.
        agent: Who calls it.
        codec: How its results are written.
        admit: Why a result must not be stored, as the caller sees it.
        result: What the declaration is asked about of a result; `None`: the result.
    """

    name: str
    arguments: Mapping[str, Any]
    injected: Mapping[str, Any]
    agent: str
    codec: Codec
    admit: Admit | None
    result: Result | None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name == "":
            raise UsageError(f"a tool's name must be a text that is not empty, not {self.name!r}")
        for what in ("arguments", "injected"):
            given = getattr(self, what)
            if not isinstance(given, Mapping):
                raise UsageError(f"{what} must be a mapping by name, not {type(given).__name__}")

    @property
    def everything(self) -> Mapping[str, Any]:
        """What resources can be named by."""
        return {**self.injected, **self.arguments}


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A call whose result may come from the cache.

    Args:
        asked: The question.
        admit: Why a result must not be stored.
    """

    asked: Asked
    admit: Admit

    @property
    def ids(self) -> list[str]:
        """The ids of the sources it reads."""
        return [one for source in self.asked.sources for one in (source.document, source.chunk)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """A call that is made in any case.

    Args:
        miss: Why.
        written: The ids of the sources that are to be taken back for it.
        writing: What it does to the private world in which it is called: then nothing is.
    """

    miss: Miss
    written: tuple[str, ...] = ()
    writing: Writing | None = None

    @property
    def changes(self) -> bool:
        """Whether it may change anything that was read."""
        return bool(self.written) or self.writing is not None


class Planning:
    """Tells by their declarations what calls mean.

    Args:
        cache: The cache.
        registry: The declarations.
    """

    def __init__(self, cache: Cache, registry: ToolRegistry) -> None:
        self._cache = cache
        self._registry = registry
        self._parts = cache.engine.parts

    def plan(self, call: Call, tool: object | None) -> Read | Live:
        """What is to be done about a call."""
        policy = self._registry.policy(call.name, tool)
        if policy is None:
            _note((source_of(call.name),))
            miss = Miss(reason="undeclared")
            everything = self._registry.unknown == "clear"
            return self._writing(miss, EVERYTHING, call) if everything else Live(miss=miss)
        if policy.writes:
            paths = _paths(policy.writing, call)
            return self._writing(Miss(reason="writes"), paths, call, policy)
        if not policy.cached:
            _note((source_of(call.name, policy.owner),))
            return Live(miss=Miss(reason="declined", detail="ttl=0"))
        try:
            tenant, said = self._cache.context(frames.current())
        except TenantRequired:
            return Read(asked=_asked(call, policy), admit=_nothing_against)
        paths = _paths(policy.reading, call)
        read = Read(
            asked=replace(
                _asked(call, policy, _whose(policy, said)),
                sources=sources_of(paths, tenant, policy.owner)
                or (source_of(call.name, policy.owner),),
                moment=_moment(said.world, EVERYTHING if policy.path else paths),
            ),
            admit=self._admitted(call, policy),
        )
        refused = self._refused(call, policy, said)
        return read if refused is None else self.bypassed(read, refused)

    def _refused(self, call: Call, policy: ToolPolicy, said: Context) -> Miss | None:
        """Why a declared read is not looked up; `None` if it may be."""
        if policy.scope != "tenant" and _whose(policy, said) is None:
            about = f"{call.name} is kept by {policy.scope}, and cache.using names none"
            self._cache.hops.warn_once(f"unscoped {call.name}", f"the cache is bypassed: {about}")
            return Miss(reason="unscoped", detail=about)
        for template in policy.reading:
            if not template.named(call.everything).complete:
                return Miss(reason="unresolved", detail=template.text)
        if policy.when is None:
            return None
        try:
            return None if policy.when(call.arguments) else Miss(reason="declined", detail="when")
        except Exception as error:
            self._failed(call.name, "when", error)
            return Miss(reason="declined", detail="when failed")

    def _admitted(self, call: Call, policy: ToolPolicy) -> Admit:
        def refused(value: Any) -> str | None:
            why = call.admit(value) if call.admit is not None else None
            if why is not None or policy.keep is None:
                return why
            try:
                told = value if call.result is None else call.result(value)
                return None if policy.keep(told) else "the tool's declaration does not keep it"
            except Exception as error:
                self._failed(call.name, "keep", error)
                return "keep failed"

        return refused

    def _failed(self, name: str, what: str, error: Exception) -> None:
        words = f"the {what} of {name} raised {type(error).__name__}; nothing is kept"
        self._cache.hops.warn_once(f"{what} {name}", words)

    def bypassed(self, read: Read, miss: Miss) -> Live:
        """A declared read that goes past the cache: what is built on it was read all the same."""
        _note(read.asked.sources, read.asked.moment)
        tenant, _ = self._cache.context(frames.current())
        self._parts.journal.count(tenant, "hop", miss.reason)
        self._parts.tell("lookup", None, miss.reason, detail=miss.detail)
        return Live(miss=miss)

    def _writing(
        self, miss: Miss, paths: tuple[Path, ...], call: Call, policy: ToolPolicy | None = None
    ) -> Live:
        """A call that may change resources. What was asked before it in this frame is not stored.

        Else an answer to which a write belonged could be served, and the write be left out. That
        holds for what is asked after it as well, save in a private world, whose version tells it.
        """
        world = self._cache.current_world
        version, owner = ("", "") if policy is None else (policy.version, policy.owner)
        writing = None if world is None else Writing(world, paths, _telling(call, version))
        _note((), _moment(world, paths))
        try:
            tenant, _ = self._cache.context(frames.current())
        except TenantRequired as error:
            words = f"what a tool writes takes nothing back: {error}"
            self._cache.hops.warn_once("writes without a tenant", words)
            return Live(miss=miss, writing=writing)
        _note(sources_of(paths, tenant, owner))
        written = concerned(paths, tenant, owner) if writing is None else ()
        return Live(miss=miss, written=written, writing=writing)


def _paths(templates: Iterable[Template], call: Call) -> tuple[Path, ...]:
    named = call.everything
    return tuple(path for template in templates for path in template.named(named).paths)


def _whose(policy: ToolPolicy, said: Context) -> str | None:
    """Who of the tenant the result belongs to; `None`: everybody, or nobody who is named."""
    return None if policy.scope == "tenant" else getattr(said.labels, policy.scope)


def _asked(call: Call, policy: ToolPolicy, whose: str | None = None) -> Asked:
    asked = hop(
        call.name,
        arguments=dict(call.arguments),
        semantic=policy.semantic,
        similarity=ARGUMENTS if policy.similarity is None else policy.similarity,
        path=policy.path,
        agent=call.agent if policy.path else "",
        version=policy.version,
        codec=call.codec,
        life=policy.ttl,
    )
    exact = {**asked.request.exact, "injected": dict(call.injected), policy.scope: whose}
    return replace(asked, request=replace(asked.request, exact=exact))


def _nothing_against(_: Any) -> str | None:
    return None


def _moment(world: World | None, paths: tuple[Path, ...]) -> Moment | None:
    return None if world is None else world.moment(paths)


def _telling(call: Call, version: str) -> Callable[[Any], str | None]:
    """What tells a write and its result from others; `None` where nothing does.

    Its arguments are taken as they are now: a tool may change them.
    """
    try:
        said = canonical([call.name, version, dict(call.arguments), dict(call.injected)])
    except UnkeyableValue:
        return _nothing_against

    def told(result: Any) -> str | None:
        try:
            refused = call.admit is not None and call.admit(result) is not None
            return None if refused else digest(said, call.codec.encode(result).value)
        except Exception:  # it has no stored form, or the caller's own code failed
            return None

    return told


def _note(sources: Iterable[Source], moment: Moment | None = None) -> None:
    """Note in the current frame what is read, or changed, past the cache."""
    frame = frames.current()
    if frame is not None:
        frame.read_sources(((one, "") for one in sources), frames.marks())
        if moment is not None:
            frame.moments.add(moment)
