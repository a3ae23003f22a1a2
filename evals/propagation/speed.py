"""What a quarantine and the tenants' graph take, from a file, each in a process of its own."""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import stemma
from evals.measuring import Figure, Measured, fresh, memory, scaled
from evals.propagation.laid import NOW, lay
from evals.propagation.worlds import World
from stemma.propagation.edges import Edges
from stemma.stores.protocol import Count, Serving
from stemma.testing.clock import ManualClock

__all__ = ["graph", "quarantine", "run"]

DEPENDANTS = 1_000
SERVINGS = 1_000_000
TENANTS = 1_000
TIMES = 9

_AT_ONCE = 50_000


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Measure both."""
    del folder
    held = fresh(__name__, "quarantine", scaled(DEPENDANTS, size, least=10), seed)
    drawn = fresh(__name__, "graph", scaled(SERVINGS, size, least=1000), seed)
    return Measured(
        figures=[
            Figure(
                what=f"quarantine of {held['held']:,} entries, {held['edges']:,} edges",
                value=held["seconds"] * 1e3,
                unit="ms",
                at_most=50.0,
            ),
            Figure(what="the same, of one core", value=held["processor"] * 1e3, unit="ms"),
            Figure(
                what=f"graph of {drawn['servings']:,} servings, {drawn['edges']:,} edges",
                value=drawn["seconds"],
                unit="s",
                at_most=5.0,
            ),
            Figure(what="the same, memory", value=drawn["bytes"] / 2**20, unit="MiB"),
        ],
        details={"quarantine": held, "graph": drawn},
    )


def quarantine(dependants: int, seed: int) -> dict[str, Any]:
    """From the call to the receipt: an entry on which so many were built, by up to four parents.

    Args:
        dependants: How many.
        seed: Of what was built on what.
    """
    rng = np.random.default_rng(seed)
    edges = {(0, child) for child in range(1, dependants + 1) if child < 2 or rng.random() < 0.3}
    for child in range(2, dependants + 1):
        first = max(child - 50, 0)
        edges |= {(int(one), child) for one in rng.integers(first, child, size=3)}
    ends = np.array(sorted(edges), dtype=np.int64)
    world = World(
        edges=Edges(
            names=range(dependants + 1),
            parents=ends[:, 0],
            children=ends[:, 1],
            attenuations=np.full(len(ends), 0.5),
        ),
        seeds={0: 0.9},
        owners=tuple((np.arange(dependants + 1) % 7).tolist()),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        stemma.open(Path(folder) / "a.db", embedder=None, clock=ManualClock(NOW)) as cache,
    ):
        lay(cache.engine.parts.store, world)
        taken, processor, held = [], [], 0
        for _ in range(TIMES):
            began, busy = time.perf_counter(), time.process_time()
            receipt = cache.quarantine({"e0": 0.9}, by="evals", threshold=0.1)
            taken.append(time.perf_counter() - began)
            processor.append(time.process_time() - busy)
            held = len(receipt)
            cache.release(receipt)
    return {
        "held": held,
        "edges": len(ends),
        "seconds": statistics.median(taken),
        "processor": statistics.median(processor),
    }


def graph(servings: int, seed: int) -> dict[str, Any]:
    """The tenants' graph of a store with so many servings among `TENANTS` tenants.

    Args:
        servings: How many.
        seed: Of who was served what.
    """
    rng = np.random.default_rng(seed)
    names = [f"tenant {number}" for number in range(TENANTS)]
    with (
        tempfile.TemporaryDirectory() as folder,
        stemma.open(Path(folder) / "a.db", embedder=None, clock=ManualClock(NOW)) as cache,
    ):
        store = cache.engine.parts.store
        for start in range(0, servings, _AT_ONCE):
            many = min(_AT_ONCE, servings - start)
            # Who makes much is served much: a few thousand pairs, as in a pool of a company.
            who = (rng.zipf(1.6, size=(many, 2)) % TENANTS).tolist()
            shared = (rng.random(many) < 0.3).tolist()
            store.journal(
                [
                    Serving(
                        f"e{start + at}",
                        names[to],
                        "exact",
                        1.0,
                        NOW,
                        names[by if pooled else to],
                        "pool" if pooled else "",
                        "answer",
                        0.9,
                    )
                    for at, ((by, to), pooled) in enumerate(zip(who, shared, strict=True))
                ],
                [Count(tenant=name, node="answer", outcome="cold", lookups=10) for name in names],
            )
        before = memory()["own"]
        began = time.perf_counter()
        found = cache.propagation(now=NOW).graph
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "servings": servings,
        "edges": found.number_of_edges(),
        "nodes": found.number_of_nodes(),
        "seconds": seconds,
        "bytes": max(peak - before, 0),
    }
