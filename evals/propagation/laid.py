"""Random worlds laid into a store, with audits that tell how much passes there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from evals.propagation.worlds import World
from stemma.entry import Edge, Entry, Lineage
from stemma.stores.protocol import Judgement, Put, Store

__all__ = ["AUDITS", "NOW", "audit", "lay"]

NOW = 1_700_000_000.0
AUDITS = 400
"""Pairs of a wrong parent and its child that were audited."""

_TOGETHER = 1_000
_TEXT = b'"The order can be cancelled within 30 days, unless it was a gift card."'


def lay(store: Store, world: World) -> None:
    """Store a world's entries with their lineages; `e7` is entry 7, of `t3` where that made it."""
    above: dict[int, list[int]] = defaultdict(list)
    for parent, child in zip(
        world.edges.parents.tolist(), world.edges.children.tolist(), strict=True
    ):
        above[child].append(parent)
    values: list[str] = []
    puts: list[Put] = []
    for number, owner in enumerate(world.owners):
        copied = number in world.copies
        values.append(values[above[number][0]] if copied else f"v{number}")
        edges = tuple(Edge(parent=f"e{one}", value=values[one]) for one in above[number])
        one = _entry(f"e{number}", values[-1], owner, pool="pool" if copied else None)
        puts.append(Put(entry=one, lineage=Lineage(parents=edges), since=0))
    _put(store, puts)


def audit(store: Store, world: World, rng: np.random.Generator, *, audits: int = AUDITS) -> None:
    """Tell the store of pairs apart from all others: what came of children of wrong parents."""
    owners = rng.integers(max(world.owners) + 1, size=(audits, 2)).tolist()
    puts = []
    for number, (producer, consumer) in enumerate(owners):
        edge = Edge(parent=f"wrong {number}", value="wrong")
        child = _entry(f"judged {number}", "so", consumer)
        puts += [
            Put(entry=_entry(edge.parent, "wrong", producer), since=0),
            Put(entry=child, lineage=Lineage(parents=(edge,)), since=0),
        ]
    _put(store, puts)
    drawn = rng.beta(4 * world.passed, 4 * (1 - world.passed), size=audits)
    for number, wrong in enumerate((rng.random(audits) < drawn).tolist()):
        for entry, value, bad in (
            (f"wrong {number}", "wrong", True),
            (f"judged {number}", "so", wrong),
        ):
            store.judge(
                Judgement(
                    entry=entry,
                    value=value,
                    verdict="hallucinated" if bad else "supported",
                    by="audit",
                    confidence=1.0,
                    at=NOW,
                )
            )


def _entry(name: str, value: str, owner: int, *, pool: str | None = None) -> Entry:
    place = f"t{owner}" if pool is None else pool
    return Entry(
        id=name,
        partition=place,
        group=place,
        tenant=f"t{owner}",
        node="answer",
        payload=_TEXT,
        codec="json/1",
        value=value,
        pool=pool,
        made=NOW,
        verified=NOW,
    )


def _put(store: Store, puts: list[Put]) -> None:
    for some in _batches(puts):
        refused = [one.refused for one in store.put(some, NOW) if one.refused]
        if refused:
            raise RuntimeError(f"the store refused {len(refused)} entries: {refused[0]}")


def _batches(puts: list[Put]) -> Iterator[list[Put]]:
    for start in range(0, len(puts), _TOGETHER):
        yield puts[start : start + _TOGETHER]
