"""Counting differing bits agrees with counting them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stemma.indexes.hamming import _ones_by_halving, differing, lowest, packed


@pytest.mark.parametrize("dimensions", [1, 7, 8, 63, 64, 65, 384, 1_000])
def test_counts_the_signs_that_differ(dimensions):
    """At lengths that fill their words and that do not."""
    rng = np.random.default_rng(dimensions)
    signs, asked = rng.random((300, dimensions)) < 0.5, rng.random((1, dimensions)) < 0.5
    distances = np.empty(300, dtype=np.uint16)
    differing(packed(signs), packed(asked), distances)
    assert distances.tolist() == (signs != asked).sum(axis=1).tolist()


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_counts_set_bits_by_halving(numbers):
    """Any words, which stay as they are."""
    words = np.array(numbers, dtype=np.uint64)
    assert _ones_by_halving(words).tolist() == [number.bit_count() for number in numbers]
    assert words.tolist() == numbers


@settings(deadline=None)
@given(st.integers(1, 5_000), st.integers(1, 40), st.integers(1, 500), st.integers(0, 2**32))
def test_selects_the_lowest_with_all_their_equals(size, count, values, seed):
    """Ascending rows, as many as asked for or more, and none that a sort would not give."""
    distances = np.random.default_rng(seed).integers(0, values, size).astype(np.uint16)
    rows = lowest(distances, count)
    if count >= size:
        assert rows.tolist() == list(range(size))
    else:
        last = np.sort(distances)[count - 1]
        assert rows.tolist() == np.flatnonzero(distances <= last).tolist()
