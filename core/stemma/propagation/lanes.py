"""What became of an answer over time, as a figure: who was reached when, and what was done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from stemma.legible import legible, short
from stemma.plotting import COLOURS, legibly, styled
from stemma.policies.changes import check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LANES", "timeline"]

LANES = 40
"""More tenants than these have no lane of their own."""

_MARKS = {
    "made": ("o", COLOURS[4]),
    "promoted": ("^", COLOURS[2]),
    "served": ("o", COLOURS[0]),
    "built": ("s", COLOURS[3]),
    "reported": ("X", COLOURS[1]),
    "quarantined": ("D", COLOURS[1]),
    "released": ("P", COLOURS[2]),
    "recalled": ("X", "#000000"),
}
_OTHER = ("|", "#999999")
_REACH = frozenset({"made", "served", "built"})
"""What brings an answer to a tenant."""
_ENDS = frozenset({"quarantined", "recalled"})
"""What ends its way."""

_LATEST = 253_402_300_799.0
"""The end of the year 9999: no calendar goes beyond."""
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


class _Event(NamedTuple):
    at: float
    what: str
    tenant: str
    detail: object


def timeline(
    events: Iterable[tuple[float, str, str, object]], *, title: str | None = None
) -> Figure:
    """A lane a tenant, in the order in which they were reached; above, how many had been reached.

    A tenant is reached when an answer is made by it, served to it or built on in it. Of many
    tenants the first have lanes, and the figure says how many have none.

    Args:
        events: What happened, in any order: when (seconds since the epoch), what ("made",
            "promoted", "served", "built", "reported", "quarantined", "released" or "recalled"), to
            which tenant (empty: to none alone), and more of it in words, which are not shown.
        title: What stands above.

    Raises:
        UsageError: A time is not a finite number, or before the epoch.
        MissingDependency: matplotlib is not installed.
    """
    known = sorted((_Event(*event) for event in events), key=lambda one: _time(one.at))
    begin, end = (known[0].at, known[-1].at) if known else (0.0, 0.0)
    unit, length = _unit(end - begin)
    scaled = [one._replace(at=(one.at - begin) / length) for one in known]
    tenants = list(dict.fromkeys(one.tenant for one in known))
    lanes = tenants[:LANES]
    with styled(9, 2.6 + 0.26 * max(len(lanes), 1)) as drawn:
        heights = [1.2, 0.26 * len(lanes) + 0.3]
        above, below = drawn.subplots(2, 1, sharex=True, height_ratios=heights)
        _draw_reached(above, scaled)
        _draw_lanes(below, scaled, lanes)
        since = f"{datetime.fromtimestamp(begin, UTC):%Y-%m-%d %H:%M:%S} UTC"
        left = len(tenants) - len(lanes)
        more = f"; not drawn: {left} tenants reached later" if left else ""
        below.set_xlabel(f"{unit} since {since}{more}" if known else "nothing happened")
        if title is not None:
            drawn.suptitle(legibly(title), fontsize=10, parse_math=False)
    return drawn


def _time(at: float) -> float:
    check_number("a time", at, low=0.0, high=_LATEST)
    return at


def _unit(span: float) -> tuple[str, float]:
    """The largest unit of which there are at least two."""
    return next(((name, long) for name, long in _UNITS if span >= 2 * long), _UNITS[-1])


def _draw_reached(axes: Axes, events: Sequence[_Event]) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - not needed without a figure

    seen: set[str] = set()
    counts = []
    for one in events:
        if one.what in _REACH and one.tenant:
            seen.add(one.tenant)
        counts.append(len(seen))
    at = [one.at for one in events]
    axes.step(at, counts, where="post", color=COLOURS[0], marker="")
    axes.fill_between(at, counts, step="post", color=COLOURS[0], alpha=0.15, linewidth=0)
    axes.set_ylabel("tenants\nreached")
    axes.set_ylim(0, max(counts, default=0) + 1)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    for at_once, what in dict.fromkeys((one.at, one.what) for one in events):
        if what in _ENDS:
            axes.axvline(at_once, color=_MARKS[what][1], linewidth=0.8, linestyle=":", marker="")


def _draw_lanes(axes: Axes, events: Sequence[_Event], lanes: Sequence[str]) -> None:
    lane = {tenant: place for place, tenant in enumerate(lanes)}
    for what in dict.fromkeys([*_MARKS, *(one.what for one in events)]):
        shown = [one for one in events if one.what == what and one.tenant in lane]
        if shown:
            mark, colour = _MARKS.get(what, _OTHER)
            xs, ys = [one.at for one in shown], [lane[one.tenant] for one in shown]
            axes.plot(xs, ys, mark, color=colour, label=legible(what), markersize=6, alpha=0.85)
    names = [legibly(short(legible(one), 28)) if one else "(all)" for one in lanes]
    axes.set_yticks(range(len(lanes)), names)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_ylim(max(len(lanes), 1) - 0.5, -0.5)
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0))
