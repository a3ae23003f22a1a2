"""What is declared of a tool: how long its results are kept, what it reads or writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from stemma.entry import owner_of
from stemma.errors import UsageError
from stemma.policies.shares import share
from stemma.tools.resources import Template

__all__ = ["Scoped", "ToolPolicy"]

Scoped = Literal["tenant", "user", "session"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolPolicy:
    """What is declared of one tool. Nothing of a tool that declares nothing is ever kept.

    A tool that `writes` is called every time, and takes back what was read of the resources that
    it names. A tool with `ttl=0` is called every time, and changes nothing. Of every other one the
    results are kept.

    Args:
        ttl: The base life of a result, seconds; `None`: as the cache's life policy says.
        scope: Whose result it is: `"tenant"` for everybody of the tenant; `"user"` or `"session"`
            for who is named by that label of `cache.using`. Where nobody is, nothing is kept.
        reads: The resources that it reads, as templates over its arguments (`booking:{id}`).
        writes: The resources that it changes.
        semantic: The names of arguments that are compared by meaning; all others must be equal.
        similarity: The least cosine similarity of those, 0 to 1; by default 0.9, above that of
            answers.
        when: Called with the arguments; what it gives says whether the call may be cached.
        keep: Called with a result; what it gives says whether it may be stored.
        version: The tool's version. Another one has other results.
        owner: Whose it is what the tool reads or writes: `"public"`, or `"pool:…"` of the members
            of a pool; empty: the tenant's who calls it, and nothing built on it is ever shared.
        path: Whether the steps that led to the call are part of its key, and what was read before
            it in the same frame part of its lineage.

    Raises:
        UsageError: The declaration says nothing, contradicts itself, or has something in it that
            is wrong.
    """

    ttl: float | None = None
    scope: Scoped = "tenant"
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    semantic: Sequence[str] = ()
    similarity: float | None = None
    when: Callable[[Mapping[str, Any]], bool] | None = None
    keep: Callable[[Any], bool] | None = None
    version: str = ""
    owner: str = ""
    path: bool = False
    reading: tuple[Template, ...] = field(init=False, repr=False, compare=False)
    writing: tuple[Template, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("reads", "writes", "semantic"):
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        object.__setattr__(self, "reading", tuple(map(Template, self.reads)))
        object.__setattr__(self, "writing", tuple(map(Template, self.writes)))
        self._check_values()
        named = {template.text: template.arguments for template in self.reading + self.writing}
        if self.ttl is None and not named:
            raise UsageError("a declaration must say something: ttl=, reads= or writes=")
        if not self.cached:
            why = "a tool that writes is never cached" if self.writes else "ttl=0 keeps nothing"
            idle = [name for name in _OF_WHAT_IS_KEPT if getattr(self, name)]
            if idle := [*idle, *(["scope"] if self.scope != "tenant" else [])]:
                raise UsageError(f"{why}: it can have no {', '.join(idle)}")
        for text, arguments in named.items():
            if both := sorted(arguments & set(self.semantic)):
                raise UsageError(
                    f"argument {both[0]} is compared by meaning and names the resource {text!r}: "
                    "a call that only means the same may read another resource"
                )

    def _check_values(self) -> None:
        if self.ttl is not None and (
            isinstance(self.ttl, bool)
            or not isinstance(self.ttl, (int, float))
            or not (math.isfinite(self.ttl) and self.ttl >= 0)
        ):
            raise UsageError(f"ttl must be a number of seconds, 0 or more, not {self.ttl!r}")
        if self.scope not in get_args(Scoped):
            raise UsageError(
                f"scope must be one of {', '.join(get_args(Scoped))}, not {self.scope!r}"
            )
        if self.similarity is not None:
            share("similarity", self.similarity)
            if not self.semantic:
                raise UsageError(
                    "similarity is of the arguments named in semantic=: there are none"
                )
        for name in ("when", "keep"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise UsageError(f"{name} must be a function, not {getattr(self, name)!r}")
        if not isinstance(self.version, str):
            raise UsageError(f"version must be a text, not {self.version!r}")
        object.__setattr__(self, "owner", owner_of(self.owner))
        if self.owner and self.scope != "tenant":
            raise UsageError(f"what belongs to a {self.scope} cannot be {self.owner}")
        if not isinstance(self.path, bool):
            raise UsageError(f"path must be True or False, not {self.path!r}")

    @property
    def cached(self) -> bool:
        """Whether results are kept at all."""
        return not self.writes and self.ttl != 0

    @property
    def arguments(self) -> frozenset[str]:
        """The names of the arguments that the declaration speaks of."""
        templates = self.reading + self.writing
        return frozenset(self.semantic).union(*(one.arguments for one in templates))


_OF_WHAT_IS_KEPT = ("ttl", "reads", "semantic", "when", "keep", "path")


def _texts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """Texts, of which a single one may stand for itself."""
    found = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(one, str) and one for one in found):
        raise UsageError(f"{name} must be texts that are not empty")
    if len(set(found)) < len(found):
        raise UsageError(f"{name} names something twice: {', '.join(found)}")
    return found
