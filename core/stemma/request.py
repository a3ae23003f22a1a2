"""What is asked inside a scope, and the keys that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from stemma.errors import UsageError
from stemma.keys import canonical
from stemma.scope import Scope

__all__ = ["Key", "Request", "whole_key"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One question inside a scope.

    Args:
        exact: The part that must be equal: everything but the focus.
        focus: The part that may be compared by meaning; `None` if nothing may.
        before: The conversation before it, oldest turn first. For now it must be equal.
        meaning: Whether the focus may be compared by meaning, or only exactly.
        encoded: The exact part in a canonical encoding of the caller's own, instead of `exact`.
        whole: The whole request in such an encoding: what the exact key is made of, instead of
            the exact part and the focus. So the key can be had without taking them apart.
    """

    exact: Any = None
    focus: str | None = field(default=None, repr=False)
    before: tuple[str, ...] = field(default=(), repr=False)
    meaning: bool = True
    encoded: bytes | None = field(default=None, repr=False)
    whole: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.focus is not None and not isinstance(self.focus, str):
            raise UsageError(f"what is asked must be a text, not {type(self.focus).__name__}")

    def key(self, scope: Scope) -> Key:
        """The request's key in a scope.

        Raises:
            UnkeyableValue: The exact part has no stable form.
        """
        if self.encoded is not None and not self.before:
            exact = b"e" + self.encoded
        else:
            exact = b"c" + canonical([self.exact, self.encoded, list(self.before)]).encode("ascii")
        return Key.of(scope.partition, exact, self.focus, self.whole)


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
    def of(cls, partition: str, exact: bytes, focus: str | None, whole: bytes | None) -> Key:
        """The key of parts that are encoded already."""
        # A partition and a group are of fixed length, so nothing can run into them.
        group = blake2b(partition.encode("ascii") + exact, digest_size=16).hexdigest()
        if whole is not None:
            return cls(partition, group, whole_key(partition, whole))
        asked = b"-" if focus is None else b"+" + focus.encode("utf-8", "surrogatepass")
        made_of = group.encode("ascii") + asked
        return cls(partition, group, blake2b(made_of, digest_size=16).hexdigest())


def whole_key(partition: str, whole: bytes) -> str:
    """The exact key of a request that is encoded as a whole."""
    return blake2b(partition.encode("ascii") + b"w" + whole, digest_size=16).hexdigest()
