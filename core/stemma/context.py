"""What the surroundings of a call say: tenant, pool, labels, factors, and whether to read.

`Cache.using` and its kin put a `Context` on a context variable, one per cache, so that it flows
into threads started with a copied context, tasks and nested calls.
"""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from stemma.errors import TenantRequired, UsageError
from stemma.keys import canonical
from stemma.scope import Labels

if TYPE_CHECKING:
    from stemma.lineage.frames import Frame
    from stemma.worlds import World

__all__ = ["Context", "Mode", "apart", "current", "entered", "going_on", "said"]

Mode = Literal["normal", "bypass", "refresh"]


class _Unsaid:
    """Tells what was left out from what was given as `None`."""


_UNSAID = _Unsaid()

_LABELS = frozenset(f.name for f in dataclasses.fields(Labels))


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """What `using`, `bypass`, `refresh` and `world` have said so far.

    `within` is the frame that was current when the tenant was said. `surroundings` is one text for
    the permissions and the factors: all of a context that is part
    of a Scope besides tenant and pool.
    """

    tenant: str | None = None
    pool: str | None = None
    labels: Labels = Labels()
    permissions: tuple[str, ...] = ()
    factors: Mapping[str, Any] = field(default_factory=dict)
    mode: Mode = "normal"
    within: Frame | None = field(default=None, repr=False)
    world: World | None = None
    surroundings: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        if self.permissions or self.factors:
            said = canonical([sorted(set(self.permissions)), dict(self.factors)])
            object.__setattr__(self, "surroundings", said)

    def using(
        self,
        *,
        tenant: str | _Unsaid | None = _UNSAID,
        pool: str | _Unsaid | None = _UNSAID,
        permissions: Iterable[str] | None = None,
        within: Frame | None = None,
        **named: Any,
    ) -> Context:
        """This context with more said: known label names are labels, all others are factors.

        Raises:
            TenantRequired: `tenant` is the empty text.
            UsageError: A tenant, pool or label is not a text.
        """
        if tenant is None or tenant == "":
            raise TenantRequired("tenant must be a text that is not empty; leave it out to keep it")
        for name, value in (("tenant", tenant), ("pool", pool)):
            if not (value is _UNSAID or (name == "pool" and value is None) or _is_name(value)):
                raise UsageError(f"{name} must be a text that is not empty, not {value!r}")
        labels = {name: value for name, value in named.items() if name in _LABELS}
        factors = {name: value for name, value in named.items() if name not in _LABELS}
        return dataclasses.replace(
            self,
            tenant=self.tenant if isinstance(tenant, _Unsaid) else tenant,
            within=self.within if isinstance(tenant, _Unsaid) else within,
            pool=self.pool if isinstance(pool, _Unsaid) else pool,
            permissions=self.permissions if permissions is None else _texts(permissions),
            labels=dataclasses.replace(self.labels, **_checked(labels)) if labels else self.labels,
            factors={**self.factors, **factors} if factors else self.factors,
        )

    def gone_on(self, before: Context) -> Context:
        """This context, in the name of one that was said before, unless it names a tenant.

        And in its world, unless this one has its own.
        """
        if self.world is None and before.world is not None:
            return dataclasses.replace(self, world=before.world).gone_on(before)
        if self.tenant is not None:
            return self
        return dataclasses.replace(
            self,
            tenant=before.tenant,
            within=before.within,
            pool=before.pool,
            permissions=before.permissions,
            factors={**before.factors, **self.factors},
        )

    def labelled(self, tags: tuple[str, ...] | str) -> Labels:
        """The labels, with further tags; a single text is one tag."""
        if not tags:
            return self.labels
        tags = (tags,) if isinstance(tags, str) else tags
        return dataclasses.replace(self.labels, tags=(*self.labels.tags, *tags))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _texts(permissions: Iterable[str]) -> tuple[str, ...]:
    """Permissions as texts; a single text is one permission, not its letters."""
    found = (permissions,) if isinstance(permissions, str) else tuple(permissions)
    if not all(isinstance(one, str) for one in found):
        raise UsageError("permissions must be texts")
    return found


def _checked(labels: dict[str, Any]) -> dict[str, Any]:
    if "tags" in labels:
        tags = labels["tags"]
        labels["tags"] = (tags,) if isinstance(tags, str) else tuple(tags)
    for name, value in labels.items():
        for text in value if name == "tags" else (value,):
            if text is not None and not isinstance(text, str):
                raise UsageError(f"label {name} must be a text, not {type(text).__name__}")
    return labels


_NOTHING = Context()
_EVERY = 0
"""In the place of a cache's number: what is said for each that nothing else is said for."""

_contexts: ContextVar[Mapping[int, Context]] = ContextVar(
    "stemma_contexts", default=MappingProxyType({})
)


def current(owner: int) -> Context:
    """What has been said for the cache with this number."""
    found = _contexts.get()
    return found[owner] if owner in found else found.get(_EVERY, _NOTHING)


def apart(tenant: str) -> contextvars.Context:
    """A context apart from the present one, in which every cache keeps out of the way.

    Of the request nothing is there: no frame, no run, nothing that was said.

    Args:
        tenant: In whose name calls are made there.
    """
    made = contextvars.Context()
    made.run(_contexts.set, {_EVERY: Context(tenant=tenant, mode="bypass")})
    return made


def said() -> Mapping[int, Context]:
    """What has been said here for all caches, for `going_on`."""
    return _contexts.get()


@contextmanager
def going_on(before: Mapping[int, Context]) -> Iterator[None]:
    """Go on, until the block ends, with what was said where something began.

    Whose call it is, and what it may see, is as it was then, unless another tenant is named here.
    """
    here = _contexts.get()
    both = {owner: said.gone_on(before[owner]) for owner, said in here.items() if owner in before}
    token = _contexts.set({**before, **here, **both})
    try:
        yield
    finally:
        _contexts.reset(token)


@contextmanager
def entered(owner: int, context: Context) -> Iterator[Context]:
    """Say something for one cache until the block ends."""
    token = _contexts.set({**_contexts.get(), owner: context})
    try:
        yield context
    finally:
        # A generator may be closed in another context than the one in which it was begun.
        with suppress(ValueError):
            _contexts.reset(token)
