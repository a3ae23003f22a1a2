"""What a forked child must not inherit: locks that other threads of its parent held.

A fork copies the memory and one thread. A lock that another thread held stays locked in the child
for ever; what that thread was about to change stays half changed; SQLite's locks and a server's
sockets belong to the parent. So whoever owns such a thing follows forks, and is told before one
and after it. Before, in the reverse order of joining: what holds a lock while it asks a store is
waited for while that store still answers.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from typing import Protocol

__all__ = ["Forking", "Lock", "follow"]

PATIENCE = 1.0
"""Seconds for which a fork waits for a lock. What it guards may be half changed after that."""


class Forking(Protocol):
    """What follows forks has this; the other two, `before_fork` and `after_fork_here`, may be."""

    def after_fork(self) -> None:
        """Begin anew in the child."""
        ...


_all: dict[int, weakref.ref[Forking]] = {}


def follow(owner: Forking) -> None:
    """Have `owner` told of every fork for as long as it lives.

    Args:
        owner: Its `after_fork` is called in the child. `before_fork`, where it has that, is called
            before a fork, and `after_fork_here` after it in the parent.
    """
    number = id(owner)
    _all[number] = weakref.ref(owner, lambda _: _all.pop(number, None))


class Lock:
    """A lock that a fork waits for, and that is free in the child.

    Args:
        reentrant: Whether who holds it may take it again.
    """

    __slots__ = ("__weakref__", "_held", "_kind", "_lock")

    def __init__(self, *, reentrant: bool = False) -> None:
        self._kind = threading.RLock if reentrant else threading.Lock
        self.after_fork()
        follow(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def before_fork(self) -> None:
        """Take it, so that nothing is half changed."""
        self._held = self._lock.acquire(timeout=PATIENCE)

    def after_fork_here(self) -> None:
        """Give it back, in the parent."""
        if self._held:
            self._lock.release()

    def after_fork(self) -> None:
        """Make a new one in the child: whoever holds the old one is not there."""
        self._lock = self._kind()
        self._held = False


def _owners() -> list[Forking]:
    """Those that live. Taken at once: a thread may join meanwhile."""
    return [owner for reference in list(_all.values()) if (owner := reference()) is not None]


def _tell(method: str, owners: list[Forking]) -> None:
    for owner in owners:
        told = getattr(owner, method, None)
        if told is not None:
            told()


def _before() -> None:
    until = time.monotonic() + PATIENCE
    while _importing() and time.monotonic() < until:
        time.sleep(0.001)
    _tell("before_fork", _owners()[::-1])


def _importing() -> bool:
    """Whether a thread is importing one of our modules: in a child it would never come to an end.

    Some are imported where they are first needed.
    """
    return any(
        name.startswith("stemma")
        and getattr(getattr(module, "__spec__", None), "_initializing", False)
        for name, module in list(sys.modules.items())
    )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before,
        after_in_parent=lambda: _tell("after_fork_here", _owners()),
        after_in_child=lambda: _tell("after_fork", _owners()),
    )
