"""What reranks lists: what came back is found again; pairs are scored; or the whole is cached."""

import asyncio
import math
import warnings

import pytest

from stemma import Reranking, UsageError
from stemma.rerankers import Foreign, PairScores, places
from stemma.rerankers.lists import Unscored

QUERY = "red fox"
TEXTS = ["a red fox", "a red hen", "a blue whale"]


class Lengths:
    """Ranks the shortest first, and gives what it is told to instead; notes what it was asked."""

    def __init__(self, texts=TEXTS, instead=None):
        self.texts = texts
        self.instead = instead
        self.asked = []

    def order(self, chosen, *, scored):
        self.asked.append((list(chosen), scored))
        if self.instead is not None:
            return self.instead
        ranked = sorted(range(len(chosen)), key=lambda one: len(self.texts[chosen[one]]))
        return [[one, -float(len(self.texts[chosen[one]]))] for one in ranked]

    async def aorder(self, chosen, *, scored):
        await asyncio.sleep(0)
        return self.order(chosen, scored=scored)


def test_what_came_back_is_found_by_identity_then_by_likeness_each_once():
    one, two, twin = ["a"], ["b"], ["a"]
    assert places([twin, one], [one, two, twin], str) == [2, 0]
    assert places([["a"], ["a"]], [one, two, twin], str) == [0, 2]
    assert places([["b"], twin], [one, two, twin], str) == [1, 2]
    assert places([], [one], str) == []
    assert places([["c"]], [one, two], str) is None
    assert places([one, one], [one, two], str) is None


def test_the_surest_likeness_is_tried_for_all_before_the_next():
    given = [("1", "t"), ("2", "t"), ("3", "u")]
    same_id, same_text = (lambda one: one), (lambda one: one[1])
    assert places([(None, "t"), ("1", "t")], given, same_id, same_text) == [1, 0]
    assert places([(None, "t"), (None, "t")], given, same_id, same_text) == [0, 1]
    assert places([(None, "t")] * 3, given, same_id, same_text) is None


# ------------------------------------------------------------------------- pairs


async def test_pairs_are_scored_by_asking_for_their_places_in_the_list():
    texts = ["long text", "hen", "fox", "hen"]
    inner = Lengths(texts)
    pairs = PairScores(inner, texts, revision="lengths/1")
    assert pairs.score(QUERY, ["fox", "long text", "hen"]) == [-3.0, -9.0, -3.0]
    assert await pairs.ascore(QUERY, ["hen"]) == [-3.0]
    assert inner.asked == [([2, 0, 1], True), ([1], True)]


@pytest.mark.parametrize("instead", [[], [[0, 1.0]], [[0, 1.0], [1, None]], Foreign(["x"])])
async def test_what_leaves_some_without_a_score_says_so(instead):
    pairs = PairScores(Lengths(instead=instead), TEXTS, revision="lengths/1")
    with pytest.raises(Unscored):
        pairs.score(QUERY, TEXTS[:2])
    with pytest.raises(Unscored):
        await pairs.ascore(QUERY, TEXTS[:2])


# ------------------------------------------------------------------- in the cache


@pytest.fixture(params=["sync", "async"])
def order(request, cache):
    """`cache.reranks.order`, or its async twin driven to its end."""
    if request.param == "sync":
        return cache.reranks.order
    return lambda asked: asyncio.run(cache.reranks.aorder(asked))


def whole(inner, texts=TEXTS, *, query=QUERY, name="lengths/1", parameters=None, pairs=None):
    return Reranking(
        query=query,
        texts=texts,
        reranker=pairs,
        whole=inner,
        named=lambda: (name, parameters),
    )


def plain(ranked):
    return [(one.place, one.score) for one in ranked]


def test_pairs_come_best_first_with_a_note_for_each_hit(order, words):
    order(Reranking(query=QUERY, texts=TEXTS[1:], reranker=words))
    ranked = order(Reranking(query=QUERY, texts=TEXTS[::-1], reranker=words))
    assert plain(ranked) == [(2, 2.1), (1, 1.1), (0, 0.1)]
    assert [one.hit is not None for one in ranked] == [False, True, True]
    assert ranked[1].note()["node"] == "rerank"
    assert "list" not in ranked[1].note()
    assert words.asked == [(QUERY, TEXTS[1:]), (QUERY, TEXTS[:1])]


def test_a_whole_list_is_kept_by_its_texts_in_their_order(order):
    inner = Lengths()
    expected = [(0, -9.0), (1, -9.0), (2, -12.0)]
    first, again = order(whole(inner)), order(whole(inner))
    assert plain(first) == plain(again) == expected
    assert [one.note() for one in first] == [None] * 3
    assert all(one.note()["list"] == "whole" for one in again)
    assert inner.asked == [([0, 1, 2], False)]
    for other in (
        whole(Lengths(TEXTS[::-1]), TEXTS[::-1]),
        whole(inner, TEXTS[:2]),
        whole(inner, query="other"),
        whole(inner, name="lengths/2"),
        whole(inner, parameters={"top_n": 2}),
    ):
        assert all(one.hit is None for one in order(other))


def test_an_order_without_scores_is_kept_as_well(order):
    inner = Lengths(instead=[[2, None], [0, None]])
    for _ in range(2):
        assert plain(order(whole(inner))) == [(2, None), (0, None)]
    assert len(inner.asked) == 1


@pytest.mark.parametrize(
    "instead", [[], [[0, math.nan]], [[0, 1.0], [1, math.inf]], Foreign(["x"])]
)
def test_what_is_not_to_be_kept_is_given_each_time(order, instead):
    inner = Lengths(instead=instead)
    for _ in range(2):
        given = order(whole(inner))
        assert given is instead if isinstance(instead, Foreign) else len(given) == len(instead)
    assert len(inner.asked) == 2


def test_what_was_to_score_pairs_and_does_not_is_kept_as_a_whole_from_then_on(order):
    inner = Lengths(instead=[[1, 0.5]])
    asked = whole(inner, pairs=PairScores(inner, TEXTS, revision="lengths/1"))
    with pytest.warns(RuntimeWarning, match="lengths/1.*cached as a whole"):
        assert plain(order(asked)) == [(1, 0.5)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain(order(asked)) == [(1, 0.5)]
    assert inner.asked == [([0, 1, 2], True), ([0, 1, 2], False)]


def test_a_pair_and_a_list_of_one_never_meet(order, words):
    words.revision = "lengths/1"
    order(Reranking(query=QUERY, texts=TEXTS[:1], reranker=words))
    assert plain(order(whole(Lengths(), TEXTS[:1]))) == [(0, -9.0)]


def test_nothing_that_ranks_is_a_wrong_argument(order):
    with pytest.raises(UsageError, match="nothing ranks the list"):
        order(Reranking(query=QUERY, texts=TEXTS, reranker=None))
