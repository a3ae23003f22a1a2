"""The check that needs no model: what it holds supported, what speaks against a sentence."""

import asyncio
import json
from importlib import resources

import numpy as np
import pytest

from stemma import UsageError
from stemma.embedders import as_embedder
from stemma.grounding import Grounder, GroundingCheck, Weights
from stemma.grounding.support import FEATURES
from stemma.grounding.weights import shipped

POLICY = (
    "Gift cards cannot be refunded. The warranty lasts 24 months. Opened boxes are sent to Leeds."
)
HOURS = "The shop in York opens at 9:00. Deliveries weigh at most 30 kg and cost $12."
SOURCES = [POLICY, HOURS]


@pytest.fixture
def check():
    return GroundingCheck()


def only(found):
    (sentence,) = found.sentences
    return sentence


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("The warranty lasts 24 months.", 0),
        ("Gift cards cannot be refunded.", 0),
        ("The shop in York opens at 9:00.", 1),
        ("Deliveries weigh at most 30 kg.", 1),
    ],
)
def test_what_a_source_says_is_supported_by_that_source(check, answer, source):
    found = check.ground(answer, SOURCES)
    assert found.score > 0.6
    assert (only(found).source, only(found).why, found.by) == (source, "", "grounding")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("The warranty lasts 36 months.", "number_missing"),
        ("Gift cards can be refunded.", "negated"),
        ("Deliveries weigh at most 30 lb.", "unit_missing"),
        ("Opened boxes are sent to Bristol.", "word_missing"),
        ("The warranty lasts 24 months abroad, too.", "word_missing"),
        ("The shop in York closes at 9:00.", "opposite"),
    ],
)
def test_what_the_sources_say_otherwise_is_not(check, answer, why):
    found = check.ground(answer, SOURCES)
    assert found.score < 0.5
    assert only(found).why == why


def test_the_worst_sentence_decides_and_each_is_told(check):
    found = check.ground("The warranty lasts 24 months. Call Dr. Miller in Oslo.", SOURCES)
    good, bad = found.sentences
    assert (good.source, bad.source) == (0, None)
    assert found.score == bad.score < 0.3 < good.score


@pytest.mark.parametrize(("right", "wrong"), [("24 months", "36 months"), ("Leeds", "Bristol")])
def test_a_short_answer_is_judged(check, right, wrong):
    question = "How long is the warranty?"
    assert check.ground(right, SOURCES, question).score > 0.6
    assert check.ground(wrong, SOURCES, question).score < 0.5


def test_what_repeats_the_question_is_not_held_against_an_answer(check):
    question = "How many months does the guarantee of your lovely gadgets last?"
    plain = check.ground("24 months", SOURCES, question).score
    said = check.ground("The guarantee of the lovely gadgets lasts 24 months", SOURCES, question)
    assert said.score == pytest.approx(plain)


def test_what_turns_the_question_round_is_told_though_it_has_no_word_of_its_own(check):
    question = "Can gift cards be refunded?"
    wrong = check.ground("Gift cards can be refunded.", SOURCES, question)
    right = check.ground("Gift cards cannot be refunded.", SOURCES, question)
    assert only(wrong).why == "negated"
    assert wrong.score < 0.3 < right.score


@pytest.mark.parametrize("no", ["No, ", "No. ", "no - "])
def test_a_no_to_the_question_denies_nothing_of_what_the_sentence_says(check, no):
    question = "Can gift cards be refunded?"
    plain = check.ground("Gift cards cannot be refunded.", SOURCES, question)
    assert check.ground(f"{no}gift cards cannot be refunded.", SOURCES, question).score == (
        pytest.approx(plain.score)
    )
    turned = check.ground(f"{no}gift cards can be refunded.", SOURCES, question)
    assert only(turned).why == "negated"


def test_a_no_that_belongs_to_the_sentence_denies_it(check):
    assert only(check.ground("No warranty lasts 24 months.", SOURCES)).why == "negated"


def test_weights_as_large_as_can_be_still_give_a_probability():
    weights = {**dict.fromkeys(FEATURES, 0.0), "word_missing": -1e300}
    huge = GroundingCheck(weights=Weights(constant=1e300, weights=weights))
    assert huge.ground("Leeds", SOURCES).score == pytest.approx(1)
    low = GroundingCheck(weights=Weights(constant=-1e300, weights=weights))
    assert low.ground("Oslo", SOURCES).score == pytest.approx(0)


