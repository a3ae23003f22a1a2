"""The clock that is set by hand."""

import math

import pytest

from stemma.clock import Clock
from stemma.errors import UsageError
from stemma.testing import ManualClock


def test_it_stands_still():
    """Two readings without an advance are equal."""
    clock = ManualClock(5.0)
    assert isinstance(clock, Clock)
    assert (clock.now(), clock.now(), clock.monotonic()) == (5.0, 5.0, 0.0)


def test_both_readings_advance_together():
    """By as much as they are told, also by nothing."""
    clock = ManualClock(5.0)
    clock.advance(2.5)
    clock.advance(0)
    assert (clock.now(), clock.monotonic()) == (7.5, 2.5)


def test_a_wall_clock_that_is_set_leaves_the_other():
    """As on a machine whose time is corrected."""
    clock = ManualClock(5.0)
    clock.set(1.0)
    assert (clock.now(), clock.monotonic()) == (1.0, 0.0)


@pytest.mark.parametrize("seconds", [-1, -0.001, math.nan])
def test_time_does_not_go_back(seconds):
    """An advance below zero is an error, and changes nothing."""
    clock = ManualClock(5.0)
    with pytest.raises(UsageError):
        clock.advance(seconds)
    assert clock.now() == 5.0
