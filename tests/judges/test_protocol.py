"""What a judge is, what counts as a probability, and what a grey band takes."""

import math

import numpy as np
import pytest

from stemma import JudgeError, UsageError
from stemma.judges import FunctionJudge, GreyBand, Judge
from stemma.judges.band import AFTER, BEFORE, opinion
from stemma.judges.protocol import probability


@pytest.mark.parametrize("given", [0, 1, 0.5, True, np.float32(0.25), np.array(0.75)])
def test_a_number_from_0_to_1_is_a_probability(given):
    assert probability(given, "x") == float(given)


def test_nothing_is_nothing():
    assert probability(None, "x") is None


@pytest.mark.parametrize(
    "given", [-0.1, 1.1, math.nan, math.inf, "0.5", "yes", b"1", [0.5, 0.5], {}, np.ones(2)]
)
def test_anything_else_is_refused_by_name_and_without_repeating_a_text(given):
    with pytest.raises(JudgeError, match="'x' gave") as caught:
        probability(given, "x")
    assert "yes" not in str(caught.value)


def test_a_function_is_a_judge_under_a_name():
    judge = FunctionJudge(function=lambda one, other: float(one == other), name="equal")
    assert isinstance(judge, Judge)
    assert (judge.name, judge.revision) == ("equal", "equal")
    assert judge.judge("a", "a", "questions") == 1.0
    assert judge.judge("a", "b", "answers") == 0.0
    assert FunctionJudge(function=max, name="m", revision="m/2").revision == "m/2"


@pytest.mark.parametrize("wrong", [{"function": 3}, {"name": ""}, {"name": " "}, {"name": 3}])
def test_what_is_no_function_or_no_name_is_refused(wrong):
    with pytest.raises(UsageError):
        FunctionJudge(**{"function": max, "name": "x", **wrong})


@pytest.mark.parametrize(
    ("likely", "sure", "says"),
    [
        (1.0, 0.9, True),
        (0.9, 0.9, True),
        (0.89, 0.9, None),
        (0.11, 0.9, None),
        (0.09, 0.9, False),
        (0.0, 1.0, False),
        (0.5, 0.5, True),
        (0.49, 0.5, False),
        (None, 0.5, None),
    ],
)
def test_an_opinion_needs_to_be_sure(likely, sure, says):
    assert opinion(likely, sure) is says


def test_a_band_waits_shorter_while_a_request_waits(counting):
    judge = counting(1.0)
    assert GreyBand(judge=judge).patience == BEFORE
    assert GreyBand(judge=judge, when="after").patience == AFTER > BEFORE
    assert GreyBand(judge=judge, timeout=5).patience == 5.0
    assert GreyBand(judge=judge).by == "judge:counting"


@pytest.mark.parametrize(
    "wrong",
    [
        {"judge": "llm"},
        {"judge": lambda one, other: 1.0},
        {"when": "later"},
        {"low": -0.1},
        {"low": 1.1},
        {"low": "0.5"},
        {"audits": 1.1},
        {"max_wrong": -0.1},
        {"sure": 0.4},
        {"sure": 1.1},
        {"sure": "0.9"},
        {"sure": None},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": math.inf},
        {"timeout": math.nan},
        {"timeout": "1"},
        {"timeout": True},
    ],
)
def test_a_band_of_nonsense_is_refused(counting, wrong):
    with pytest.raises(UsageError):
        GreyBand(**{"judge": counting(1.0), **wrong})


def test_a_class_is_no_judge(counting):
    with pytest.raises(UsageError, match="must be a Judge"):
        GreyBand(judge=counting)


def test_how_sure_it_must_be_is_refused_in_those_words(counting):
    with pytest.raises(UsageError, match=r"sure must be a share from 0\.5 to 1, not 0\.4"):
        GreyBand(judge=counting(1.0), sure=0.4)


def test_an_async_function_is_refused_and_told_what_to_do():
    """Else each of its judgements would be a coroutine that nobody awaits."""

    async def judged(one, other):
        return 1.0

    with pytest.raises(UsageError, match="ajudge"):
        FunctionJudge(function=judged, name="mine")
