"""Chains of 1 to 8 hops over sources that change: answers out of date, against a fixed life.

The mechanisms are added one after the other: lives that shorten from hop to hop; re-checks, where
a source that is read again and has changed ends all that was built on it; the change rates learnt
from them, which bound lives; and changes that are told at the next full hour, of half of the
sources or of all. Beside each stands a cache with one life for all hops that serves as many of them
in the same days: its keys hold what the hop before gave, so it never goes on from another value.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stemma
from evals.agents.changing import DAY, SOURCES, Changing, Tally, drawn, fixed_alike
from evals.measuring import Figure, Measured, scaled
from stemma import LifePolicy, Source, frames
from stemma.testing import ManualClock

__all__ = ["MECHANISMS", "Mechanisms", "cached", "run"]

INDEX = "pages/1"
SEEDS = 6
RUNS = 3_000
DRAWS = 2_000
"""Draws of as many worlds as there are, from which an interval is told."""

UNBOUNDED = 1 - 1e-9
"""The accepted risk with which a change rate bounds no life that counts here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mechanisms:
    """What a cache does beside letting lives shorten from hop to hop.

    Args:
        checked: Whether an index vouches for what is read, so that a change is seen.
        learnt: Whether the change rates bound the lives.
        told: The share of the sources of whose changes it is told.
    """

    checked: bool = False
    learnt: bool = False
    told: float = 0.0


MECHANISMS: Mapping[str, Mechanisms] = {
    "lives that shorten": Mechanisms(),
    "and re-checks": Mechanisms(checked=True),
    "and change rates": Mechanisms(checked=True, learnt=True),
    "and half of the changes told": Mechanisms(checked=True, learnt=True, told=0.5),
    "and all changes told": Mechanisms(checked=True, learnt=True, told=1.0),
}


def cached(world: Changing, mechanisms: Mechanisms) -> Tally:
    """All runs over one cache, with a base life of a day.

    Args:
        world: What happens.
        mechanisms: What the cache does about it.
    """
    tally, clock = Tally(), ManualClock()
    began = clock.now()
    policy = LifePolicy({"hop": DAY})
    life = policy if mechanisms.learnt else LifePolicy(policy.base, stale_risk=UNBOUNDED)
    told = [one for one in world.told if one[1] < mechanisms.told * SOURCES]
    with stemma.open(":memory:", tenant="me", embedder=None, life=life, clock=clock) as cache:
        happens = heapq.merge(
            ((run.at, run.chain, None) for run in world.runs),
            ((at, None, source) for at, source in told),
            key=lambda one: one[0],
        )
        for at, chain, source in happens:
            clock.advance(began + at - clock.now())
            if chain is None:
                cache.documents_changed(INDEX, changed=[f"page {source}"])
            else:
                tally.note(*_walked(cache, world, chain, at, mechanisms), world.truth(chain, at))
    return tally


def _walked(
    cache: stemma.Cache, world: Changing, chain: int, at: float, mechanisms: Mechanisms
) -> tuple[int, list[int]]:
    """One run: how many of its hops were served, and what the last one gave."""
    value: list[int] = []
    hits = 0
    with cache.trace():
        for number, source in enumerate(world.chains[chain]):

            def computed(before: Sequence[int] = tuple(value), source: int = source) -> list[int]:
                return [*before, _read(world, source, at, checked=mechanisms.checked)]

            with cache.hop(f"step {number}"):
                served = cache.hops.get_or_compute(f"step {number}", computed, agent=f"{chain}")
            value = served.value
            hits += served.outcome.hit
    return hits, value


def _read(world: Changing, source: int, at: float, *, checked: bool) -> int:
    """The source's version, noted as read."""
    version, name = world.version(source, at), f"page {source}"
    page = Source(
        document=name,
        chunk=name,
        content=f"{version}",
        index=INDEX if checked else "",
        owner="public",
    )
    frame = frames.current()
    assert frame is not None
    frame.read_sources([(page, "")], frames.marks())
    return version


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """Every mechanism over the same worlds, each beside a fixed life that serves as much."""
    seeds = [1_000 * seed + one for one in range(scaled(SEEDS, size, least=2))]
    worlds = [drawn(one, scaled(RUNS, size, least=60)) for one in seeds]
    figures: list[Figure] = []
    told: dict[str, Any] = {"seeds": seeds}
    for name, mechanisms in MECHANISMS.items():
        ours = [cached(world, mechanisms) for world in worlds]
        fixed = [fixed_alike(world, one.rate) for world, one in zip(worlds, ours, strict=True)]
        found = _compared(ours, [tally for _, tally in fixed], seed)
        figures += _figures(name, found, at_most=0.25 if mechanisms.told == 1 else None)
        told[name] = {
            **found,
            "each": [asdict(one) for one in ours],
            "each with a fixed life": [{"life": life, **asdict(one)} for life, one in fixed],
        }
    return Measured(figures=figures, details=told)


def _figures(name: str, found: Mapping[str, float], *, at_most: float | None) -> list[Figure]:
    shown = (
        (
            f"{name}: answers out of date, where {found['served']:.3f} of the hops are served",
            "ours",
        ),
        ("… with a fixed life that serves as many", "theirs"),
    )
    ratio = Figure(
        what=f"… of a fixed life's ({found['low']:.2f} to {found['high']:.2f})",
        value=found["ratio"],
        unit="",
        at_most=at_most,
    )
    return [*(Figure(what=what, value=found[key], unit="") for what, key in shown), ratio]


def _compared(ours: Sequence[Tally], theirs: Sequence[Tally], seed: int) -> dict[str, float]:
    """Shares of answers out of date, and the ratio with 95 %, told by drawing worlds anew."""
    stale = np.array([[one.stale for one in tallies] for tallies in (ours, theirs)])
    rng = np.random.default_rng(seed)
    again = stale[:, rng.integers(len(ours), size=(DRAWS, len(ours)))].sum(axis=2)
    low, high = np.quantile(again[0] / np.maximum(1, again[1]), (0.025, 0.975)).tolist()
    mine, other = stale.sum(axis=1).tolist()
    answers = sum(one.answers for one in ours)
    return {
        "served": sum(one.served for one in ours) / sum(one.hops for one in ours),
        "ours": mine / answers,
        "theirs": other / answers,
        "ratio": mine / max(1, other),
        "low": low,
        "high": high,
    }
