"""What every index must do: subclass `IndexConformance` and give it your index.

```python
class TestMine(IndexConformance):
    @pytest.fixture
    def index(self):
        return MyIndex()
```
"""
# ruff: noqa: S101, PLR2004 - a suite of tests asserts, on small numbers

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest

from stemma.errors import UsageError
from stemma.indexes.protocol import Index
from stemma.stores.protocol import Changes, Store

__all__ = ["ChangeLog", "IndexConformance"]


@dataclass(slots=True)
class ChangeLog:
    """A store as an index sees it: vectors come, change and go, and the sequence moves.

    `forget` drops the log of removals, as a store may that has been running for long.
    """

    entries: dict[str, tuple[int, str, Any]] = field(default_factory=dict)
    removed: list[tuple[int, str, str]] = field(default_factory=list)
    now: int = 0
    forgotten: int = 0
    fetched: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def put(self, id: str, vector: Any, group: str = "g") -> None:
        """Add or replace an entry."""
        with self.lock:
            self.now += 1
            self.entries[id] = (self.now, group, np.asarray(vector, dtype=np.float16))

    def remove(self, id: str) -> None:
        """Remove an entry."""
        with self.lock:
            self.now += 1
            _, group, _ = self.entries.pop(id)
            self.removed.append((self.now, group, id))

    def touch(self) -> None:
        """A write that concerns no vector."""
        self.now += 1

    def forget(self) -> None:
        """Drop the log of removals."""
        self.removed.clear()
        self.forgotten = self.now

    def happen(self, what: str, id: str, vector: Any, group: str) -> None:
        """One step of a history: `put`, `remove` if it is there, `touch` or `forget`."""
        if what == "put":
            self.put(id, vector, group)
        elif what == "remove" and id in self.entries:
            self.remove(id)
        elif what == "touch":
            self.touch()
        elif what == "forget":
            self.forget()

    def nearest(self, group: str, vector: Any, k: int) -> list[tuple[str, float]]:
        """The truth: all cosines in float64, sorted, and nothing clever."""
        asked = vector.astype(np.float64)
        unit = asked / np.linalg.norm(asked)
        scored = []
        for entry, (_, where, row) in self.entries.items():
            if where == group:
                wide = row.astype(np.float64)
                scored.append((-(wide @ unit) / np.linalg.norm(wide), entry))
        return [(entry, -negative) for negative, entry in sorted(scored)[:k]]

    def agrees(self, index: Index, group: str, vector: Any, k: int, *, within: float) -> bool:
        """Whether an index finds what lies nearest, each once, with similarities so exact."""
        found = index.nearest(self.store, group, vector, k)
        told = [near.similarity for near in found]
        true = [similarity for _, similarity in self.nearest(group, vector, k)]
        by_id = dict(self.nearest(group, vector, len(self.entries)))
        own = [by_id[near.id] for near in found]
        return (
            len({near.id for near in found}) == len(found)
            and told == pytest.approx(true, abs=within)
            and own == pytest.approx(told, abs=within)
        )

    def sequence(self) -> int:
        """As of `Store`."""
        return self.now

    def changes(self, after: int) -> Changes:
        """As of `Store`."""
        with self.lock:
            self.fetched.append(after)
            rebuild = 0 < after < self.forgotten
            since = 0 if rebuild else after
            arrived = [(key, *rest) for key, (at, *rest) in self.entries.items() if at > since]
            return Changes(
                ids=[key for key, _, _ in arrived],
                groups=[group for _, group, _ in arrived],
                vectors=[vector for _, _, vector in arrived],
                removed=[(group, key) for at, group, key in self.removed if at > since],
                sequence=self.now,
                rebuild=rebuild,
            )

    @property
    def store(self) -> Store:
        """This log where a store is wanted: an index uses no more of it."""
        return cast("Store", self)


def _towards(degrees: float) -> Any:
    angle = math.radians(degrees)
    return np.array([math.cos(angle), math.sin(angle)], dtype=np.float32)


