"""Random plans of runs whose true edges are known: who asks a model when, and reads what.

A plan is a tree: one who asks, some one after the other, some side by side. Whoever asks is built
on all that was asked and read before in the same run; not on what runs beside it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

__all__ = [
    "Ask",
    "InTurn",
    "Plan",
    "SideBySide",
    "askers",
    "document",
    "drawn",
    "in_turn",
    "true_edges",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """One call of a model.

    Args:
        who: Who asks; no two of a plan have one name.
        silent: Whether the prompt shows the item alone, not what was said before.
        reads: Whether a retriever is asked first.
    """

    who: str
    silent: bool
    reads: bool


@dataclass(frozen=True, slots=True)
class InTurn:
    """Plans one after the other."""

    parts: Sequence[Plan]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Plans at the same time."""

    parts: Sequence[Plan]


Plan = Ask | InTurn | SideBySide


def drawn(lucky: random.Random, *, name: str, depth: int = 3) -> Plan:
    """A random plan of two askers or more; its askers' names begin with `name`."""
    numbers = count()

    def part(room: int) -> Plan:
        kind = lucky.random()
        if room == 0 or kind < 0.4:
            return Ask(
                who=f"{name}{next(numbers)}",
                silent=lucky.random() < 0.4,
                reads=lucky.random() < 0.3,
            )
        parts = tuple(part(room - 1) for _ in range(lucky.randrange(2, 4)))
        return InTurn(parts) if kind < 0.7 else SideBySide(parts)

    return InTurn((part(depth), part(depth)))


def askers(plan: Plan) -> Iterator[Ask]:
    """All who ask, as they stand in the plan."""
    if isinstance(plan, Ask):
        yield plan
    else:
        for one in plan.parts:
            yield from askers(one)


def in_turn(plan: Plan) -> Plan:
    """The same plan with nothing side by side."""
    return plan if isinstance(plan, Ask) else InTurn(tuple(in_turn(part) for part in plan.parts))


def true_edges(plan: Plan) -> set[tuple[str, str]]:
    """Every asker with each other it is built on, and with each document, by who read it."""
    edges: set[tuple[str, str]] = set()
    _walk(plan, frozenset(), edges)
    return edges


def document(who: str) -> str:
    """The name of what an asker's retriever finds, an item apart."""
    return f"read-by-{who}"


def _walk(plan: Plan, before: frozenset[str], edges: set[tuple[str, str]]) -> frozenset[str]:
    """Add the edges of a plan that follows on some; gives what is there when it has ended."""
    if isinstance(plan, Ask):
        seen = before | {document(plan.who)} if plan.reads else before
        edges |= {(plan.who, one) for one in seen}
        return seen | {plan.who}
    if isinstance(plan, InTurn):
        for one in plan.parts:
            before = _walk(one, before, edges)
        return before
    return frozenset().union(*(_walk(one, before, edges) for one in plan.parts))
