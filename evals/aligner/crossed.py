"""What nets that were trained without a pair's part say of it: `crossed.json`."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from stemma.entry import content_digest
from stemma.replays.alignments import Align

__all__ = ["HOME", "aligned", "name_of", "unseen_first"]

HOME = Path(__file__).with_name("crossed.json")


def aligned(one: str, other: str) -> float | None:
    """The log-odds that a pair's tokens say the same; `None` where it is of no set of pairs."""
    return _read().get(name_of(one, other))


def unseen_first(align: Align) -> Align:
    """What the file says of a pair that it knows; of every other text, `align`."""

    def aligning(one: str, other: str) -> float:
        unseen = aligned(one, other)
        return align(one, other) if unseen is None else unseen

    return aligning


def name_of(one: str, other: str) -> str:
    """What a pair is known by in the file."""
    return content_digest(f"{one}\n{other}")[:16]


@lru_cache(maxsize=1)
def _read() -> dict[str, float]:
    found: dict[str, float] = json.loads(HOME.read_text(encoding="utf-8"))["aligned"]
    return found
