"""`python -m evals quality`, at a size that takes no time: its figures agree. No time is judged."""

import json
import math

import numpy as np
import pytest
from evals.measuring import Skipped
from evals.peers import environment, started
from evals.quality.gptcache import gptcache
from evals.quality.intents import noisy
from evals.quality.pairs import share
from evals.quality.side_by_side import beside, nothing
from evals.quality.texts import asked_in_turn, contrasts, pairs, seen, stream
from evals.quality.weights import WITHOUT, others, shipped_weights
from evals.rag.texts import folder

from evals import quality
from stemma.embedders import HashingEmbedder
from stemma.policies.learning import Judgement, Trial
from stemma.policies.threshold import Decision, ThresholdPolicy
from stemma.replays.contenders import exact, orders, put, static
from stemma.replays.log import Request
from stemma.replays.replay import gold, replay
from stemma.replays.tally import over_orders, tally

SMALL = {"zipf": 0.01, "intents": 0.02, "pairs": 0.03, "chinese": 0.1, "followups": 0.01}
"""`gptcache` makes an environment of its own, from the network; its parts are tested below."""

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
@pytest.mark.parametrize("part", SMALL)
def test_each_part_gives_figures_that_can_be_written_down(part):
    found = quality.measured(part, size=SMALL[part], seed=3)
    if "not on this machine" in found.skipped or "is not installed" in found.skipped:
        pytest.skip(found.skipped)
    assert not found.skipped
    assert found.figures
    assert all(math.isfinite(figure.value) for figure in found.figures)
    assert json.loads(json.dumps(found.details))
    columns = {tuple(said) for said in found.beside.values()}
    assert len(columns) == (part not in {"pairs", "followups"})


def test_every_part_is_run_here_but_the_one_that_needs_the_network():
    assert set(quality.PARTS) == {*SMALL, "gptcache"}


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


def test_no_cache_misses_everything_and_what_was_reworded_is_told_apart():
    none = nothing()(STREAM, rows(), seed=0, same=gold)
    assert tally(none)["hits"] == tally(none)["entries"] == tally(none)["error"] == 0
    assert list(none.reusable) == [False, True, True, False, False]
    assert list(none.reworded) == [False, False, True, False, False]
    low = tally(replay(STREAM, rows(), ThresholdPolicy(0.3, guards=False)))
    assert low["reworded_in_first_500"] == 1.0
    assert tally(none)["reworded_in_first_500"] == 0.0
    assert (low["hits_in_first_50"], low["semantic_in_first_50"]) == (3, 2)


def test_what_stands_side_by_side_has_the_same_columns():
    shown = beside(
        {"none": put(nothing(), [STREAM], rows()), "0.3": put(static(0.3), [STREAM], rows())}
    )
    assert shown["none"]["hits"] == "0.000 ± 0.000"
    assert shown["0.3"]["hits"] == "0.600 ± 0.000"
    assert shown["0.3"]["entries"] == "2 ± 0"
    assert list(shown["none"]) == list(shown["0.3"])


PEER = """
import json, sys
stored = {}
print(json.dumps(json.loads(sys.stdin.readline())), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "text" not in asked:
        told = {"entries": len(stored)}
    else:
        assert len(asked["vector"]) > 1
        word = asked["text"].split()[0]
        told = {"served": stored.get(word), "microseconds": 5.0}
        stored.setdefault(word, asked["answer"])
    print(json.dumps(told), flush=True)
"""


def test_a_peer_is_counted_by_what_it_served(tmp_path):
    script = tmp_path / "peer.py"
    script.write_text(PEER, encoding="utf-8")
    told = tally(gptcache("any", None, tmp_path, script)(STREAM, rows(), seed=0, same=gold))
    assert (told["exact"], told["semantic"], told["entries"]) == (0.2, 0.4, 2)
    assert told["error"] == 0.2
    assert told["microseconds"] == 5.0


def test_a_peer_that_ends_is_no_answer(tmp_path):
    script = tmp_path / "peer.py"
    script.write_text("import sys; sys.exit(3)", encoding="utf-8")
    with started(script, tmp_path) as peer, pytest.raises(RuntimeError, match="ended with 3"):
        peer.ask({"text": "x"})


def test_an_environment_that_pip_cannot_fill_is_skipped_and_not_taken_for_made(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def create(folder, *, with_pip, clear):
        made.append(folder)
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True, exist_ok=True)
        ends = "exit 0" if len(made) > 2 else "echo first >&2; echo no such package >&2; exit 1"
        python.write_text(f"#!/bin/sh\n{ends}\n", encoding="utf-8")
        python.chmod(0o755)

    monkeypatch.setattr("evals.peers.venv.create", create)
    for _ in range(2):
        with pytest.raises(Skipped, match=r"pip could not install it .*: no such package"):
            environment("it", ["it==1"])
    python = environment("it", ["it==1"])
    assert python.is_relative_to(tmp_path)
    assert environment("it", ["it==1"]) == python
    assert len(made) == 3
    assert environment("it", ["it==2"]) != python


@pytest.mark.skipif(not known(), reason="STEMMA_DATA names no folder of texts")
@pytest.mark.parametrize("name", WITHOUT)
def test_held_out_weights_saw_no_text_of_the_stream(name):
    texts = {one.text for one in stream(name)}
    sets, streams = others(name)
    assert all(sets.values())
    assert all(streams)
    assert not texts & {one.text for requests in streams for one in requests}
    assert not texts & {
        text for all_of in sets.values() for one in all_of for text in (one.one, one.other)
    }


def test_what_the_shipped_weights_saw_is_told():
    told = shipped_weights()
    assert set(told["pairs"]) >= {"own", "gptcache"}
    assert told["of_the_streams"]


@pytest.mark.skipif(not known(), reason="STEMMA_DATA names no folder of texts")
def test_pairs_asked_in_turn_are_hits_exactly_where_they_are_the_same():
    asked = asked_in_turn("hard_negatives zh")
    assert len({one.text for one in asked}) == len(asked)
    group = {one.text: one.group for one in asked}
    same = [pair for pair in pairs("hard_negatives zh") if pair.same]
    assert all(group[pair.one] == group[pair.other] for pair in same)


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
    once = over_orders([tally(exact()(STREAM, rows(), seed=0, same=gold))])
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
