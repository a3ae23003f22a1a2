"""Loss of power: what must reach the disk at once does; where it does not, the experiment sees it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from evals.reliability import power_cuts
from evals.reliability.disk import Recorder
from evals.reliability.shim import connecting

from stemma.selector import Selector
from stemma.stores import sqlite_pool
from stemma.stores.protocol import Judgement
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, put, put_one, source, vector


@pytest.fixture
def disk() -> Iterator[Recorder]:
    with Recorder("recorder") as disk:
        yield disk


def opened(path: Path, disk: Recorder, durability: str = "normal") -> SqliteStore:
    """A store with something in it, whose last change is not on the disk yet."""
    store = SqliteStore(path, durability=durability, connect=connecting(disk.name))
    parent = put_one(store, entry("parent"), sources=[source()])
    put_one(store, entry("child"), parents=[parent])
    return store


def judged(verdict: str) -> Callable[[SqliteStore], object]:
    judgement = Judgement(
        entry="parent", value="one", verdict=verdict, by="t", confidence=1, at=NOW
    )
    return lambda store: store.judge(judgement)


INVALIDATIONS = {
    "a recall": lambda store: store.recall(Selector(entry="parent"), now=NOW),
    "a removal": lambda store: store.remove(["parent"]),
    "a verdict": judged("hallucinated"),
    "a changed source": lambda store: put_one(store, entry("b"), sources=[source(content="2nd")]),
    "a replaced parent": lambda store: put_one(store, entry("parent", "two")),
}

OTHERS = {
    "a put": lambda store: put_one(store, entry("b"), vector=vector(1, 0)),
    "praise": judged("supported"),
    "a refused put": lambda store: store.put([put(entry("b"), since=0)], NOW),
}


@pytest.mark.parametrize("what", INVALIDATIONS)
def test_an_invalidation_is_on_the_disk_when_it_is_acknowledged(tmp_path: Path, disk, what: str):
    """At the default durability too: a loss of power does not bring back what was taken back."""
    store = opened(tmp_path / "cache.db", disk)
    assert disk.changes[-1].what == "written"
    INVALIDATIONS[what](store)
    assert disk.changes[-1].what == "synced"
    store.close()


@pytest.mark.parametrize("what", OTHERS)
def test_only_full_durability_waits_for_the_disk_at_every_transaction(tmp_path: Path, disk, what):
    """That is what it costs, and what `normal` saves."""
    for durability, last in (("normal", "written"), ("full", "synced")):
        store = opened(tmp_path / f"{durability}.db", disk, durability)
        OTHERS[what](store)
        assert disk.changes[-1].what == last
        store.close()


def lost(durability: str, folder: Path, **options) -> set[str]:
    """The promises that were broken."""
    outcome = power_cuts.cut(durability, size=0.1, seed=0, folder=folder, **options)
    return {what for what, number in outcome.violations.items() if number}


def test_a_store_that_does_not_sync_what_it_acknowledges_is_found_out(tmp_path: Path):
    """Transactions are missing, although full durability was asked for."""

    def lazy(path: Path, durability: str, connect: sqlite_pool.Connect) -> SqliteStore:
        return SqliteStore(path, durability="normal", connect=connect)

    assert "acknowledged transactions lost with full durability" in lost(
        "full", tmp_path, make=lazy
    )


def test_a_store_that_does_not_sync_invalidations_is_found_out(tmp_path: Path, monkeypatch):
    """Entries that were recalled are there again."""
    monkeypatch.setitem(sqlite_pool.LEVELS, "full", sqlite_pool.LEVELS["normal"])
    assert "acknowledged invalidations lost" in lost("normal", tmp_path)


def test_a_store_that_never_syncs_is_found_out(tmp_path: Path, monkeypatch):
    """Its log and its tables no longer agree."""
    for durability in ("normal", "full"):
        monkeypatch.setitem(sqlite_pool.LEVELS, durability, "PRAGMA synchronous = OFF")
    assert "stores that could not be used" in lost("normal", tmp_path)
