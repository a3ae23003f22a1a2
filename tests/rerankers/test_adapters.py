"""Anything that scores texts for a query becomes a reranker, and says what it is."""

import functools
import math

import numpy as np
import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from pydantic import BaseModel

from stemma.errors import RerankerError, UsageError
from stemma.rerankers import AdaptedReranker, Reranker, as_reranker

MODULE = __name__


def lengths(query, texts):
    return np.array([len(text) / 10 for text in texts], dtype=np.float32)


async def lengths_later(query, texts):
    return lengths(query, texts)


class Lengths:
    model_name = "lengths-v1"

    def __call__(self, query, texts):
        return [len(text) for text in texts]


class Pairs(BaseCrossEncoder):
    """A LangChain cross-encoder that says nothing of itself."""

    def score(self, text_pairs):
        assert all(type(pair) is tuple for pair in text_pairs)
        return [float(len(query) + len(text)) for query, text in text_pairs]


class Named(BaseModel, BaseCrossEncoder):
    """One with fields, as LangChain's own are."""

    model_config = {"protected_namespaces": ()}
    model_name: str = "m"
    model_kwargs: dict = {}
    revision: str = "main"

    def score(self, text_pairs):
        return Pairs().score(text_pairs)


class Predicts:
    """The method of a sentence-transformers `CrossEncoder`; it can be called, as the real one."""

    def predict(self, sentences, batch_size=32, show_progress_bar=None):
        return np.array([len(text) for _, text in sentences], dtype=np.float32)

    def __call__(self, features):
        raise AssertionError("texts are no features")


@pytest.mark.parametrize(
    ("thing", "scores"),
    [
        (lengths, [0.1, 0.3]),
        (Lengths(), [1.0, 3.0]),
        (Pairs(), [2.0, 4.0]),
        (Named(), [2.0, 4.0]),
        (Predicts(), [1.0, 3.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_scores_texts_in_their_order(thing, scores):
    reranker = as_reranker(thing)
    assert isinstance(reranker, Reranker)
    assert reranker.score("q", ["a", "abc"]) == pytest.approx(scores)
    assert reranker.score("q", ("abc", "a")) == pytest.approx(scores[::-1])
    assert reranker.score("q", []) == []
    assert all(type(score) is float for score in reranker.score("q", ["a"]))


def test_a_reranker_is_given_back_as_it_is():
    class Mine:
        revision = "mine/1"

        def score(self, query, texts):
            return [0.0] * len(texts)

    mine = Mine()
    assert as_reranker(mine) is mine
    with pytest.raises(UsageError, match="says its own revision"):
        as_reranker(mine, revision="x")


def test_a_cross_encoder_with_a_field_named_revision_is_still_asked_for_pairs():
    assert isinstance(as_reranker(Named()), AdaptedReranker)


def test_revisions_are_derived_and_tell_models_apart():
    assert as_reranker(lengths).revision == f"{MODULE}.lengths"
    assert as_reranker(Lengths()).revision == f"{MODULE}.Lengths model_name=lengths-v1"
    kinds = [
        Named(),
        Named(model_name="n"),
        Named(model_kwargs={"max_length": 8}),
        Named(revision="v2"),
        Pairs(),
    ]
    assert len({as_reranker(kind).revision for kind in kinds}) == len(kinds)
    assert as_reranker(Named()).revision == as_reranker(Named()).revision
    assert as_reranker(Named()).revision.startswith(f"{MODULE}.Named model_name=m@")
    assert as_reranker(lengths, revision="lengths/2").revision == "lengths/2"


@pytest.mark.parametrize("unnamed", [lambda q, t: [], functools.partial(lengths)])
def test_what_has_no_name_needs_one(unnamed):
    with pytest.raises(UsageError, match="revision="):
        as_reranker(unnamed)
    assert as_reranker(unnamed, revision="r/1").revision == "r/1"


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ("remote", "unknown reranker 'remote'"),
        (Pairs, "is a class"),
        (42, "a int is no reranker"),
        (None, "a NoneType is no reranker"),
        (lengths_later, "async only"),
    ],
)
def test_anything_else_is_refused_in_words(thing, words):
    with pytest.raises(UsageError, match=words):
        as_reranker(thing)
    with pytest.raises(UsageError, match="must not be empty"):
        as_reranker(lengths, revision="")


def test_wrong_counts_are_refused_and_missing_scores_are_not_numbers():
    with pytest.raises(RerankerError, match="1 scores for 2 texts"):
        as_reranker(lambda q, t: [1.0], revision="r").score("q", ["a", "b"])
    with pytest.raises(RerankerError, match="2 numbers for one text"):
        as_reranker(lambda q, t: np.ones((1, 2)), revision="r").score("q", ["a"])
    scores = as_reranker(lambda q, t: [None, math.nan], revision="r").score("q", ["a", "b"])
    assert all(map(math.isnan, scores))


def test_what_the_thing_raises_passes_through():
    with pytest.raises(ZeroDivisionError):
        as_reranker(lambda q, t: 1 / 0, revision="r").score("q", ["a"])
