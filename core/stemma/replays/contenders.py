"""The policies that are put beside one another, made anew for each order of a stream."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stemma.entry import Vector
from stemma.policies.strict import StrictPolicy
from stemma.policies.threshold import Policy, ThresholdPolicy
from stemma.policies.verified import VerifiedPolicy
from stemma.replays.alignments import Alignments
from stemma.replays.log import Request
from stemma.replays.replay import Comparer, gold, replay
from stemma.replays.tally import Interval, over_orders, tally

__all__ = ["Contender", "exact", "orders", "put", "static", "strict", "verified"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Contender:
    """A policy by its name.

    Args:
        make: Gives a fresh one for a seed; `None` for exact hits only.
        sparse: Whether it leaves out fresh answers that agree with their neighbour's.
        aligned: What aligns texts for it.
    """

    make: Callable[[int], Policy | None]
    sparse: bool = False
    aligned: Alignments | None = None


def exact() -> Contender:
    """Exact hits only."""
    return Contender(make=lambda _: None)


def static(threshold: float, *, guards: bool = False) -> Contender:
    """A fixed threshold."""
    return Contender(make=lambda _: ThresholdPolicy(threshold, guards=guards))


def strict(bound: float, embedder: str) -> Contender:
    """The strict policy, which stores as published: only what disagrees."""
    return Contender(
        make=lambda seed: StrictPolicy(bound, embedder=embedder, seed=seed), sparse=True
    )


def verified(bound: float, embedder: str, *, aligned: Alignments | None = None) -> Contender:
    """The policy that learns; with token vectors, as by default, where something aligns them."""
    make = VerifiedPolicy if aligned is None else VerifiedPolicy.aligning
    return Contender(make=lambda seed: make(bound, embedder=embedder, seed=seed), aligned=aligned)


def orders(requests: Sequence[Request], number: int, seed: int) -> list[list[Request]]:
    """The order given, and shuffled ones, so many in all."""
    found = [list(requests)]
    for one in range(1, number):
        found.append(list(requests))
        random.Random(seed * 1_000 + one).shuffle(found[-1])  # noqa: S311 - no secret
    return found


def put(
    contender: Contender,
    streams: Sequence[Sequence[Request]],
    at: Mapping[str, Vector],
    *,
    comparer: Callable[[int], Comparer] = lambda _: gold,
) -> dict[str, Interval]:
    """What a contender makes of several orders of a stream.

    Args:
        contender: Who.
        streams: The orders.
        at: The texts' vectors.
        comparer: Gives the one for the n-th order.
    """
    return over_orders(
        [
            tally(
                replay(
                    requests,
                    at,
                    contender.make(number),
                    same=comparer(number),
                    sparse=contender.sparse,
                    aligned=contender.aligned,
                )
            )
            for number, requests in enumerate(streams)
        ]
    )
