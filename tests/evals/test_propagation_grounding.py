"""`python -m evals propagation --part grounding`, small; and that its measures would notice."""

import numpy as np
import pytest
from evals.measuring import Skipped
from evals.propagation.grounding import on_every_put, scorers, told, without_sources
from evals.propagation.halueval import Answered, General
from evals.propagation.telling import auc, bar, interval
from evals.rag.texts import folder

from evals import fit_grounding, propagation
from stemma.embedders import HashingEmbedder
from stemma.grounding.support import FEATURES

CITIES = ("Leeds", "York", "Bath", "Hull")
ITEMS = [
    Answered(
        question=f"Where do returns of kind {number} go?",
        sources=(f"Returns of kind {number} go to {CITIES[number % 4]}. Ask at the till.",),
        right=CITIES[number % 4],
        hallucinated="They go to Oslo, by sea.",
    )
    for number in range(24)
]


def test_an_auc_counts_pairs_and_halves_ties():
    right, wrong = np.array([3.0, 1.0]), np.array([2.0, 1.0])
    assert auc(right, wrong) == pytest.approx((1 + 1 + 0 + 0.5) / 4)
    assert auc(np.array([1.0]), np.array([0.0])) == 1
    assert auc(np.array([0.0]), np.array([1.0])) == 0


def test_a_bar_keeps_what_it_must():
    right = np.arange(10.0)
    assert bar(right, 0.9) == 1
    assert np.mean(right >= bar(right, 0.9)) == 0.9
    assert bar(right, 1.0) == 0


def test_an_interval_holds_the_auc_and_is_one_point_where_nothing_varies():
    drawn = np.random.default_rng(5)
    right, wrong = drawn.normal(1, 1, 80), drawn.normal(0, 1, 60)
    low, high = interval(right, wrong, seed=1)
    assert low < auc(right, wrong) < high
    assert interval(np.ones(9), np.zeros(9), seed=1) == (1, 1)


def test_what_cannot_tell_is_seen_to():
    """A score that is the same for all lets all through, and one that is upside down is worse."""
    blind = told(lambda *_: 1.0, ITEMS, ITEMS, seed=0)
    assert (blind["auc"], blind["let_through"]) == (0.5, 1.0)
    wrong = told(lambda answer, of: float(answer == of.hallucinated), ITEMS, ITEMS, seed=0)
    assert wrong["auc"] == 0
    assert blind["questions_alike"] == 0
    assert blind["auc_alike"] is None


def test_the_check_tells_what_the_sources_lack():
    found = told(scorers(None)["check"], ITEMS, ITEMS, seed=0)
    assert (found["auc"], found["let_through"], found["kept"]) == (1, 0, 1)
    assert found["auc_restated"] == 1


def test_what_the_default_floor_refuses_is_told_and_an_audit_that_agrees_counts():
    refused = on_every_put(lambda answer, of: 0.4375 if answer == of.right else 0.0, ITEMS)
    assert (refused["right"], refused["right_said_again"]) == (1, 0)
    assert (refused["hallucinated"], refused["hallucinated_said_again"]) == (1, 1)
    checked = on_every_put(scorers(None)["check"], ITEMS)
    assert (checked["right"], checked["restated"], checked["hallucinated"]) == (0, 0, 1)


def test_a_measure_that_goes_by_length_is_shown_up_by_right_answers_restated():
    found = told(scorers(None)["length alone"], ITEMS, ITEMS, seed=0)
    assert found["auc"] == 1
    assert found["auc_restated"] < 0.5


def test_weights_are_learnt_and_none_has_the_wrong_sign():
    embedder = HashingEmbedder()
    rows = fit_grounding.gathered(ITEMS, embedder)
    for revision in ("", embedder.revision):
        fitted = fit_grounding.fit_weights(rows, revision)
        assert fitted.embedder == revision
        assert fitted.weights["word_missing"] < -0.5
        assert all(fitted.weights[name] <= 0 for name in FEATURES[1:])
        assert fitted.weights["negated"] == pytest.approx(fit_grounding.HELD, abs=0.2)


def test_without_sources_each_response_is_counted():
    items = [
        General(query="Name a city.", response="Leeds is a city.", hallucinated=False),
        General(query="Name a sea.", response="", hallucinated=True),
        General(query="Name a sea.", response="The Baltic Ocean of Mars.", hallucinated=True),
    ]
    found = without_sources(items, seed=0)
    assert (found["responses"], found["hallucinated"]) == (3, 2)
    assert found["hallucinated_refused_by_admission"] == 1


def test_the_part_runs_on_the_texts():
    try:
        folder("grounding_halueval_qa"), folder("hallucination_general")
    except Skipped:
        assert propagation.measured("grounding", size=0.05, seed=0).skipped
        return
    found = propagation.measured("grounding", size=0.05, seed=0)
    assert not found.skipped
    assert {"check", "token overlap", "length alone"} <= set(found.beside)
    assert 0.6 < found.details["told"]["check"]["auc"] <= 1
