"""What is wrong with the arguments of a face, said where it is made and not first in a run."""

from __future__ import annotations

import math
from typing import Any

from stemma import Cache, UsageError

__all__ = ["checked_cache", "checked_life"]


def checked_cache(cache: Any) -> None:
    """See that it is a cache.

    Raises:
        UsageError: It is none.
    """
    if not isinstance(cache, Cache):
        raise UsageError(f"cache must be what stemma.open gave, not {type(cache).__name__}")


def checked_life(life: Any) -> None:
    """See that it is a base life, or `None`.

    Raises:
        UsageError: It is no finite number of seconds above 0.
    """
    number = isinstance(life, (int, float)) and not isinstance(life, bool)
    if life is not None and not (number and 0 < life < math.inf):
        raise UsageError(f"life must be a number of seconds above 0, not {life!r}")
