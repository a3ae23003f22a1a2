"""How long an entry lives of its own, and when that is over. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import Any

from stemma.errors import UsageError
from stemma.policies.changes import DAY, Prior, check_number
from stemma.policies.shares import drawn
from stemma.scope import NODES, Node

__all__ = [
    "AHEAD",
    "DEFAULT_LIVES",
    "Aging",
    "LifePolicy",
    "over",
    "own_life",
]

HOUR = 3600.0

DEFAULT_LIVES: Mapping[Node, float | None] = MappingProxyType(
    {
        "embedding": None,
        "retrieval": DAY,
        "rerank": None,
        "call": 7 * DAY,
        "answer": DAY,
        "hop": HOUR,
    }
)
"""Base lives, seconds. Embeddings and rerank scores are functions of content and never age."""

AHEAD = 600.0
"""Seconds by which the clock of who made an entry may be ahead of the clock of who reads it."""


def over(made: float, expires: float | None, now: float) -> bool:
    """Whether a life is over.

    It also is where it began more than `AHEAD` seconds from now: the clock was wrong then, or is
    now, and an end that was reckoned by it could be years away.
    """
    return expires is not None and (now >= expires or made > now + AHEAD)


def own_life(
    base: float | None,
    hop: int,
    confidence: float,
    *,
    factor: float = 0.8,
    exponent: float = 0.85,
    change_rate: float | None = None,
    stale_risk: float = 0.05,
    floor: float | None = None,
    jitter: float = 0.1,
    seed: str = "",
) -> float | None:
    """An entry's own life in seconds; `None` where it has no end, 0 where it ends at once.

    `base · factor^(hop − 1) · confidence^exponent`, at most `−ln(1 − stale_risk) / change_rate`:
    with changes as a Poisson process, the age at which the risk that a source has changed reaches
    `stale_risk`. The jitter shortens by a share that depends on `seed` alone, so that entries made
    together do not end together. Neither the floor nor the jitter leads beyond base or bound.

    Args:
        base: The life at the first hop with full confidence, seconds; `None`: no end.
        hop: The hop at which the value was made, from 1.
        confidence: How sure the value is to be right, 0 to 1.
        factor: What each further hop leaves of the life, above 0, at most 1.
        exponent: How strongly doubt shortens, 0 or more.
        change_rate: Changes per second of all sources together; `None`: not known.
        stale_risk: The accepted risk, between 0 and 1.
        floor: The least life, seconds, as far as base and bound allow it.
        jitter: The largest share taken off, 0 to 0.1.
        seed: The entry's id.

    Raises:
        UsageError: An argument is out of its range.
    """
    check_number("base", base, low=0.0)
    check_number("confidence", confidence, low=0.0, high=1.0)
    check_number("factor", factor, low=0.0, high=1.0, open_low=True)
    check_number("exponent", exponent, low=0.0)
    check_number("change_rate", change_rate, low=0.0)
    check_number("stale_risk", stale_risk, low=0.0, high=1.0, open_low=True, open_high=True)
    check_number("floor", floor, low=0.0)
    check_number("jitter", jitter, low=0.0, high=0.1)
    if isinstance(hop, bool) or not isinstance(hop, int) or hop < 1:
        raise UsageError(f"hop must be a whole number from 1, not {hop!r}")
    bound = _bound(change_rate, stale_risk)
    limit = min((end for end in (base, bound) if end is not None), default=None)
    if limit is None:
        return None
    shrunk = limit if base is None else base * factor ** (hop - 1) * confidence**exponent
    life = min(shrunk, limit) * (1 - jitter * drawn(seed))
    return life if floor is None else max(life, min(floor, limit))


def _bound(change_rate: float | None, stale_risk: float) -> float | None:
    return -math.log1p(-stale_risk) / change_rate if change_rate else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Aging:
    """What an entry's own life is reckoned from; see `own_life` for each.

    `prior` is what is believed of the change rate of each source before it was watched.
    """

    base: float | None
    hop: int = 1
    confidence: float = 1.0
    factor: float = 0.8
    exponent: float = 0.85
    change_rate: float | None = None
    stale_risk: float = 0.05
    floor: float | None = None
    jitter: float = 0.1
    prior: Prior = Prior()

    def bound(self) -> float | None:
        """The age at which a source has changed with the accepted risk; `None`: not known."""
        return _bound(self.change_rate, self.stale_risk)

    def life(self, seed: str) -> float | None:
        """The life, seconds; `None`: no end.

        Raises:
            UsageError: A number is out of its range.
        """
        values = {name: getattr(self, name) for name in _AGING}
        return own_life(seed=seed, **values)


_AGING = tuple(each.name for each in fields(Aging) if each.name != "prior")


@dataclass(frozen=True, slots=True)
class LifePolicy:
    """How long entries live, by node.

    Args:
        base: Base lives in seconds by node, over `DEFAULT_LIVES`; `None`: no end; 0: at once.
        factor: See `own_life`.
        exponent: See `own_life`.
        stale_risk: See `own_life`.
        floor: See `own_life`.
        jitter: See `own_life`.
        prior: What is believed of the change rate of each source before it was watched. It bounds
            the lives of hops.

    Raises:
        UsageError: An unknown node, or a number out of its range.
    """

    base: Mapping[Node, float | None] = field(default_factory=dict)
    factor: float = field(default=0.8, kw_only=True)
    exponent: float = field(default=0.85, kw_only=True)
    stale_risk: float = field(default=0.05, kw_only=True)
    floor: float | None = field(default=None, kw_only=True)
    jitter: float = field(default=0.1, kw_only=True)
    prior: Prior = field(default=Prior(), kw_only=True)

    def __post_init__(self) -> None:
        for node, seconds in self.base.items():
            if node not in NODES:
                raise UsageError(f"unknown node {node!r}; known are {', '.join(NODES)}")
            check_number(f"the life of {node}", seconds, low=0.0)
        object.__setattr__(self, "base", MappingProxyType({**DEFAULT_LIVES, **self.base}))
        if not isinstance(self.prior, Prior):
            raise UsageError(f"prior must be a Prior, not {type(self.prior).__name__}")
        self.life("answer", hop=1, confidence=1.0)

    def __reduce__(self) -> tuple[partial[LifePolicy], tuple[()]]:
        # A read-only view cannot be pickled or copied; the mapping behind it can.
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return partial(LifePolicy, **{**values, "base": dict(self.base)}), ()

    def aging(
        self,
        node: Node,
        *,
        hop: int = 1,
        confidence: float = 1.0,
        base: float | None = None,
        factor: float | None = None,
        floor: float | None = None,
        change_rate: float | None = None,
    ) -> Aging:
        """What the own life of an entry of a node is reckoned from.

        Args:
            node: The entry's node.
            hop: The hop at which it was made, from 1.
            confidence: How sure it is to be right, 0 to 1.
            base: Instead of the node's base life, seconds; `None`: the node's own.
            factor: Instead of the policy's.
            floor: Instead of the policy's.
            change_rate: Of its sources together, per second, where it is known.

        Raises:
            UsageError: An unknown node.
        """
        if node not in self.base:
            raise UsageError(f"unknown node {node!r}; known are {', '.join(NODES)}")
        return Aging(
            base=self.base[node] if base is None else base,
            hop=hop,
            confidence=confidence,
            factor=self.factor if factor is None else factor,
            exponent=self.exponent,
            change_rate=change_rate,
            stale_risk=self.stale_risk,
            floor=self.floor if floor is None else floor,
            jitter=self.jitter,
            prior=self.prior,
        )

    def life(self, node: Node, *, seed: str = "", **others: Any) -> float | None:
        """The own life of an entry of a node, seconds; `None`: no end.

        Args:
            node: The entry's node.
            seed: The entry's id.
            **others: As for `aging`.

        Raises:
            UsageError: An unknown node, or a number out of its range.
        """
        return self.aging(node, **others).life(seed)
