"""How token vectors are aligned, and what a verifier and a policy make of it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.errors import UsageError
from stemma.policies.aligned import AlignedVerifier, Aligns, alignable, misaligned
from stemma.policies.alignment import SHAPES, Aligner
from stemma.policies.threshold import Candidate
from stemma.policies.verified import VerifiedPolicy
from stemma.policies.verifier import FEATURES, FeatureVerifier, shipped

ASKED = "How do I cancel my order?"
STORED = "How can I cancel an order?"


def weights(seed=0):
    """Weights of the right shapes, drawn."""
    drawn = np.random.default_rng(seed)
    return {
        name: np.asarray(drawn.normal(0.0, 0.3, shape), dtype=np.float32)
        for name, shape in SHAPES.items()
    }


def rows(number, seed):
    """Token vectors of length 1."""
    drawn = np.random.default_rng(seed).normal(size=(number, SHAPES["projection"][0]))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


DRAWN = Aligner(weights=weights(), embedder="drawn/1")


def by_loops(one, other):
    """The same as `Aligner.align`, token by token."""
    of = {name: value.astype(np.float64) for name, value in DRAWN.weights.items()}
    x, y = one @ of["projection"], other @ of["projection"]

    def compared(mine, theirs):
        told = []
        for row in mine:
            cosines = np.array(
                [row @ they / (np.linalg.norm(row) * np.linalg.norm(they)) for they in theirs]
            )
            drawn = np.exp(of["sharpness"] * cosines)
            drawn /= drawn.sum()
            found = sum(share * they for share, they in zip(drawn, theirs, strict=True))
            seen = [*(row - found), *(row * found), *row, cosines.max(), drawn @ cosines]
            told.append(np.maximum(np.array(seen) @ of["compare"] + of["compare_bias"], 0))
        return np.array(told)

    here, there = compared(x, y), compared(y, x)
    means = (here.mean(axis=0) + there.mean(axis=0)) / 2
    peaks = np.maximum(here.max(axis=0), there.max(axis=0))
    last = np.maximum(np.array([*means, *peaks]) @ of["aggregate"] + of["aggregate_bias"], 0)
    return float(last @ of["decide"] + of["decide_bias"])


def aligned(one, other):
    return DRAWN.align(DRAWN.projected(one), DRAWN.projected(other))


@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (1, 9), (12, 7), (30, 30)])
def test_it_computes_what_is_described(ours, theirs):
    one, other = rows(ours, 1), rows(theirs, 2)
    assert aligned(one, other) == pytest.approx(by_loops(one, other), abs=1e-4)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (2, 20), (13, 5)])
def test_it_is_symmetric_and_finite(ours, theirs, seed):
    one, other = rows(ours, seed), rows(theirs, seed + 1)
    assert aligned(one, other) == pytest.approx(aligned(other, one), abs=1e-4)
    assert math.isfinite(aligned(one, other))


def test_texts_without_tokens_say_the_same_only_as_one_another():
    none = np.empty((0, 384), dtype=np.float32)
    assert aligned(none, none) > 0
    assert aligned(none, rows(3, 1)) == aligned(rows(3, 1), none) < 0


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {**weights(), "more": np.zeros(3, dtype=np.float32)},
        {**weights(), "decide": np.zeros(3, dtype=np.float32)},
        {**weights(), "decide_bias": np.array(np.nan, dtype=np.float32)},
    ],
)
def test_weights_that_do_not_fit_are_refused(bad):
    with pytest.raises(UsageError):
        Aligner(weights=bad, embedder="x")


@pytest.mark.parametrize("record", [{}, {"weights": 3, "embedder": "x"}, {"weights": {}}])
def test_a_record_with_other_fields_is_refused(record):
    with pytest.raises(UsageError):
        Aligner.read(record)


def test_other_weights_or_another_embedder_are_another_revision():
    same = Aligner(weights=weights(), embedder="drawn/1")
    assert same.revision == DRAWN.revision
    assert Aligner(weights=weights(1), embedder="drawn/1").revision != DRAWN.revision
    assert Aligner(weights=weights(), embedder="drawn/2").revision != DRAWN.revision


VERIFIER = AlignedVerifier(
    plain=FeatureVerifier.read(shipped()),
    features=FeatureVerifier(
        constant=3.0, weights={**dict.fromkeys(FEATURES, -1.0), "nearness": 0.5}
    ),
    weight=-1.5,
    aligner="aligner/x",
)


def test_what_does_not_align_lowers_the_score_and_nothing_raises_it():
    unknown = VERIFIER.verify(ASKED, Candidate("a", STORED, 0.95)).score
    scores = [
        VERIFIER.verify(ASKED, Candidate("a", STORED, 0.95, aligned=one)).score
        for one in (1e6, 5.0, 0.0, -5.0, -1e6)
    ]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == unknown <= VERIFIER.ceiling(0.95)
    assert scores[2] == pytest.approx(unknown - 1.5 * math.log(2))
    assert math.isfinite(scores[-1])


def test_other_scripts_are_left_to_the_features():
    near = Candidate("a", "怎么取消我的订单？", 0.95)
    assert not VERIFIER.wants("怎么取消订单？", near)
    assert VERIFIER.verify("怎么取消订单？", near) == VERIFIER.plain.verify("怎么取消订单？", near)
    assert not alignable("x" * 10_001, "x")
    assert VERIFIER.wants(ASKED, Candidate("a", STORED, 0.95))
    assert not VERIFIER.wants(ASKED, Candidate("a", STORED, 0.95, aligned=0.0))


@given(st.floats(-1e6, 1e6))
def test_misaligned_is_never_below_zero(log_odds):
    assert misaligned(log_odds) >= 0
    assert misaligned(log_odds) >= misaligned(log_odds + 1)


@pytest.mark.parametrize("weight", [0.1, math.nan, -math.inf])
def test_a_weight_that_would_reward_is_refused(weight):
    with pytest.raises(UsageError):
        AlignedVerifier(plain=VERIFIER.plain, features=VERIFIER.features, weight=weight, aligner="")


def test_a_record_without_alignment_is_refused():
    plain = {name: value for name, value in shipped().items() if name != "aligned"}
    with pytest.raises(UsageError):
        AlignedVerifier.read(plain)


def policy(**settings):
    """One that serves what is clear of every guard, and looks at tokens."""
    embedder = shipped()["embedder"]
    return VerifiedPolicy(0.05, embedder=embedder, verifier=VERIFIER, seed=1, **settings)


def test_the_policy_asks_for_what_its_decision_depends_on_and_is_asked_again():
    near = [
        Candidate("same", STORED, 0.97, "1"),
        Candidate("other", "How do I sell my house?", 0.5, "2"),
    ]
    learning = policy()
    first = learning.decide(ASKED, near)
    assert isinstance(VERIFIER, Aligns)
    assert (first.accepted, first.reason, first.trial) == ((), "", None)
    assert "same" in first.look
    for log_odds, served in ((6.0, True), (-6.0, False)):
        seen = [Candidate(one.id, one.focus, one.similarity, one.answer, log_odds) for one in near]
        decisions = [learning.decide(ASKED, seen) for _ in range(30)]
        assert not any(one.look for one in decisions)
        assert any(one.accepted for one in decisions) is served


def test_nothing_is_looked_at_where_it_changes_nothing():
    near = [Candidate("off", "turn dark mode off", 0.99, "1")]
    assert policy().decide("turn dark mode on", near).look == ()
    assert policy().decide(ASKED, []).look == ()
    plain = VerifiedPolicy(0.05, embedder=shipped()["embedder"], seed=1)
    assert plain.decide(ASKED, [Candidate("same", STORED, 0.97, "1")]).look == ()
    none = VerifiedPolicy(0, embedder=shipped()["embedder"], verifier=VERIFIER, seed=1)
    assert none.decide(ASKED, [Candidate("same", STORED, 0.97, "1")]).look == ()


def test_a_request_counts_once_however_often_its_decision_is_asked_for():
    learning = policy()
    near = [Candidate("same", STORED, 0.97, "1")]
    assert learning.decide(ASKED, near).look
    assert learning.record()["requests"] == 0
    learning.decide(ASKED, [Candidate("same", STORED, 0.97, "1", 3.0)])
    assert learning.record()["requests"] == 1


def test_another_verifier_is_another_state():
    assert policy().identity != VerifiedPolicy(0.05, embedder=shipped()["embedder"]).identity
