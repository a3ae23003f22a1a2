"""What is remembered of texts, so that each is read once: for each tenant apart.

A text that is remembered takes less time. Were it remembered for all, a tenant could tell by the
time of its own lookups what another one has asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import TypeVar

__all__ = ["asked_by", "asker", "remembered"]

LONGEST = 2_000
"""Characters beyond which a text is not remembered."""

T = TypeVar("T")

_asker: ContextVar[str] = ContextVar("asker", default="")


def asker() -> str:
    """The tenant for whom texts are being read; empty where nobody has said it."""
    return _asker.get()


@contextmanager
def asked_by(tenant: str) -> Iterator[None]:
    """Read texts for a tenant."""
    before = _asker.get()
    _asker.set(tenant)
    try:
        yield
    finally:
        _asker.set(before)  # no token: steps that were given up may be closed in another context


def remembered(most: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Have a function of a text remember what it gave for short ones, for each tenant apart.

    Args:
        most: How many are remembered, of all tenants; the least recently used go.
    """

    def remembering(read: Callable[[str], T]) -> Callable[[str], T]:
        @lru_cache(maxsize=most)
        def known(tenant: str, text: str) -> T:
            del tenant
            return read(text)

        @wraps(read)
        def reading(text: str) -> T:
            return known(_asker.get(), text) if len(text) <= LONGEST else read(text)

        return reading

    return remembering
