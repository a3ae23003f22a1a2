"""How fast the nearest entries are found, against a bare product over the same vectors.

The baseline is one float32 matrix-vector product: what a scan cannot avoid that leaves nothing
out. Blocks of calls are taken in turns in one process, with one thread for linear algebra. Half
of the vectors asked with have an entry near them, the other half have none.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from stemma.entry import Entry
from stemma.indexes.bits import LARGE, BitsIndex
from stemma.indexes.exact import ExactIndex
from stemma.indexes.following import FollowingIndex
from stemma.indexes.graph import GraphIndex
from stemma.stores.protocol import Changes, Put, Store
from stemma.stores.sqlite import SqliteStore

__all__ = [
    "FLOOR",
    "GROUP",
    "NEIGHBOURS",
    "Rows",
    "clustered",
    "measure",
    "noisy",
    "start",
    "stored",
]

DIMENSIONS = 384
GROUP = "g" * 32
NEIGHBOURS, FLOOR = 8, 0.88
BLOCK, ROUNDS = 20, 10
ASKED = 400
BATCH = 2_000

Rows = np.ndarray[Any, np.dtype[np.float32]]


def measure(
    count: int,
    *,
    seed: int,
    kinds: Sequence[str] = ("exact", "bits"),
    like_texts: bool = False,
) -> dict[str, Any]:
    """Times, times of the bare product, what was missed, and what a graph costs.

    Args:
        count: Entries of one group.
        seed: Of the vectors.
        kinds: Which indexes: `exact`, `bits`, `graph`.
        like_texts: Whether the vectors vary as those of texts do; else in all directions alike,
            which is the hardest for a graph: nothing far away tells where near ones lie.
    """
    rng = np.random.default_rng(seed)
    shape = _shape(rng) if like_texts else None
    rows = clustered(rng, count, shape)
    near = noisy(rng, rows[: ASKED // 2], 0.4, shape)
    asked = np.concatenate([near, _units(rng, ASKED // 2, shape)])[rng.permutation(ASKED)]
    store = _Given(rows).store
    with TemporaryDirectory() as folder:
        made: dict[str, Callable[[], FollowingIndex]] = {
            "exact": ExactIndex,
            "bits": BitsIndex,
            "graph": partial(_with_graph, folder),
        }
        indexes = {kind: made[kind]() for kind in kinds}
        built = {kind: _once(index, store, asked[0]) for kind, index in indexes.items()}
        costs = _costs(indexes["graph"], folder, store, asked[0]) if "graph" in kinds else {}
    calls: dict[str, Callable[[Rows], Any]] = {"product": lambda vector: rows @ vector}
    for kind, index in indexes.items():
        calls[kind] = partial(_ask, index, store)
    times = _in_turns(calls, asked)
    found = {kind: _missed(index, store, rows, asked) for kind, index in indexes.items()}
    return {
        "entries": count,
        "like_texts": like_texts,
        "microseconds": times,
        "times_bare_product": {kind: times[kind] / times["product"] for kind in kinds},
        "seconds_to_build": built,
        "graph": costs,
        "missed": found,
    }


def start(count: int, *, seed: int) -> dict[str, Any]:
    """Seconds from opening a file of so many entries to the first neighbours, and memory."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "start.db"
        rows = _units(rng, count)
        stored(path, rows).close()
        gc.collect()
        before = _memory()
        began = time.perf_counter()
        store, index = SqliteStore(path), BitsIndex()
        near = index.nearest(store, GROUP, rows[0], NEIGHBOURS, FLOOR)
        seconds = time.perf_counter() - began
        gc.collect()
        held = _memory() - before
        store.close()
    assert near[0].id == _name(0)
    return {"entries": count, "seconds": seconds, "bytes_an_entry": held / count}


def stored(path: Path, rows: Rows) -> SqliteStore:
    """A new file with these vectors as one group."""
    store = SqliteStore(path)
    for at in range(0, len(rows), BATCH):
        store.put([_put(n, rows[n]) for n in range(at, min(at + BATCH, len(rows)))], 0.0)
    return store


class _Given:
    """A store as an index sees it, whose vectors are given."""

    def __init__(self, rows: Rows) -> None:
        self._changes = Changes(
            ids=[_name(number) for number in range(len(rows))],
            groups=[GROUP] * len(rows),
            vectors=cast("Sequence[Any]", rows.astype(np.float16)),
            removed=(),
            sequence=1,
        )

    def sequence(self) -> int:
        """Never moves."""
        return 1

    def changes(self, after: int) -> Changes:  # noqa: ARG002 - of the protocol
        """Everything."""
        return self._changes

    @property
    def store(self) -> Store:
        """This where a store is wanted: an index uses no more of it."""
        return cast("Store", self)


