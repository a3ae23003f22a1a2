"""What is only measured, and how all that were measured are put side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stemma.replays.contenders import Contender, exact, static
from stemma.replays.log import Request
from stemma.replays.replay import Outcome, Replayed, after
from stemma.replays.tally import Interval

__all__ = ["THRESHOLDS", "beside", "nothing", "still"]

THRESHOLDS = tuple(percent / 100 for percent in range(80, 99, 2))

_COLUMNS = {
    "hits": "hits",
    "of the reusable": "reused",
    "wrong": "error",
    "… of decided": "error_decided",
    "… of a hit": "error_a_hit",
    "entries": "entries",
    "µs": "microseconds",
    "hits in first 50": "hits_in_first_50",
}
"""What is shown of each, and the rate behind it."""


def nothing() -> Contender:
    """No cache."""

    def answer(requests: Sequence[Request], *_: Any, **__: Any) -> Replayed:
        return after(requests, [Outcome("miss")] * len(requests), entries=0, microseconds=())

    return answer


def still() -> dict[str, Contender]:
    """Those that learn nothing."""
    return {
        "no cache": nothing(),
        "exact only": exact(),
        **{f"static {one:.2f}": static(one) for one in THRESHOLDS},
    }


def beside(found: Mapping[str, Mapping[str, Interval]]) -> dict[str, dict[str, str]]:
    """The main rates of each contender in words, with half the width of their intervals."""
    return {
        name: {column: _said(rates[rate]) for column, rate in _COLUMNS.items()}
        for name, rates in found.items()
    }


def _said(rate: Interval) -> str:
    mean, half = rate["mean"], rate["high"] - rate["mean"]
    if mean >= 1:
        return f"{mean:,.0f} ± {half:,.0f}"
    return f"{mean:.3f} ± {half:.3f}"
