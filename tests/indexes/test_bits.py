"""The bits index finds what a brute-force search finds, and follows its store like any other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stemma.errors import UsageError
from stemma.indexes import bits, hamming
from stemma.indexes.bits import BitsGroup, BitsIndex
from stemma.indexes.exact import ExactGroup, ExactIndex
from stemma.testing.indexes import ChangeLog, IndexConformance

ROWS = np.random.default_rng(11).normal(size=(40, 16)).astype(np.float16)
ASKED = np.random.default_rng(12).normal(size=(2, 16)).astype(np.float32)


class TestConformance(IndexConformance):
    """As it is made: small groups are scanned whole."""

    @pytest.fixture
    def index(self):
        return BitsIndex()


class TestConformanceByBits(IndexConformance):
    """Every group by bits, whatever its size."""

    @pytest.fixture
    def index(self):
        return BitsIndex(large=1, wide=1)


class TestConformanceAtTheSwitch(IndexConformance):
    """Groups change their form in the middle of a test."""

    @pytest.fixture
    def index(self):
        return BitsIndex(large=5, wide=1)


def unit_rows(rng, count: int, dimensions: int = 384):
    rows = rng.standard_normal(size=(count, dimensions), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def noisy(rng, rows, scale: float):
    """Copies at about the cosine 1/√(1 + scale²)."""
    moved = rng.standard_normal(size=rows.shape, dtype=np.float32)
    moved *= np.float32(scale / np.sqrt(rows.shape[1]))
    moved += rows
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def filled(rows) -> ChangeLog:
    log = ChangeLog()
    for number, row in enumerate(rows):
        log.put(f"{number:06}", row)
    return log


def true_nearest(log: ChangeLog, asked):
    """By brute force: the nearest entry and its cosine, for each vector asked for."""
    ids = list(log.entries)
    stored = np.stack([vector for _, _, vector in log.entries.values()]).astype(np.float32)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    for start in range(0, len(asked), 100):
        scores = asked[start : start + 100] @ stored.T
        for row in scores:
            place = int(row.argmax())
            yield ids[place], float(row[place])


puts = st.tuples(st.just("put"), st.integers(0, 30), st.integers(0, 39))
removals = st.tuples(st.just("remove"), st.integers(0, 30), st.just(0))
others = st.tuples(st.sampled_from(["touch", "forget", "ask"]), st.just(0), st.just(0))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(puts, removals, others), max_size=80),
    st.integers(1, 12),
    st.integers(1, 20),
)
def test_agrees_with_brute_force_after_any_history(history, k, large):
    """Groups of fewer than 128 entries are ranked whole, in either form and through the change."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "_SEGMENT", 7)
        log, index = ChangeLog(), BitsIndex(large=large, wide=1)
        for what, number, row in [*history, ("ask", 0, 0)]:
            log.happen(what, f"e{number:02}", ROWS[row], f"g{number % 2}")
            for asked in ASKED if what == "ask" else ():
                assert log.agrees(index, "g0", asked, k, within=1e-6)
                assert log.agrees(index, "g1", asked, k, within=1e-6)
        assert len(index) == len(log.entries)


@pytest.mark.parametrize("segment", [50, 700, 65_536])
def test_finds_the_nearest_through_growth_removal_and_compaction(monkeypatch, segment):
    """Whatever the segments: entries near one asked for are found, those removed are not."""
    monkeypatch.setattr(bits, "_SEGMENT", segment)
    rng = np.random.default_rng(segment)
    rows = unit_rows(rng, 3_000)
    log, index = ChangeLog(), BitsIndex(large=500)
    for start in range(0, 3_000, 331):
        for number in range(start, min(start + 331, 3_000)):
            log.put(f"{number:06}", rows[number])
        asked = noisy(rng, rows[start : start + 20], 0.7)
        for vector, (entry, similarity) in zip(asked, true_nearest(log, asked), strict=True):
            near = index.nearest(log.store, "g", vector, 3, 0.5)[0]
            assert near.id == entry
            assert near.similarity == pytest.approx(similarity, abs=1e-5)
    for number in range(0, 3_000, 2):
        log.remove(f"{number:06}")
    asked = noisy(rng, rows[:300], 0.7)
    for number, vector in enumerate(asked):
        found = index.nearest(log.store, "g", vector, 3)
        assert (found[0].id == f"{number:06}") == bool(number % 2)
        assert all(int(near.id) % 2 for near in found)
    assert index._groups["g"].view.size == len(index) == 1_500


def test_gives_what_the_exact_index_gives_for_all_that_is_near():
    """Ids, order and similarities of everything above a floor, in a group with clusters."""
    rng = np.random.default_rng(5)
    centres = unit_rows(rng, 400)
    rows = np.concatenate([noisy(rng, centres, scale) for scale in np.linspace(0.1, 0.8, 20)])
    log = filled(rows)
    by_bits, exact = BitsIndex(), ExactIndex()
    for vector in noisy(rng, centres[:100], 0.3):
        found = by_bits.nearest(log.store, "g", vector, 10, 0.8)
        expected = exact.nearest(log.store, "g", vector, 10, 0.8)
        assert [near.id for near in found] == [near.id for near in expected]
        assert [near.similarity for near in found] == pytest.approx(
            [near.similarity for near in expected], abs=1e-6
        )
    assert isinstance(by_bits._groups["g"], BitsGroup)


