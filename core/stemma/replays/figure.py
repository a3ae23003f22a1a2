"""What calibration found, as a figure: wrong answers against hits, by policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stemma.plotting import COLOURS, styled
from stemma.replays.calibrating import Calibrated, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["tradeoff"]

_LABELS = {
    "threshold": "threshold, with guards",
    "verified-strict": "verified-strict",
    "verified": "verified",
}
_ERRORS = {
    "error_decided": "wrong, of the requests that reach the decision",
    "error_a_hit": "wrong, of the hits by meaning",
}


def tradeoff(found: Calibrated) -> Figure:
    """Two panels: the error of a request, and of a hit, against the share of hits.

    Bars are 95 % intervals over the orders. What is recommended has a ring around it.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    with styled(10, 4) as figure:
        for axes, rate in zip(figure.subplots(1, 2), _ERRORS, strict=True):
            _panel(axes, found, rate)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def _panel(axes: Axes, found: Calibrated, error: str) -> None:
    for colour, (policy, label) in zip(COLOURS, _LABELS.items(), strict=False):
        tried = sorted(
            (one for one in found.settings if one.policy == policy), key=lambda one: one.value
        )
        axes.errorbar(
            [_percent(one, "hits") for one in tried],
            [_percent(one, error) for one in tried],
            yerr=[
                [_percent(one, error) - _percent(one, error, "low") for one in tried],
                [_percent(one, error, "high") - _percent(one, error) for one in tried],
            ],
            color=colour,
            elinewidth=0.8,
            linestyle="--",
            linewidth=0.8,
            label=label,
        )
        for one in tried:
            axes.annotate(
                f"{one.value:g}",
                (_percent(one, "hits"), _percent(one, error)),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=7,
                color=colour,
            )
    if found.best is not None:
        axes.plot(
            _percent(found.best, "hits"),
            _percent(found.best, error),
            "o",
            markersize=12,
            fillstyle="none",
            color="black",
            label="recommended",
        )
    if error == "error_decided":
        axes.axhline(100 * found.max_error, color="#555555", linestyle=":", marker="")
        axes.annotate(
            f"wanted: {found.max_error:.1%}",
            (0, 100 * found.max_error),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=7,
        )
    axes.set_xlabel("hits, % of all requests")
    axes.set_ylabel("%")
    axes.set_title(_ERRORS[error], fontsize=9)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)


def _percent(one: Setting, rate: str, end: str = "mean") -> float:
    return 100.0 * min(max(one.rates[rate][end], 0.0), 1.0)
