"""`stream_zipf`: exact repeats, rewordings and near misses, by every policy in the same orders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evals.measuring import Figure, Measured, scaled
from evals.quality.texts import seen, stream
from evals.quality.vectors import vectors
from stemma.embedders import LocalEmbedder
from stemma.replays.alignments import Alignments
from stemma.replays.contenders import exact, orders, put, static, strict, verified
from stemma.replays.tally import Interval

__all__ = ["run"]

ORDERS = 5
THRESHOLDS = (0.80, 0.85, 0.90, 0.95, 0.98)
DEFAULT = 0.88
TARGETS = {0.01: (0.78, 0.03), 0.02: (0.79, 0.05)}
"""By bound: the least share of hits, and the greatest error of a semantic hit."""

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
    contenders = {
        "exact only": exact(),
        **{f"static {one:.2f}": static(one) for one in THRESHOLDS},
        f"static {DEFAULT:.2f}, guards": static(DEFAULT, guards=True),
        **{f"verified-strict {one:.0%}": strict(one, revision) for one in (0.01, 0.02, 0.05)},
        **{
            f"verified {one:.0%}": verified(one, revision, aligned=aligned)
            for one in (0.01, 0.02, 0.05)
        },
        **{
            f"verified {one:.0%}, no token vectors": verified(one, revision)
            for one in (0.01, 0.02, 0.05)
        },
    }
    streams = orders(requests, scaled(ORDERS, size, least=2), seed)
    told: dict[str, Any] = {name: put(one, streams, at) for name, one in contenders.items()}
    unseen = [[one for one in order if seen(one.group) == 1] for order in streams]
    told["verified 2%, groups never fitted to"] = put(ours, unseen, at)
    apart = stream("zipf", pooled=False)[: len(requests)]
    told["verified 2%, in file order"] = put(ours, streams[:1], at)
    told["tenants apart"] = {
        tenant: put(ours, [[one for one in apart if one.tenant == tenant]], at)
        for tenant in sorted({one.tenant for one in apart})
    }
    return Measured(figures=_figures(told), details=told)


def _figures(told: dict[str, Any]) -> list[Figure]:
    figures: list[Figure] = []
    for name, rates in told.items():
        if name == "tenants apart":
            continue
        bound = next((one for one in TARGETS if name == f"verified {one:.0%}"), None)
        hits, error = TARGETS[bound] if bound is not None else (None, None)
        figures += [
            Figure(what=f"{name}: hits", value=rates["hits"]["mean"], unit="", at_least=hits),
            Figure(what="… wrong, of all requests", value=rates["error"]["mean"], unit=""),
            Figure(
                what="… wrong, of a semantic hit",
                value=rates["error_a_hit"]["mean"],
                unit="",
                at_most=error,
            ),
        ]
    ours: dict[str, Interval] = told["verified 2%"]
    first: dict[str, Interval] = told["verified 2%, in file order"]
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
            value=told["verified 2%, no token vectors"]["microseconds"]["mean"],
            unit="µs",
            at_most=DECISION,
        ),
        Figure(
            what="semantic hits in the first 500 of the file",
            value=first["semantic_in_first_500"]["mean"],
            unit="",
        ),
    ]
    figures += [
        Figure(
            what=f"tenant {tenant}: hits, of its ceiling",
            value=rates["hits"]["mean"] / max(rates["ceiling"]["mean"], 1e-9),
            unit="",
        )
        for tenant, rates in told["tenants apart"].items()
    ]
    return figures
