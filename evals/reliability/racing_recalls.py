"""Recalls race with puts of what they cover, on random graphs.

Most graphs are played step by step, the steps of several putters and the recalls shuffled, and
compared with a model: nothing that is stale may be served, and what is not stale must be stored,
and must stay. Some are played by real threads.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import stemma
from evals.reliability import Outcome, times
from evals.reliability.random_graphs import (
    KEPT,
    LOST,
    REFUSED,
    STALE,
    UNSOUND,
    Node,
    Putter,
    World,
)
from stemma import Hit
from stemma.stores.memory import MemoryStore
from stemma.stores.protocol import Store
from stemma.stores.sqlite import SqliteStore

GRAPHS = 10_000
AT_ONCE = 4
"""Putters under way at the same time."""

ROUND = 20
"""Graphs that share a store."""

PROMISES = (STALE, UNSOUND, LOST, REFUSED, KEPT)


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
