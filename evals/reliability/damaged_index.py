"""Saved graphs are damaged in every way and opened: nothing dies, and every answer is right.

Each damaged file is opened in a forked child, next to the table that it was made from. The child
asks at once, asks again when its graph is there, and looks whether the file is whole again.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from evals.reliability import Outcome
from evals.speed.index import GROUP, NEIGHBOURS, stored
from evals.speed.vectors import Rows, clustered, noisy
from stemma.indexes.exact import ExactIndex
from stemma.indexes.graph import GraphIndex
from stemma.indexes.graph_files import GraphFiles
from stemma.indexes.protocol import Near
from stemma.stores.protocol import Store

__all__ = ["run"]

TRIES, BUILT = 300, 20_000
ENTRIES, ASKED, FLOOR = 1_000, 24, 0.75
PATIENCE = 10.0
PAGE, HEAD = 4_096, 52

DEATH, HANG, ERROR = "processes died", "processes hung", "errors reached the caller"
WRONG, LEFT = "wrong answers", "files not made anew"

Damage = Callable[[bytearray, np.random.Generator], bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Truth:
    """A table, and what lies near some vectors in it."""

    store: Store
    asked: Rows
    near: list[tuple[Near, ...]]

    @classmethod
    def of(cls, path: Path, rng: np.random.Generator) -> _Truth:
        rows = clustered(rng, ENTRIES)
        store, asked, exact = stored(path, rows), noisy(rng, rows[:ASKED], 0.4), ExactIndex()
        near = [exact.nearest(store, GROUP, vector, NEIGHBOURS, FLOOR) for vector in asked]
        return cls(store=store, asked=asked, near=near)

    def wrong(self, index: GraphIndex) -> bool:
        """Whether the index finds anything else."""
        found = [
            index.nearest(self.store, GROUP, vector, NEIGHBOURS, FLOOR) for vector in self.asked
        ]
        return any(
            [one.id for one in near] != [one.id for one in true]
            or not np.allclose(
                [one.similarity for one in near], [one.similarity for one in true], atol=1e-6
            )
            for near, true in zip(found, self.near, strict=True)
        )

    def saved(self, folder: Path) -> bytes:
        """The file that an index leaves."""
        index = _index(folder)
        self.wrong(index)
        index.ready()
        return GraphFiles(folder).path(GROUP).read_bytes()


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """Open 300 damaged graphs, at full size, and count what their readers suffer.

    Args:
        size: 1 is the full count; each kind of damage is done once at least.
        seed: Of the vectors, and of what is damaged where.
        folder: Where the tables and the graphs lie.
    """
    if find_spec("usearch") is None or not hasattr(os, "fork"):
        return Outcome(skipped="needs usearch, and a system that can fork")
    rng = np.random.default_rng(seed)
    truth = _Truth.of(folder / "table.db", rng)
    whole = truth.saved(folder / "whole")
    foreign = _Truth.of(folder / "foreign.db", rng).saved(folder / "foreign")
    damages = [*DAMAGES, lambda *_: foreign]
    tries = max(len(damages), round(TRIES * size))
    found: Counter[str] = Counter()
    slowest = 0.0
    for number in range(tries):
        place = folder / "damaged"
        place.mkdir(mode=0o700)
        file = GraphFiles(place).path(GROUP)
        file.write_bytes(damages[number % len(damages)](bytearray(whole), rng))
        file.chmod(0o600)
        began = time.perf_counter()
        found.update(_opened(place, truth))
        slowest = max(slowest, time.perf_counter() - began)
        shutil.rmtree(place)
    return Outcome(
        tried={"damaged graphs opened": tries},
        violations={name: found[name] for name in (DEATH, HANG, ERROR, WRONG, LEFT)},
        figures={"slowest_opening_seconds": slowest, **_made(folder, rng, round(BUILT * size))},
    )


def _opened(folder: Path, truth: _Truth) -> list[str]:
    """What went wrong when a child opened it."""
    fork = get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=_open, args=(sender, folder, truth))
    child.start()
    sender.close()
    try:
        return list(receiver.recv()) if receiver.poll(PATIENCE) else [HANG]
    except EOFError:
        return [DEATH]
    finally:
        child.kill()
        child.join()
        receiver.close()


def _open(sender: Connection, folder: Path, truth: _Truth) -> None:
    """Ask at once and when the graph is there; then see what lies in the folder."""
    troubles = []
    logging.disable()  # that a file is not used is said for each of them
    faulthandler.disable()  # a death is counted, not told
    try:
        index = _index(folder)
        wrong = truth.wrong(index)
        if not index.ready(PATIENCE):
            troubles.append(HANG)
        if wrong or truth.wrong(index):
            troubles.append(WRONG)
        made = GraphFiles(folder).load(GROUP, truth.asked.shape[1], ENTRIES)
        if made is None or len(made) != ENTRIES:
            troubles.append(LEFT)
    except Exception:
        troubles.append(ERROR)
    sender.send(troubles)


def _index(folder: Path) -> GraphIndex:
    return GraphIndex(beyond=ENTRIES // 2, large=ENTRIES // 4, folder=folder)


def _made(folder: Path, rng: np.random.Generator, count: int) -> dict[str, float]:
    """Vectors a second: from the table until neighbours are given, and into a graph."""
    rows = clustered(rng, max(count, ENTRIES))
    store, index = stored(folder / "made.db", rows), _index(folder / "made")
    began = time.perf_counter()
    index.nearest(store, GROUP, rows[0], NEIGHBOURS, FLOOR)
    serving = time.perf_counter()
    index.ready()
    made = time.perf_counter()
    store.close()
    return {
        "vectors_a_second_until_served": len(rows) / (serving - began),
        "vectors_a_second_into_a_graph": len(rows) / (made - serving),
    }


def _cut(data: bytearray, rng: np.random.Generator) -> bytes:
    return bytes(data[: rng.integers(len(data))])


def _flipped(data: bytearray, rng: np.random.Generator) -> bytes:
    for place in rng.integers(len(data), size=64):
        data[place] ^= 1 << rng.integers(8)
    return bytes(data)


def _flipped_once(data: bytearray, rng: np.random.Generator) -> bytes:
    data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(data)


def _emptied(data: bytearray, rng: np.random.Generator) -> bytes:
    """A page of zeros, or of ones where it was all zeros."""
    start = PAGE * rng.integers(len(data) // PAGE)
    page = bytes(PAGE) if any(data[start : start + PAGE]) else b"\xff" * PAGE
    data[start : start + PAGE] = page
    return bytes(data)


def _misheaded(data: bytearray, rng: np.random.Generator) -> bytes:
    data[rng.integers(HEAD)] ^= rng.integers(1, 256)
    return bytes(data)


def _longer(data: bytearray, rng: np.random.Generator) -> bytes:
    return bytes(data) + rng.bytes(int(rng.integers(1, 1 << 22)))


def _exchanged(data: bytearray, rng: np.random.Generator) -> bytes:
    """Two words in each other's place: points under wrong names, or links to wrong points."""
    words = np.frombuffer(data[: len(data) // 8 * 8], dtype=np.uint64).copy()
    for _ in range(32):
        here, there = rng.integers(len(words), size=2)
        words[[here, there]] = words[[there, here]]
    changed = words.tobytes() + data[len(words) * 8 :]
    return changed if changed != data else _flipped(data, rng)


DAMAGES: tuple[Damage, ...] = (
    _cut,
    _flipped,
    _flipped_once,
    _emptied,
    _misheaded,
    _longer,
    _exchanged,
)
