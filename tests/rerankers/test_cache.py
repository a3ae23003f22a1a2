"""One score a pair: only what is missing is computed, in one batch, and each text has its own."""

import asyncio
import math
import threading
import warnings

import pytest

import stemma
from stemma.errors import RerankerError, UsageError
from stemma.testing.clock import ManualClock

QUERY = "red fox"
TEXTS = ["a red fox", "a red hen", "a blue whale"]


@pytest.fixture(params=["sync", "async"])
def score(request, cache):
    """`cache.reranks.score`, or its async twin driven to its end."""
    if request.param == "sync":
        return cache.reranks.score
    return lambda *args, **named: asyncio.run(cache.reranks.ascore(*args, **named))


def values(served):
    return [one.value for one in served]


def test_the_second_call_does_not_reach_the_reranker(score, words):
    first = score(QUERY, TEXTS, words)
    again = score(QUERY, TEXTS, words)
    assert values(first) == values(again) == [2.1, 1.1, 0.1]
    assert [one.outcome.hit for one in first + again] == [False] * 3 + [True] * 3
    assert words.asked == [(QUERY, TEXTS)]


def test_only_missing_pairs_are_computed_in_one_batch(score, words):
    score(QUERY, TEXTS[:2], words)
    served = score(QUERY, ["fox", *TEXTS, "hen"], words)
    assert values(served) == [1.1, 2.1, 1.1, 0.1, 0.1]
    assert words.asked == [(QUERY, TEXTS[:2]), (QUERY, ["fox", "a blue whale", "hen"])]
    assert [one.outcome.hit for one in served] == [False, True, True, False, False]


def test_a_text_that_comes_twice_is_scored_once_and_every_place_has_its_score(score, words):
    texts = [TEXTS[0], TEXTS[0], TEXTS[2], TEXTS[0]]
    for _ in range(2):
        assert values(score(QUERY, texts, words)) == [2.1, 2.1, 0.1, 2.1]
    assert words.asked == [(QUERY, [TEXTS[0], TEXTS[2]])]


def test_scores_stay_with_their_texts_whatever_the_order(score, words):
    by_text = dict(zip(TEXTS, values(score(QUERY, TEXTS, words)), strict=True))
    for order in (TEXTS[::-1], [TEXTS[1], TEXTS[2], TEXTS[0]]):
        assert values(score(QUERY, order, words)) == [by_text[text] for text in order]
    assert len(words.asked) == 1


def test_query_revision_tenant_and_text_separate(cache, score, words):
    score(QUERY, TEXTS, words)
    score("red fox ", TEXTS, words)
    other = type(words)("words/2")
    score(QUERY, TEXTS, other)
    with cache.using(tenant="other"):
        score(QUERY, TEXTS, words)
    assert (len(words.asked), len(other.asked)) == (3, 1)
    score(QUERY, [TEXTS[0] + " "], words)
    assert words.asked[-1] == (QUERY, [TEXTS[0] + " "])


@pytest.mark.parametrize("texts", [[], ["", "   "], ["\ud800", "\x00", "x" * 100_000]])
@pytest.mark.parametrize("query", ["", "q", "\ud800"])
def test_strange_texts_and_queries_are_scored_and_kept_like_others(score, words, query, texts):
    first = values(score(query, texts, words))
    assert values(score(query, texts, words)) == first
    assert words.asked == ([(query, texts)] if texts else [])


def test_zero_is_a_score(score, words):
    words.special = {"nothing": 0.0}
    assert values(score(QUERY, ["nothing"], words)) == [0.0]
    assert values(score(QUERY, ["nothing"], words)) == [0.0]
    assert len(words.asked) == 1


def test_what_is_no_finite_number_is_given_never_stored_and_told_once(score, words):
    words.special = {"bad": math.nan, "worse": math.inf, "gone": None}
    texts = ["bad", *TEXTS, "worse", "gone"]
    with pytest.warns(RuntimeWarning, match="3 of 6 texts") as told:
        served = score(QUERY, texts, words)
    assert len(told) == 1
    assert math.isnan(served[0].value)
    assert math.isnan(served[-1].value)
    assert served[0].stored.refused == "not_admitted"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score(QUERY, texts, words)
    assert words.asked[1] == (QUERY, ["bad", "worse", "gone"])


def test_a_wrong_number_of_scores_is_refused_and_nothing_is_stored(score, words):
    words.score, right = (lambda query, texts: [1.0]), words.score
    with pytest.raises(RerankerError, match="1 scores for 3 texts"):
        score(QUERY, TEXTS, words)
    words.score = right
    assert values(score(QUERY, TEXTS, words)) == [2.1, 1.1, 0.1]


