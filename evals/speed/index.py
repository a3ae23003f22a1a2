"""How fast the nearest entries are found, against a bare product over the same vectors.

The baseline is one float32 matrix-vector product: what a scan cannot avoid that leaves nothing
out. Half of the vectors asked with have an entry near them, the other half have none.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from evals.measuring import Figure, Measured, in_turns, memory, scaled
from evals.speed.given import in_batches
from evals.speed.vectors import NEAR, Rows, clustered, like_texts, missed, noisy, units
from stemma.entry import Entry
from stemma.indexes.bits import LARGE, BitsIndex
from stemma.indexes.exact import ExactIndex
from stemma.indexes.following import FollowingIndex
from stemma.indexes.graph import GraphIndex
from stemma.stores.protocol import Changes, Put, Store
from stemma.stores.sqlite import SqliteStore

__all__ = ["FLOOR", "GROUP", "NEIGHBOURS", "measure", "run", "stored"]

GROUP = "g" * 32
NEIGHBOURS, FLOOR = 8, 0.88
BLOCK, TIMED = 20, 200
ASKED = 400

_Ask = Callable[[Rows], Any]


def run(*, size: float, seed: int, folder: Path) -> Measured:  # noqa: ARG001 - as all parts
    """The nearest eight among 100,000 entries of one group."""
    kinds = ("exact", "bits", "graph") if find_spec("usearch") else ("exact", "bits")
    found = measure(scaled(100_000, size, least=20), seed=seed, kinds=kinds)
    figures = []
    for kind in kinds:
        near, bound = found["missed"][kind], kind == "bits"
        figures += [
            Figure(
                what=f"{kind} among {found['entries']:,}, of the bare product",
                value=found["times_bare_product"][kind],
                unit="×",
                at_most=1 / 6 if bound else None,
            ),
            Figure(
                what=f"… found the nearest, of {near['asked']} at 0.7 or above",
                value=100 * (1 - near["missed"] / near["asked"]),
                unit="%",
                at_least=99.9 if bound else None,
            ),
        ]
    return Measured(figures=figures, details=found)


def measure(
    count: int,
    *,
    seed: int,
    kinds: Sequence[str] = ("exact", "bits"),
    texts: bool = False,
) -> dict[str, Any]:
    """Times, times of the bare product, what was missed, and what a graph costs.

    Args:
        count: Entries of one group.
        seed: Of the vectors.
        kinds: Which indexes: `exact`, `bits`, `graph`.
        texts: Whether the vectors vary as those of texts do; else in all directions alike, which
            is the hardest for a graph: nothing far away tells where near ones lie.
    """
    rng = np.random.default_rng(seed)
    shape = like_texts(rng) if texts else None
    rows = clustered(rng, count, shape)
    near = noisy(rng, rows[: ASKED // 2], NEAR, shape)
    asked = np.concatenate([near, units(rng, ASKED - len(near), shape)])
    asked = asked[rng.permutation(ASKED)]
    store = _Given(rows).store
    with TemporaryDirectory() as folder:
        made: dict[str, Callable[[], FollowingIndex]] = {
            "exact": ExactIndex,
            "bits": BitsIndex,
            "graph": partial(_with_graph, folder),
        }
        indexes = {kind: made[kind]() for kind in kinds}
        asking: dict[str, _Ask] = {k: partial(_ask, i, store) for k, i in indexes.items()}
        built = {kind: _seconds(ask, asked[0]) for kind, ask in asking.items()}
        costs = _costs(indexes["graph"], folder, store, asked[0]) if "graph" in kinds else {}
    calls: dict[str, _Ask] = {"product": lambda vector: rows @ vector, **asking}
    times = in_turns(calls, list(asked[:TIMED]), block=BLOCK)
    return {
        "entries": count,
        "like_texts": texts,
        "microseconds": times,
        "times_bare_product": {kind: times[kind] / times["product"] for kind in kinds},
        "seconds_to_build": built,
        "graph": costs,
        "missed": {
            kind: missed(rows, dict(enumerate(asked)), partial(_highest, ask, asked))
            for kind, ask in asking.items()
        },
    }


def stored(path: Path, rows: Rows) -> SqliteStore:
    """A new file with these vectors as one group."""
    store = SqliteStore(path)
    for batch in in_batches(len(rows)):
        store.put([_put(number, rows[number]) for number in batch], 0.0)
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


def _with_graph(folder: str) -> GraphIndex:
    return GraphIndex(beyond=LARGE, folder=folder)


def _costs(index: FollowingIndex, folder: str, store: Store, vector: Rows) -> dict[str, float]:
    """Of a graph: its making, its loading, its room in memory and in the file."""
    assert isinstance(index, GraphIndex)
    gc.collect()
    before, began = memory()["own"], time.perf_counter()
    index.ready()
    made = time.perf_counter() - began
    gc.collect()
    held = memory()["own"] - before
    loaded = _with_graph(folder)
    _ask(loaded, store, vector)
    began = time.perf_counter()
    loaded.ready()
    seconds = time.perf_counter() - began
    file = sum(one.stat().st_size for one in Path(folder).iterdir())
    return {
        "seconds_to_make": made,
        "seconds_to_load": seconds,
        "bytes_an_entry_in_memory": held / len(index),
        "bytes_an_entry_in_the_file": file / len(index),
    }


def _ask(index: FollowingIndex, store: Store, vector: Rows) -> Any:
    return index.nearest(store, GROUP, vector, NEIGHBOURS, FLOOR)


def _highest(ask: _Ask, asked: Rows, number: int) -> float:
    return float(ask(asked[number])[0].similarity)


def _seconds(ask: _Ask, vector: Rows) -> float:
    began = time.perf_counter()
    ask(vector)
    return time.perf_counter() - began
