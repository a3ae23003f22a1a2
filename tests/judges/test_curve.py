"""Scores become probabilities by a curve that is stated, and can be fitted."""

import math
import random

import pytest

from stemma import UsageError
from stemma.judges import Curve


def test_it_is_the_logistic_that_it_says():
    curve = Curve(slope=2.0, middle=1.0)
    assert curve(1.0) == 0.5
    assert curve(2.0) == pytest.approx(1 / (1 + math.exp(-2.0)))
    assert 0.0 < curve(-1e9) < 1e-12
    assert 1 - 1e-12 < curve(1e9) <= 1.0


@pytest.mark.parametrize(
    "wrong", [{"slope": 0.0}, {"slope": -1.0}, {"slope": math.nan}, {"middle": math.inf}]
)
def test_a_curve_that_falls_or_is_none_is_refused(wrong):
    with pytest.raises(UsageError):
        Curve(**{"slope": 1.0, "middle": 0.0, **wrong})


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (0.01, 5.0), (100.0, -40.0)])
def test_fitted_it_gives_back_the_curve_behind_the_pairs_in_any_range(scale, shift):
    rng = random.Random(3)
    raw = [rng.uniform(-6, 6) for _ in range(2_000)]
    same = [rng.random() < 1 / (1 + math.exp(-1.5 * (one - 1.0))) for one in raw]
    curve = Curve.fitted([shift + scale * one for one in raw], same)
    for one in (-2.0, 0.0, 1.0, 2.0, 4.0):
        true = 1 / (1 + math.exp(-1.5 * (one - 1.0)))
        assert curve(shift + scale * one) == pytest.approx(true, abs=0.05)


def test_few_pairs_that_are_told_apart_make_it_less_than_certain():
    scores = [0.0] * 10 + [1.0] * 10
    curve = Curve.fitted(scores, [False] * 10 + [True] * 10)
    assert 0.8 < curve(1.0) < 0.999
    assert curve(0.0) == pytest.approx(1 - curve(1.0))


@pytest.mark.parametrize(
    ("scores", "same", "match"),
    [
        ([0.1] * 30, [True] * 30, "of one kind there are 0"),
        ([0.1 * n for n in range(19)], [n < 10 for n in range(19)], "of one kind there are 9"),
        ([0.5] * 20, [True, False] * 10, "all scores are the same"),
        ([float(n) for n in range(20)], [n < 10 for n in range(20)], "not more likely"),
        ([math.nan] * 20, [True, False] * 10, "finite"),
        ([1.0, 2.0], [True], "each pair"),
    ],
)
def test_pairs_that_allow_no_curve_are_refused(scores, same, match):
    with pytest.raises(UsageError, match=match):
        Curve.fitted(scores, same)
