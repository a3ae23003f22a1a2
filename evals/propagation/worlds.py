"""Random worlds: tenants whose entries are built on their own and on a pool's, some of them wrong.

Entries are numbered in the order they were made, so parents come before their children.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stemma.propagation.edges import Edges

__all__ = ["World", "made", "truth"]

_COPIES = 0.1
"""The share of entries that are a pool's copies."""

_POOLED = 0.3
"""The share of a tenant's parents that are a pool's entries."""

_RECENT = 50
"""Of how many latest entries a parent is drawn."""

_TOGETHER = 1024


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class World:
    """What was built on what, and how likely some of it is wrong of itself.

    Args:
        edges: The graph; its names are its places.
        seeds: The probability of each seed.
        owners: The tenant that made each entry; of a copy, the tenant of the original.
        copies: Which entries are the pool's.
        passed: How much passes along an edge on average, copies aside.
    """

    edges: Edges
    seeds: dict[int, float]
    owners: tuple[int, ...] = ()
    copies: frozenset[int] = frozenset()
    passed: float = 0.5


def made(
    rng: np.random.Generator, *, tenants: int, entries: int, seeds: int, parents: int = 3
) -> World:
    """A world of so many tenants, entries and seeds.

    An entry has up to so many parents. How much passes differs from world to world (0.2 to 0.95 on
    average) and from edge to edge; a copy is as wrong as its original. Seeds are among the entries
    that were copied, so that they reach other tenants, each with a probability of 0.5 to 1.

    Args:
        rng: What is drawn is drawn from this.
        tenants: How many share the one pool.
        entries: How many there are, the pool's copies included.
        seeds: How many of them are feared to be wrong.
        parents: How many an entry has at most.
    """
    own: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=_RECENT))
    pool: deque[int] = deque(maxlen=_RECENT)
    latest: deque[int] = deque(maxlen=_RECENT)
    passed = rng.uniform(0.2, 0.95)
    edges: list[tuple[int, int, float]] = []
    owners: list[int] = []
    for entry in range(entries):
        if latest and rng.random() < _COPIES:
            edges.append((latest[rng.integers(len(latest))], entry, 1.0))
            owners.append(owners[edges[-1][0]])
            pool.append(entry)
            continue
        tenant = int(rng.integers(tenants))
        owners.append(tenant)
        above: set[int] = set()
        for _ in range(rng.integers(parents + 1)):
            among = pool if rng.random() < _POOLED else own[tenant]
            if among:
                above.add(among[rng.integers(len(among))])
        drawn = rng.beta(4 * passed, 4 * (1 - passed), size=len(above)).tolist()
        edges += zip(sorted(above), [entry] * len(above), drawn, strict=True)
        own[tenant].append(entry)
        latest.append(entry)
    table = np.array(edges, dtype=float).reshape(-1, 3)
    ends = table[:, :2].astype(np.int64)
    promoted = np.unique(ends[table[:, 2] == 1.0, 0])
    first = rng.choice(promoted, size=min(seeds, len(promoted)), replace=False)
    return World(
        edges=Edges(
            names=range(entries),
            parents=ends[:, 0],
            children=ends[:, 1],
            attenuations=table[:, 2],
        ),
        seeds={int(entry): float(rng.uniform(0.5, 1.0)) for entry in first},
        owners=tuple(owners),
        copies=frozenset(ends[table[:, 2] == 1.0, 1].tolist()),
        passed=float(passed),
    )


def truth(world: World, rng: np.random.Generator, *, samples: int) -> dict[int, float]:
    """How likely each entry that can be reached is wrong, by plain simulation in order of time.

    It shares no code with what it judges.

    Args:
        world: What happens.
        rng: Where the coins are from.
        samples: How often it happens.
    """
    parents = _reached(world)
    wrong: dict[int, NDArray[np.bool_]] = {}
    counted = dict.fromkeys(parents, 0)
    done = 0
    while done < samples:
        many = min(_TOGETHER, samples - done)
        wrong.clear()
        for entry, above in parents.items():
            state = rng.random(many) < world.seeds.get(entry, 0.0)
            for parent, passed in above:
                state |= wrong[parent] & (rng.random(many) < passed)
            wrong[entry] = state
            counted[entry] += int(np.count_nonzero(state))
        done += many
    return {entry: many / samples for entry, many in counted.items()}


def _reached(world: World) -> dict[int, list[tuple[int, float]]]:
    """The parents of each entry that a seed can reach, among those, in order of time."""
    edges = world.edges
    above: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for parent, child, passed in zip(
        edges.parents.tolist(), edges.children.tolist(), edges.attenuations.tolist(), strict=True
    ):
        above[child].append((parent, passed))
    found: dict[int, list[tuple[int, float]]] = {}
    for entry in range(len(edges.names)):
        some = [one for one in above[entry] if one[0] in found]
        if some or entry in world.seeds:
            found[entry] = some
    return found
