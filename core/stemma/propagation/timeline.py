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

__all__ = ["LANES", "Moment", "timeline"]

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

_LATEST = 253_402_300_799.0
"""The end of the year 9999: no calendar goes beyond."""
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


class Moment(NamedTuple):
    """Something that happened.

    Args:
        at: When, in seconds since the epoch.
        what: "made", "promoted", "served", "built", "reported", "quarantined", "released" or
            "recalled".
        tenant: To whom; `None`: to nobody alone.
        detail: More of it, in words.
    """

    at: float
    what: str
    tenant: str | None
    detail: object = None


def timeline(
    events: Iterable[tuple[float, str, str | None, object]], *, title: str | None = None
) -> Figure:
    """A lane a tenant, in the order in which they were reached; above, how many had been reached.

    A tenant is reached when an answer is made by it, served to it or built on in it. Of many
    tenants the first have lanes, and the figure says how many have none.

    Args:
        events: What happened, in any order: `(at, what, tenant, detail)`, as `Moment` has it.
        title: What stands above.

    Raises:
        UsageError: A time is not a finite number, or before the epoch.
        MissingDependency: matplotlib is not installed.
    """
    moments = sorted((Moment(*event) for event in events), key=lambda one: _time(one.at))
    tenants = list(dict.fromkeys(one.tenant for one in moments))
    lanes = tenants[:LANES]
    begin = moments[0].at if moments else 0.0
    unit, length = _unit(moments[-1].at - begin if moments else 0.0)
    with styled(9, 2.6 + 0.26 * max(len(lanes), 1)) as drawn:
        above, below = drawn.subplots(
            2, 1, sharex=True, height_ratios=[1.2, 0.26 * len(lanes) + 0.3]
        )
        at = [(one.at - begin) / length for one in moments]
        _reached(above, moments, at)
        _lanes(below, moments, at, lanes)
        left = len(tenants) - len(lanes)
        more = f"; not drawn: {left} tenants reached later" if left else ""
        since = (
            f" since {datetime.fromtimestamp(begin, UTC):%Y-%m-%d %H:%M:%S} UTC" if moments else ""
        )
        below.set_xlabel(f"{unit}{since}{more}")
        if title is not None:
            drawn.suptitle(legibly(title), fontsize=10, parse_math=False)
    return drawn


def _time(at: float) -> float:
    check_number("a time", at, low=0.0, high=_LATEST)
    return at


def _unit(span: float) -> tuple[str, float]:
    """The largest unit of which there are at least two."""
    return next(((name, long) for name, long in _UNITS if span >= 2 * long), _UNITS[-1])


def _reached(axes: Axes, moments: Sequence[Moment], at: Sequence[float]) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - not needed without a figure

    seen: set[str] = set()
    counts = []
    for one in moments:
        if one.what in _REACH and one.tenant is not None:
            seen.add(one.tenant)
        counts.append(len(seen))
    axes.step(at, counts, where="post", color=COLOURS[0], marker="")
    axes.fill_between(at, counts, step="post", color=COLOURS[0], alpha=0.15, linewidth=0)
    axes.set_ylabel("tenants\nreached")
    axes.set_ylim(0, max(counts, default=0) + 1)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    for place, one in zip(at, moments, strict=True):
        if one.what in {"quarantined", "recalled"}:
            axes.axvline(place, color=_MARKS[one.what][1], linewidth=0.8, linestyle=":", marker="")


def _lanes(
    axes: Axes, moments: Sequence[Moment], at: Sequence[float], lanes: Sequence[str | None]
) -> None:
    lane = {tenant: place for place, tenant in enumerate(lanes)}
    for what in dict.fromkeys([*_MARKS, *(one.what for one in moments)]):
        shown = [
            (place, lane[one.tenant])
            for place, one in zip(at, moments, strict=True)
            if one.what == what and one.tenant in lane
        ]
        if shown:
            mark, colour = _MARKS.get(what, _OTHER)
            xs, ys = [x for x, _ in shown], [y for _, y in shown]
            axes.plot(xs, ys, mark, color=colour, label=legible(what), markersize=6, alpha=0.85)
    names = ["(all)" if one is None else legibly(short(legible(one), 28)) for one in lanes]
    axes.set_yticks(range(len(lanes)), names)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_ylim(max(len(lanes), 1) - 0.5, -0.5)
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0))
