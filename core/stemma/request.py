"""What is asked inside a scope, and the keys that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from stemma.conversation import fixed, judged
from stemma.errors import UsageError
from stemma.keys import canonical
from stemma.scope import Scope

__all__ = ["Key", "LeftOut", "Request", "whole_key"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """What one rule of a `stemma.Cleaning` left out of a prompt.

    Args:
        name: The rule's name.
        count: How many parts.
        texts: The first of them, each cut off after some length.
    """

    name: str
    count: int
    texts: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One question inside a scope.

    Args:
        exact: The part that must be equal: everything but the focus.
        focus: The part that may be compared by meaning; `None` if nothing may.
        before: The conversation before it, oldest turn first. It must mean the same where that
            can be told (see `stemma.conversation`), and be equal elsewhere.
        meaning: Whether the focus may be compared by meaning, or only exactly.
        encoded: The exact part in a canonical encoding of the caller's own, instead of `exact`.
        whole: The whole request in such an encoding: what the exact key is made of, instead of
            the exact part and the focus. So the key can be had without taking them apart.
        left_out: What was left out of all this, since it does not shape the answer.
    """

    exact: Any = None
    focus: str | None = field(default=None, repr=False)
    before: tuple[str, ...] = field(default=(), repr=False)
    meaning: bool = True
    encoded: bytes | None = field(default=None, repr=False)
    whole: bytes | None = field(default=None, repr=False)
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if self.focus is not None and not isinstance(self.focus, str):
            raise UsageError(f"what is asked must be a text, not {type(self.focus).__name__}")

    @property
    def turns(self) -> tuple[str, ...]:
        """The turns before it that are compared by meaning, oldest first."""
        return judged(self.before) if self.before and self.meaning and self.focus else ()

    def key(self, scope: Scope) -> Key:
        """The request's key in a scope.

        Raises:
            UnkeyableValue: The exact part has no stable form.
        """
        if self.encoded is not None and not self.before:
            exact = b"e" + self.encoded
        else:
            exact = b"c" + canonical([self.exact, self.encoded, list(self.before)]).encode("ascii")
        key = Key.of(scope.partition, exact, self.focus, self.whole)
        if not self.turns:
            return key
        around = [self.exact, self.encoded, fixed(self.before)]
        return replace(key, group=_group(scope.partition, b"t" + canonical(around).encode("ascii")))


@dataclass(frozen=True, slots=True)
class Key:
    """Where an entry lives.

    `partition` is the scope's digest. `group` adds the exact part: only entries of one group may
    be compared by meaning; turns that are compared by meaning are no part of it. `id` adds them
    and the focus: it is the exact key and the entry's id.
    """

    partition: str
    group: str
    id: str

    @classmethod
    def of(cls, partition: str, exact: bytes, focus: str | None, whole: bytes | None) -> Key:
        """The key of parts that are encoded already."""
        # A partition and a group are of fixed length, so nothing can run into them.
        group = _group(partition, exact)
        if whole is not None:
            return cls(partition, group, whole_key(partition, whole))
        asked = b"-" if focus is None else b"+" + focus.encode("utf-8", "surrogatepass")
        made_of = group.encode("ascii") + asked
        return cls(partition, group, blake2b(made_of, digest_size=16).hexdigest())


def _group(partition: str, exact: bytes) -> str:
    return blake2b(partition.encode("ascii") + exact, digest_size=16).hexdigest()


def whole_key(partition: str, whole: bytes) -> str:
    """The exact key of a request that is encoded as a whole."""
    return blake2b(partition.encode("ascii") + b"w" + whole, digest_size=16).hexdigest()
