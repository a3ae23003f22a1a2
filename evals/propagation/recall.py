"""Worlds in a real store: what recall and quarantine find, and hold, of what is truly wrong."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.propagation.laid import NOW, audit, lay
from evals.propagation.worlds import World, made, truth
from stemma.propagation.quarantine import THRESHOLD
from stemma.testing.clock import ManualClock

__all__ = ["run", "told"]

WORLDS = (
    # tenants, entries, seeds, parents of an entry at most
    (3, 1_000, 1, 3),
    (3, 1_000, 5, 8),
    (10, 3_000, 5, 3),
    (30, 3_000, 20, 8),
    (100, 10_000, 1, 3),
    (100, 10_000, 50, 5),
    (1_000, 30_000, 20, 3),
    (1_000, 30_000, 50, 5),
)
SAMPLES = 4096
"""Of the truth: its own standard error is 0.008 at most."""


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Lay each world into a file, and ask the cache what its seeds spoil."""
    rng = np.random.default_rng(seed)
    worlds = []
    for number, (tenants, entries, seeds, parents) in enumerate(WORLDS):
        world = made(
            rng,
            tenants=tenants,
            entries=scaled(entries, size, least=50),
            seeds=seeds,
            parents=parents,
        )
        true = truth(world, rng, samples=scaled(SAMPLES, size, least=256))
        found = told(world, true, folder / f"{number}.db", rng)
        worlds.append({"tenants": tenants, "seeds": seeds, "parents": parents, **found})
    return Measured(figures=_figures(worlds), details={"worlds": worlds})


def told(
    world: World, true: dict[int, float], file: Path, rng: np.random.Generator
) -> dict[str, Any]:
    """What the cache says of a world, against the truth.

    Args:
        world: What is stored.
        true: How likely each entry that a seed can reach is wrong.
        file: Where it is stored.
        rng: Where the audits' outcomes are from.
    """
    reached = {f"e{one}" for one in true}
    seeds = {f"e{one}": likely for one, likely in world.seeds.items()}
    with stemma.open(file, embedder=None, clock=ManualClock(NOW)) as cache:
        lay(cache.engine.parts.store, world)
        recalled = {
            one.entry for seed in seeds for one in cache.recall(entry=seed, dry_run=True).entries
        }
        followed = set(cache.propagation().spread(seeds).below.ids)
        blind = _held(cache, seeds, true)
        audit(cache.engine.parts.store, world, rng)
        audited = _held(cache, seeds, true)
    return {
        "entries": len(world.owners),
        "reached": len(reached),
        "recall": len(recalled & reached) / len(reached),
        "descent": len(followed & reached) / len(reached),
        "too many": len((recalled | followed) - reached),
        "audited": audited,
        "blind": blind,
        "passed": world.passed,
    }


def _held(cache: stemma.Cache, seeds: dict[str, float], true: dict[int, float]) -> dict[str, Any]:
    """Of a quarantine's rehearsal: how many are held, and how many of them are likely right."""
    began = time.perf_counter()
    receipt = cache.quarantine(seeds, by="evals", dry_run=True)
    seconds = time.perf_counter() - began
    likely = {f"e{one}": probability for one, probability in true.items()}
    held = [likely[one.entry] for one in receipt.entries if one.entry not in seeds]
    meant = [one for name, one in likely.items() if one >= THRESHOLD and name not in seeds]
    return {
        "held": len(held),
        "for nothing": sum(one < THRESHOLD / 2 for one in held),
        "meant": len(meant),
        "of the meant": sum(one >= THRESHOLD for one in held),
        "seconds": seconds,
    }


def _figures(worlds: list[dict[str, Any]]) -> list[Figure]:
    figures = [
        Figure(
            what=f"{name}: dependants found, worst world",
            value=min(world[what] for world in worlds),
            unit="",
            at_least=1.0,
        )
        for name, what in (("recall", "recall"), ("descent", "descent"))
    ]
    many = sum(world["too many"] for world in worlds)
    figures.append(Figure(what="found that are none", value=many, unit="", at_most=0))
    for way, target in (("audited", 0.1), ("blind", None)):
        sums = {
            what: sum(world[way][what] for world in worlds)
            for what in ("held", "for nothing", "meant", "of the meant")
        }
        words = "after audits" if way == "audited" else "without any audit"
        figures += [
            Figure(
                what=f"held with a true probability below θ/2, {words}",
                value=sums["for nothing"] / max(sums["held"], 1),
                unit="",
                at_most=target,
            ),
            Figure(
                what=f"held of what is truly at θ or above, {words}",
                value=sums["of the meant"] / max(sums["meant"], 1),
                unit="",
            ),
        ]
    worst = max(
        world["audited"]["for nothing"] / max(world["audited"]["held"], 1) for world in worlds
    )
    figures.append(
        Figure(what="the same below θ/2, after audits, worst world", value=worst, unit="")
    )
    median = statistics.median(world["audited"]["seconds"] for world in worlds)
    return [*figures, Figure(what="a rehearsal, median world", value=median, unit="s")]
