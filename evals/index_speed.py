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
from stemma.indexes.bits import BitsIndex
from stemma.indexes.exact import ExactIndex
from stemma.indexes.following import FollowingIndex
from stemma.stores.protocol import Changes, Put, Store
from stemma.stores.sqlite import SqliteStore

__all__ = ["clustered", "measure", "noisy", "start"]

DIMENSIONS = 384
GROUP = "g" * 32
NEIGHBOURS, FLOOR = 8, 0.88
BLOCK, ROUNDS = 20, 10
ASKED = 400
BATCH = 2_000

_Rows = np.ndarray[Any, np.dtype[np.float32]]


def measure(count: int, *, seed: int, kinds: Sequence[str] = ("exact", "bits")) -> dict[str, Any]:
    """Times, times of the bare product, what was missed, and bytes an entry, for each index.

    Args:
        count: Entries of one group.
        seed: Of the vectors.
        kinds: Which indexes.
    """
    rng = np.random.default_rng(seed)
    rows = clustered(rng, count)
    asked = np.concatenate([noisy(rng, rows[: ASKED // 2], 0.4), _units(rng, ASKED // 2)])
    asked = asked[rng.permutation(ASKED)]
    store = _Given(rows)
    made = {"exact": ExactIndex, "bits": BitsIndex}
    indexes: dict[str, FollowingIndex] = {kind: made[kind]() for kind in kinds}
    built = {kind: _once(index, store.store, asked[0]) for kind, index in indexes.items()}
    calls: dict[str, Callable[[_Rows], Any]] = {"product": lambda vector: rows @ vector}
    for kind, index in indexes.items():
        calls[kind] = partial(_ask, index, store.store)
    times = _in_turns(calls, asked)
    found = {kind: _missed(index, store.store, rows, asked) for kind, index in indexes.items()}
    return {
        "entries": count,
        "microseconds": times,
        "times_bare_product": {kind: times[kind] / times["product"] for kind in kinds},
        "seconds_to_build": built,
        "missed": found,
    }


def start(count: int, *, seed: int) -> dict[str, Any]:
    """Seconds from opening a file of so many entries to the first neighbours, and memory."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "start.db"
        store = SqliteStore(path)
        rows = _units(rng, count)
        for at in range(0, count, BATCH):
            store.put([_put(n, rows[n]) for n in range(at, min(at + BATCH, count))], 0.0)
        store.close()
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


class _Given:
    """A store as an index sees it, whose vectors are given."""

    def __init__(self, rows: _Rows) -> None:
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


def _put(number: int, vector: _Rows) -> Put:
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


def _units(rng: np.random.Generator, count: int) -> _Rows:
    return _unit(rng.standard_normal((count, DIMENSIONS), dtype=np.float32))


def noisy(rng: np.random.Generator, rows: _Rows, scale: float) -> _Rows:
    """Vectors at about the cosine 1/√(1 + scale²) to those given."""
    noise = rng.standard_normal(rows.shape, dtype=np.float32)
    return _unit(rows + scale / math.sqrt(DIMENSIONS) * noise)


def _unit(rows: _Rows) -> _Rows:
    units: _Rows = rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return units


def clustered(rng: np.random.Generator, count: int) -> _Rows:
    """Every fifth vector by itself, four others around it at cosines of about 0.9 to 0.7."""
    centres = _units(rng, max(ASKED // 2, -(-count // 5)))
    around = [noisy(rng, centres, scale) for scale in (0.5, 0.7, 0.9, 1.0)]
    rows: _Rows = np.concatenate([centres, *around])[:count]
    return rows


def _once(index: FollowingIndex, store: Store, vector: _Rows) -> float:
    began = time.perf_counter()
    index.nearest(store, GROUP, vector, NEIGHBOURS, FLOOR)
    return time.perf_counter() - began


def _ask(index: FollowingIndex, store: Store, vector: _Rows) -> Any:
    return index.nearest(store, GROUP, vector, NEIGHBOURS, FLOOR)


def _in_turns(calls: Mapping[str, Callable[[_Rows], Any]], asked: _Rows) -> dict[str, float]:
    """Median microseconds of each, called in turns of `BLOCK` calls."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for block in range(ROUNDS):
        for name, call in calls.items():
            for vector in asked[block * BLOCK : (block + 1) * BLOCK]:
                began = time.perf_counter()
                call(vector)
                taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) * 1e6 for name, times in taken.items()}


def _true(rows: _Rows, asked: _Rows) -> Iterator[float]:
    stored = _unit(rows.astype(np.float16).astype(np.float32))
    for vector in asked:
        yield float((stored @ vector).max())


def _missed(index: FollowingIndex, store: Store, rows: _Rows, asked: _Rows) -> dict[str, int]:
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
