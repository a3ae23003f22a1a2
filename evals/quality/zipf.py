"""`stream_zipf`: exact repeats, rewordings and near misses, by every policy in the same orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evals.measuring import Figure, Measured, scaled
from evals.quality.side_by_side import beside, still
from evals.quality.texts import seen, stream
from evals.quality.vectors import vectors
from evals.quality.weights import held_out, shipped_weights
from stemma.embedders import LocalEmbedder
from stemma.replays.alignments import Alignments
from stemma.replays.contenders import orders, put, static, strict, verified
from stemma.replays.tally import Interval

__all__ = ["run"]

ORDERS = 5
DEFAULT = 0.88
BOUNDS = (0.01, 0.02, 0.05)
TARGETS = {0.01: (0.78, 0.03), 0.02: (0.79, 0.05)}
"""By bound: the least share of hits, and the greatest error of a semantic hit."""

EARLY = 0.5
DECISION, ALIGNED = 50.0, 500.0
"""Microseconds of a decision without token vectors, and with."""


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """Pooled tenants in several orders, the first that of the file; then tenants apart."""
    embedder = LocalEmbedder()
    requests = stream("zipf")
    requests = requests[: scaled(len(requests), size)]
    at = vectors((one.text for one in requests), embedder)
    revision, aligned = embedder.revision, Alignments(embedder)
    ours = verified(0.02, revision, aligned=aligned)
    unseen = held_out("zipf", embedder, seed)
    contenders = {
        **still(),
        f"static {DEFAULT:.2f}, guards": static(DEFAULT, guards=True),
        **{f"verified-strict {one:.0%}": strict(one, revision) for one in BOUNDS},
        **{f"verified {one:.0%}": verified(one, revision, aligned=aligned) for one in BOUNDS},
        **{f"verified {one:.0%}, no token vectors": verified(one, revision) for one in BOUNDS},
        **{f"verified {one:.0%}, held out": verified(one, revision, unseen) for one in BOUNDS},
    }
    streams = orders(requests, scaled(ORDERS, size, least=2), seed)
    rows = {name: put(one, streams, at) for name, one in contenders.items()}
    half = [[one for one in order if seen(one.group) == 1] for order in streams]
    rows["verified 2%, other half of the groups"] = put(ours, half, at)
    rows["verified 2%, in file order"] = put(ours, streams[:1], at)
    apart = stream("zipf", pooled=False)[: len(requests)]
    for tenant in sorted({one.tenant for one in apart}):
        own = [[one for one in apart if one.tenant == tenant]]
        rows[f"verified 2%, tenant {tenant}"] = put(ours, own, at)
    told: dict[str, Any] = {**rows, "weights": shipped_weights(), "held out": unseen["made"]}
    return Measured(figures=_figures(rows), details=told, beside=beside(rows))


def _figures(rows: dict[str, dict[str, Interval]]) -> list[Figure]:
    figures: list[Figure] = []
    for bound, (hits, error) in TARGETS.items():
        for name, least, most in (
            (f"verified {bound:.0%}", hits, error),
            (f"verified {bound:.0%}, no token vectors", None, None),
            (f"verified {bound:.0%}, held out", None, None),
        ):
            rates = rows[name]
            figures += [
                Figure(what=f"{name}: hits", value=rates["hits"]["mean"], unit="", at_least=least),
                Figure(
                    what="… wrong, of a semantic hit",
                    value=rates["error_a_hit"]["mean"],
                    unit="",
                    at_most=most,
                ),
            ]
    ours, first = rows["verified 2%"], rows["verified 2%, in file order"]
    figures += [
        Figure(what="ceiling of hits", value=ours["ceiling"]["mean"], unit=""),
        Figure(
            what="a decision, with token vectors that are remembered",
            value=ours["microseconds"]["mean"],
            unit="µs",
            at_most=ALIGNED,
        ),
        Figure(
            what="a decision without token vectors",
            value=rows["verified 2%, no token vectors"]["microseconds"]["mean"],
            unit="µs",
            at_most=DECISION,
        ),
        Figure(
            what="reworded, in the first 500 of the file: hits, of its ceiling",
            value=first["reworded_in_first_500"]["mean"],
            unit="",
            at_least=EARLY,
        ),
    ]
    figures += [
        Figure(
            what=f"{name.removeprefix('verified 2%, ')}: hits (its ceiling {ceiling:.3f})",
            value=rates["hits"]["mean"],
            unit="",
        )
        for name, rates in rows.items()
        if "tenant" in name
        for ceiling in (rates["ceiling"]["mean"],)
    ]
    return figures
