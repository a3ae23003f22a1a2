"""What is put beside one another, each made anew for every order of a stream."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from stemma.entry import Vector
from stemma.policies.strict import StrictPolicy
from stemma.policies.threshold import Policy, ThresholdPolicy
from stemma.policies.verified import VerifiedPolicy
from stemma.policies.verifier import FeatureVerifier
from stemma.replays.alignments import Alignments
from stemma.replays.log import Request
from stemma.replays.replay import Comparer, Replayed, gold, replay
from stemma.replays.tally import Interval, over_orders, tally

__all__ = [
    "Contender",
    "exact",
    "orders",
    "put",
    "static",
    "strict",
    "verified",
]


class Contender(Protocol):
    """Answers a stream, starting empty."""

    def __call__(
        self, requests: Sequence[Request], at: Mapping[str, Vector], *, seed: int, same: Comparer
    ) -> Replayed:
        """What becomes of the requests, in this order.

        Args:
            requests: The stream.
            at: The texts' vectors.
            seed: Of everything random.
            same: What compares a fresh answer with a stored one.
        """
        ...


def exact() -> Contender:
    """Exact hits only."""
    return _decided(lambda _: None)


def static(threshold: float, *, guards: bool = False) -> Contender:
    """A fixed threshold."""
    return _decided(lambda _: ThresholdPolicy(threshold, guards=guards))


def strict(bound: float, embedder: str) -> Contender:
    """The strict policy, which stores as published: only what disagrees."""
    return _decided(lambda seed: StrictPolicy(bound, embedder=embedder, seed=seed), sparse=True)


def verified(
    bound: float,
    embedder: str,
    weights: Mapping[str, Any] | None = None,
    *,
    aligned: Alignments | None = None,
) -> Contender:
    """The policy that learns, with the weights that come with the package or with others.

    Args:
        bound: The share of wrong hits that it allows.
        embedder: The embedder's revision.
        weights: A record like the one in `verifier.json`, for the policy without token vectors;
            `None`: that one.
        aligned: What aligns texts for it; `None`: it goes without token vectors.
    """
    if aligned is not None:
        return _decided(
            lambda seed: VerifiedPolicy.aligning(bound, embedder=embedder, seed=seed),
            aligned=aligned,
        )
    verifier = None if weights is None else FeatureVerifier.read(weights)
    prior = None if weights is None else weights["standing"]
    return _decided(
        lambda seed: VerifiedPolicy(
            bound, embedder=embedder, verifier=verifier, prior=prior, seed=seed
        )
    )


def _decided(
    make: Callable[[int], Policy | None],
    *,
    sparse: bool = False,
    aligned: Alignments | None = None,
) -> Contender:
    """A policy of ours, by what makes a fresh one for a seed."""

    def answer(
        requests: Sequence[Request], at: Mapping[str, Vector], *, seed: int, same: Comparer
    ) -> Replayed:
        return replay(requests, at, make(seed), same=same, sparse=sparse, aligned=aligned)

    return answer


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
            tally(contender(requests, at, seed=number, same=comparer(number)))
            for number, requests in enumerate(streams)
        ]
    )