def test_finds_the_nearest_among_a_hundred_thousand():
    """At 0.7 and above, in at least 999 of 1,000: here in all of 400."""
    rng = np.random.default_rng(1)
    centres = unit_rows(rng, 20_000)
    rows = np.concatenate([centres, *(noisy(rng, centres, scale) for scale in (0.5, 0.7, 0.9, 1))])
    log, index = filled(rows), BitsIndex()
    asked = noisy(rng, centres[:400], 0.8)
    lost = near = 0
    for vector, (entry, similarity) in zip(asked, true_nearest(log, asked), strict=True):
        if similarity >= 0.7:
            near += 1
            lost += index.nearest(log.store, "g", vector, 8, 0.88)[0].id != entry
    assert near > 350
    assert lost == 0


def test_tells_vectors_of_a_narrow_cone_apart():
    """Models that place all texts near one direction: signs alone would be the same for most."""
    rng = np.random.default_rng(2)
    cone = 2.0 * unit_rows(rng, 1)
    inner = unit_rows(rng, 10_000)
    rows, asked = inner + cone, noisy(rng, inner[:300], 1.7) + cone
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    log, index = filled(rows), BitsIndex()
    lost = sum(
        index.nearest(log.store, "g", vector, 1)[0].id != entry
        for vector, (entry, _) in zip(asked, true_nearest(log, asked), strict=True)
    )
    assert lost <= 1


@pytest.mark.parametrize("spread", [1, 9_000])
def test_equal_vectors_come_by_their_ids_in_a_large_group(spread):
    """Thousands at one place, in any order of arrival, with others around them."""
    rng = np.random.default_rng(spread)
    row = unit_rows(rng, 1)[0]
    log = ChangeLog()
    for number in rng.permutation(6_000):
        log.put(f"{number:06}", row)
    for number, other in enumerate(unit_rows(rng, spread)):
        log.put(f"other{number}", other)
    found = BitsIndex().nearest(log.store, "g", row, 5)
    assert [near.id for near in found] == [f"{number:06}" for number in range(5)]
    assert len({near.similarity for near in found}) == 1


def test_vectors_that_lie_at_their_own_centre_are_told_apart():
    """A group that began with one question over and over, before others came."""
    rng = np.random.default_rng(15)
    row = unit_rows(rng, 1)[0]
    log, index = filled([row] * 5_000), BitsIndex()
    index.nearest(log.store, "g", row, 1)
    for number, other in enumerate(unit_rows(rng, 9_000)):
        log.put(f"other{number}", other)
    assert np.linalg.norm(index._groups["g"].view.centre) < 0.81
    found = index.nearest(log.store, "g", row, 3)
    assert [near.id for near in found] == ["000000", "000001", "000002"]
    asked = noisy(rng, row[None], 0.6)[0]
    assert index.nearest(log.store, "g", asked, 1)[0].id == "000000"


@pytest.mark.parametrize("form", [ExactGroup, BitsGroup])
def test_of_an_id_that_comes_twice_the_later_one_stands(form):
    """A group never holds two rows of one entry."""
    group = form(384)
    rows = unit_rows(np.random.default_rng(16), 2).astype(np.float16)
    assert group.put(["a", "a"], list(rows)) == 0
    group.publish()
    found = group.view.nearest(rows[1].astype(np.float32), 5, -1.0)
    assert [(near.id, round(near.similarity, 3)) for near in found] == [("a", 1.0)]


def test_a_small_group_is_scanned_whole_and_a_grown_one_by_bits():
    """The form changes at the size named, and stays when the group shrinks again."""
    rng = np.random.default_rng(3)
    log, index = ChangeLog(), BitsIndex(large=10)
    forms = []
    for number, row in enumerate(unit_rows(rng, 12)):
        log.put(f"{number}", row)
        index.nearest(log.store, "g", row, 1)
        forms.append(type(index._groups["g"]))
    assert forms == [ExactGroup] * 9 + [BitsGroup] * 3
    for number in range(11):
        log.remove(f"{number}")
    assert [near.id for near in index.nearest(log.store, "g", row, 5)] == ["11"]
    log.remove("11")
    assert index.nearest(log.store, "g", row, 5) == ()
    assert index._groups == {}


def test_narrow_vectors_are_kept_whole_at_any_size():
    """A few bits tell nothing."""
    log = filled(np.random.default_rng(4).normal(size=(5_000, 32)))
    index = BitsIndex()
    index.nearest(log.store, "g", np.ones(32, dtype=np.float32), 1)
    assert isinstance(index._groups["g"], ExactGroup)


