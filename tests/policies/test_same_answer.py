"""Same answer? The surest means decides, and says so; a bad judge decides nothing."""

import pytest

from stemma import UsageError
from stemma.policies.same_answer import Answer, SameAnswer, Sameness


def text(words: str) -> Answer:
    return Answer(text=words)


class Judged:
    """A judge that counts its calls."""

    def __init__(self, says):
        self.says, self.calls = says, 0

    def __call__(self, fresh, stored):
        self.calls += 1
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@pytest.mark.parametrize(
    ("fresh", "stored", "similarity", "verdict"),
    [
        (text("It is 5 km."), text("it is  5 km"), None, (True, "equal")),
        (text("It is 5 km."), text("It is 6 km."), 0.99, (False, "guard:number")),
        (text("It is safe."), text("It is not safe."), 0.99, (False, "guard:negation")),
        (text("Paris is nice"), text("The stock fell"), 0.1, (False, "similarity")),
        (
            text("You can do it in settings."),
            text("You can do it in settings"),
            0.2,
            (True, "equal"),
        ),
        (Answer(value={"a": 1, "b": 2}), Answer(value={"b": 2, "a": 1}), None, (True, "value")),
        (Answer(value=0), Answer(value=False), None, (False, "value")),
        (Answer(value=[]), Answer(value=[1]), None, (False, "value")),
        (
            Answer(calls=[("f", {"x": 1}), ("g", {})]),
            Answer(calls=[("g", {}), ("f", {"x": 1})]),
            None,
            (True, "calls"),
        ),
        (Answer(calls=[("f", {"x": 1})]), Answer(calls=[("f", {"x": 2})]), 1.0, (False, "calls")),
        (Answer(text="done", calls=[("f", {})]), text("done"), 1.0, (False, "calls")),
    ],
)
def test_the_surest_means_decides_without_a_judge(fresh, stored, similarity, verdict):
    judge = Judged(0.5)
    compare = SameAnswer(judge=judge)
    said = compare(fresh, stored, similarity=similarity)
    assert said == Sameness(same=verdict[0], by=verdict[1])
    assert compare(stored, fresh, similarity=similarity) == said
    assert judge.calls == 0


ONE, OTHER = text("Open the settings and press reset."), text("Reset is found under settings.")


@pytest.mark.parametrize(("likely", "same"), [(1.0, True), (0.5, True), (0.49, False), (0, False)])
def test_between_the_two_the_judge_decides_under_its_name(likely, same):
    judge = Judged(likely)
    compare = SameAnswer(judge=judge, judge_name="nli")
    assert compare(ONE, OTHER, similarity=0.8) == Sameness(same=same, by="nli")
    assert judge.calls == 1


@pytest.mark.parametrize(
    "says", [ValueError("no"), TimeoutError(), float("nan"), 1.1, -0.1, "nonsense", None]
)
def test_a_judge_that_fails_or_talks_nonsense_has_said_nothing(says):
    assert SameAnswer(judge=Judged(says))(ONE, OTHER, similarity=0.8) is None


def test_a_judge_that_must_be_sure_may_abstain():
    compare = SameAnswer(judge=Judged(0.7), sure=0.9)
    assert compare(ONE, OTHER, similarity=0.8) is None


def test_without_a_judge_or_a_similarity_nobody_can_say():
    assert SameAnswer()(ONE, OTHER) is None
    assert SameAnswer()(ONE, OTHER, similarity=0.8) is None


@pytest.mark.parametrize(
    "wrong", [{"same": 1.1}, {"other": -0.1}, {"other": 0.96}, {"sure": 0.4}, {"sure": "1"}]
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(UsageError):
        SameAnswer(**wrong)
