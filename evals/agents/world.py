"""An airline as its tools see it: what was recorded of it, changed by each write.

The recordings alone cannot show a stale read: no call that was repeated in them gave another
result. So every read is answered from this state, and what a cache serves is compared with that.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.rag.texts import rows

__all__ = ["READS", "WRITES", "Recorded", "Run", "World", "recorded", "runs"]

READS = (
    "get_user_details",
    "get_reservation_details",
    "search_direct_flight",
    "search_onestop_flight",
    "list_all_airports",
)
SEARCHES = READS[2:]
WRITES = (
    "book_reservation",
    "cancel_reservation",
    "send_certificate",
    "transfer_to_human_agents",
    "update_reservation_baggages",
    "update_reservation_flights",
)
DATA = "agent_tau_airline"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """One call of a tool, with what it gave when it was recorded."""

    name: str
    arguments: Mapping[str, Any]
    result: str

    @property
    def failed(self) -> bool:
        """Whether the tool refused, and so changed nothing."""
        return self.result.startswith("Error")


Run = Sequence[Recorded]


def runs() -> list[Run]:
    """The recorded runs, each as its calls of tools that read or write."""
    return [list(_calls(row["steps"])) for row in rows(DATA, "trajectories.jsonl")]


def _calls(steps: Sequence[Mapping[str, Any]]) -> Iterator[Recorded]:
    asked: Mapping[str, Any] | None = None
    for step in steps:
        for call in step.get("tool_calls") or ():
            asked = call
        if step["role"] == "tool" and asked is not None and asked["name"] in READS + WRITES:
            arguments = json.loads(asked["arguments"])
            yield Recorded(name=asked["name"], arguments=arguments, result=step["content"])


def recorded(all_runs: Sequence[Run]) -> dict[str, Any]:
    """What the tools gave of the initial world, by tool and arguments.

    That is what they gave before anything was written in a run; and what searches gave, which in
    the recordings no write has changed.
    """
    found: dict[str, Any] = {}
    for run in all_runs:
        written = False
        for call in run:
            written = written or call.name in WRITES
            initial = call.name in READS and (call.name in SEARCHES or not written)
            if initial and not call.failed:
                found.setdefault(_asked(call.name, call.arguments), json.loads(call.result))
    return found


def _asked(name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([name, arguments], sort_keys=True)


@dataclass(slots=True)
class World:
    """The state of one airline.

    Args:
        initial: What was recorded (see `recorded`).
        owner: Whose world it is: stands in every result.
        seats: Whether bookings take seats, and cancellations give them back, in what searches
            find. In the recordings they do not.
    """

    initial: Mapping[str, Any] = field(repr=False)
    owner: str = ""
    seats: bool = False
    users: dict[str, Any] = field(default_factory=dict)
    reservations: dict[str, Any] = field(default_factory=dict)
    taken: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    written: list[tuple[str, str]] = field(default_factory=list)
    writes: int = 0

    def reset(self) -> list[tuple[str, str]]:
        """Back to the beginning. Gives what had been written: the kind and the id of each."""
        changed, self.written = list(dict.fromkeys(self.written)), []
        self.users, self.reservations, self.taken = {}, {}, Counter()
        return changed

    def read(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """What a tool that reads gives now; a text that begins with "Error" if it refuses."""
        if name == "get_user_details":
            found = self._user(arguments["user_id"])
        elif name == "get_reservation_details":
            found = self._reservation(arguments["reservation_id"])
        else:
            found = copy.deepcopy(self.initial.get(_asked(name, arguments)))
            for flight in _flights(found):
                date = flight.get("date", arguments["date"])
                for cabin in flight.get("available_seats", ()):
                    taken = self.taken[flight["flight_number"], date, cabin]
                    flight["available_seats"][cabin] -= taken
        return "Error: not found" if found is None else {"of": self.owner, "is": found}

    def write(self, call: Recorded) -> Any:
        """Do what a tool that writes did. What it refused when it was recorded, it refuses."""
        self.writes += 1
        if not call.failed:
            getattr(self, f"_{call.name}")(call.arguments, call)
        return call.result

    def _user(self, id: str) -> Any:
        known = self.initial.get(_asked("get_user_details", {"user_id": id}))
        return copy.deepcopy(self.users.get(id, known))

    def _reservation(self, id: str) -> Any:
        known = self.initial.get(_asked("get_reservation_details", {"reservation_id": id}))
        return copy.deepcopy(self.reservations.get(id, known))

    def _change_user(self, id: str, change: Callable[[dict[str, Any]], None]) -> None:
        user = self._user(id)
        user = {"user_id": id} if user is None else user
        change(user)
        self.users[id] = user
        self.written.append(("user", id))

    def _change_reservation(self, id: str, **changes: Any) -> dict[str, Any]:
        held = self._reservation(id)
        known: dict[str, Any] = {"reservation_id": id} if held is None else held
        self.reservations[id] = {**known, **changes}
        self.written.append(("reservation", id))
        return known

    def _take(self, reservation: Mapping[str, Any], number: int) -> None:
        """Seats taken, or given back, on every flight of a reservation."""
        for flight in reservation.get("flights", ()) if self.seats else ():
            place = (flight["flight_number"], flight["date"], reservation.get("cabin", "economy"))
            self.taken[place] += number * len(reservation.get("passengers", (None,)))
            self.written.append(("flights", flight["date"]))

    def _pay(self, reservation: Mapping[str, Any], payment: str) -> None:
        """A gift card has less on it than before."""
        if payment.startswith("gift_card") and "user_id" in reservation:
            self._change_user(
                reservation["user_id"], lambda user: user.setdefault("paid", []).append(payment)
            )

    def _book_reservation(self, arguments: Mapping[str, Any], call: Recorded) -> None:
        made = json.loads(call.result)
        self._change_reservation(made["reservation_id"], **made)
        self._take(made, 1)

        def booked(user: dict[str, Any]) -> None:
            user.setdefault("reservations", []).append(made["reservation_id"])
            user.setdefault("paid", []).append(arguments["payment_methods"])

        self._change_user(arguments["user_id"], booked)

    def _cancel_reservation(self, arguments: Mapping[str, Any], _: Recorded) -> None:
        was = self._change_reservation(arguments["reservation_id"], status="cancelled")
        self._take(was, -1)

    def _send_certificate(self, arguments: Mapping[str, Any], _: Recorded) -> None:
        given = arguments["amount"]
        self._change_user(
            arguments["user_id"], lambda user: user.setdefault("certificates", []).append(given)
        )

    def _update_reservation_baggages(self, arguments: Mapping[str, Any], _: Recorded) -> None:
        bags = arguments["total_baggages"]
        was = self._change_reservation(arguments["reservation_id"], total_baggages=bags)
        self._pay(was, arguments["payment_id"])

    def _update_reservation_flights(self, arguments: Mapping[str, Any], _: Recorded) -> None:
        flights, cabin = arguments["flights"], arguments["cabin"]
        was = self._change_reservation(arguments["reservation_id"], flights=flights, cabin=cabin)
        self._take(was, -1)
        self._take({**was, "flights": flights, "cabin": cabin}, 1)
        self._pay(was, arguments["payment_id"])

    def _transfer_to_human_agents(self, arguments: Mapping[str, Any], _: Recorded) -> None:
        """Somebody takes over; nothing that can be read has changed."""


def _flights(found: Any) -> Iterator[dict[str, Any]]:
    """All flights in what a search gave, however deep."""
    if isinstance(found, list):
        for one in found:
            yield from _flights(one)
    elif isinstance(found, dict) and "flight_number" in found:
        yield found
