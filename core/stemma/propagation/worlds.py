"""Worlds in which coins have fallen: who is wrong in each of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stemma.propagation.edges import Outward

__all__ = ["wrong_in"]

_TOGETHER = 1 << 21
"""Random numbers drawn at once, four bytes each."""


def wrong_in(
    worlds: int,
    outward: Outward,
    order: Sequence[Sequence[int]],
    own: Mapping[int, float],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """In how many of so many worlds each entry is wrong.

    An entry's worlds are the bits of one whole number: an edge passes them on by one `and`, one
    `or`, in all worlds at once.

    Args:
        worlds: How many.
        outward: The edges.
        order: Who can be reached, in parts, parents' parts before their children's.
        own: How likely some are wrong of themselves.
        rng: Where the coins are from.
    """
    wrong = [0] * (len(outward.firsts) - 1)
    for node, coin in zip(own, _coins(list(own.values()), worlds, rng), strict=True):
        wrong[node] = coin
    many = np.zeros(len(wrong), dtype=np.int64)
    coins = _coins(
        [
            attenuation
            for members in order
            for node in members
            for attenuation in outward.attenuations[outward.firsts[node] : outward.firsts[node + 1]]
        ],
        worlds,
        rng,
    )
    for members in order:
        fallen = [
            (node, outward.children[edge], next(coins))
            for node in members
            for edge in outward.span(node)
        ]
        if len(members) > 1:
            _go_round(members, fallen, wrong)
        for node, child, coin in fallen:
            wrong[child] |= wrong[node] & coin
        for node in members:
            many[node] = wrong[node].bit_count()
            wrong[node] = 0
    return many


def _go_round(
    members: Sequence[int], fallen: Sequence[tuple[int, int, int]], wrong: list[int]
) -> None:
    """Pass on inside a circle until no world changes any more."""
    inside: dict[int, list[tuple[int, int]]] = {node: [] for node in members}
    for node, child, coin in fallen:
        if child in inside:
            inside[node].append((child, coin))
    waiting = deque(members)
    queued = set(members)
    while waiting:
        node = waiting.popleft()
        queued.discard(node)
        for child, coin in inside[node]:
            now = wrong[child] | (wrong[node] & coin)
            if now != wrong[child]:
                wrong[child] = now
                if child not in queued:
                    queued.add(child)
                    waiting.append(child)


def _coins(chances: Sequence[float], worlds: int, rng: np.random.Generator) -> Iterator[int]:
    """For each chance the worlds in which it came true, as bits."""
    block = max(1, _TOGETHER // worlds)
    for start in range(0, len(chances), block):
        some = np.array(chances[start : start + block], dtype=np.float32)
        true = rng.random((len(some), worlds), dtype=np.float32) < some[:, None]
        for row in np.packbits(true, axis=1):
            yield int.from_bytes(row.tobytes(), "big")
