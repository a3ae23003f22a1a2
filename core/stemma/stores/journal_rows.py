"""The journal's records out of rows, once for the stores that write SQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stemma.stores.protocol import Count, Judgement, Serving
from stemma.stores.text import unescape

__all__ = ["BARRED", "COUNTED", "JUDGED", "SERVED", "counted", "judged", "served"]

COUNTED = "tenant, node, outcome, lookups, seconds, tokens"
"""The columns of a counter, in the order in which `counted` takes them."""

SERVED = "entry, tenant, tier, similarity, at"
"""Those of a serving, for `served`."""

JUDGED = "entry, value, verdict, by, confidence, at, question"
"""Those of a judgement, for `judged`."""

BARRED = "CASE question WHEN entry THEN value ELSE question END"
"""What a judgement bars: `Judgement.barred`."""


def counted(rows: Iterable[Any]) -> tuple[Count, ...]:
    """Counters by tenant, node and outcome."""
    sums = (
        Count(
            tenant=unescape(tenant),
            node=unescape(node),
            outcome=unescape(outcome),
            lookups=lookups,
            seconds=seconds,
            tokens=tokens,
        )
        for tenant, node, outcome, lookups, seconds, tokens in rows
    )
    return tuple(sorted(sums, key=lambda one: (one.tenant, one.node, one.outcome)))


def served(rows: Iterable[Any]) -> tuple[Serving, ...]:
    """Servings in the order of their rows."""
    return tuple(
        Serving(
            entry=unescape(entry),
            tenant=unescape(tenant),
            tier=unescape(tier),
            similarity=similarity,
            at=at,
        )
        for entry, tenant, tier, similarity, at in rows
    )


def judged(rows: Iterable[Any]) -> tuple[Judgement, ...]:
    """Judgements in the order of their rows."""
    return tuple(
        Judgement(
            entry=unescape(entry),
            value=unescape(value),
            verdict=verdict,
            by=unescape(by),
            confidence=confidence,
            at=at,
            question=unescape(question),
        )
        for entry, value, verdict, by, confidence, at, question in rows
    )
