"""Tickets for frameworks that look a value up and store it in two separate calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple, Self

from stemma import Cache, Frame, Query, Ticket, forking

__all__ = ["RunTicket", "Waiting", "late_ticket", "one_for", "run_of"]

SAME = 64
"""Runs that wait under one key and are remembered."""

TICKETS = 10_000
"""Keys that are remembered between lookup and update."""


class RunTicket(NamedTuple):
    """A ticket, and the run that will come for it.

    Args:
        ticket: The ticket.
        run: The frame of the whole run; `None` for a direct call.
        ids: The ids of the messages that the run's nodes were given, where the key is one of
            `node_key`'s, which holds whose run it is; `None` for other keys.
        among: Where it cannot be told which of several runs comes, theirs.
    """

    ticket: Ticket
    run: Frame | None = None
    ids: AbstractSet[str] | None = None
    among: tuple[RunTicket, ...] = ()

    @property
    def frames(self) -> list[Frame]:
        """The frames of the runs that may be meant, each one that is still open.

        A task may be stored after whoever awaited it has ended.
        """
        return [_open(one.ticket.query.frame) for one in self.among or (self,)]

    def living(self, life: float) -> Self:
        """The same for a value that lives so long at most, seconds."""
        query = replace(self.ticket.query, life=life)
        return self._replace(ticket=replace(self.ticket, query=query))

    def spread(self) -> None:
        """Say in each of those runs what was read, or stored, in the frame of this ticket."""
        made = self.ticket.query.frame
        own = [item for item in made.reads if item.id == self.ticket.key.id] if made else ()
        for frame in self.frames if self.among else ():
            for item in own:
                frame.read(item)


class Waiting:
    """The tickets of runs that have not come for them yet, by key."""

    def __init__(self) -> None:
        self._tickets: OrderedDict[Hashable, list[RunTicket]] = OrderedDict()
        self._lock = forking.Lock()

    def add(self, key: Hashable, one: RunTicket) -> None:
        """Keep a ticket until its run ends; of one run's under one key, the newest."""
        with self._lock:
            others = self._tickets.setdefault(key, [])
            kept = [other for other in others[-SAME:] if other.run is not one.run]
            self._tickets[key] = [*filter(_lasts, kept), one]
            self._tickets.move_to_end(key)
            if len(self._tickets) > TICKETS:
                self._tickets.popitem(last=False)

    def under(self, key: Hashable, run: Frame | None, *, only_own: bool) -> list[RunTicket]:
        """Those that wait under a key.

        Args:
            key: The key.
            run: Whose it must be, where that is known.
            only_own: Only if the key is one of `node_key`'s.
        """
        with self._lock:
            found = self._tickets.get(key, [])
        return [
            one
            for one in found
            if _lasts(one) and run in (None, one.run) and not (only_own and one.ids is None)
        ]


def one_for(waiting: Sequence[RunTicket]) -> RunTicket:
    """The ticket of the one run that waits, or one for several, of which it cannot be told.

    Such a one counts what any of them has read as read, and what was recalled since the first of
    them asked.
    """
    # One that asked to keep out of the way must not be stored by another's ticket.
    aside = (other for other in waiting if other.ticket.query.mode == "bypass")
    one = next(aside, waiting[-1])
    if len(waiting) == 1:
        return one._replace(ticket=_in(one.frames[0], one.ticket))
    together = Frame(tenant=one.ticket.query.scope.tenant, of_run=True)
    for frame in one._replace(among=tuple(waiting)).frames:
        for item in list(frame.visible()):
            together.read(item)
    sequence = min(other.ticket.sequence for other in waiting)
    return RunTicket(
        ticket=replace(_in(together, one.ticket), sequence=sequence),
        run=one.run,
        ids=set().union(*(other.ids for other in waiting if other.ids is not None)),
        among=tuple(waiting),
    )


def _in(frame: Frame, ticket: Ticket) -> Ticket:
    return replace(ticket, query=replace(ticket.query, frame=frame))


def _open(frame: Frame | None) -> Frame:
    while frame is not None and frame.closed and frame.parent is not None:
        frame = frame.parent
    return frame if frame is not None else Frame()


def run_of(frame: Frame | None) -> Frame | None:
    """The frame of the outermost run of a framework around a frame, or `None`."""
    run = None
    while frame is not None:
        run = frame if frame.of_run else run
        frame = frame.parent
    return run


def late_ticket(cache: Cache, query: Query) -> Ticket:
    """A ticket for an update without a lookup: what was recalled since its frame began counts."""
    parts = cache.engine.parts
    began = query.frame.began.get(parts.number, 0) if query.frame is not None else 0
    return Ticket(query=query, sequence=began, started=parts.clock.monotonic())


def _lasts(one: RunTicket) -> bool:
    return one.run is None or not one.run.closed
