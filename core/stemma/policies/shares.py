"""Shares that a user names, what speaks against one, and shares drawn by lot."""

from __future__ import annotations

import hashlib
import math
import numbers

from stemma.errors import UsageError

__all__ = ["MOST_ERROR", "at_least", "drawn", "error_bound", "share"]

MOST_ERROR = 0.5
"""A bound above this asks for nothing."""


def share(name: str, value: object, most: float = 1.0, *, least: float = 0.0) -> float:
    """A share as a number.

    Raises:
        UsageError: It is not a number from `least` to `most`.
    """
    wanted = f"{name} must be a share from {least:g} to {most:g}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError(f"{wanted}, not {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not least <= number <= most:
        raise UsageError(f"{wanted}, not {value}")
    return number


def error_bound(value: object) -> float:
    """A bound on the share of wrong answers, 0 (exact hits only) to `MOST_ERROR`.

    Raises:
        UsageError: It is out of that range.
    """
    return share("max_error", value, MOST_ERROR)


def at_least(wrong: int, judged: int, share: float) -> float:
    """How likely as many wrong ones or more are, if `share` of all is wrong."""
    if share in (0.0, 1.0):
        return float(wrong == 0 or share == 1.0)
    # By logarithms: of a thousand judgements the number of ways is beyond any float.
    ways = (math.lgamma(k + 1) + math.lgamma(judged - k + 1) for k in range(wrong))
    odds, rest = math.log(share) - math.log1p(-share), judged * math.log1p(-share)
    most = math.lgamma(judged + 1) + rest
    return 1.0 - math.fsum(math.exp(most - one + k * odds) for k, one in enumerate(ways))


def drawn(lot: str) -> float:
    """A number in [0, 1) that depends on the text alone, and evenly falls anywhere."""
    raw = hashlib.blake2b(lot.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return int.from_bytes(raw, "big") / 2**48
