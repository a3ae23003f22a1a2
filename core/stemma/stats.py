"""What the cache has done so far, by tenant and node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from stemma.journal import CROSSING, EMBEDDER, FACTOR, REPORTER
from stemma.outcome import Tier
from stemma.stores.protocol import Count

__all__ = ["NodeStats", "Stats", "summed"]

_TIERS: tuple[Tier, ...] = ("exact", "semantic")


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeStats:
    """The lookups of one tenant at one node.

    Args:
        tenant: The tenant.
        node: The node.
        exact: Hits by the exact key.
        semantic: Hits by meaning.
        misses: Misses by reason.
        seconds: Seconds that the hits saved.
        tokens: Tokens that the hits saved.
        entries: Entries stored now.
        embedders: How often each embedder was asked, by its revision.
    """

    tenant: str
    node: str
    exact: int = 0
    semantic: int = 0
    misses: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    tokens: int = 0
    entries: int = 0
    embedders: Mapping[str, int] = field(default_factory=dict)

    @property
    def hits(self) -> int:
        """Hits of either kind."""
        return self.exact + self.semantic

    @property
    def lookups(self) -> int:
        """Hits and misses."""
        return self.hits + sum(self.misses.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Stats:
    """All counters since the store was made, over every process that used it."""

    rows: tuple[NodeStats, ...]

    def of(self, *, tenant: str | None = None, node: str | None = None) -> NodeStats:
        """The sums over all rows of a tenant, of a node, or of both."""
        chosen = [
            row
            for row in self.rows
            if (tenant is None or row.tenant == tenant) and (node is None or row.node == node)
        ]
        misses: Counter[str] = Counter()
        embedders: Counter[str] = Counter()
        for row in chosen:
            misses.update(row.misses)
            embedders.update(row.embedders)
        return NodeStats(
            tenant=tenant if tenant is not None else "*",
            node=node if node is not None else "*",
            exact=sum(row.exact for row in chosen),
            semantic=sum(row.semantic for row in chosen),
            misses=dict(misses),
            seconds=sum(row.seconds for row in chosen),
            tokens=sum(row.tokens for row in chosen),
            entries=sum(row.entries for row in chosen),
            embedders=dict(embedders),
        )

    def money(self, per_million_tokens: float) -> float:
        """What the saved tokens would have cost, at a price per million tokens."""
        return self.of().tokens * per_million_tokens / 1_000_000

    def as_json(self) -> list[dict[str, Any]]:
        """The rows as plain JSON values."""
        return [asdict(row) for row in self.rows]

    def remarks(self) -> tuple[str, ...]:
        """What their reader may not expect: that entries of several embedders lie side by side."""
        return tuple(
            f"{row.tenant}, {row.node}: {len(row.embedders)} embedders were used "
            f"({', '.join(sorted(row.embedders))}); each finds only its own entries"
            for row in self.rows
            if len(row.embedders) > 1
        )

    def __str__(self) -> str:
        lines = [f"{'tenant':<16} {'node':<10} {'exact':>7} {'semantic':>8} {'misses':>7}  saved"]
        for row in self.rows:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(row.misses.items()))
            saved = f"{row.seconds:.2f} s, {row.tokens} tokens"
            missed = sum(row.misses.values())
            lines.append(
                f"{row.tenant[:16]:<16} {row.node:<10} {row.exact:>7} {row.semantic:>8} "
                f"{missed:>7}  {saved}" + (f"  ({reasons})" if reasons else "")
            )
        return "\n".join([*lines, *self.remarks()])


def summed(counts: Iterable[Count], sizes: Mapping[tuple[str, str], int]) -> Stats:
    """The counters and the sizes as one table, ordered by tenant and node."""
    table: dict[tuple[str, str], dict[str, Count]] = {key: {} for key in sizes}
    for count in counts:
        if count.outcome.startswith((CROSSING, FACTOR, REPORTER)):
            continue  # nobody's lookups
        table.setdefault((count.tenant, count.node), {})[count.outcome] = count
    rows = []
    for (tenant, node), outcomes in sorted(table.items()):
        hits = {tier: outcomes[tier].lookups for tier in _TIERS if tier in outcomes}
        rows.append(
            NodeStats(
                tenant=tenant,
                node=node,
                exact=hits.get("exact", 0),
                semantic=hits.get("semantic", 0),
                misses={
                    outcome: count.lookups
                    for outcome, count in sorted(outcomes.items())
                    if outcome not in _TIERS and not outcome.startswith(EMBEDDER)
                },
                seconds=sum(count.seconds for count in outcomes.values()),
                tokens=sum(count.tokens for count in outcomes.values()),
                entries=sizes.get((tenant, node), 0),
                embedders={
                    outcome.removeprefix(EMBEDDER): count.lookups
                    for outcome, count in sorted(outcomes.items())
                    if outcome.startswith(EMBEDDER)
                },
            )
        )
    return Stats(rows=tuple(rows))