def test_asking_for_more_than_the_candidates_gives_so_many():
    """Also for all of them."""
    log, index = filled(unit_rows(np.random.default_rng(6), 600)), BitsIndex(large=1)
    asked = unit_rows(np.random.default_rng(7), 1)[0]
    assert len(index.nearest(log.store, "g", asked, 200)) == 200
    found = index.nearest(log.store, "g", asked, 1_000)
    assert [near.id for near in found] == [e for e, _ in log.nearest("g", asked, 1_000)]


def test_the_lengths_of_stored_vectors_do_not_matter():
    """From a hundredth to a hundred: the angle alone counts."""
    rng = np.random.default_rng(17)
    rows = unit_rows(rng, 300) * 10.0 ** rng.uniform(-2, 2, size=(300, 1))
    log, index = filled(rows), BitsIndex(large=1)
    for asked in noisy(rng, unit_rows(rng, 10), 1.0):
        found = index.nearest(log.store, "g", 100 * asked, 5)
        best = [near.id for near in ExactIndex().nearest(log.store, "g", asked, 5)]
        assert found[0].id == best[0]
        assert len({near.id for near in found} & set(best)) >= 4


def test_leaves_out_what_is_below_the_floor_unless_all_is():
    """Two forms, one rule: below the floor only the nearest is named, and only if it must be."""
    rng = np.random.default_rng(8)
    rows = unit_rows(rng, 600)
    asked = noisy(rng, rows[:1], 0.3)[0]
    log = filled(rows)
    for index in (BitsIndex(large=1), BitsIndex(), ExactIndex()):
        assert [near.id for near in index.nearest(log.store, "g", asked, 8, 0.8)] == ["000000"]
        assert index.nearest(log.store, "g", asked, 8, 0.999)[0].id == "000000"
        assert index.nearest(log.store, "g", -asked, 8, 0.99)[0].similarity < 0.5


def test_a_lookup_begun_before_a_change_sees_none_of_it():
    """The view taken by a reader keeps its rows through appends, replacements and compaction."""
    rng = np.random.default_rng(9)
    rows = unit_rows(rng, 200)
    log, index = filled(rows[:20]), BitsIndex(large=1)
    index.nearest(log.store, "g", rows[0], 1)
    view = index._groups["g"].view
    before = [view.nearest(vector, 20, -1.0) for vector in rows[:20]]
    for number in range(20):
        log.put(f"{number:06}", rows[number + 20])
        for more in range(5):
            log.put(f"more{number}-{more}", rows[40 + 5 * number + more])
        index.nearest(log.store, "g", rows[0], 1)
    assert [view.nearest(vector, 20, -1.0) for vector in rows[:20]] == before
    assert index.nearest(log.store, "g", rows[20], 1)[0].id == "000000"


def test_takes_about_two_bytes_a_dimension():
    """What a large group's arrays hold, with no room for more than a doubling of what came late."""
    log, index = filled(unit_rows(np.random.default_rng(10), 5_000)), BitsIndex()
    index.nearest(log.store, "g", np.ones(384, dtype=np.float32), 1)
    held = sum(array.nbytes for segment in index._groups["g"]._segments for array in segment)
    assert held / 5_000 == 2 * 384 + 384 / 8 + 4


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 65_535), min_size=20, max_size=20), st.booleans())
def test_vectors_go_over_to_bits_as_they_were_stored(patterns, tiny):
    """Any finite float16 numbers, also subnormal ones, come back from unit vectors unchanged."""
    row = np.array(patterns, dtype=np.uint16).view(np.float16)
    row = np.where(np.isfinite(row), row, np.float16(1.0))
    if tiny:
        row = np.where(np.abs(row) < 1e-3, row, np.float16(6e-8))
    if not row.any():
        row[0] = 1.0
    group = ExactGroup(20)
    group.put(["a"], [row])
    assert np.array_equal(group.halves()[0], row)


def test_widens_every_finite_number_exactly():
    """All 63,488 of them."""
    halves = np.arange(65_536, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    assert len(halves) == 63_488
    assert np.array_equal(bits.widened(halves), halves.astype(np.float32))


def test_needs_no_bit_count_of_numpys(monkeypatch):
    """NumPy 1.26 has none: the same is found without it."""
    rng = np.random.default_rng(13)
    rows = unit_rows(rng, 1_000)
    log, asked = filled(rows), noisy(rng, rows[:50], 1.0)
    first = [BitsIndex(large=1).nearest(log.store, "g", vector, 8) for vector in asked[:5]]
    monkeypatch.setattr(hamming, "_ones", hamming._ones_by_halving)
    index = BitsIndex(large=1)
    assert [index.nearest(log.store, "g", vector, 8) for vector in asked[:5]] == first


@pytest.mark.parametrize("length", [383, 385])
def test_refuses_a_vector_of_another_length(length):
    """Also where the number of words would be the same."""
    log, index = filled(unit_rows(np.random.default_rng(14), 10)), BitsIndex(large=1)
    with pytest.raises(UsageError, match=rf"{length}.*384"):
        index.nearest(log.store, "g", np.ones(length, dtype=np.float32), 1)
