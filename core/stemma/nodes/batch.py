"""Many questions at once: one read, one computation of all that is missing, one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from stemma.effects import Ask, Steps
from stemma.engine import Admit, Engine, Served
from stemma.entry import Cost
from stemma.outcome import Hit, Miss, Stored, Ticket
from stemma.query import Query

__all__ = ["Batch", "look_all", "serve_all"]


class Batch(Protocol):
    """What the misses of a batch cost. It may have an async twin, `acompute`."""

    def compute(self, places: Sequence[int]) -> Sequence[Any]:
        """The values of the questions at these places, in their order."""
        ...


def look_all(engine: Engine, resolved: Sequence[Query | Miss]) -> Steps[list[Hit | Miss]]:
    """Look up those of the questions that could be resolved."""
    queries = [query for query in resolved if isinstance(query, Query)]
    answers = iter((yield from engine.lookup_exact(queries)) if queries else ())
    return [next(answers) if isinstance(one, Query) else one for one in resolved]


def serve_all(
    engine: Engine,
    resolved: Sequence[Query | Miss],
    batch: Batch,
    *,
    admit: Admit | None = None,
) -> Steps[list[Served]]:
    """`get_or_compute` for many questions; each must be asked once.

    Args:
        engine: The engine.
        resolved: The questions; those that are misses already are computed and not stored.
        batch: Asked once for all that is missing, or not at all. What it raises passes through.
        admit: Called with each computed value; gives `None`, or the reason for not storing it.
    """
    outcomes = yield from look_all(engine, resolved)
    misses = {place: one for place, one in enumerate(outcomes) if isinstance(one, Miss)}
    if not misses:
        return [_hit(one) for one in outcomes]
    clock = engine.parts.clock
    started = clock.monotonic()
    values = yield Ask(batch, "compute", (list(misses),), foreign=True)
    each = Cost(seconds=(clock.monotonic() - started) / len(misses))
    computed = dict(zip(misses, values, strict=True))
    tickets: dict[int, Ticket] = {}
    stored: dict[int, Stored] = {}
    for place, miss in misses.items():
        refused = admit(computed[place]) if admit is not None else None
        if refused is not None:
            stored[place] = Stored(refused="not_admitted", detail=refused)
        elif miss.ticket is not None:
            tickets[place] = miss.ticket
    puts = [(ticket, computed[place]) for place, ticket in tickets.items()]
    if puts:
        done = yield from engine.put_many(puts, cost=each)
        stored |= dict(zip(tickets, done, strict=True))
    return [
        Served(value=computed[place], outcome=one, stored=stored.get(place))
        if place in misses
        else _hit(one)
        for place, one in enumerate(outcomes)
    ]


def _hit(outcome: Hit | Miss) -> Served:
    assert isinstance(outcome, Hit)  # noqa: S101 - the misses are dealt with
    return Served(value=outcome.value, outcome=outcome)
