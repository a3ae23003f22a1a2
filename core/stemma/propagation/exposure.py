"""What a spread means for tenants: who is exposed, how wide it reaches, whether it feeds itself."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stemma.errors import UsageError
from stemma.policies.changes import check_number
from stemma.propagation.edges import Edges
from stemma.propagation.order import circles
from stemma.propagation.spread import Spread

__all__ = [
    "BlastRadius",
    "Exposure",
    "Pollution",
    "blast_radius",
    "exposures",
    "pollution",
    "reproduction",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposure:
    """How much of what a tenant holds is likely wrong.

    Args:
        tenant: Whose.
        wrong: How many of its entries are expected to be wrong; of its servings, where those
            were given.
        share: The same as a share of them all, 0 to 1.
        least: How likely at least one entry is wrong, at least: the likeliest alone.
        most: The same, at most: all taken for independent, while in truth they err together.
    """

    tenant: Hashable
    wrong: float
    share: float
    least: float
    most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BlastRadius:
    """How wide an error reaches beyond where it began.

    Args:
        wrong: How many entries (or servings) of other tenants are expected to be wrong.
        least: How many other tenants are expected to hold a wrong entry, at least.
        most: The same, at most.
    """

    wrong: float
    least: float
    most: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Pollution:
    """How evenly copies and descendants lie over partitions.

    Args:
        bits: The entropy −Σ p log2 p of their shares: 0 where all are in one partition.
        most: What it would be if all partitions that hold any held as many: log2 of their number.
        stale: The share of all copies and descendants that is stale, 0 to 1.
        partitions: How many lie in each partition.
    """

    bits: float
    most: float
    stale: float
    partitions: Mapping[Any, int]

    def __str__(self) -> str:
        lie = ", ".join(f"{many} in {partition}" for partition, many in self.partitions.items())
        bits = f"{self.bits:.2f} bits of {self.most:.2f}, {self.stale:.0%} stale"
        return f"{bits}: {lie}" if lie else f"{bits}: nothing is stored"


def exposures(
    spread: Spread,
    tenants: Mapping[Any, Hashable],
    *,
    servings: Mapping[Any, float] | None = None,
) -> list[Exposure]:
    """Each tenant's exposure, the most wrong first, then in the order of the mapping.

    Args:
        spread: How likely each entry is wrong.
        tenants: Whose an entry is. Those that are not named (a pool's) count for nobody.
        servings: How often an entry was served, 0 or more; one that is not named, never. `None`:
            each entry counts once.

    Raises:
        UsageError: A number of servings is below 0.
    """
    likely = dict(zip(spread.names, spread.probabilities.tolist(), strict=True))
    held: dict[Hashable, list[tuple[float, float]]] = {}
    for entry, tenant in tenants.items():
        weight = 1.0 if servings is None else servings.get(entry, 0.0)
        check_number("servings", weight, low=0.0)
        held.setdefault(tenant, []).append((likely.get(entry, 0.0), weight))
    found = [_exposure(tenant, entries) for tenant, entries in held.items()]
    return sorted(found, key=lambda one: -one.wrong)


def blast_radius(found: Iterable[Exposure], *, origin: Collection[Hashable] = ()) -> BlastRadius:
    """How wide an error reaches.

    Args:
        found: The exposure of each tenant.
        origin: Tenants that are left out: where it began.
    """
    others = [one for one in found if one.tenant not in origin]
    return BlastRadius(
        wrong=math.fsum(one.wrong for one in others),
        least=math.fsum(one.least for one in others),
        most=math.fsum(one.most for one in others),
    )


def reproduction(edges: Edges, tenants: Mapping[Any, Hashable]) -> float:
    """The reproduction number of errors between tenants: above 1, they feed themselves.

    It is the spectral radius of the tenants' matrix, whose element (t, s) is how many entries of
    tenant s one wrong entry of tenant t makes wrong directly, on average: the attenuations of the
    edges from t to s, summed, by the number of t's entries. Edges inside a tenant count for
    nothing. It is 0 where no error can come back to a tenant it left. Takes 8 bytes for each two
    tenants that can reach each other.

    Args:
        edges: What was built on what.
        tenants: Whose an entry is; a pool counts as a tenant here, or an entry is left out.
    """
    named = list(dict.fromkeys(tenants.values()))
    place = {tenant: at for at, tenant in enumerate(named)}
    whose = np.array([place[tenants[n]] if n in tenants else -1 for n in edges.names], dtype=int)
    from_, to = whose[edges.parents], whose[edges.children]
    across = (from_ >= 0) & (to >= 0) & (from_ != to)
    entries = np.bincount(whose[whose >= 0], minlength=len(named))
    pairs, which = np.unique(np.stack([from_[across], to[across]]), axis=1, return_inverse=True)
    passed = np.bincount(which.reshape(-1), weights=edges.attenuations[across])
    quotient = Edges(
        names=range(len(named)),
        parents=pairs[0],
        children=pairs[1],
        attenuations=np.zeros(pairs.shape[1]),
    )
    greatest = 0.0
    for members in circles(quotient.outward(), range(len(named))):
        if len(members) > 1:  # an eigenvalue of what leads round no circle would be rounding alone
            at = np.full(len(named), -1)
            at[members] = np.arange(len(members))
            inside = (at[pairs[0]] >= 0) & (at[pairs[1]] >= 0)
            matrix = np.zeros((len(members), len(members)))
            matrix[at[pairs[0][inside]], at[pairs[1][inside]]] = (
                passed[inside] / entries[pairs[0][inside]]
            )
            greatest = max(greatest, float(np.max(np.abs(np.linalg.eigvals(matrix)))))
    return greatest


def pollution(copies: Mapping[Any, int], *, stale: Mapping[Any, int] | None = None) -> Pollution:
    """How evenly an entry's, or a tenant's, copies and descendants lie over partitions.

    Args:
        copies: How many lie in each partition, 0 or more.
        stale: How many of them are stale; `None`: none is.

    Raises:
        UsageError: A number is below 0, or more are stale than there are.
    """
    for partition, many in copies.items():
        check_number(f"copies in {partition!r}", many, low=0)
    staled = {} if stale is None else stale
    for partition, many in staled.items():
        check_number(f"stale in {partition!r}", many, low=0)
        if many > copies.get(partition, 0):
            raise UsageError(f"more are stale in {partition!r} than there are: {many}")
    total = sum(copies.values())
    shares = [many / total for many in copies.values() if many]
    return Pollution(
        bits=math.fsum(-part * math.log2(part) for part in shares),
        most=math.log2(len(shares)) if shares else 0.0,
        stale=sum(staled.values()) / total if total else 0.0,
        partitions={partition: many for partition, many in copies.items() if many},
    )


def _exposure(tenant: Hashable, entries: list[tuple[float, float]]) -> Exposure:
    total = math.fsum(weight for _, weight in entries)
    wrong = math.fsum(likely * weight for likely, weight in entries)
    counted = [likely for likely, weight in entries if weight]
    return Exposure(
        tenant=tenant,
        wrong=wrong,
        share=wrong / total if total else 0.0,
        least=max(counted, default=0.0),
        most=1.0 - math.prod(1.0 - likely for likely in counted),
    )
