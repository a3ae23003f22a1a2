"""Recalls race with puts of what they cover, on random graphs.

Every source, tag and entry has an edition that rises before it is recalled. A value names the
editions of all it was built from, as they were when each was read; so a value tells by itself
whether it is stale. Most graphs are played step by step, the steps of several putters and the
recalls shuffled, and compared with a model that works out everything anew each time: what is not
stale must be stored, and must stay. Some are played by real threads.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import stemma
from evals.reliability import Outcome, times
from stemma import Hit, Source
from stemma.lineage import frames
from stemma.lineage.frames import Frame, marks
from stemma.outcome import Stored, Ticket
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Store
from stemma.stores.sqlite import SqliteStore

GRAPHS = 10_000
DEPTH = 6
AT_ONCE = 4
"""Putters under way at the same time."""

ROUND = 20
"""Graphs that share a store."""

STALE = "stale hits"
UNSOUND = "hits on what has no valid parent"
LOST = "entries lost that nothing covers"
REFUSED = "puts refused without a reason"
KEPT = "puts stored that a recall covers"
PROMISES = (STALE, UNSOUND, LOST, REFUSED, KEPT)

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


def play(world: World) -> None:
    """Shuffle the steps of putters and recalls; look at everything after each recall."""
    lucky = world.lucky
    waiting = [node for _ in range(2) for node in world.nodes]
    under_way: list[Putter] = []
    recalls = lucky.randrange(2, 6)
    while waiting or under_way:
        while waiting and len(under_way) < AT_ONCE:
            ahead = lucky.randrange(min(len(waiting), 3))
            under_way.append(Putter(world, waiting.pop(ahead)))
        if recalls and lucky.random() < 0.05:
            recalls -= 1
            world.recall()
            world.compare(world.nodes)
        putter = lucky.choice(under_way)
        putter.step()
        if not putter.steps:
            under_way.remove(putter)
            putter.judge()
    world.recall()
    world.compare(world.nodes)


def race(world: World) -> None:
    """The same with threads: what is served at any moment must not be stale.

    When they are done, everything that is missing is put, and must be served.
    """
    done = threading.Event()

    def put(nodes: list[Node]) -> None:
        for node in nodes:
            putter = Putter(world, node)
            while putter.steps:
                putter.step()

    def recall() -> None:
        while not done.is_set():
            world.recall()
            world.look(world.nodes[-1])
            time.sleep(world.lucky.uniform(0, 0.001))

    with ThreadPoolExecutor(AT_ONCE + 1) as threads:
        recalling = threads.submit(recall)
        putting = [threads.submit(put, world.nodes * 2) for _ in range(AT_ONCE)]
        wait(putting)
        done.set()
        for one in (*putting, recalling):
            one.result()
    put(world.nodes)
    for node in world.nodes:
        if not isinstance(world.look(node), Hit):
            world.count(world.broken, LOST)


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """See the module's text."""
    return recalled(graphs=times(GRAPHS, size), seed=seed, folder=folder)


def recalled(
    *, graphs: int, seed: int, folder: Path, memory: Callable[[], Store] = MemoryStore
) -> Outcome:
    """Play random graphs.

    Args:
        graphs: How many.
        seed: Of the graphs, the order of steps and the recalls.
        folder: Where SQLite's files are.
        memory: Makes the store of those graphs that are not on SQLite.
    """
    tried: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    with _switching_often():
        for first in range(0, graphs, ROUND):
            stores = (memory(), SqliteStore(folder / f"cache-{first}.db"))
            caches = [stemma.open(store, tenant="me", embedder=None) for store in stores]
            for number in range(first, min(first + ROUND, graphs)):
                on_disk, playing = SPECIAL.get(number - first, (False, play))
                lucky = random.Random(f"{seed}.{number}")
                world = World(caches[on_disk], f"graph {number}", lucky)
                playing(world)
                tried.update({f"graphs, by {playing.__name__}": 1}, **world.tried)
                broken.update(world.broken)
            for cache in caches:
                cache.close()
    return Outcome(tried=tried, violations={promise: broken[promise] for promise in PROMISES})


SPECIAL = {0: (True, play), 1: (False, race), 2: (True, race)}
"""Of the graphs of a round, by number: which are on SQLite, and which are played by threads."""


@contextmanager
def _switching_often() -> Iterator[None]:
    """Have threads take turns a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
