"""Edges of random runs whose truth is known, run in every way that the frameworks have.

Found are the edges that the cache stored. True ones must be there; between independent runs, as
between the items of a batch, or runs that other threads make meanwhile, there must be none.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import stemma
from evals.measuring import Figure, Measured, scaled
from evals.rag import graphs, sequences
from evals.rag.plans import Plan, drawn, in_turn, true_edges
from evals.rag.scripted import stored_edges
from stemma import Cache

__all__ = ["WAYS", "Kind", "compared", "kinds", "run"]

Edges = set[tuple[str, str]]
Run = Callable[[Any, Sequence[str]], Any]
"""Runs what was built of a plan for some items, each of which is a run of its own."""

THREADS = 6


async def _gathered(chain: Any, items: Sequence[str]) -> None:
    await asyncio.gather(*(chain.ainvoke(item) for item in items))


async def _in_turn(chain: Any, items: Sequence[str]) -> None:
    for item in items:
        await chain.ainvoke(item)


async def _astreamed(chain: Any, items: Sequence[str]) -> None:
    for item in items:
        async for _ in chain.astream(item):
            pass


def _threaded(chain: Any, items: Sequence[str]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(chain.invoke, items))


WAYS: Mapping[str, Run] = {
    "invoke": lambda chain, items: [chain.invoke(item) for item in items],
    "stream": lambda chain, items: [list(chain.stream(item)) for item in items],
    "batch": lambda chain, items: chain.batch(list(items)),
    "threads": _threaded,
    "ainvoke, gathered": lambda chain, items: asyncio.run(_gathered(chain, items)),
    "ainvoke, in turn": lambda chain, items: asyncio.run(_in_turn(chain, items)),
    "astream": lambda chain, items: asyncio.run(_astreamed(chain, items)),
    "abatch": lambda chain, items: asyncio.run(chain.abatch(list(items))),
}
"""How several items are run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of runs.

    Args:
        built: Makes what runs a plan.
        truth: Which edges of a plan are true.
        ways: How several items are run.
        edges: The edges that a cache holds of them.
    """

    built: Callable[[Cache, Plan], Any]
    truth: Callable[[Plan], Edges] = true_edges
    ways: Mapping[str, Run] = field(default_factory=lambda: WAYS)
    edges: Callable[[Cache], Edges] = stored_edges


def kinds() -> dict[str, Kind]:
    """All kinds whose framework is installed, by name."""
    found = {
        "LCEL": Kind(built=sequences.built),
        "LangGraph": Kind(built=graphs.built, truth=graphs.true_edges),
    }
    if find_spec("llama_index") is None:
        return found
    from evals.rag import engines  # noqa: PLC0415 - loads LlamaIndex

    gathered = {name: WAYS[name] for name in ("ainvoke, gathered", "ainvoke, in turn")}
    found["LlamaIndex"] = Kind(
        built=engines.built, ways=gathered, edges=partial(stored_edges, said=engines.said)
    )
    found["LlamaIndex, nothing gathered"] = Kind(
        built=lambda cache, plan: engines.built(cache, in_turn(plan)),
        truth=lambda plan: true_edges(in_turn(plan)),
        ways={name: WAYS[name] for name in ("invoke", "threads", *gathered)},
        edges=partial(stored_edges, said=engines.said),
    )
    return found


def run(*, size: float, seed: int, folder: Path) -> Measured:
    """Random plans, each run in every way for a few items at once."""
    plans = scaled(60, size, least=2)
    told = {
        name: _tried(folder / f"{number}.db", kind, plans, seed)
        for number, (name, kind) in enumerate(kinds().items())
    }
    figures: list[Figure] = []
    for name, found in told.items():
        figures += [
            Figure(
                what=f"{name}: true edges found, of {found['true']:,}",
                value=found["found"] / found["true"],
                unit="",
                at_least=0.99,
            ),
            Figure(
                what=f"{name}: edges between independent runs, {found['runs']:,} runs",
                value=found["between_runs"],
                unit="",
                at_most=0,
            ),
            Figure(what=f"{name}: other edges inside a run", value=found["inside"], unit=""),
        ]
    return Measured(figures=figures, details=told)


def _tried(file: Path, kind: Kind, plans: int, seed: int) -> dict[str, int]:
    lucky = random.Random(seed)
    true: Edges = set()
    runs = 0
    with stemma.open(file, tenant="me", embedder=None) as cache:
        with ThreadPoolExecutor(2) as pool:
            jobs = []
            for number in range(plans):
                plan = drawn(lucky, name=f"p{number}a")
                chain = kind.built(cache, plan)
                for way, how in enumerate(kind.ways.values()):
                    items = [f"item-{number}w{way}i{one}" for one in range(3)]
                    runs += len(items)
                    true |= _of_items(kind.truth(plan), items)
                    jobs.append(pool.submit(how, chain, items))
            for job in jobs:
                job.result()
        return {"plans": plans, "runs": runs, **compared(true, kind.edges(cache))}


def _of_items(edges: Edges, items: Sequence[str]) -> Edges:
    return {(f"{child} {item}", f"{parent} {item}") for child, parent in edges for item in items}


def compared(true: Edges, found: Edges) -> dict[str, int]:
    """How many of the true edges were found, and how many others, by where they lead."""
    other = found - true
    between = {(a, b) for a, b in other if a.split()[1] != b.split()[1]}
    return {
        "true": len(true),
        "found": len(found & true),
        "between_runs": len(between),
        "inside": len(other - between),
    }
