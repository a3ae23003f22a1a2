"""How likely each entry is wrong, once some are known or feared to be: independent cascades.

An entry is wrong of itself with the probability its seed gives, and each edge from a wrong parent
makes its child wrong with the edge's attenuation, once and independently of the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stemma.errors import UsageError
from stemma.policies.shares import share
from stemma.propagation.bound import Bound, ascend
from stemma.propagation.edges import Edges, Outward
from stemma.propagation.order import circles
from stemma.propagation.worlds import wrong_in

__all__ = ["Spread", "bound", "sampled", "spread"]

_MOST_WORLDS = 1 << 20
"""More would take a megabyte for a few entries' coins alone."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Spread:
    """How likely each entry is wrong.

    Args:
        names: The entries.
        probabilities: Of each that it is wrong, 0 to 1.
        standard_errors: Of each probability, by sampling; 0 where it was not sampled. Where it
            was, never 0: of n worlds without an error it is about 1/n.
        exact: Whether it is exact, but for rounding.
    """

    names: Sequence[Hashable]
    probabilities: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    exact: NDArray[np.bool_]

    def wrong(self) -> dict[Any, float]:
        """The entries whose probability is above 0, the likeliest first, then in their order."""
        order = np.argsort(-self.probabilities, kind="stable")
        above = order[: np.count_nonzero(self.probabilities)]
        return {
            self.names[at]: value
            for at, value in zip(above.tolist(), self.probabilities[above].tolist(), strict=True)
        }


def spread(
    edges: Edges, seeds: Mapping[Any, float], *, worlds: int = 1024, seed: int = 0
) -> Spread:
    """The estimate to work with: exact where that is simple, sampled where it is not.

    An entry's probability is exact as long as no two of its parents have an uncertain ancestor in
    common (certainly wrong ancestors do no harm). Else it is `sampled`, and cut off at `bound`.

    Args:
        edges: What was built on what.
        seeds: How likely some entries are wrong of themselves, 0 to 1.
        worlds: How many are sampled; the standard error is at most 0.5/√worlds (0.016 of 1024).
        seed: Of the random numbers; the same gives the same.

    Raises:
        UsageError: A seed is no entry, or a number is out of its range.
    """
    field = _field(edges, seeds)
    worlds = _whole("worlds", worlds, _MOST_WORLDS)
    upper = ascend(field.outward, field.order, field.own)
    if upper.exact.all():
        return _bounded(edges, upper)
    found = _sampled(edges, field, worlds, seed)
    return Spread(
        names=edges.names,
        probabilities=np.where(
            upper.exact, upper.most, np.minimum(found.probabilities, upper.most)
        ),
        standard_errors=np.where(upper.exact, 0.0, found.standard_errors),
        exact=upper.exact,
    )


def bound(
    edges: Edges,
    seeds: Mapping[Any, float],
    *,
    tolerance: float = 1e-9,
    rounds: int = 1000,
) -> Spread:
    """What no probability exceeds: `1 - (1 - own) Π (1 - attenuation · parent's)`.

    Parents are taken for independent. That is exact on trees; where they have an ancestor in
    common they err together, and the product is too high. Circles are gone round from below until
    nothing rises by more than the tolerance: the least solution, which always exists. Where the
    spectral radius of the attenuations is below 1, the steps shrink at least as its powers do;
    at 1 or above, a circle may take too many rounds.

    Args:
        edges: What was built on what.
        seeds: How likely some entries are wrong of themselves, 0 to 1.
        tolerance: When a circle has settled, above 0.
        rounds: How often one is gone round at most.

    Raises:
        UsageError: A seed is no entry, a number is out of its range, or a circle has not settled.
    """
    field = _field(edges, seeds)
    if share("tolerance", tolerance) == 0.0:
        raise UsageError("tolerance must be above 0")
    rounds = _whole("rounds", rounds)
    found = ascend(field.outward, field.order, field.own, tolerance=tolerance, rounds=rounds)
    if not found.settled:
        raise UsageError(
            f"a circle of entries has not settled to {tolerance:g} in {rounds} rounds: give more "
            "rounds, a wider tolerance, or sample it"
        )
    return _bounded(edges, found)


def sampled(
    edges: Edges, seeds: Mapping[Any, float], *, worlds: int = 1024, seed: int = 0
) -> Spread:
    """The share of sampled worlds in which each entry is wrong: unbiased, circles or not.

    In one world a coin is thrown once an edge and once a seed, so that all who share an ancestor
    share its fate. Takes `worlds`/8 bytes for each entry that is reached.

    Args:
        edges: What was built on what.
        seeds: How likely some entries are wrong of themselves, 0 to 1.
        worlds: How many are sampled.
        seed: Of the random numbers; the same gives the same.

    Raises:
        UsageError: A seed is no entry, or a number is out of its range.
    """
    worlds = _whole("worlds", worlds, _MOST_WORLDS)
    return _sampled(edges, _field(edges, seeds), worlds, seed)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Field:
    """What both ways of reckoning need: who can be reached, in which order."""

    own: dict[int, float]
    outward: Outward
    order: list[list[int]]


def _field(edges: Edges, seeds: Mapping[Any, float]) -> _Field:
    place = {name: at for at, name in enumerate(edges.names)}
    own = {}
    for name, probability in seeds.items():
        if name not in place:
            raise UsageError(f"the seed {name!r} is no entry of the graph")
        own[place[name]] = share(f"the probability of {name!r}", probability)
    outward = edges.outward()
    starts = [at for at, probability in own.items() if probability]
    return _Field(own=own, outward=outward, order=circles(outward, starts))


def _bounded(edges: Edges, found: Bound) -> Spread:
    return Spread(
        names=edges.names,
        probabilities=found.most,
        standard_errors=np.zeros(len(edges.names)),
        exact=found.exact,
    )


def _sampled(edges: Edges, field: _Field, worlds: int, seed: int) -> Spread:
    wrong = wrong_in(worlds, field.outward, field.order, field.own, np.random.default_rng(seed))
    reached = np.array([at for members in field.order for at in members], dtype=np.int64)
    probabilities = np.zeros(len(edges.names))
    probabilities[reached] = wrong[reached] / worlds
    errors = np.zeros(len(edges.names))
    smoothed = (wrong[reached] + 1) / (worlds + 2)
    errors[reached] = np.sqrt(smoothed * (1 - smoothed) / worlds)
    exact = np.ones(len(edges.names), dtype=bool)
    exact[reached] = False
    return Spread(
        names=edges.names, probabilities=probabilities, standard_errors=errors, exact=exact
    )


def _whole(name: str, value: object, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be a whole number above 0, not {value!r}")
    if most is not None and value > most:
        raise UsageError(f"{name} must be at most {most}, not {value}")
    return value
