"""Two writers on one SQLite file, killed with SIGKILL at random moments, over and over.

They put entries with vectors and edges, and take some of them back. What they were told is done
must be done when the file is opened again, after every kill; the file grows all along.
"""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from evals.reliability import Outcome, times
from evals.reliability.children import Process, calling, say
from stemma.selector import Selector
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, put_one, source, vector

LOOPS = 200
LONGEST = 0.08
"""Seconds after its first word within which a writer is killed."""

LOST = "acknowledged entries lost"
CHANGED = "entries changed, or without their vector or edges"
BACK = "entries back that were taken back"
HALVED = "recalls of which a part was done"
DAMAGED = "records that fail their checksum"
FOUND = "findings of a check"
STUCK = "writers that ended of themselves"


@dataclass(kw_only=True)
class Told:
    """What the writers were told is done: entries kept and taken back, by batch."""

    kept: dict[str, list[str]] = field(default_factory=dict)
    recalled: dict[str, list[str]] = field(default_factory=dict)
    unsure: dict[str, list[str]] = field(default_factory=dict)

    def add(self, lines: Iterable[str]) -> None:
        """Take down what one writer said until it was killed."""
        for what, name in (line.split() for line in lines):
            if what == "put":
                self.kept.setdefault(_batch(name), []).append(name)
            elif what == "recalling":
                self.unsure[name] = self.kept.pop(name)
            else:
                self.recalled[name] = self.unsure.pop(name)


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """See the module's text."""
    return kill(loops=times(LOOPS, size), seed=seed, path=folder / "cache.db")


def kill(*, loops: int, seed: int, path: Path, writer: str | None = None) -> Outcome:
    """Kill two writers a loop.

    Args:
        loops: How often.
        seed: Of the moments, and of what is written.
        path: The file.
        writer: The script of a writer; by default one that calls `write`.
    """
    lucky = random.Random(seed)
    script = calling(write) if writer is None else writer
    told, seconds = Told(), []
    violations = dict.fromkeys((LOST, CHANGED, BACK, HALVED, DAMAGED, FOUND, STUCK), 0)
    for loop in range(loops):
        now = Told()
        for said in _killed(script, path, f"{seed}.{loop}", lucky):
            violations[STUCK] += not said
            now.add(said)
        began = time.perf_counter()
        store = SqliteStore(path, busy_timeout=30)
        store.get(["any"])
        seconds.append(time.perf_counter() - began)
        _compare(now, store, violations)
        violations[FOUND] += len(store.check())
        put_one(store, entry(f"after-{seed}.{loop}"))
        told.kept |= now.kept
        told.recalled |= now.recalled
        if loop == loops - 1:
            _compare(told, store, violations)  # what earlier loops left, too
        store.close()
    return Outcome(
        tried={
            "writers killed": 2 * loops,
            "entries acknowledged": sum(map(len, (*told.kept.values(), *told.recalled.values()))),
            "of them taken back": sum(map(len, told.recalled.values())),
        },
        violations=violations,
        figures={
            "median seconds to open again": float(np.median(seconds)),
            "p99 seconds to open again": float(np.percentile(seconds, 99)),
        },
    )


def _killed(script: str, path: Path, run: str, lucky: random.Random) -> list[list[str]]:
    """Run two writers and kill them, one after the other; gives what each had said."""
    said = []
    with Process(script, path, f"{run}.a") as one, Process(script, path, f"{run}.b") as two:
        first = {writer: writer.hear() for writer in (one, two)}
        for writer, word in first.items():
            time.sleep(lucky.uniform(0, LONGEST))
            words = [word, *writer.kill()]
            said.append(words if writer.popen.returncode == -signal.SIGKILL else [])
    return said


def _compare(told: Told, store: SqliteStore, violations: dict[str, int]) -> None:
    kept = list(itertools.chain(*told.kept.values()))
    fetched = store.get(kept)
    vectors = store.vectors(kept)
    violations[DAMAGED] += len(fetched.damaged)
    violations[LOST] += len(set(kept) - fetched.entries.keys())
    violations[CHANGED] += sum(
        one.payload.replace(one.id.encode(), b"") != b""
        or one.id not in vectors
        or not _linked(store, one.id)
        for one in fetched.entries.values()
    )
    violations[BACK] += len(store.get(list(itertools.chain(*told.recalled.values()))).entries)
    for names in told.unsure.values():
        violations[HALVED] += len(store.get(names).entries) not in (0, len(names))


def _linked(store: SqliteStore, name: str) -> bool:
    """Whether an entry still has the edge that it was put with."""
    batch, number = _batch(name), int(name.rpartition("-")[2])
    lineage = store.lineage(name)
    if lineage is None:
        return False
    if number == 0:
        return [edge.source.document for edge in lineage.sources] == [batch]
    return [edge.parent for edge in lineage.parents] == [f"{batch}-{number - 1}"]


def _batch(name: str) -> str:
    return name.rpartition("-")[0]


# ------------------------------------------------------------- in the processes to be killed


def write(path: str, name: str, make: Callable[..., SqliteStore] = SqliteStore) -> None:
    """Put and take back until killed; say what is done, and which recall is about to be.

    A batch is a chain: its first entry is built from a document, each other from the one before.
    """
    lucky = random.Random(name)
    store = make(path, busy_timeout=30)
    batches: list[str] = []
    for number in itertools.count():
        batch = f"{name}.{number}"
        above = None
        for link in range(lucky.randrange(1, 9)):
            one = f"{batch}-{link}"
            above = put_one(
                store,
                entry(one, payload=one.encode() * lucky.randrange(1, 200)),
                parents=[] if above is None else [above],
                sources=[source(batch)] if above is None else [],
                vector=vector(lucky.random(), 1.0),
            )
            say("put", one)
        batches.append(batch)
        if lucky.random() < 0.25:
            gone = batches.pop(lucky.randrange(len(batches)))
            say("recalling", gone)
            store.recall(Selector(source=gone), now=NOW)
            say("recalled", gone)
