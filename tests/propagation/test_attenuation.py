"""What audits tell of an edge, and how long they do."""

import math

import pytest

from stemma import UsageError
from stemma.propagation.attenuation import Attenuation, Audit, attenuation

DAY = 86_400.0


def audit(child_wrong, *, at=0.0, parent_wrong=True):
    return Audit(parent_wrong=parent_wrong, child_wrong=child_wrong, at=at)


def test_without_audits_it_is_the_prior():
    assert attenuation([], now=0.0) == Attenuation(wrong=1.0, right=1.0)
    assert attenuation([], now=0.0).mean == 0.5
    assert attenuation([], now=0.0).deviation == pytest.approx(math.sqrt(1 / 12))
    prior = Attenuation(wrong=2.0, right=6.0)
    assert attenuation([], now=0.0, prior=prior) == prior


def test_it_is_the_share_of_wrong_children_among_wrong_parents():
    found = attenuation([audit(True)] * 30 + [audit(False)] * 10, now=9 * DAY)
    assert found == Attenuation(wrong=31.0, right=11.0)
    assert found.mean == pytest.approx(31 / 42)
    assert found.deviation == pytest.approx(math.sqrt(31 * 11 / 43) / 42)


def test_a_parent_that_was_right_tells_nothing():
    right = [audit(child, parent_wrong=False) for child in (True, False)]
    assert attenuation(right, now=0.0) == Attenuation()


def test_an_audit_counts_half_after_each_half_life():
    given = [audit(True, at=0.0), audit(False, at=2 * DAY)]
    found = attenuation(given, now=2 * DAY, half_life=DAY)
    assert found == Attenuation(wrong=1.25, right=2.0)
    much_later = attenuation(given, now=4000 * DAY, half_life=DAY)
    assert much_later.mean == pytest.approx(0.5)


def test_an_audit_of_tomorrow_counts_as_of_now():
    assert attenuation([audit(True, at=9 * DAY)], now=0.0, half_life=DAY).wrong == 2.0


def test_the_order_does_not_matter():
    given = [audit(at % 3 == 0, at=at * DAY) for at in range(50)]
    one, other = (
        attenuation(some, now=60 * DAY, half_life=7 * DAY) for some in (given, given[::-1])
    )
    assert one == other


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", True])
def test_numbers_out_of_range_are_refused(value):
    with pytest.raises(UsageError):
        Attenuation(wrong=value)
    with pytest.raises(UsageError):
        Attenuation(right=value)
    with pytest.raises(UsageError):
        attenuation([], now=0.0, half_life=value)


def test_a_time_that_is_none_is_refused():
    with pytest.raises(UsageError):
        attenuation([], now=math.nan)
    with pytest.raises(UsageError):
        attenuation([audit(True, at=math.nan)], now=0.0)