def test_nothing_to_check_is_no_better_than_half(check):
    found = check.ground("Yes.", SOURCES, "Do gift cards expire?")
    assert only(found).why == "bare"
    assert 0.3 < found.score < 0.6


@pytest.mark.parametrize("sources", [[], [""], [" \n "]])
def test_without_a_source_nothing_is_supported(check, sources):
    found = check.ground("The warranty lasts 24 months.", sources)
    assert found.score == 0
    assert (only(found).source, only(found).why) == (None, "no_source")


@pytest.mark.parametrize("answer", ["", "  \n"])
def test_an_empty_answer_is_not_grounded(check, answer):
    found = check.ground(answer, SOURCES)
    assert (found.score, found.sentences) == (0, ())


@pytest.mark.parametrize(
    "arguments",
    [
        (None, SOURCES, ""),
        ("yes", POLICY, ""),
        ("yes", None, ""),
        ("yes", [POLICY, 3], ""),
        ("yes", SOURCES, None),
        (b"yes", SOURCES, ""),
    ],
)
def test_what_is_no_text_is_refused(check, arguments):
    with pytest.raises(UsageError):
        check.ground(*arguments)


def test_chinese_is_read(check):
    source = ["保修期为24个月。礼品卡不能退款。"]
    right = check.ground("保修期为24个月。", source).score
    assert right > check.ground("保修期为36个月。", source).score
    assert right > check.ground("礼品卡能退款。", source).score


@pytest.mark.parametrize("text", ["\ud800 half", "a" * 30_000, "?!?!", "🙂", "..."])
def test_odd_texts_have_a_score(check, text):
    for found in (check.ground(text, SOURCES), check.ground("The warranty", [text], text)):
        assert 0 <= found.score <= 1


class Model:
    """Every text near the first axis, but those with `far` in them; counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, texts):
        self.calls += 1
        return np.array([[0.0, 1.0] if "far" in text else [1.0, 0.0] for text in texts])


def weighing(embedder):
    weights = {**dict.fromkeys(FEATURES, 0.0), "similarity": 4.0}
    return Weights(constant=-2.0, weights=weights, embedder=embedder.revision)


def test_similarity_is_asked_once_and_counts_sync_and_async():
    model = Model()
    embedder = as_embedder(model, revision="axes/1")
    check = GroundingCheck(embedder, weights=weighing(embedder))
    near = check.ground("Something near.", SOURCES)
    assert model.calls == 1
    far = check.ground("Something far away.", SOURCES)
    assert near.score > 0.8
    assert far.score < 0.2
    assert asyncio.run(check.aground("Something near.", SOURCES)) == near


def test_an_embedder_that_the_weights_do_not_know_is_not_asked(check):
    model = Model()
    other = GroundingCheck(as_embedder(model, revision="axes/1"))
    answer = "Opened boxes are sent to Leeds."
    assert other.ground(answer, SOURCES) == check.ground(answer, SOURCES)
    assert model.calls == 0
    assert other.revision == check.revision


def test_weights_for_another_embedder_are_refused():
    with pytest.raises(UsageError, match="axes/1"):
        GroundingCheck(weights=weighing(as_embedder(Model(), revision="axes/1")))


@pytest.mark.parametrize(
    "changed",
    [
        {"constant": float("nan")},
        {"constant": True},
        {"weights": {}},
        {"weights": {**dict.fromkeys(FEATURES, 0.0), "negated": 1.0}},
        {"weights": {**dict.fromkeys(FEATURES, 0.0), "similarity": -1.0}, "embedder": "e"},
        {"weights": {**dict.fromkeys(FEATURES, 0.0), "similarity": 1.0}},
    ],
)
def test_weights_that_make_no_sense_are_refused(changed):
    with pytest.raises(UsageError):
        Weights(**{"constant": 0.0, "weights": dict.fromkeys(FEATURES, 0.0), **changed})


def test_a_record_without_its_fields_is_refused():
    with pytest.raises(UsageError):
        Weights.read({"constant": 1.0})


def test_the_shipped_weights_say_where_they_are_from():
    record = json.loads(
        resources.files("stemma.grounding").joinpath("grounding.json").read_text("utf-8")
    )
    assert record["made"]["by"] == "python -m evals.fit_grounding"
    plain, embedded = shipped()
    assert plain.embedder == ""
    assert embedded.embedder.startswith("local/")
    assert plain.revision != embedded.revision


def test_it_is_a_grounder(check):
    assert isinstance(check, Grounder)