class IndexConformance:
    """The suite. A subclass overrides the fixture `index`."""

    @pytest.fixture
    def index(self) -> Index:
        """A new, empty index."""
        raise NotImplementedError("override the fixture `index`")

    @pytest.fixture
    def log(self) -> ChangeLog:
        """A store with four entries at 0, 30, 60 and 180 degrees."""
        log = ChangeLog()
        for degrees in (60, 0, 180, 30):
            log.put(f"at{degrees}", _towards(degrees))
        return log

    def test_is_an_index(self, index: Index) -> None:
        """It has the protocol's method and says whether it is exact."""
        assert isinstance(index, Index)
        assert index.exact in {True, False}

    def test_gives_the_nearest_first(self, index: Index, log: ChangeLog) -> None:
        """By cosine, highest first, no more than asked for."""
        found = index.nearest(log.store, "g", _towards(10), 3)
        assert [near.id for near in found] == ["at0", "at30", "at60"]
        assert [near.similarity for near in found] == pytest.approx(
            [math.cos(math.radians(d)) for d in (10, 20, 50)], abs=2e-3
        )

    def test_gives_all_where_there_are_fewer(self, index: Index, log: ChangeLog) -> None:
        """Asking for more than there are is no error; opposite vectors are at −1."""
        found = index.nearest(log.store, "g", _towards(0), 99)
        assert len(found) == 4
        assert found[-1].id == "at180"
        assert found[-1].similarity == pytest.approx(-1.0, abs=2e-3)

    def test_keeps_similarities_between_minus_one_and_one(self, index: Index) -> None:
        """Rounding never gives 1.0000001."""
        log = ChangeLog()
        rows = np.random.default_rng(7).normal(size=(50, 33)).astype(np.float16)
        for number, row in enumerate(rows):
            log.put(f"{number:02}", row)
        for row in rows:
            asked = row.astype(np.float32) * 3.0
            for near in index.nearest(log.store, "g", asked, 50):
                assert -1.0 <= near.similarity <= 1.0
            assert index.nearest(log.store, "g", asked, 1)[0].similarity > 0.999

    def test_never_leaves_the_group(self, index: Index, log: ChangeLog) -> None:
        """An equal vector in another group is not proposed, and an unknown group is empty."""
        log.put("foreign", _towards(10), "other")
        assert "foreign" not in {n.id for n in index.nearest(log.store, "g", _towards(10), 9)}
        assert [n.id for n in index.nearest(log.store, "other", _towards(10), 9)] == ["foreign"]
        assert index.nearest(log.store, "unknown", _towards(10), 9) == ()

    def test_follows_puts_replacements_and_removals(self, index: Index, log: ChangeLog) -> None:
        """What the store did before a lookup, the lookup sees."""
        index.nearest(log.store, "g", _towards(0), 1)
        log.put("new", _towards(1))
        log.put("at30", _towards(2))
        log.remove("at0")
        found = index.nearest(log.store, "g", _towards(0), 9)
        assert [near.id for near in found] == ["new", "at30", "at60", "at180"]

    def test_an_entry_removed_and_put_again_is_there(self, index: Index, log: ChangeLog) -> None:
        """Both within one step of following."""
        index.nearest(log.store, "g", _towards(0), 1)
        log.remove("at0")
        log.put("at0", _towards(5))
        assert index.nearest(log.store, "g", _towards(5), 1)[0].id == "at0"
        assert len(index.nearest(log.store, "g", _towards(5), 9)) == 4

    def test_a_group_may_empty_and_fill_again(self, index: Index, log: ChangeLog) -> None:
        """Even with vectors of another length."""
        index.nearest(log.store, "g", _towards(0), 1)
        for key in list(log.entries):
            log.remove(key)
        assert index.nearest(log.store, "g", _towards(0), 1) == ()
        log.put("wide", [1.0, 0.0, 0.0])
        found = index.nearest(log.store, "g", np.array([1, 0, 0], dtype=np.float32), 1)
        assert [near.id for near in found] == ["wide"]

    def test_a_groups_only_vector_may_change_its_length(self, index: Index) -> None:
        """Replaced within one step of following, with nothing else in the group."""
        log = ChangeLog()
        log.put("only", _towards(0))
        index.nearest(log.store, "g", _towards(0), 1)
        log.put("only", [0.0, 0.0, 1.0])
        found = index.nearest(log.store, "g", np.array([0, 0, 1], dtype=np.float32), 1)
        assert [near.id for near in found] == ["only"]

    def test_starts_anew_where_the_log_was_cut(self, index: Index, log: ChangeLog) -> None:
        """A removal that nobody can tell of any more is still followed."""
        index.nearest(log.store, "g", _towards(0), 1)
        log.remove("at0")
        log.put("new", _towards(40))
        log.forget()
        found = index.nearest(log.store, "g", _towards(0), 9)
        assert [near.id for near in found] == ["at30", "new", "at60", "at180"]

    def test_follows_a_store_that_was_put_back(self, index: Index, log: ChangeLog) -> None:
        """A lower sequence than before means another past: all is read again."""
        index.nearest(log.store, "g", _towards(0), 1)
        log.entries, log.removed, log.now = {}, [], 0
        log.put("only", _towards(90))
        assert [n.id for n in index.nearest(log.store, "g", _towards(0), 9)] == ["only"]

    def test_refuses_a_vector_of_another_length(self, index: Index, log: ChangeLog) -> None:
        """The error names both lengths."""
        with pytest.raises(UsageError, match=r"3.*2"):
            index.nearest(log.store, "g", np.ones(3, dtype=np.float32), 1)

    def test_passes_over_stored_vectors_of_no_use(self, index: Index, log: ChangeLog) -> None:
        """Zero, not finite, or of another length than their group's: never proposed."""
        index.nearest(log.store, "g", _towards(0), 1)
        log.put("zero", [0.0, 0.0])
        log.put("nan", [math.nan, 1.0])
        log.put("wide", [1.0, 0.0, 0.0])
        log.put("at30", [1.0, 0.0, 0.0])
        found = index.nearest(log.store, "g", _towards(0), 9)
        assert [near.id for near in found] == ["at0", "at60", "at180"]

    def test_ties_fall_by_id_whatever_the_order_of_arrival(self, index: Index) -> None:
        """Equal vectors come in the order of their ids, also at the cut."""
        log = ChangeLog()
        row = np.random.default_rng(3).normal(size=37)
        for number in np.random.default_rng(4).permutation(600):
            log.put(f"{number:03}", row)
        found = index.nearest(log.store, "g", row.astype(np.float32), 5)
        assert [near.id for near in found] == ["000", "001", "002", "003", "004"]
        assert len({near.similarity for near in found}) == 1

    def test_serves_threads_while_the_store_changes(self, index: Index) -> None:
        """Lookups during writes see whole vectors: an entry that never changes is always found."""
        log = ChangeLog()
        log.put("fixed", _towards(0))
        for number in range(40):
            log.put(f"{number}", _towards(90 + number))

        def ask(_: int) -> str:
            return index.nearest(log.store, "g", _towards(0), 1)[0].id

        def write() -> None:
            for number in range(40):
                log.put(f"{number}", _towards(100 + number))
                if number % 3 == 0:
                    log.remove(f"{number}")

        with ThreadPoolExecutor(4) as pool:
            writing = pool.submit(write)
            found = set(pool.map(ask, range(200)))
            writing.result()
        assert found == {"fixed"}
