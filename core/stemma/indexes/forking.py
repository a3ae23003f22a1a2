"""Locks that nobody holds in a forked child.

A child has one thread, the one that forked. What another one held would stay held for ever, and
what that one was changing would stay as it was. So a fork waits until these locks are free.
"""

from __future__ import annotations

import os
import threading
import weakref

__all__ = ["lock_free_at_fork"]

_all: weakref.WeakSet[threading.Lock] = weakref.WeakSet()
_forking = threading.Lock()
_held: list[threading.Lock] = []


def lock_free_at_fork() -> threading.Lock:
    """A lock on which a fork waits. Never take two of them, one inside the other."""
    lock = threading.Lock()
    _all.add(lock)
    return lock


def _before_fork() -> None:
    _forking.acquire()
    for lock in list(_all):
        lock.acquire()
        _held.append(lock)


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
