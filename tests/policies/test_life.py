"""How long entries live, and how often sources change."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.errors import UsageError
from stemma.policies.changes import Prior, Watched, change_rate
from stemma.policies.life import AHEAD, DEFAULT_LIVES, LifePolicy, over, own_life
from stemma.scope import NODES

BASE = st.floats(0, 1e9)
HOP = st.integers(1, 50)
SURE = st.floats(0, 1)
RATE = st.none() | st.floats(1e-9, 1)
FLOOR = st.none() | st.floats(0, 1e6)
JITTER = st.floats(0, 0.1)
SEED = st.text(st.characters(), max_size=8)


def test_life_shrinks_by_hop_and_doubt():
    assert own_life(100, 1, 1.0, jitter=0) == 100
    assert own_life(100, 3, 1.0, jitter=0) == pytest.approx(64)
    assert own_life(100, 1, 0.5, jitter=0) == pytest.approx(100 * 0.5**0.85)


def test_no_base_is_no_end_unless_the_sources_change():
    assert own_life(None, 5, 0.2) is None
    assert own_life(None, 1, 1.0, change_rate=0.0) is None
    assert own_life(None, 1, 1.0, change_rate=1e-4, jitter=0) == pytest.approx(
        -math.log(0.95) / 1e-4
    )


def test_a_base_of_zero_ends_at_once():
    assert own_life(0, 1, 1.0) == 0
    assert own_life(0, 1, 1.0, floor=60) == 0


@pytest.mark.parametrize(
    ("made", "expires", "now", "ended"),
    [
        (100.0, 160.0, 159.0, False),
        (100.0, 160.0, 160.0, True),
        (100.0, 100.0, 100.0, True),
        (100.0, 900.0, 100.0 - AHEAD, False),
        (100.0, 900.0, 99.0 - AHEAD, True),
        (100.0, 900.0, -1e9, True),
        (1e9, None, 0.0, False),
    ],
)
def test_a_life_is_over_at_its_end_or_where_it_began_too_far_ahead(made, expires, now, ended):
    assert over(made, expires, now) is ended


def test_a_floor_lifts_up_to_the_base_and_the_bound():
    assert own_life(100, 20, 1.0, floor=50, jitter=0) == 50
    assert own_life(100, 20, 1.0, floor=500, jitter=0) == 100
    bound = -math.log(0.95) / 0.01
    assert own_life(100, 20, 1.0, floor=500, change_rate=0.01) == pytest.approx(bound)


OTHERS = st.fixed_dictionaries(
    {"change_rate": RATE, "floor": FLOOR, "jitter": JITTER, "seed": SEED}
)


@given(BASE, HOP, SURE, OTHERS)
def test_life_never_exceeds_base_nor_bound(base, hop, sure, others):
    life = own_life(base, hop, sure, **others)
    rate = others["change_rate"]
    assert 0 <= life <= base
    if rate is not None:
        assert life <= -math.log1p(-0.05) / rate


@given(BASE, HOP, SURE, OTHERS)
def test_life_never_rises_with_the_hop(base, hop, sure, others):
    assert own_life(base, hop + 1, sure, **others) <= own_life(base, hop, sure, **others)


@given(BASE, HOP, st.tuples(SURE, SURE), OTHERS)
def test_life_never_falls_with_confidence(base, hop, confidences, others):
    low, high = sorted(confidences)
    assert own_life(base, hop, low, **others) <= own_life(base, hop, high, **others)


@given(SEED)
def test_the_jitter_only_shortens_and_by_a_tenth_at_most(seed):
    life = own_life(1000, 1, 1.0, seed=seed)
    assert 900 <= life <= 1000
    assert life == own_life(1000, 1, 1.0, seed=seed)


def test_entries_made_together_end_apart():
    assert len({own_life(1000, 1, 1.0, seed=str(at)) for at in range(100)}) > 95


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": -1.0},
        {"base": math.nan},
        {"base": math.inf},
        {"base": True},
        {"base": "60"},
        {"hop": 0},
        {"hop": 1.5},
        {"hop": True},
        {"confidence": 1.1},
        {"confidence": -0.1},
        {"confidence": math.nan},
        {"factor": 0.0},
        {"factor": 1.1},
        {"exponent": -1.0},
        {"stale_risk": 0.0},
        {"stale_risk": 1.0},
        {"change_rate": -1.0},
        {"floor": -1.0},
        {"jitter": 0.2},
    ],
)
def test_a_wrong_argument_is_refused(wrong):
    with pytest.raises(UsageError):
        own_life(**{"base": 60.0, "hop": 1, "confidence": 1.0, **wrong})


def test_the_estimator_corrects_for_changes_that_were_not_seen():
    """Against the formula, with a prior too weak to matter."""
    nothing = Prior(changes=1e-12, seconds=1e-9)
    assert change_rate(10, 4, 60.0, nothing) == pytest.approx(-math.log(6.5 / 10.5) / 60)
    assert change_rate(10, 4, 60.0, nothing) > 4 / (10 * 60)
    assert math.isfinite(change_rate(10, 10, 60.0, nothing))


def test_an_unwatched_source_has_the_prior_rate():
    assert change_rate(0, 0, 60.0, Prior(changes=2, seconds=100)) == pytest.approx(0.02)


@given(st.integers(0, 50), st.integers(0, 50), st.floats(1, 1e6))
def test_more_changes_mean_a_higher_rate(one, other, interval):
    low, high = sorted((one, other))
    assert 0 < change_rate(50, low, interval) <= change_rate(50, high, interval)


@pytest.mark.parametrize(
    "wrong", [(-1, 0, 1.0), (1, -1, 1.0), (1, 2, 1.0), (1, 0, 0.0), (1.5, 0, 1.0), (True, 0, 1.0)]
)
def test_wrong_counts_are_refused(wrong):
    with pytest.raises(UsageError):
        change_rate(*wrong)


def test_the_defaults_name_every_node():
    assert set(DEFAULT_LIVES) == set(NODES)
    policy = LifePolicy(jitter=0)
    assert policy.life("embedding") is None
    assert policy.life("rerank", hop=9, confidence=0.1) is None
    assert policy.life("answer") == 86_400
    assert policy.life("call") == 7 * 86_400
    assert policy.life("hop") == 3_600
    assert policy.life("hop", hop=2) == pytest.approx(2_880)


def test_a_base_life_is_replaced_for_one_node_or_one_entry():
    policy = LifePolicy({"answer": 0, "call": None}, jitter=0)
    assert policy.life("answer") == 0
    assert policy.life("answer", base=60.0) == 60
    assert policy.life("answer", base=0.0) == 0
    assert policy.life("call") is None
    assert policy.life("retrieval") == 86_400


@pytest.mark.parametrize(
    "wrong",
    [{"answers": 1}, {"answer": -1}, {"answer": math.nan}, {"answer": "1"}, {"answer": math.inf}],
)
def test_a_wrong_base_is_refused_when_it_is_given(wrong):
    with pytest.raises(UsageError):
        LifePolicy(wrong)


def test_wrong_settings_are_refused_when_they_are_given():
    with pytest.raises(UsageError, match="factor"):
        LifePolicy(factor=2.0)
    with pytest.raises(UsageError, match="unknown node"):
        LifePolicy().life("answers")


def test_the_bases_cannot_be_changed_afterwards():
    mine = {"answer": 5.0}
    policy = LifePolicy(mine, jitter=0)
    mine["answer"] = 9.0
    assert policy.life("answer") == 5
    with pytest.raises(TypeError):
        policy.base["answer"] = 9.0


# ------------------------------------------------------------------- what was seen of a source


def test_a_source_that_was_never_read_again_has_the_rate_of_the_prior():
    prior = Prior(changes=3, seconds=60)
    assert Watched().rate(prior) == 3 / 60
    assert Watched().again(10, changed=False).rate(prior) == 3 / 60


def test_readings_are_counted_from_the_first_whose_time_is_known():
    """What an older version kept has no times: its next reading is the first."""
    seen = Watched().again(100, changed=True)
    assert seen == Watched(100, 100, 0, 0)
    for at, changed in ((110, True), (130, False), (105, False)):
        seen = seen.again(at, changed=changed)
    assert seen == Watched(100, 130, 3, 1)
    assert seen.rate(Prior()) == change_rate(3, 1, 10)


def test_readings_in_the_same_moment_say_nothing_of_the_rate():
    seen = Watched(100, 100, 50, 50)
    assert seen.rate(Prior()) == Watched().rate(Prior())