def _name(number: int) -> str:
    return f"{number:032x}"


def _put(number: int, vector: Rows) -> Put:
    entry = Entry(
        id=_name(number),
        partition="p" * 32,
        group=GROUP,
        tenant="me",
        node="answer",
        payload=b"an answer",
        codec="text/1",
        value=_name(number),
    )
    return Put(entry=entry, vector=vector, since=0)


def _shape(rng: np.random.Generator) -> Rows:
    """Makes normal numbers vary in effect in 75 of the directions, as MiniLM's vectors do.

    That is what the squares of the variances of 7,295 questions' vectors say: (Σλ)² ÷ Σλ².
    """
    variances = np.exp(-np.arange(DIMENSIONS) / 37.5)
    variances *= DIMENSIONS / variances.sum()
    turned, _ = np.linalg.qr(rng.standard_normal((DIMENSIONS, DIMENSIONS)))
    shape: Rows = (np.sqrt(variances)[:, None] * turned).astype(np.float32)
    return shape


def _normal(rng: np.random.Generator, count: int, shape: Rows | None) -> Rows:
    numbers = rng.standard_normal((count, DIMENSIONS), dtype=np.float32)
    return numbers if shape is None else numbers @ shape


def _units(rng: np.random.Generator, count: int, shape: Rows | None = None) -> Rows:
    return _unit(_normal(rng, count, shape))


def noisy(rng: np.random.Generator, rows: Rows, scale: float, shape: Rows | None = None) -> Rows:
    """Vectors at about the cosine 1/√(1 + scale²) to those given."""
    return _unit(rows + scale / math.sqrt(DIMENSIONS) * _normal(rng, len(rows), shape))


def _unit(rows: Rows) -> Rows:
    units: Rows = rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return units


def clustered(rng: np.random.Generator, count: int, shape: Rows | None = None) -> Rows:
    """Every fifth vector by itself, four others around it at cosines of about 0.9 to 0.7."""
    centres = _units(rng, max(ASKED // 2, -(-count // 5)), shape)
    around = [noisy(rng, centres, scale, shape) for scale in (0.5, 0.7, 0.9, 1.0)]
    rows: Rows = np.concatenate([centres, *around])[:count]
    return rows


def _with_graph(folder: str) -> GraphIndex:
    return GraphIndex(beyond=LARGE, folder=folder)


def _costs(index: FollowingIndex, folder: str, store: Store, vector: Rows) -> dict[str, float]:
    """Of a graph: its making, its loading, its room in memory and in the file."""
    assert isinstance(index, GraphIndex)
    gc.collect()
    before, began = _memory(), time.perf_counter()
    index.ready()
    made = time.perf_counter() - began
    gc.collect()
    held = _memory() - before
    loaded = _with_graph(folder)
    _once(loaded, store, vector)
    began = time.perf_counter()
    loaded.ready()
    seconds = time.perf_counter() - began
    (file,) = Path(folder).iterdir()
    return {
        "seconds_to_make": made,
        "seconds_to_load": seconds,
        "bytes_an_entry_in_memory": held / len(index),
        "bytes_an_entry_in_the_file": file.stat().st_size / len(index),
    }


def _once(index: FollowingIndex, store: Store, vector: Rows) -> float:
    began = time.perf_counter()
    index.nearest(store, GROUP, vector, NEIGHBOURS, FLOOR)
    return time.perf_counter() - began


def _ask(index: FollowingIndex, store: Store, vector: Rows) -> Any:
    return index.nearest(store, GROUP, vector, NEIGHBOURS, FLOOR)


def _in_turns(calls: Mapping[str, Callable[[Rows], Any]], asked: Rows) -> dict[str, float]:
    """Median microseconds of each, called in turns of `BLOCK` calls."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for block in range(ROUNDS):
        for name, call in calls.items():
            for vector in asked[block * BLOCK : (block + 1) * BLOCK]:
                began = time.perf_counter()
                call(vector)
                taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) * 1e6 for name, times in taken.items()}


def _true(rows: Rows, asked: Rows) -> Iterator[float]:
    stored = _unit(rows.astype(np.float16).astype(np.float32))
    for vector in asked:
        yield float((stored @ vector).max())


def _missed(index: FollowingIndex, store: Store, rows: Rows, asked: Rows) -> dict[str, int]:
    """How often the most similar entry was not found, where one is at 0.7 or above."""
    near = missed = 0
    for vector, similarity in zip(asked, _true(rows, asked), strict=True):
        if similarity >= 0.7:
            near += 1
            found = index.nearest(store, GROUP, vector, NEIGHBOURS, FLOOR)
            missed += found[0].similarity < similarity - 1e-5
    return {"asked": near, "missed": missed}


def _memory() -> int:
    """This process's own bytes in memory; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    return 0
