"""An airline's agents replayed: how many of their reading calls a cache serves, and how truly.

The worlds: each run begins from the initial world, which is a private one or, in the other way, one
that is shared, with what the run before had written told as changed; one world that all runs share;
the same, where every read of a run is made again after each of its writes; the same, where bookings
change what searches find; and two tenants with a world of their own each, in turns. Every value,
served or not, is compared with what the world gives at that moment, and every write must have
reached the world.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import stemma
from evals.agents.world import READS, WRITES, Recorded, Run, World, recorded, runs
from evals.measuring import Figure, Measured, scaled
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry

__all__ = ["Invalidation", "Tally", "Worlds", "declared", "replay", "run"]

Invalidation = Literal["resources", "clear", "none"]
"""What a write takes back: what it names, everything, or nothing."""

Worlds = Literal["one", "told", "private"]
"""One world for all runs; or each run begins from the initial world: in the one world, with what
had been written told as changed, or in a private one."""

DAY = 24 * 3600.0

READ_OF = {
    "get_user_details": ("user:{user_id}",),
    "get_reservation_details": ("reservation:{reservation_id}",),
    "search_direct_flight": ("flights:{date}",),
    "search_onestop_flight": ("flights",),  # a second leg may leave on the day after
    "list_all_airports": ("airports",),
}
WRITTEN_BY = {
    "book_reservation": ("user:{user_id}",),
    "cancel_reservation": ("reservation:{reservation_id}",),
    "send_certificate": ("user:{user_id}",),
    "transfer_to_human_agents": ("desk",),
    "update_reservation_baggages": ("reservation:{reservation_id}", "user"),
    "update_reservation_flights": ("reservation:{reservation_id}", "user"),
}
SEATS_BY = {
    "book_reservation": ("flights:{flights.date}",),
    "cancel_reservation": ("flights",),
    "update_reservation_flights": ("flights",),
}
"""What is written besides where seats are counted. Which user or day a reservation is of, its id
does not say: a tool that is given no more writes them all."""

_NEW = re.compile(r"HATHA[A-Z]")
"""The ids of the reservations that a run makes: the same ones in every recorded run."""


@dataclass(slots=True)
class Tally:
    """What came of one replay.

    Args:
        reads: The reading calls of the recorded runs.
        served: Those of them that did not reach the tool.
        again: Reads made again after a write.
        differing: Values that are not what the world gives at that moment.
        writes: The writing calls.
        skipped: Those that did not reach the world.
    """

    reads: int = 0
    served: int = 0
    again: int = 0
    differing: int = 0
    writes: int = 0
    skipped: int = 0

    @property
    def share(self) -> float:
        """The share of the reads that was served."""
        return self.served / self.reads


def declared(invalidation: Invalidation, *, seats: bool = False) -> ToolRegistry:
    """What the airline's tools declare."""
    registry = ToolRegistry()
    for name, reads in READ_OF.items():
        named = reads if invalidation == "resources" else ("airline",)
        registry.declare(name, ToolPolicy(ttl=DAY, reads=named, keep=_found))
    for name, writes in WRITTEN_BY.items():
        if invalidation != "none":
            more = SEATS_BY.get(name, ()) if seats else ()
            named = (*writes, *more) if invalidation == "resources" else ("airline",)
            registry.declare(name, ToolPolicy(writes=named))
    return registry


def _found(result: Any) -> bool:
    return not (isinstance(result, str) and result.startswith("Error"))


class _Replay:
    """Replays runs for one tenant in one world."""

    def __init__(self, cache: stemma.Cache, invalidation: Invalidation, world: World) -> None:
        self.tools = ToolCaching(cache, declared(invalidation, seats=world.seats))
        self.cache = cache
        self.world = world
        self.tally = Tally()

    def one(self, run: Run, *, again: bool, private: bool) -> None:
        """All calls of a run, in one trace."""
        seen: list[Recorded] = []
        acting = self.cache.world() if private else nullcontext()
        with self.cache.using(tenant=self.world.owner), acting, self.cache.trace():
            for call in run:
                if call.name in READS:
                    self.tally.reads += 1
                    self.tally.served += self._read(call)
                    seen.append(call)
                    continue
                self._write(call)
                for repeated in seen if again else ():
                    self.tally.again += 1
                    self._read(repeated)

    def reset(self, *, told: bool) -> None:
        """Begin from the initial world; and say what had been written before, where it is told."""
        written = self.world.reset()
        with self.cache.using(tenant=self.world.owner):
            for kind, name in written if told else ():
                self.tools.changed(f"{kind}:{{name}}", name=name)

    def _read(self, call: Recorded) -> bool:
        now = self.world.read(call.name, call.arguments)
        served = self.tools.call(
            call.name, call.arguments, lambda: self.world.read(call.name, call.arguments)
        )
        self.tally.differing += served.value != now
        return served.outcome.hit

    def _write(self, call: Recorded) -> None:
        before = self.world.writes
        self.tools.call(call.name, call.arguments, lambda: self.world.write(call))
        self.tally.writes += 1
        self.tally.skipped += self.world.writes != before + 1


