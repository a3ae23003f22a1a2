"""Of all settings the one is recommended that hits most and will surely keep its promise."""

import pytest

from stemma import UsageError
from stemma.replays.answers import Prepared
from stemma.replays.calibrating import Setting, calibrate, recommended
from stemma.replays.log import Log


def setting(policy, value, hits, error, *, off=0.0, decided=10_000, hits_off=0.0) -> Setting:
    """One with these means, and intervals of this width."""

    def interval(mean, off):
        return {"mean": mean, "low": mean - off, "high": mean + off, "worst": mean + off}

    rates = {
        "hits": interval(hits, hits_off),
        "semantic": interval(hits, 0.0),
        "error_decided": interval(error, off),
        "error_a_hit": interval(error, off),
    }
    return Setting(policy=policy, value=value, rates=rates, decided=decided)


SAFE = setting("threshold", 0.95, 0.4, 0.001)


def test_the_one_that_hits_most_among_the_safe_ones():
    more = setting("threshold", 0.9, 0.5, 0.01)
    wrong = setting("threshold", 0.8, 0.9, 0.1)
    assert recommended([SAFE, more, wrong], 0.02) is more
    assert recommended([wrong], 0.02) is None
    assert recommended([], 0.02) is None


def test_an_error_that_only_just_holds_is_not_safe():
    """Neither where the orders differ, nor where there are few requests."""
    differs = setting("threshold", 0.9, 0.5, 0.015, off=0.01)
    few = setting("threshold", 0.9, 0.5, 0.015, decided=300)
    assert recommended([SAFE, differs], 0.02) is SAFE
    assert recommended([SAFE, few], 0.02) is SAFE
    assert few.at_most > 0.02
    assert recommended([SAFE, setting("threshold", 0.9, 0.5, 0.015)], 0.02) is not SAFE


def test_none_wrong_of_few_is_not_none():
    assert 0.01 < setting("threshold", 0.9, 0.5, 0.0, decided=300).at_most < 0.02


def test_who_goes_on_judging_is_preferred_where_it_hits_about_as_much():
    near = setting("verified", 0.02, 0.38, 0.001, hits_off=0.03)
    far = setting("verified", 0.02, 0.3, 0.001, hits_off=0.03)
    assert recommended([SAFE, near], 0.02) is near
    assert recommended([SAFE, far], 0.02) is SAFE


def test_a_bound_above_the_wanted_error_is_never_recommended():
    """Whatever it took on this log: in the long run it is spent."""
    assert recommended([SAFE, setting("verified", 0.05, 0.6, 0.001)], 0.02) is SAFE


def test_what_serves_nothing_by_meaning_is_no_recommendation():
    assert recommended([setting("threshold", 0.98, 0.0, 0.0)], 0.02) is None


@pytest.mark.parametrize("wrong", [{"max_error": 0.0}, {"max_error": 0.6}, {"number": 1}])
def test_wrong_arguments_are_refused(wrong):
    given = Prepared(log=Log(lines=[]), requests=[], at={}, skipped=[], embedder="x")
    with pytest.raises(UsageError):
        calibrate(given, **{"max_error": 0.02, **wrong})
