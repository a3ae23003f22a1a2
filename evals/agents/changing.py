"""Chains of hops over sources that change: who asks when, what changes when, and what is true then.

Every hop of a chain reads one source and goes on from what the hop before gave, so its true value
is the versions that the sources of the hops so far have at that moment.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["DAY", "SOURCES", "Changing", "Run", "Tally", "drawn", "fixed", "fixed_alike"]

DAY = 86_400.0
"""Seconds."""

HOPS = 8
"""The longest chain; there are as many of each length from 1."""

DAYS = 14
SOURCES = 200
CHAINS = 120
RATES = (-2.5, 1.0)
"""Changes a day, powers of ten: from once in 300 days to ten times a day, evenly."""

HOUR = DAY / 24
"""What has changed is told at every full hour, as an index is brought up to date by the clock."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a chain.

    Args:
        at: When, seconds from the beginning.
        chain: Which.
    """

    at: float
    chain: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Changing:
    """All that happens, drawn beforehand: the same for every way of caching.

    Args:
        chains: For each the sources that its hops read.
        runs: In their order.
        changes: For each source, when it changes.
        told: When an index tells that a source has changed, and which.
    """

    chains: Sequence[tuple[int, ...]]
    runs: Sequence[Run]
    changes: Sequence[Sequence[float]]
    told: Sequence[tuple[float, int]]

    def version(self, source: int, at: float) -> int:
        """How often a source has changed by then."""
        return bisect_right(self.changes[source], at)

    def truth(self, chain: int, at: float) -> list[int]:
        """What the chain gives if nothing is cached."""
        return [self.version(source, at) for source in self.chains[chain]]


@dataclass(slots=True)
class Tally:
    """What came of all runs.

    Args:
        hops: How many there were.
        served: Those of them that were not computed.
        answers: What the last hops gave.
        stale: Those of them that are not true at that moment.
    """

    hops: int = 0
    served: int = 0
    answers: int = 0
    stale: int = 0

    @property
    def rate(self) -> float:
        """The share of the hops that was served."""
        return self.served / self.hops

    def note(self, served: int, answer: list[int], truth: list[int]) -> None:
        """Count one run: how many of its hops were served, and what it gave."""
        self.hops += len(truth)
        self.served += served
        self.answers += 1
        self.stale += answer != truth


def drawn(seed: int, runs: int) -> Changing:
    """Sources that change as Poisson processes, and runs that come as one, by Zipf's law."""
    rng = np.random.default_rng(seed)
    end = DAYS * DAY
    rates = 10 ** rng.uniform(*RATES, SOURCES)
    changes = [np.sort(rng.uniform(0, end, rng.poisson(rate * DAYS))).tolist() for rate in rates]
    lengths = rng.permutation(np.arange(CHAINS) % HOPS + 1)
    chains = [tuple(rng.choice(SOURCES, length, replace=False).tolist()) for length in lengths]
    weights = 1 / np.arange(1, CHAINS + 1)
    who = rng.choice(CHAINS, runs, p=weights / weights.sum())
    told = {
        (math.ceil(at / HOUR) * HOUR, source) for source in range(SOURCES) for at in changes[source]
    }
    return Changing(
        chains=chains,
        runs=[
            Run(float(at), int(one))
            for at, one in zip(np.sort(rng.uniform(0, end, runs)), who, strict=True)
        ],
        changes=changes,
        told=sorted(told),
    )


def fixed(world: Changing, life: float) -> Tally:
    """A cache in which everything lives equally long.

    A hop is looked up by its chain and by what the hop before gave: what was computed from
    something else is not found.

    Args:
        world: What happens.
        life: Seconds.
    """
    tally = Tally()
    made: dict[tuple[int, int, tuple[int, ...]], tuple[float, int]] = {}
    for run in world.runs:
        value: list[int] = []
        served = 0
        for source in world.chains[run.chain]:
            key = (run.chain, len(value), tuple(value))
            at, version = made.get(key, (-life, 0))
            if run.at - at < life:
                served += 1
            else:
                version = world.version(source, run.at)
                made[key] = (run.at, version)
            value.append(version)
        tally.note(served, value, world.truth(run.chain, run.at))
    return tally


def fixed_alike(world: Changing, rate: float) -> tuple[float, Tally]:
    """The longest fixed life that serves no larger a share of the hops, and what comes of it.

    Args:
        world: What happens.
        rate: The share.
    """
    low, high = 0.0, DAYS * DAY
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if fixed(world, middle).rate <= rate else (low, middle)
    return low, fixed(world, low)
