"""What is asked inside a scope, and the keys that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stemma.keys import canonical, digest_text
from stemma.scope import Scope

__all__ = ["Key", "Request"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One question inside a scope.

    Args:
        exact: The part that must be equal: everything but the focus.
        focus: The part that may be compared by meaning; `None` if nothing may.
        before: The conversation before it, oldest turn first. For now it must be equal.
        meaning: Whether the focus may be compared by meaning, or only exactly.
    """

    exact: Any = None
    focus: str | None = field(default=None, repr=False)
    before: tuple[str, ...] = field(default=(), repr=False)
    meaning: bool = True

    def key(self, scope: Scope) -> Key:
        """The request's key in a scope.

        Raises:
            UnkeyableValue: The exact part has no stable form.
        """
        return Key.of(scope.partition, canonical([self.exact, list(self.before)]), self.focus)


@dataclass(frozen=True, slots=True)
class Key:
    """Where an entry lives.

    `partition` is the scope's digest. `group` adds the exact part: only entries of one group may
    be compared by meaning. `id` adds the focus: it is the exact key and the entry's id.
    """

    partition: str
    group: str
    id: str

    @classmethod
    def of(cls, partition: str, exact: str, focus: str | None) -> Key:
        """The key of an exact part that is canonical already (see `stemma.keys.canonical`)."""
        group = digest_text(f"{partition}|{exact}")
        return cls(partition, group, digest_text(f"{group}|{canonical(focus)}"))
