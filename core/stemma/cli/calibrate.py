"""`stemma calibrate`: which policy and setting fit a log of one's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from stemma.cli.printing import Plain, console, print_json
from stemma.cli.targets import see_to, see_to_figures
from stemma.embedders.adapters import as_embedder
from stemma.embedders.health import Checked
from stemma.errors import UsageError
from stemma.policies.shares import error_bound
from stemma.policies.verified import VerifiedPolicy
from stemma.policy_file import PolicyFile
from stemma.replays import calibrating
from stemma.replays.answers import Prepared, prepared
from stemma.replays.calibrating import RATES, THRESHOLDS, Calibrated
from stemma.replays.figure import tradeoff
from stemma.replays.log import Skipped, read
from stemma.replays.tally import Interval
from stemma.replays.unanswered import nearness

__all__ = ["calibrate"]

_SHOWN = 5
"""Lines left out that are named."""

_TITLES = ("hits", "by meaning", "wrong, of what is decided", "wrong, of a hit by meaning")

_UNANSWERED = 'no line has a "group" or an "answer": which hits would be right cannot be told'

_err = Plain(stderr=True)


def calibrate(  # noqa: PLR0917 - a command's options, given by name
    log: Annotated[Path, typer.Argument(help='JSON lines: "text", and "group" or "answer".')],
    embedder: Annotated[str, typer.Option(help='The cache\'s: "local" or "hashing".')] = "local",
    max_error: Annotated[
        float, typer.Option(help="Wrong answers wanted at most, of what reaches the decision.")
    ] = 0.02,
    out: Annotated[Path | None, typer.Option(help="Write the policy file there.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the trade-off there, as PNG.")] = None,
    limit: Annotated[int, typer.Option(help="Take the last so many requests.", min=1)] = 3000,
    orders: Annotated[int, typer.Option(help="Orders, the log's own first.", min=2)] = 5,
    seed: Annotated[int, typer.Option(help="Of the other orders, and of audits.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Which policy and setting fit your own log: hits against wrong answers, and a policy file."""
    wanted = error_bound(max_error)
    if embedder not in ("local", "hashing"):
        raise UsageError(f'--embedder must be "local" or "hashing", not {embedder!r}')
    see_to(*(path for path in (out, plot) if path is not None))
    if plot is not None:
        see_to_figures("--plot")
    told = read(log)
    compares = Checked(as_embedder(embedder))
    if wanted == 0:
        _exact_only(told.digest, compares.revision, out, as_json=as_json)
        return
    given = prepared(dataclasses.replace(told, lines=told.lines[-limit:]), compares)
    if not given.log.answered:
        if out is not None or plot is not None:
            raise UsageError(f"nothing was written: {_UNANSWERED}")
        _unanswered(given, as_json=as_json)
        return
    with _err.status("replaying the log") as status:
        found = calibrating.calibrate(
            given,
            max_error=wanted,
            number=orders,
            seed=seed,
            begun=lambda name: status.update(f"replaying the log: {escape(name)}"),
        )
    if plot is not None:
        tradeoff(found).savefig(plot, format="png", dpi=150)
    _tell(found, given, as_json=as_json)
    if out is not None:
        calibrating.policy_file(found, given).write(out)
        if not as_json:
            console.print(f"written to {escape(str(out))}")


def _exact_only(log: str, embedder: str, out: Path | None, *, as_json: bool) -> None:
    """With no error allowed there is nothing to try."""
    if out is not None:
        verifier = VerifiedPolicy(0.0, embedder=embedder).identity["verifier"]
        PolicyFile(
            policy="verified",
            setting=0.0,
            embedder=embedder,
            verifier=verifier,
            calibrated={"log": log, "max_error": 0.0},
        ).write(out)
    if as_json:
        print_json({"max_error": 0.0, "recommended": {"policy": "verified", "setting": 0.0}})
    else:
        console.print("recommended: verified 0: with no error allowed, exact hits only")


def _unanswered(given: Prepared, *, as_json: bool) -> None:
    """The log does not say what was answered: nothing can be judged."""
    found = nearness([one.text for one in given.requests], given.at, THRESHOLDS)
    if as_json:
        told = {**dataclasses.asdict(found), "recommended": None, "why_not": _UNANSWERED}
        print_json({**told, "skipped": _listed(given.skipped)})
        return
    _say_left_out(given.skipped)
    table = Table("the nearest request before it", "share of the requests")
    table.add_row("the same text", f"{found.repeats / found.requests:.1%}")
    for threshold, share in found.above.items():
        table.add_row(f"similarity of {threshold:g} or more", f"{share:.1%}")
    console.print(table)
    console.print(f"no recommendation: {_UNANSWERED}")


def _tell(found: Calibrated, given: Prepared, *, as_json: bool) -> None:
    best = found.best
    if as_json:
        print_json(_as_json(found, given))
        return
    _say_left_out(given.skipped)
    whole = max(len(one.policy) for one in found.settings)  # however narrow the terminal is
    table = Table(Column("setting", min_width=whole), *_TITLES, "error at most")
    for one in found.settings:
        cells = (one.name, *(_cell(one.rates[rate]) for rate in RATES), f"{one.at_most:.2%}")
        table.add_row(*cells, style="bold" if one is best else None)
    console.print(table)
    if best is None:
        console.print(f"no recommendation: {escape(found.why_not)}")
        return
    console.print(
        f"recommended: {best.name}: {best.rates['hits']['mean']:.1%} hits, and of the requests "
        f"that reach the decision {best.at_most:.2%} answered wrongly at most "
        f"(wanted: {found.max_error:.2%})"
    )


def _cell(rate: Interval) -> str:
    low, high = max(rate["low"], 0.0), min(rate["high"], 1.0)
    return f"{rate['mean']:.2%} ({low:.2%} to {high:.2%})"


def _say_left_out(skipped: Sequence[Skipped]) -> None:
    for one in skipped[:_SHOWN]:
        console.print(f"line {one.number}: {escape(one.why)}")
    if skipped:
        console.print(f"left out: {len(skipped)} lines")


def _listed(skipped: Sequence[Skipped]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(one) for one in skipped]


def _as_json(found: Calibrated, given: Prepared) -> dict[str, Any]:
    best = found.best
    return {
        "log": given.log.digest,
        "requests": len(given.requests),
        "skipped": _listed(given.skipped),
        "max_error": found.max_error,
        "settings": [
            {
                "policy": one.policy,
                "setting": one.value,
                "error_at_most": one.at_most,
                **{name: dict(one.rates[name]) for name in (*RATES, "exact", "ceiling", "error")},
            }
            for one in found.settings
        ],
        "recommended": best and {"policy": best.policy, "setting": best.value},
        "why_not": found.why_not,
    }
