"""Private worlds and a shared one against a model that keeps whole histories.

One tool copies what another resource is at that moment, and says nothing of it but "done": what a
resource becomes depends on more than what was written to it.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import stemma
from stemma.tools import ToolCaching, ToolPolicy, ToolRegistry

Paths = tuple[tuple[str, ...], ...]

LONG = 1e6
READS = {
    "get": lambda arguments: (("booking", arguments["id"]),),
    "list": lambda _: (("booking",),),
    "user": lambda _: (("user", "ada"),),
    "about": lambda _: (),
}
WRITES = {
    "set": lambda arguments: (("booking", arguments["id"]),),
    "copy": lambda arguments: (("booking", arguments["id"]),),
    "swap": lambda arguments: (("booking", arguments["id"]), ("booking", arguments["other"])),
    "pay": lambda _: (("user", "ada"),),
    "fail": lambda arguments: (("booking", arguments["id"]),),
    "unknown": lambda _: ((),),
}
ids = st.sampled_from(("1", "2"))
places = st.integers(0, 3)


def registry() -> ToolRegistry:
    made = ToolRegistry(unknown="clear")
    for name, reads in (("get", "booking:{id}"), ("list", "booking"), ("user", "user:ada")):
        made.declare(name, ToolPolicy(ttl=LONG, reads=[reads]))
    made.declare("about", ToolPolicy(ttl=LONG))
    for name in ("set", "copy", "fail"):
        made.declare(name, ToolPolicy(writes=["booking:{id}"]))
    made.declare("swap", ToolPolicy(writes=["booking:{id}", "booking:{other}"]))
    made.declare("pay", ToolPolicy(writes=["user:ada"]))
    return made


@dataclass
class Place:
    """A world as it is, and what was written in it; the shared one has no history that counts."""

    start: str
    world: stemma.World | None
    seats: dict[str, str]
    paid: int = 0
    history: list[tuple[Any, Paths]] = field(default_factory=list)
    done: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def read(self, name: str, arguments: dict[str, str]) -> Any:
        if name == "get":
            return self.seats[arguments["id"]]
        return {"list": self.seats, "user": self.paid, "about": "an airline"}[name]

    def write(self, name: str, arguments: dict[str, str]) -> str:
        one, other = arguments.get("id", "1"), arguments.get("other", "1")
        if name == "set":
            self.seats[one] = arguments["seat"]
        elif name == "copy":
            self.seats[one] = self.seats[other]
        elif name == "swap":
            self.seats[one], self.seats[other] = self.seats[other], self.seats[one]
        elif name == "pay":
            self.paid += 1
        elif name == "unknown":
            self.seats = {each: f"{seat}?" for each, seat in self.seats.items()}
        else:
            self.seats[one] = "half done"
            raise RuntimeError("the line broke")
        return "done"

    def version(self, paths: Paths) -> tuple[Any, ...]:
        """All that was written up to the last write that concerned these."""
        last = [n for n, (_, written) in enumerate(self.history) if meet(written, paths)]
        return tuple(event for event, _ in self.history[: last[-1] + 1]) if last else ()


def meet(some: Paths, others: Paths) -> bool:
    return any(a[: len(b)] == b or b[: len(a)] == a for a in some for b in others)


class Worlds(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cache = stemma.open(":memory:", tenant="me", embedder=None)
        self.tools = ToolCaching(self.cache, registry())
        self.stored: dict[Any, Paths] = {}
        self.places = [self.begun(None), self.begun(""), self.begun(""), self.begun("other")]

    def teardown(self) -> None:
        self.cache.close()

    def begun(self, start: str | None) -> Place:
        seats = {"1": "1A", "2": f"2B{start or ''}"}
        world = None if start is None else stemma.World(start)
        return Place("shared" if start is None else f"from {start}", world, seats)

    @rule(where=st.integers(1, 3))
    def begin_anew(self, where: int) -> None:
        self.places[where] = self.begun(self.places[where].start.removeprefix("from "))

    @rule(where=places)
    def read_all(self, where: int) -> None:
        for name, which in (("about", ""), ("user", ""), ("list", ""), ("get", "1"), ("get", "2")):
            self.read(where, name, which)

    def read(self, where: int, name: str, id: str) -> None:
        place = self.places[where]
        arguments = {"id": id} if name == "get" else {}
        paths = READS[name](arguments)
        version = () if place.world is None else place.version(paths)
        key = (place.start, name, id, version)
        served = self.call(place, name, arguments, place.read)
        assert served.value == place.read(name, arguments)
        assert served.outcome.hit == (key in self.stored), (key, served.outcome)
        self.stored[key] = paths

    @rule(where=places, name=st.sampled_from(sorted(WRITES)), id=ids, other=ids)
    def write(self, where: int, name: str, id: str, other: str) -> None:
        given = {"pay": {}, "unknown": {}, "set": {"id": id, "seat": f"{other}S"}}
        self.do(where, name, given.get(name, {"id": id, "other": other}))

    def do(self, where: int, name: str, arguments: dict[str, str]) -> None:
        place = self.places[where]
        place.done.append((name, arguments))
        event: Any = (name, tuple(arguments.items()))
        try:
            assert self.call(place, name, arguments, place.write).value == "done"
        except RuntimeError:
            event = object()
        place.history.append((event, WRITES[name](arguments)))
        if place.world is None:
            self.take_back(WRITES[name](arguments))

    @rule(where=st.integers(1, 3), after=st.integers(1, 3), left_out=st.integers(0, 6))
    def follow(self, where: int, after: int, left_out: int) -> None:
        """A run that does what another did, perhaps all but one thing."""
        done = list(self.places[after].done)
        self.places[where] = self.begun(self.places[after].start.removeprefix("from "))
        for number, (name, arguments) in enumerate(done):
            if number != left_out:
                self.do(where, name, arguments)
                self.read_all(where)

    @rule(where=places, id=ids)
    def change(self, where: int, id: str) -> None:
        """Otherwise than by a tool."""
        place = self.places[where]
        place.seats[id] = "changed"
        paths = (("booking", id),)
        place.history.append((object(), paths))
        with self.acting(place):
            self.tools.changed("booking:{id}", id=id)
        self.take_back(paths)

    def take_back(self, paths: Paths) -> None:
        self.stored = {k: read for k, read in self.stored.items() if not meet(read, paths)}

    def acting(self, place: Place):
        return self.cache.using() if place.world is None else self.cache.world(place.world)

    def call(self, place: Place, name: str, arguments: dict[str, str], tool: Any):
        with self.acting(place):
            return self.tools.call(name, arguments, lambda: tool(name, arguments))

    @invariant()
    def nothing_failed(self) -> None:
        assert self.cache.current_world is None


TestWorlds = Worlds.TestCase
TestWorlds.settings = settings(
    max_examples=40,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_versions_that_told_only_of_what_concerned_a_resource_would_be_noticed(monkeypatch):
    """What was copied differs; each of the two bookings saw the same writes."""
    monkeypatch.setattr(
        stemma.World, "_write", _of_its_own_resources_only(stemma.World), raising=True
    )
    machine = Worlds()
    machine.write(1, "set", "1", "2")
    machine.write(1, "copy", "2", "1")
    machine.read(1, "get", "2")
    assert machine.places[1].seats["2"] != machine.places[2].seats["1"]
    machine.write(2, "copy", "2", "1")
    with pytest.raises(AssertionError):
        machine.read(2, "get", "2")
    machine.teardown()


def _of_its_own_resources_only(world):
    write = world._write

    def mutant(self, paths, said):
        self._last = self._last._replace(version=self._below.get(paths[0], self._first).version)
        write(self, paths, said)

    return mutant
