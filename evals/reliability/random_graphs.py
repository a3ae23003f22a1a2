"""Random graphs of entries in a cache, putters of them, and a model of what must be served.

Every source, tag and entry has an edition that rises before it is recalled. A value names the
editions of all it was built from, as they were when each was read; so a value tells by itself
whether it is stale. The model keeps every value, and works out everything anew each time.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import stemma
from stemma import Hit, Source
from stemma.lineage import frames
from stemma.lineage.frames import Frame, marks
from stemma.outcome import Stored, Ticket

__all__ = ["KEPT", "LOST", "REFUSED", "STALE", "UNSOUND", "Node", "Putter", "World", "drawn"]

DEPTH = 6

STALE = "stale hits"
UNSOUND = "hits on what has no valid parent"
LOST = "entries lost that nothing covers"
REFUSED = "puts refused without a reason"
KEPT = "puts stored that a recall covers"

Editions = dict[str, int]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """An entry of a graph: what it is built from, if that is there when it is made."""

    number: int
    tag: str
    parents: tuple[int, ...]
    sources: tuple[tuple[str, str], ...]


def drawn(lucky: random.Random) -> list[Node]:
    """A random graph, parents before children."""
    nodes: list[Node] = []
    for layer in range(lucky.randrange(2, DEPTH + 1)):
        above = range(len(nodes))
        for _ in range(lucky.randrange(1, 4)):
            most = min(len(above), 3)
            documents = [str(lucky.randrange(4)) for _ in range(lucky.randrange(3))]
            node = Node(
                number=len(nodes),
                tag=f"tag {lucky.randrange(3)}",
                parents=tuple(lucky.sample(above, lucky.randrange(min(layer, 1), most + 1))),
                sources=tuple((f"doc {d}", f"chunk {d}.{lucky.randrange(2)}") for d in documents),
            )
            nodes.append(node)
    return nodes


class World:
    """One graph in a cache, and what is true of it.

    `stored` is the model's store: each entry's value, and its parents' values when it was made.
    """

    def __init__(self, cache: stemma.Cache, name: str, lucky: random.Random) -> None:
        self.cache = cache
        self.name = name
        self.lucky = lucky
        self.nodes = drawn(lucky)
        self.editions: Editions = {}
        self.floors: Editions = {}
        self.stored: dict[int, tuple[Editions, dict[int, Editions]]] = {}
        self.tried: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, tally: Counter[str], what: str) -> None:
        """Count something that was done, or that is against a promise."""
        with self._lock:
            tally[what] += 1

    def read(self, *elements: str) -> Editions:
        """The present editions of some elements."""
        return {element: self.editions.get(element, 0) for element in elements}

    def question(self, node: Node) -> str:
        """What a node's entry answers."""
        return f"{self.name} {node.number}"

    def look(self, node: Node) -> Hit | Ticket:
        """Look an entry up; a stale hit is counted."""
        floors = dict(self.floors)
        with self.cache.using(tags=(f"{self.name} {node.tag}",)):
            found = self.cache.answers.lookup(self.question(node))
        self.count(self.tried, "hits" if found.hit else "misses")
        if isinstance(found, Hit):
            if any(edition < floors.get(name, 0) for name, edition in found.value.items()):
                self.count(self.broken, STALE)
            return found
        assert found.ticket is not None
        return found.ticket

    def recall(self) -> None:
        """Change something, and take back what was built on it."""
        node = self.lucky.choice(self.nodes)
        where = [("tag", f"{self.name} {node.tag}"), ("entry", self.key(node))]
        where += [("source", f"{self.name} {name}") for source in node.sources for name in source]
        kind, value = self.lucky.choice(where)
        edition = self.editions.get(value, 0) + 1
        self.editions[value] = edition
        self.cache.recall(dry_run=False, **{kind: value})
        self.floors[value] = edition
        self.count(self.tried, "recalls")

    def key(self, node: Node) -> str:
        """A node's entry's id."""
        return self.cache.answers.ticket(self.question(node)).key.id

    # ---------------------------------------------------------------- the model

    def fresh(self, value: Editions) -> bool:
        """Whether nothing that a value was built from has been recalled since it was read."""
        return all(self.editions.get(element, 0) == read for element, read in value.items())

    def valid(self, number: int) -> bool:
        """Whether an entry is there and may be served."""
        if number not in self.stored:
            return False
        value, parents = self.stored[number]
        return self.fresh(value) and all(
            self.valid(parent) and self.stored[parent][0] == read
            for parent, read in parents.items()
        )

    def storable(self, value: Editions, parents: dict[int, Editions]) -> bool:
        """Whether a put must be stored."""
        return self.fresh(value) and all(
            self.stored[parent][0] == read for parent, read in parents.items()
        )

    def compare(self, nodes: Iterable[Node]) -> None:
        """Look entries up: those that may be served must be, and no others."""
        for node in nodes:
            found, valid = isinstance(self.look(node), Hit), self.valid(node.number)
            if found != valid:
                self.count(self.broken, UNSOUND if found else LOST)


class Putter:
    """Somebody who misses, reads what an entry is built from, and puts it; step by step.

    The miss may come before, between or after what is read, as in a chain.
    """

    def __init__(self, world: World, node: Node) -> None:
        self._world = world
        self._node = node
        self._frame = Frame()
        self._value: Editions = {}
        self._parents: dict[int, Editions] = {}
        self._ticket: Ticket | None = None
        self.stored: Stored | None = None
        steps: list[Callable[[], None]] = [self._miss]
        steps += [partial(self._read_parent, world.nodes[parent]) for parent in node.parents]
        steps += [partial(self._read_source, *source) for source in node.sources]
        world.lucky.shuffle(steps)
        self.steps = [self._put, *steps]  # the last one first

    def step(self) -> None:
        """Do the next step."""
        with frames.within(self._frame):
            self.steps.pop()()

    def _built_on(self, read: Editions) -> None:
        for element, edition in read.items():
            self._value[element] = min(edition, self._value.get(element, edition))

    def _steadily(self, read: Callable[[], T], *elements: str) -> T:
        """Read something at a moment of which the elements' editions are known for sure."""
        while True:
            before, found = self._world.read(*elements), read()
            if self._world.read(*elements) == before:
                self._built_on(before)
                return found

    def _miss(self) -> None:
        world, node = self._world, self._node
        own = (world.key(node), f"{world.name} {node.tag}")
        found = self._steadily(partial(world.look, node), *own)
        if isinstance(found, Hit):
            self.steps.clear()
        else:
            self._ticket = found

    def _read_parent(self, node: Node) -> None:
        found = self._world.look(node)
        if isinstance(found, Hit):
            self._built_on(found.value)
            self._parents[node.number] = found.value

    def _read_source(self, *names: str) -> None:
        document, chunk = (f"{self._world.name} {name}" for name in names)
        read_at = self._steadily(marks, document, chunk)
        source = Source(document=document, chunk=chunk, content="any")
        self._frame.read_sources([(source, "")], read_at)

    def _put(self) -> None:
        assert self._ticket is not None
        world = self._world
        self.stored = world.cache.answers.put(self._ticket, self._value)
        world.count(world.tried, "puts stored" if self.stored else "puts refused")

    def judge(self) -> None:
        """Compare what became of the put with the model."""
        world = self._world
        if self.stored is None:
            return
        must = world.storable(self._value, self._parents)
        if bool(self.stored) != must:
            world.count(world.broken, REFUSED if must else KEPT)
        if self.stored:
            world.stored[self._node.number] = (self._value, self._parents)