def test_what_the_reranker_raises_passes_through_unstored(score, words):
    words.score = lambda query, texts: 1 / 0
    with pytest.raises(ZeroDivisionError):
        score(QUERY, TEXTS, words)
    del words.score
    score(QUERY, TEXTS, words)
    assert words.asked == [(QUERY, TEXTS)]


def test_what_is_no_reranker_is_refused(score):
    with pytest.raises(UsageError, match="as_reranker"):
        score(QUERY, TEXTS, len)


def test_all_pairs_of_a_batch_are_stored_in_one_transaction_and_read_with_one_read(
    cache, score, words, monkeypatch
):
    calls = []
    store = cache.engine.parts.store
    for name in ("get", "put"):
        method = getattr(store, name)
        monkeypatch.setattr(
            store, name, lambda *args, _m=method, _n=name: calls.append(_n) or _m(*args)
        )
    score(QUERY, TEXTS, words)
    score(QUERY, TEXTS, words)
    assert calls == ["get", "put", "get"]


def test_bypass_reads_and_stores_nothing_and_refresh_replaces(cache, score, words):
    with cache.bypass():
        score(QUERY, TEXTS, words)
    score(QUERY, TEXTS, words)
    assert len(words.asked) == 2
    words.special = {TEXTS[0]: 9.0}
    with cache.refresh():
        assert values(score(QUERY, TEXTS, words))[0] == 9.0
    assert values(score(QUERY, TEXTS, words))[0] == 9.0
    assert len(words.asked) == 3


def test_a_pool_is_read_by_who_names_it(cache, score, words):
    with cache.using(pool="all"):
        score(QUERY, TEXTS, words)
        score(QUERY, TEXTS, words)
    assert len(words.asked) == 1


def test_without_a_tenant_each_distinct_text_is_scored_and_that_is_said_once(words):
    with stemma.open(":memory:", embedder=None) as nobody:
        with pytest.warns(RuntimeWarning, match="no tenant"):
            served = nobody.reranks.score(QUERY, [*TEXTS, TEXTS[0]], words)
        assert values(served) == [2.1, 1.1, 0.1, 2.1]
        assert {one.outcome.reason for one in served} == {"no_tenant"}
        assert words.asked == [(QUERY, TEXTS)]


def test_a_store_that_fails_costs_a_computation_and_no_more(cache, score, words, monkeypatch):
    def broken(*_):
        raise stemma.StoreUnavailable("gone")

    store = cache.engine.parts.store
    monkeypatch.setattr(store, "get", broken)
    monkeypatch.setattr(store, "put", broken)
    assert values(score(QUERY, TEXTS, words)) == [2.1, 1.1, 0.1]
    assert words.asked == [(QUERY, TEXTS)]


def test_scores_have_no_lineage_and_are_nobodys_parents(cache, score, words):
    with cache.trace() as frame:
        score(QUERY, TEXTS, words)
        score(QUERY, TEXTS, words)
        assert frame.reads == []


def test_they_can_be_recalled_by_model(cache, score, words):
    score(QUERY, TEXTS, words)
    assert cache.recall(model="words/1").by_node == {"rerank": 3}
    score(QUERY, TEXTS, words)
    assert len(words.asked) == 2


def test_the_pairs_of_a_batch_share_what_it_cost(words):
    clock = ManualClock()
    words.score, inner = (
        (lambda query, texts: clock.advance(6.0) or inner(query, texts)),
        words.score,
    )
    with stemma.open(":memory:", embedder=None, tenant="t", clock=clock) as cache:
        cache.reranks.score(QUERY, TEXTS, words)
        hits = cache.reranks.score(QUERY, TEXTS, words)
    assert [one.outcome.entry.cost.seconds for one in hits] == [2.0, 2.0, 2.0]


async def test_an_async_twin_is_awaited_and_a_plain_one_leaves_the_loop_alone(cache, words):
    class Native(type(words)):
        async def ascore(self, query, texts):
            await asyncio.sleep(0)
            return type(words).score(self, query, texts)

        def score(self, query, texts):
            raise AssertionError("the sync side was asked")

    native = Native("native/1")
    assert values(await cache.reranks.ascore(QUERY, TEXTS, native)) == [2.1, 1.1, 0.1]
    assert values(await cache.reranks.ascore(QUERY, TEXTS, native)) == [2.1, 1.1, 0.1]
    assert len(native.asked) == 1
    seen = []
    inner = words.score
    words.score = lambda query, texts: seen.append(threading.get_ident()) or inner(query, texts)
    await cache.reranks.ascore(QUERY, TEXTS, words)
    assert seen != [threading.get_ident()]


def test_it_lives_in_a_file_over_reopening(tmp_path, words):
    for _ in range(2):
        with stemma.open(tmp_path / "a.db", embedder=None, tenant="t") as cache:
            served = cache.reranks.score(QUERY, TEXTS, words)
    assert all(one.outcome.hit for one in served)
    assert len(words.asked) == 1
