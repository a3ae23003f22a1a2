"""Loss of power at any moment of a history: what is found on the disk afterwards.

A history is recorded once for each durability, on a disk that tells what it may hold (`disk`).
After each cut the ordinary store is opened on what is left. It must open, set nothing aside,
find nothing damaged, and hold exactly what was there after some transaction. With `full` durability
that is no earlier than the last one acknowledged; with `normal` no earlier than the last
invalidation acknowledged: a recall does not come undone.
"""

from __future__ import annotations

import bisect
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from evals.reliability import Outcome
from evals.reliability.disk import Change, Disk, Recorder
from evals.reliability.history import snapshot, step
from evals.reliability.shim import connecting
from stemma.stores.memory import MemoryStore
from stemma.stores.sqlite import SqliteStore
from stemma.stores.sqlite_pool import Connect, Durability
from stemma.testing.builders import entry, put_one

__all__ = ["Making", "run"]

CUTS = 500
"""For each durability."""

STEPS = 240
"""Transactions in a history. The log is emptied several times in it."""

EMPTIED = 60
"""Pages after which the log is emptied: early, so that it happens often."""

Making = Callable[[Path, Durability, Connect], SqliteStore]


def _make(path: Path, durability: Durability, connect: Connect) -> SqliteStore:
    return SqliteStore(path, durability=durability, connect=connect)


class Mark(NamedTuple):
    """A transaction was acknowledged.

    Args:
        at: How many changes the disk had seen by then.
        sequence: The store's sequence then.
        epoch: The sequence of the last invalidation then.
    """

    at: int
    sequence: int
    epoch: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """A history as the disk saw it, and what was true after each transaction."""

    changes: list[Change]
    marks: list[Mark]
    states: Mapping[int, Mapping[str, Any]]


def run(*, size: float, seed: int, folder: Path) -> Outcome:
    """Cut the power of both durabilities."""
    tried: Counter[str] = Counter()
    wrong = dict.fromkeys(_PROMISES, 0)
    figures: dict[str, float] = {}
    for durability in ("normal", "full"):
        outcome = cut(durability, size=size, seed=seed, folder=folder)
        tried.update(outcome.tried)
        wrong = {what: wrong[what] + outcome.violations[what] for what in wrong}
        figures |= {f"{durability}: {what}": number for what, number in outcome.figures.items()}
    return Outcome(tried=tried, violations=wrong, figures=figures)


_PROMISES = (
    "stores that did not open, or began anew",
    "states that never were",
    "acknowledged transactions lost with full durability",
    "acknowledged invalidations lost",
    "damage found by a check",
    "stores that could not be used",
)


def cut(
    durability: Durability, *, size: float, seed: int, folder: Path, make: Making = _make
) -> Outcome:
    """Cut the power of one durability. `make` opens the store whose history is recorded."""
    recording = record(folder / f"{durability}.db", durability, seed, size, make)
    lucky = random.Random(f"cuts of {durability} {seed}")
    wrong: Counter[str] = Counter(dict.fromkeys(_PROMISES, 0))
    lost = [0]
    cuts = max(1, round(CUTS * size))
    for at, files in _images(recording, cuts, lucky):
        known = bisect.bisect(recording.marks, at, key=lambda mark: mark.at)
        acknowledged = recording.marks[known - 1] if known else Mark(0, 0, 0)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            for name, content in files.items():
                (Path(place) / name).write_bytes(content)
            path = Path(place) / f"{durability}.db"
            if lucky.random() < 0.5:  # shared memory is a file, too, and nobody syncs it
                Path(f"{path}-shm").write_bytes(lucky.randbytes(32_768))
            found = _found(path, recording, acknowledged, durability)
        if isinstance(found, str):
            wrong[found] += 1
        else:
            lost.append(acknowledged.sequence - found)
    return Outcome(
        tried={"power cuts": cuts, "transactions recorded": len(recording.marks)},
        violations=wrong,
        figures={
            "changes and syncs of the disk": len(recording.changes),
            "most sequence numbers lost": max(lost),
        },
    )


def record(path: Path, durability: Durability, seed: int, size: float, make: Making) -> Recording:
    """A seeded history, done on a disk that tells, and beside it in memory."""
    lucky = random.Random(f"history {seed}")
    model = MemoryStore()
    states = {0: snapshot(model)}
    with Recorder(f"recorder of {durability}", [Path(f"{path}-stemma")]) as disk:
        connect = connecting(disk.name, prepare=[f"PRAGMA wal_autocheckpoint = {EMPTIED}"])
        store = make(path, durability, connect)
        marks = [Mark(len(disk.changes), 0, 0)]
        for _ in range(max(20, round(STEPS * size))):
            if lucky.random() < 0.02:
                store.close()
                store = make(path, durability, connect)
            do = step(lucky, model)
            do(store)
            do(model)
            now = model.get(())
            marks.append(Mark(len(disk.changes), now.sequence, now.epoch))
            states[now.sequence] = snapshot(model)
        if snapshot(store) != states[marks[-1].sequence]:
            raise AssertionError("the two stores do not agree about the history itself")
        store.close()
    return Recording(changes=disk.changes, marks=marks, states=states)


def _images(
    recording: Recording, cuts: int, lucky: random.Random
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Cuts in their order: after how many changes, and the files as they may be found.

    One in ten comes while the store is made, which is soon over and never done again.
    """
    making, whole = recording.marks[0].at, len(recording.changes)
    ends = [making if lucky.random() < 0.1 else whole for _ in range(cuts)]
    disk = Disk()
    followed = 0
    for at in sorted(lucky.randrange(end + 1) for end in ends):
        for change in recording.changes[followed:at]:
            disk.follow(change)
        followed = at
        yield at, disk.without_power(lucky)


def _found(
    path: Path, recording: Recording, acknowledged: Mark, durability: Durability
) -> int | str:
    """The sequence of the state that is found, or which promise was broken."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that it was set aside
            store = SqliteStore(path)
    except Exception:
        return "stores that did not open, or began anew"
    try:
        state = snapshot(store)
        sequence: int = state["sequence"]
        if not acknowledged.sequence and not state["entries"]:
            sequence = 0  # its making was taken back, or its first transaction was
        elif recording.states.get(sequence) != state:
            return "states that never were"
        elif durability == "full" and sequence < acknowledged.sequence:
            return "acknowledged transactions lost with full durability"
        elif sequence < acknowledged.epoch:
            return "acknowledged invalidations lost"
        if store.check():
            return "damage found by a check"
        put_one(store, entry("after"))
    except Exception:
        return "stores that could not be used"
    finally:
        store.close()
    return sequence
