"""`python -m evals quality`, at a size that takes no time: its figures agree. No time is judged."""

import json
import math

import numpy as np
import pytest
from evals.measuring import Skipped
from evals.quality.intents import noisy
from evals.quality.pairs import share
from evals.quality.texts import contrasts, pairs, seen
from evals.rag.texts import folder

from evals import quality
from stemma.embedders import HashingEmbedder
from stemma.policies.learning import Judgement, Trial
from stemma.policies.threshold import Decision, ThresholdPolicy
from stemma.replays.contenders import exact, orders, put, static
from stemma.replays.log import Request
from stemma.replays.replay import replay
from stemma.replays.tally import over_orders, tally

SMALL = {"zipf": 0.01, "intents": 0.02, "pairs": 0.03, "followups": 0.01}
STREAM = [
    Request(text=text, group=group)
    for text, group in (
        ("open the door", "open"),
        ("open the door", "open"),
        ("open the door please", "open"),
        ("shut the window", "shut"),
        ("open the doors", "other"),
    )
]


def known() -> bool:
    try:
        return all(folder(one) for one in ("stream_zipf", "hard_negatives", "intents_banking77"))
    except Skipped:
        return False


def rows() -> dict[str, np.ndarray]:
    texts = sorted({one.text for one in STREAM})
    return dict(zip(texts, HashingEmbedder().embed(texts), strict=True))


@pytest.mark.skipif(not known(), reason="STEMMA_DATA names no folder of texts")
@pytest.mark.parametrize("part", quality.PARTS)
def test_each_part_gives_figures_that_can_be_written_down(part):
    found = quality.measured(part, size=SMALL[part], seed=3)
    if "not on this machine" in found.skipped:
        pytest.skip(found.skipped)
    assert not found.skipped
    assert found.figures
    assert all(math.isfinite(figure.value) for figure in found.figures)
    assert json.loads(json.dumps(found.details))


def test_a_stream_is_counted_as_it_went():
    low = tally(replay(STREAM, rows(), ThresholdPolicy(0.3, guards=False)))
    assert low["requests"] == 5
    assert low["exact"] == 0.2
    assert low["ceiling"] == 0.4
    assert low["hits"] == 0.6
    assert low["error"] == 0.2
    assert low["error_a_hit"] == 0.5
    assert low["error_decided"] == 0.25
    assert low["reused"] == 1.0
    assert low["entries"] == 2
    only = tally(replay(STREAM, rows(), None))
    assert (only["hits"], only["error"], only["entries"]) == (0.2, 0.0, 4)


class Refuses:
    """Serves nothing; says what it would have judged, and keeps what it learns."""

    name, depth, floor = "refuses", 16, -1.0

    def __init__(self):
        self.learnt, self.seen = [], []

    def decide(self, asked, candidates):
        self.seen.append({one.answer for one in candidates})
        if not candidates:
            return Decision(reason="cold")
        return Decision(
            reason="audit", trial=Trial(candidate=candidates[0].id, known=(1.0,), weight=4.0)
        )

    @property
    def identity(self):
        return {"policy": self.name}

    def anew(self):
        raise NotImplementedError

    def learn(self, *judgements: Judgement):
        self.learnt += [one.right for one in judgements]

    def record(self):
        return {}

    def restore(self, record):
        raise NotImplementedError


def test_every_fresh_answer_is_judged_and_known_by_its_like():
    policy = Refuses()
    found = replay(STREAM, rows(), policy)
    assert policy.learnt == [True, False, False]
    assert [len(one) for one in policy.seen] == [0, 1, 1, 2]
    assert found.entries == 4
    assert replay(STREAM, rows(), Refuses(), sparse=True).entries == 3


def test_a_noisy_comparer_is_wrong_as_often_as_said_and_repeats_itself():
    said, again = (
        [one("a", "a") for _ in range(4_000)] for one in (noisy(0.05, 3), noisy(0.05, 3))
    )
    assert said == again
    assert 0.03 < said.count(False) / 4_000 < 0.07
    assert not any(noisy(0.0, 1)("a", "b") for _ in range(100))


def test_orders_hold_the_same_requests_and_the_first_is_the_one_given():
    found = orders(STREAM * 5, 3, seed=1)
    assert found[0] == STREAM * 5
    assert found[1] != found[0] != found[2] != found[1]
    assert all(sorted(map(str, order)) == sorted(map(str, found[0])) for order in found)


def test_intervals_hold_the_mean_and_shrink_to_it():
    told = put(static(0.3), orders(STREAM, 4, seed=2), rows())
    assert all(one["low"] <= one["mean"] <= one["high"] for one in told.values())
    once = over_orders([tally(replay(STREAM, rows(), exact().make(0)))])
    assert once["hits"] == {"mean": 0.2, "low": 0.2, "high": 0.2, "worst": 0.2}
    half = share([1.0, -1.0] * 50, 0.0)
    assert half["low"] < half["share"] == 0.5 < half["high"]


def test_our_contrasts_are_many_in_two_languages_and_new():
    ours = contrasts()
    assert len(ours) >= 100
    assert {pair.kind for pair in ours} == {"en", "zh"}
    assert len({(pair.one, pair.other) for pair in ours}) == len(ours)
    fitted = {text for pair in pairs("own") for text in (pair.one, pair.other)}
    assert not any(pair.one in fitted and pair.other in fitted for pair in ours)
    assert {seen(pair.one) for pair in ours} == {0, 1}
