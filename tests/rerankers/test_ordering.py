"""Scores become an order."""

import math

import numpy as np
import pytest

from stemma.errors import RerankerError
from stemma.rerankers import best_first
from stemma.rerankers.ordering import as_scores

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ([], []),
        ([0.0], [0]),
        ([1, 3, 2], [1, 2, 0]),
        ([0.0, -1.0, 0.0, 1.0], [3, 0, 2, 1]),
        ([NAN, 1.0, NAN, 2.0], [3, 1, 0, 2]),
        ([NAN, NAN], [0, 1]),
        ([INF, -INF, -5.0, NAN], [2, 0, 1, 3]),
        ([-0.0, 0.0], [0, 1]),
    ],
)
def test_the_best_comes_first_ties_keep_their_order_and_what_is_no_score_is_last(scores, order):
    assert best_first(scores) == order


@pytest.mark.parametrize(
    "given",
    [
        [1, 0.5],
        (1.0, 0.5),
        np.array([1.0, 0.5], dtype=np.float32),
        np.array([[1.0], [0.5]]),
        [np.float32(1), np.float64(0.5)],
        iter([1.0, 0.5]),
        [[1.0], [0.5]],
    ],
)
def test_one_number_a_text_in_whatever_form(given):
    scores = as_scores(given, 2, "r")
    assert scores == [1.0, 0.5]
    assert [type(score) for score in scores] == [float, float]


def test_a_missing_score_is_not_a_number():
    assert math.isnan(as_scores([None], 1, "r")[0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([0.5], "1 scores for 2 texts"),
        ([], "0 scores for 2 texts"),
        ([1, 2, 3], "3 scores for 2 texts"),
        (np.ones((2, 3)), "3 numbers for one text"),
        (["1", "2"], "a str"),
        ([object(), 1], "not one number"),
        (None, "not one number"),
        (0.5, "not one number"),
        ([10**400, 1], "not one number"),
    ],
)
def test_anything_else_is_refused_by_the_rerankers_name(given, words):
    with pytest.raises(RerankerError, match=words) as told:
        as_scores(given, 2, "mine/7")
    assert "mine/7" in str(told.value)
