"""Scores of a store, told again for another query; and how far a list that was reused reaches."""

import math

import numpy as np
import pytest

from stemma.policies.neighbours import Reuse
from stemma.policies.scores import SCALES, rescored
from stemma.ranking import Ranking

BEFORE, AFTER = (0.9, 0.5, -0.2), (0.7, 0.1)


@pytest.mark.parametrize("scale", SCALES)
def test_scores_that_are_a_known_function_are_told_again(scale):
    given = scale(np.array(BEFORE)) + 2e-4
    assert rescored(given.tolist(), BEFORE, AFTER) == pytest.approx(
        scale(np.array(AFTER)).tolist(), abs=1e-9
    )


@pytest.mark.parametrize(
    "given",
    [(0.9, 0.5, -0.1), (9.0, 5.0, -2.0), (0.9, None, -0.2), (math.nan, math.nan, math.nan)],
)
def test_where_nobody_can_say_nobody_does(given):
    assert rescored(given, BEFORE, AFTER) is None


def test_no_scores_stay_none():
    assert rescored((None, None, None), BEFORE, AFTER) == (None, None)
    assert rescored((), (), ()) == ()


def ranking(**named):
    return Ranking(
        chunks=("a", "b", "c"),
        contents=("a", "b", "c"),
        k=3,
        query=np.array([1.0, 0.0], dtype=np.float32),
        vectors=np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]], dtype=np.float32),
        **named,
    )


def reused(listed, k):
    found = Reuse(
        kind="proven",
        order=(1, 2, 0),
        similarities=(1.0, 0.96, 0.8),
        floor=-math.inf,
        margin=math.inf,
    )
    asked = np.array([0.8, 0.6], dtype=np.float32)
    return listed.reused(asked, found, k, ["d"] * k)


def test_a_list_of_fewer_than_there_were_does_not_say_that_there_are_no_more():
    """It was complete; what was left of it for the new query is not."""
    assert not reused(ranking(), 1).holds(2)
    assert reused(ranking(), 1).floor == reused(ranking(), 1).radius == 1.0
    assert not reused(ranking(), 3).holds(4)
    assert reused(ranking(), 4).holds(9)


def test_a_reused_list_has_scores_of_its_own():
    assert reused(ranking(scores=(0.0, 0.2, 0.4)), 2).scores == pytest.approx((0.0, 0.04))
    assert reused(ranking(), 2).scores is None
    assert ranking(scores=(0.0, 0.2, 0.4)).first(2, ["d", "d"]).scores == (0.0, 0.2)
