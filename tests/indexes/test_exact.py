"""The exact index gives what a brute-force search gives, and follows its store cheaply."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stemma.errors import UsageError
from stemma.indexes.exact import ExactIndex
from stemma.testing.indexes import ChangeLog, IndexConformance

ROWS = np.random.default_rng(11).normal(size=(40, 16)).astype(np.float16)
ASKED = np.random.default_rng(12).normal(size=(5, 16)).astype(np.float32)


class TestConformance(IndexConformance):
    @pytest.fixture
    def index(self):
        return ExactIndex()


puts = st.tuples(st.just("put"), st.integers(0, 30), st.integers(0, 39))
removals = st.tuples(st.just("remove"), st.integers(0, 30), st.just(0))
others = st.tuples(st.sampled_from(["touch", "forget", "ask"]), st.just(0), st.just(0))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(puts, removals, others), max_size=80), st.integers(1, 12))
def test_agrees_with_brute_force_after_any_history(history, k):
    """Any mix of puts, replacements, removals, cut logs and lookups between them."""
    log, index = ChangeLog(), ExactIndex()
    for what, number, row in [*history, ("ask", 0, 0)]:
        log.happen(what, f"e{number:02}", ROWS[row], f"g{number % 2}")
        for asked in ASKED[:2] if what == "ask" else ():
            assert log.agrees(index, "g0", asked, k, within=1e-5)
            assert log.agrees(index, "g1", asked, k, within=1e-5)
    assert len(index) == len(log.entries)


@pytest.mark.parametrize("size", [511, 512, 4_097, 10_000])
def test_selects_the_highest_among_many(size):
    """Also where the nearest stand side by side, and where only a block is alive."""
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(size, 8)).astype(np.float16)
    rows[100:140] = rng.normal(size=8) + rng.normal(size=(40, 8)) / 50
    log, index = ChangeLog(), ExactIndex()
    for number, row in enumerate(rows):
        log.put(f"{number:05}", row)
    for asked in (rows[120].astype(np.float32), rng.normal(size=8).astype(np.float32)):
        found = index.nearest(log.store, "g", asked, 8)
        assert [near.id for near in found] == [entry for entry, _ in log.nearest("g", asked, 8)]
    for number in range(0, size, 6):
        log.remove(f"{number:05}")
    found = index.nearest(log.store, "g", asked, 8)
    assert [near.id for near in found] == [entry for entry, _ in log.nearest("g", asked, 8)]


def test_fetches_changes_only_when_the_sequence_has_moved():
    """Ten lookups of an unchanged store fetch once; a later fetch asks for what is new alone."""
    log, index = ChangeLog(), ExactIndex()
    log.put("a", [1.0, 0.0])
    for _ in range(10):
        index.nearest(log.store, "g", np.array([1, 0], dtype=np.float32), 1)
    log.put("b", [0.0, 1.0])
    index.nearest(log.store, "g", np.array([1, 0], dtype=np.float32), 1)
    assert log.fetched == [0, 1]


def test_a_scan_begun_before_a_change_sees_none_of_it():
    """The view taken by a reader keeps its rows through appends, replacements and compaction."""
    log, index = ChangeLog(), ExactIndex()
    for number in range(8):
        log.put(f"{number}", ROWS[number])
    index.nearest(log.store, "g", ASKED[0], 1)
    view = index._groups["g"].view
    before = view.head[: view.size].copy(), view.ids[: view.size], view.dead.copy()
    for number in range(8):
        log.put(f"{number}", ROWS[number + 20])
        log.put(f"more{number}", ROWS[number + 30])
        index.nearest(log.store, "g", ASKED[0], 1)
    assert np.array_equal(view.head[: view.size], before[0])
    assert view.ids[: view.size] == before[1]
    assert np.array_equal(view.dead, before[2])


def test_counts_the_vectors_it_passed_over():
    """What was unfit can be asked for."""
    log, index = ChangeLog(), ExactIndex()
    log.put("good", [1.0, 0.0])
    log.put("wide", [1.0, 0.0, 0.0])
    log.put("zero", [0.0, 0.0])
    index.nearest(log.store, "g", np.array([1, 0], dtype=np.float32), 1)
    assert (len(index), index.skipped) == (1, 2)


def test_gives_back_the_room_of_what_was_removed():
    """A group that shrank keeps no dead rows beyond a quarter, an empty one nothing."""
    log, index = ChangeLog(), ExactIndex()
    for number in range(100):
        log.put(f"{number}", ROWS[number % 40])
    for number in range(95):
        log.remove(f"{number}")
        index.nearest(log.store, "g", ASKED[0], 1)
    assert len(index._groups["g"].view.head) < 20
    for number in range(95, 100):
        log.remove(f"{number}")
    index.nearest(log.store, "g", ASKED[0], 1)
    assert index._groups == {}


def test_refuses_a_second_store():
    """Two stores' sequences must not be mixed."""
    index, asked = ExactIndex(), np.array([1, 0], dtype=np.float32)
    index.nearest(ChangeLog().store, "g", asked, 1)
    with pytest.raises(UsageError, match="one store"):
        index.nearest(ChangeLog().store, "g", asked, 1)


@pytest.mark.parametrize("k", [0, -1])
def test_refuses_to_find_none(k):
    """`k` counts entries, from 1."""
    with pytest.raises(UsageError, match="k must be 1"):
        ExactIndex().nearest(ChangeLog().store, "g", ASKED[0], k)


@pytest.mark.parametrize("fill", [0.0, np.nan, np.inf])
def test_refuses_a_vector_without_direction(fill):
    """Zero and not finite vectors have no cosine."""
    log = ChangeLog()
    log.put("a", [1.0, 0.0])
    with pytest.raises(UsageError, match="no direction"):
        ExactIndex().nearest(log.store, "g", np.full(2, fill, dtype=np.float32), 1)


def test_takes_float64_and_float16_vectors():
    """The dtype asked with does not matter."""
    log, index = ChangeLog(), ExactIndex()
    log.put("a", [1.0, 0.0])
    for kind in (np.float16, np.float32, np.float64):
        assert index.nearest(log.store, "g", np.array([2, 0], dtype=kind), 1)[0].similarity == 1.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("floor", [-1.0, 0.0, 0.3, 0.6, 0.88, 1.0])
def test_a_floor_leaves_out_nothing_that_reaches_it(seed: int, floor: float):
    """Against every similarity computed one by one, with near and far ones among them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3_000, 128))
    centre = rng.normal(size=128)
    near = rng.choice(3_000, size=40, replace=False)
    rows[near] = centre + rng.normal(size=(40, 128)) * rng.uniform(0.01, 1.5, size=(40, 1))
    log = ChangeLog()
    for number, row in enumerate(rows / np.linalg.norm(rows, axis=1, keepdims=True)):
        log.put(f"{number:04d}", row)
    for number in near[:5]:
        log.remove(f"{number:04d}")
    stored = {name: vector.astype(np.float64) for name, (_, _, vector) in log.entries.items()}
    asked = (centre / np.linalg.norm(centre)).astype(np.float32)
    true = {
        name: float(vector @ asked.astype(np.float64) / np.linalg.norm(vector))
        for name, vector in stored.items()
    }
    best = sorted(true, key=lambda name: (-true[name], name))
    found = ExactIndex().nearest(log.store, "g", asked, 8, floor)
    expected = [name for name in best if true[name] >= floor][:8] or best[:8]
    assert [one.id for one in found][: len(expected)] == expected
    assert all(abs(one.similarity - true[one.id]) < 1e-5 for one in found)
