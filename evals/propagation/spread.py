"""The spread over random worlds against the truth, and over many edges against time."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evals.measuring import Figure, Measured, fresh, scaled
from evals.propagation.worlds import World, made, truth
from stemma.propagation.edges import Edges
from stemma.propagation.spread import Spread, bound, sampled, spread

__all__ = ["judged", "run", "timed"]

WORLDS = (
    # tenants, entries, seeds
    (3, 1_000, 1),
    (3, 10_000, 5),
    (10, 1_000, 10),
    (10, 30_000, 1),
    (30, 3_000, 50),
    (30, 30_000, 5),
    (100, 10_000, 1),
    (100, 30_000, 20),
    (300, 10_000, 50),
    (300, 100_000, 5),
    (1_000, 30_000, 10),
    (1_000, 100_000, 50),
)
SAMPLES = 8192
"""Of the truth: its own standard error is 0.0055 at most."""

WAYS: Mapping[str, Callable[..., Spread]] = {"spread": spread, "sampled": sampled, "bound": bound}
SPEEDS = {100_000: 1.0, 1_000_000: 15.0}
"""Seconds of one core allowed, by the number of edges. Nothing here uses a second one."""


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Measure the errors over all worlds, and the time over all sizes."""
    del folder
    rng = np.random.default_rng(seed)
    worlds = []
    for tenants, entries, seeds in WORLDS:
        world = made(rng, tenants=tenants, entries=scaled(entries, size, least=50), seeds=seeds)
        samples = scaled(SAMPLES, size, least=256)
        told = judged(world, truth(world, rng, samples=samples), seed=seed)
        worlds.append({"tenants": tenants, "entries": entries, "seeds": seeds, **told})
    speeds = [fresh(__name__, "timed", scaled(edges, size), seed) for edges in SPEEDS]
    return Measured(
        figures=[*_errors(worlds), *_times(speeds)],
        details={"worlds": worlds, "speeds": speeds, "samples of the truth": SAMPLES},
    )


def judged(world: World, true: dict[int, float], *, seed: int) -> dict[str, Any]:
    """How far each way is from the truth, over the entries that can be reached.

    Args:
        world: What happened.
        true: How likely each entry that can be reached is wrong.
        seed: Of the samples drawn by the ways that are judged.
    """
    at, expected = list(true), np.array(list(true.values()))
    told: dict[str, Any] = {"reached": len(true)}
    for name, way in WAYS.items():
        found = way(world.edges, world.seeds, **({} if way is bound else {"seed": seed}))
        off = found.probabilities[at] - expected
        told[name] = {
            "mean absolute error": float(np.mean(np.abs(off))),
            "mean error": float(np.mean(off)),
            "largest error": float(np.max(np.abs(off))),
            "exact": float(np.mean(found.exact[at])),
        }
    return told


def timed(edges: int, seed: int) -> dict[str, Any]:
    """Processor seconds and memory of each way over a random graph of five edges an entry.

    Args:
        edges: How many.
        seed: Of the graph.
    """
    rng = np.random.default_rng(seed)
    entries = max(2, edges // 5)
    children = rng.integers(1, entries, edges)
    graph = Edges(
        names=range(entries),
        parents=np.maximum(children - 1 - rng.integers(0, 2_000, edges), 0),
        children=children,
        attenuations=rng.random(edges),
    )
    seeds = {int(one): 0.9 for one in rng.integers(0, max(1, entries // 10), 50)}
    before = _peak()
    told: dict[str, Any] = {"edges": edges, "seconds": {}}
    for name, way in WAYS.items():
        taken = []
        for _ in range(3):
            began = time.process_time()
            way(graph, seeds)
            taken.append(time.process_time() - began)
        told["seconds"][name] = statistics.median(taken)
    return {**told, "bytes_an_edge": (_peak() - before) / edges}


def _peak() -> int:
    """The most memory that this process ever had, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _errors(worlds: list[dict[str, Any]]) -> list[Figure]:
    def over(way: str, what: str) -> list[float]:
        return [world[way][what] for world in worlds]

    mean, largest = "mean absolute error", "largest error"
    return [
        Figure(what=f"{mean}, worst world", value=max(over("spread", mean)), unit="", at_most=0.03),
        Figure(what=f"{mean}, all worlds", value=statistics.mean(over("spread", mean)), unit=""),
        Figure(what=f"{largest} of one entry", value=max(over("spread", largest)), unit=""),
        Figure(what="exact entries", value=statistics.mean(over("spread", "exact")), unit=""),
        Figure(what="bound alone: too high, worst world", value=max(over("bound", mean)), unit=""),
        Figure(
            what="bound alone: too high, all worlds",
            value=statistics.mean(over("bound", mean)),
            unit="",
        ),
        Figure(what=f"bound alone: {largest}", value=max(over("bound", largest)), unit=""),
    ]


def _times(speeds: list[dict[str, Any]]) -> list[Figure]:
    figures = []
    for told, allowed in zip(speeds, SPEEDS.values(), strict=True):
        for way, seconds in told["seconds"].items():
            most = allowed if way == "spread" else None
            what = f"{way}, {told['edges']:,} edges, one core"
            figures.append(Figure(what=what, value=seconds, unit="s", at_most=most))
    most_edges = speeds[-1]  # of few, making the graph takes more than all that follows
    what = f"memory beside the graph, {most_edges['edges']:,} edges"
    return [*figures, Figure(what=what, value=most_edges["bytes_an_edge"], unit="B an edge")]