def replay(
    all_runs: Sequence[Run],
    invalidation: Invalidation = "resources",
    *,
    worlds: Worlds = "one",
    again: bool = False,
    seats: bool = False,
    tenants: Sequence[str] = ("airline",),
) -> Tally:
    """Replay all runs over one cache.

    Args:
        all_runs: The runs, in their order.
        invalidation: What a write takes back.
        worlds: Where each run begins.
        again: Whether the reads of a run are made again after each of its writes.
        seats: Whether bookings change what searches find.
        tenants: Each has a world of its own, in which every run is made, in turns.
    """
    initial = recorded(all_runs)
    with stemma.open(":memory:", embedder=None) as cache:
        replays = [
            _Replay(cache, invalidation, World(initial, tenant, seats)) for tenant in tenants
        ]
        for number, run in enumerate(all_runs):
            for each in replays:
                if worlds != "one":
                    each.reset(told=worlds == "told")
                own = _renamed(run, number) if worlds == "one" else run
                each.one(own, again=again, private=worlds == "private")
    total = Tally()
    for each in replays:
        for name, value in asdict(each.tally).items():
            setattr(total, name, getattr(total, name) + value)
    return total


def _renamed(run: Run, number: int) -> Run:
    """The run with ids of its own for the reservations it makes, as in one world they have."""

    def own(value: Any) -> Any:
        if isinstance(value, str):
            return _NEW.sub(lambda found: f"{found[0]}-{number}", value)
        if isinstance(value, list):
            return [own(one) for one in value]
        return {key: own(one) for key, one in value.items()} if isinstance(value, dict) else value

    return [
        replace(call, arguments=own(dict(call.arguments)), result=own(call.result)) for call in run
    ]


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001
    """All worlds, with what each way of invalidation serves and gets wrong."""
    all_runs = runs()
    all_runs = all_runs[: scaled(len(all_runs), size, least=16)]
    found = {
        "each from the beginning": replay(all_runs, worlds="private"),
        "each from the beginning, read again after writes": replay(
            all_runs, worlds="private", again=True
        ),
        "each from the beginning, with seats": replay(
            all_runs, worlds="private", again=True, seats=True
        ),
        "each from the beginning, told as changed": replay(all_runs, worlds="told"),
        "one world": replay(all_runs),
        "one world, read again after writes": replay(all_runs, again=True),
        "one world, with seats": replay(all_runs, again=True, seats=True),
        "two tenants in turns": replay(all_runs, again=True, tenants=("one", "other")),
        "two tenants in turns, each from the beginning": replay(
            all_runs, worlds="private", again=True, tenants=("one", "other")
        ),
        "one world, all cleared by each write": replay(all_runs, "clear", again=True),
        "one world, nothing taken back": replay(all_runs, "none", again=True),
    }
    assert set(READ_OF) == set(READS)
    assert set(WRITTEN_BY) == set(WRITES)
    figures = [
        Figure(
            what=f"{name}: served of {tally.reads:,} reads",
            value=tally.share,
            unit="",
            at_least={"each from the beginning": 0.6, "one world": 0.33}.get(name),
        )
        for name, tally in found.items()
    ]
    for name, tally in found.items():
        ours = "cleared" not in name and "nothing" not in name
        figures += [
            Figure(
                what=f"{name}: differing of {tally.reads + tally.again:,} reads",
                value=tally.differing,
                unit="",
                at_most=0 if ours else None,
                at_least=1 if "nothing" in name else None,
            ),
            Figure(
                what=f"{name}: skipped of {tally.writes:,} writes",
                value=tally.skipped,
                unit="",
                at_most=0,
            ),
        ]
    return Measured(
        figures=figures,
        details={name: {**asdict(one), "share": one.share} for name, one in found.items()},
    )
