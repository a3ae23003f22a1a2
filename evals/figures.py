"""Figures of the documentation, from the JSON of `python -m evals speed`.

    python -m evals.figures speed.json docs

The same JSON gives the same bytes: no date, and ids that hang on the contents alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import matplotlib as mpl
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from stemma.plotting import COLOURS, STYLE

__all__ = ["draw", "growth", "throughput"]

Told = Mapping[str, Any]

_NONE = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_VERSIONS = ("python", "numpy", "sqlite")


def growth(told: Told) -> Figure:
    """Times, the start, and bytes an entry, by the number of entries."""
    levels = told["results"]["growth"]["measured"]["levels"]
    entries = [level["entries"] for level in levels]
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    calls, start, sizes = figure.subplots(1, 3)
    for colour, (kind, label) in zip(
        COLOURS,
        {
            "product": "bare product (no cache)",
            "hit": "hit by meaning",
            "put": "put",
            "get": "exact hit",
        }.items(),
        strict=False,
    ):
        values = [level["microseconds"][kind] for level in levels]
        style = "--" if kind == "product" else "-"
        calls.plot(entries, values, style, color=colour, label=label)
    _axes(calls, "one call, embedding apart", "microseconds", log=True)
    start.plot(entries, [level["seconds"] for level in levels], color=COLOURS[0])
    _axes(start, "first hit of a fresh process", "seconds", log=True)
    for colour, (key, label) in zip(
        COLOURS,
        {"file_bytes_an_entry": "file", "bytes_an_entry": "process memory"}.items(),
        strict=False,
    ):
        sizes.plot(entries, [level[key] for level in levels], color=colour, label=label)
    _axes(sizes, "one entry, of 500 bytes and a vector", "bytes", log=False)
    sizes.set_ylim(bottom=0)
    calls.legend(loc="upper left")
    sizes.legend(loc="lower right")
    for axes in (calls, start, sizes):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("entries of one partition")
    return _captioned(figure, told)


def throughput(told: Told) -> Figure:
    """Gets and puts a second, by the number of processes."""
    part = told["results"]["throughput"]["measured"]
    names = {
        "memory": "memory (threads)",
        "sqlite": "SQLite",
        "guarded": "Guarded over SQLite",
        "two-level": "TwoLevel over Guarded",
        "postgresql": "PostgreSQL",
    }
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    gets, puts = figure.subplots(1, 2)
    for axes, kind, title in ((gets, "gets", "exact hits"), (puts, "puts", "puts, with vector")):
        for colour, (name, label) in zip(COLOURS, names.items(), strict=True):
            if name in part["stores"]:
                rates = part["stores"][name][kind]
                axes.plot(part["workers"], rates, color=colour, label=label)
        _axes(axes, title, "a second, all together", log=True)
        axes.set_xticks(part["workers"])
        axes.set_xlabel("processes at once")
    figure.legend(*gets.get_legend_handles_labels(), loc="outside right upper")
    return _captioned(figure, told)


FIGURES: dict[str, Callable[[Told], Figure]] = {"growth": growth, "throughput": throughput}


def draw(told: Told, folder: Path) -> list[Path]:
    """Write the figures whose parts were measured into a folder; gives their files."""
    files = []
    for name, figure in FIGURES.items():
        if name in told["results"]:
            files.append(folder / f"{name}.svg")
            with mpl.rc_context(STYLE):
                figure(told).savefig(files[-1], metadata=_NONE)
    return files


def main(
    results: Annotated[Path, typer.Argument(help="What `python -m evals speed --json` wrote.")],
    folder: Annotated[Path, typer.Argument(help="Where the figures go.")],
) -> None:
    """Draw the figures of the documentation."""
    for file in draw(json.loads(results.read_text(encoding="utf-8")), folder):
        typer.echo(f"written to {file}")


def _axes(axes: Axes, title: str, unit: str, *, log: bool) -> None:
    axes.set_title(title)
    axes.set_ylabel(unit)
    if log:
        axes.set_yscale("log")


def _captioned(figure: Figure, told: Told) -> Figure:
    """With where the figures are from: machine, versions, seed."""
    machine, versions = told["machine"], told["versions"]
    caption = "; ".join(
        (
            f"{machine['processor']}, {machine['cores']} cores",
            ", ".join(f"{name} {versions[name]}" for name in _VERSIONS),
            f"size {told['size']:g}, seed {told['seed']}",
            f"commit {told['commit']}, {told['at'][:10]}",
        )
    )
    figure.supxlabel(caption, fontsize=7.5, color="#555555")
    return figure


if __name__ == "__main__":
    typer.run(main)
