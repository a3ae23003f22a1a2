"""What a replayed stream comes to: rates of one order, and means with intervals over several."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from stemma.replays.replay import Replayed

__all__ = ["Interval", "over_orders", "tally"]

Interval = dict[str, float]
"""`mean`, `low` and `high` of the 95 % interval, `worst`: the highest of the orders."""

_T = (math.inf, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's quantile at 97.5 %, by the degrees of freedom."""

_NORMAL = 2.0
_COLD, _EARLY = 50, 500


def tally(found: Replayed) -> dict[str, float]:
    """The rates of one replayed stream.

    `hits`, `exact`, `semantic` and `ceiling` are shares of all requests; `reused` is the share of
    what could be reused that was, rightly; `error` is over all requests, `error_decided` over those
    that reach the semantic decision, `error_a_hit` over semantic hits. `reworded_in_first_500` is
    the share, of the first 500 requests whose answer was given before but not to their very text,
    that got it.
    """
    outcomes, number = found.outcomes, len(found.outcomes)
    exact = [one for one in outcomes if one.kind == "exact"]
    semantic = [one for one in outcomes if one.kind == "semantic"]
    right = sum(not one.wrong for one in (*exact, *semantic))
    wrong, wrong_exact = (sum(one.wrong for one in kind) for kind in (semantic, exact))
    return {
        "requests": number,
        "hits": (len(exact) + len(semantic)) / number,
        "exact": len(exact) / number,
        "semantic": len(semantic) / number,
        "ceiling": sum(found.reusable) / number,
        "reused": right / max(sum(found.reusable), 1),
        "error": (wrong + wrong_exact) / number,
        "error_decided": wrong / max(number - len(exact), 1),
        "error_a_hit": wrong / max(len(semantic), 1),
        "entries": found.entries,
        "microseconds": statistics.median(found.microseconds) if found.microseconds else 0.0,
        f"hits_in_first_{_COLD}": sum(one.kind != "miss" for one in outcomes[:_COLD]),
        f"semantic_in_first_{_COLD}": sum(one.kind == "semantic" for one in outcomes[:_COLD]),
        f"reworded_in_first_{_EARLY}": _reworded(found),
    }


def over_orders(tallies: Sequence[dict[str, float]]) -> dict[str, Interval]:
    """The mean of each rate over several orders, with its 95 % interval."""
    found = {}
    for name in tallies[0]:
        values = [one[name] for one in tallies]
        mean, half = statistics.fmean(values), 0.0
        if len(values) > 1:
            t = _T[len(values) - 1] if len(values) <= len(_T) else _NORMAL
            half = t * statistics.stdev(values) / math.sqrt(len(values))
        found[name] = {"mean": mean, "low": mean - half, "high": mean + half, "worst": max(values)}
    return found


def _reworded(found: Replayed) -> float:
    early = list(zip(found.outcomes, found.reworded, strict=True))[:_EARLY]
    right = [one.kind == "semantic" and not one.wrong for one, reworded in early if reworded]
    return sum(right) / max(len(right), 1)
