"""Anything that turns texts into vectors becomes an embedder, and says what it is."""

from __future__ import annotations

import asyncio
import functools

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings, FakeEmbeddings

from stemma.embedders import Checked, HashingEmbedder, LocalEmbedder, as_embedder
from stemma.errors import EmbedderError, UsageError
from stemma.testing.embedders import EmbedderConformance

MODULE = __name__


def hashed(texts):
    return [[3.0 * number for number in row] for row in HashingEmbedder(64).embed(texts).tolist()]


class Asymmetric(Embeddings):
    """A LangChain embedder with another vector for a question than for a document."""

    def __init__(self, model="e5"):
        self.model = model
        self.asked = []

    def embed_documents(self, texts):
        return hashed([f"passage: {text}" for text in texts])

    def embed_query(self, text):
        self.asked.append(text)
        return hashed([f"query: {text}"])[0]


class TrulyAsync(Asymmetric):
    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return hashed([f"query: {text}"])[0]


class LlamaIndexLike:
    """The methods of a LlamaIndex `BaseEmbedding` that count; it is callable, as the real one."""

    model_name = "BAAI/bge-small-en-v1.5"

    def get_query_embedding(self, query):
        return hashed([f"query: {query}"])[0]

    async def aget_query_embedding(self, query):
        return self.get_query_embedding(query)

    def get_text_embedding_batch(self, texts, show_progress=False):
        return hashed([f"passage: {text}" for text in texts])

    def __call__(self, nodes):
        raise AssertionError("nodes are not texts")


class SentenceTransformersLike:
    max_seq_length = 8

    def encode(self, sentences):
        return np.array(hashed(sentences))

    def __call__(self, batch):
        raise AssertionError("tensors are not texts")


class Deployed:
    deployment = "emb-eu"
    dimensions = 64

    def __call__(self, texts):
        return hashed(texts)


class TestLangChainConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self):
        return as_embedder(Asymmetric())


class TestCallableConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self):
        return as_embedder(hashed)


class TestRealLangChainFakeConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self):
        return Checked(as_embedder(SurrogateProof(size=256)))


class SurrogateProof(DeterministicFakeEmbedding):
    """LangChain's own fails on lone surrogates; a model behind an endpoint replaces them."""

    def embed_query(self, text):
        return super().embed_query(text.encode("utf-8", "replace").decode())


def queries(*texts):
    rows = np.array(hashed([f"query: {text}" for text in texts]), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


@pytest.mark.parametrize("thing", [Asymmetric(), LlamaIndexLike()])
def test_questions_are_embedded_as_questions(thing):
    """Never as documents, alone or in a batch, in their order."""
    found = as_embedder(thing).embed(["one", "two", "one"])
    assert np.allclose(found, queries("one", "two", "one"), atol=1e-6)


def test_langchains_deterministic_fake_gives_its_own_vectors():
    """The real class from langchain_core, normalised."""
    inner = DeterministicFakeEmbedding(size=128)
    found = as_embedder(inner).embed(["a", "b"])
    for row, text in zip(found, "ab", strict=True):
        raw = np.array(inner.embed_query(text))
        assert np.allclose(row, raw / np.linalg.norm(raw), atol=1e-6)


def test_langchains_random_fake_is_found_unfit():
    """It gives another vector each time, so nothing could ever be found again."""
    with pytest.raises(EmbedderError, match="random"):
        Checked(as_embedder(FakeEmbeddings(size=128))).embed(["a"])


async def test_a_real_async_method_is_offered():
    """And gives what the sync one gives."""
    embedder = as_embedder(TrulyAsync())
    assert np.allclose(await embedder.aembed(["one", "two"]), queries("one", "two"), atol=1e-6)
    assert (await embedder.aembed([])).shape[0] == 0


@pytest.mark.parametrize("thing", [Asymmetric(), LlamaIndexLike(), hashed])
def test_an_async_method_that_is_not_real_is_not_offered(thing):
    """LangChain's default and LlamaIndex's are the sync method again: a worker thread is better."""
    assert not hasattr(as_embedder(thing), "aembed")


def test_an_embedder_is_given_back_as_it_is():
    """With its own revision; another one cannot be put over it."""
    embedder = HashingEmbedder()
    assert as_embedder(embedder) is embedder
    with pytest.raises(UsageError, match="own revision"):
        as_embedder(embedder, revision="other")


@pytest.mark.parametrize(
    ("thing", "revision"),
    [
        (Asymmetric("m-1"), f"{MODULE}.Asymmetric model=m-1"),
        (LlamaIndexLike(), f"{MODULE}.LlamaIndexLike model_name=BAAI/bge-small-en-v1.5"),
        (Deployed(), f"{MODULE}.Deployed deployment=emb-eu dimensions=64"),
        (hashed, f"{MODULE}.hashed"),
        (Deployed().__call__, f"{MODULE}.Deployed.__call__ deployment=emb-eu dimensions=64"),
        (SentenceTransformersLike(), f"{MODULE}.SentenceTransformersLike"),
    ],
)
def test_the_revision_is_made_of_class_and_model(thing, revision):
    """Two models of one class differ, two objects of one model do not."""
    assert as_embedder(thing).revision == revision


def test_the_revision_given_stands():
    """Whatever the thing says."""
    assert as_embedder(Asymmetric(), revision="mine/3").revision == "mine/3"


@pytest.mark.parametrize(
    "thing", [lambda texts: hashed(texts[:]), functools.partial(hashed)], ids=["lambda", "partial"]
)
def test_what_has_no_name_needs_a_revision(thing):
    """Two lambdas of one module would be one model."""
    with pytest.raises(UsageError, match="pass revision="):
        as_embedder(thing)
    assert as_embedder(thing, revision="r").embed(["a"]).shape == (1, 64)


async def async_only(texts):
    return hashed(texts)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (None, "NoneType is no embedder"),
        (42, "int is no embedder"),
        ("remote", "unknown embedder 'remote'"),
        (HashingEmbedder, "is a class"),
        (async_only, "async only"),
    ],
)
def test_what_is_no_embedder_is_refused_at_once(thing, words):
    """With a word on what would do."""
    with pytest.raises(UsageError, match=words):
        as_embedder(thing)


def test_names_stand_for_our_own():
    """`"hashing"` needs nothing."""
    assert isinstance(as_embedder("hashing"), HashingEmbedder)


@pytest.mark.real
def test_local_stands_for_the_local_model():
    """`"local"` finds its files."""
    assert isinstance(as_embedder("local"), LocalEmbedder)


@pytest.mark.parametrize(
    ("text", "fits"),
    [("a" * 30, True), ("a" * 31, False), ("中" * 10, True), ("中" * 11, False), ("", True)],
)
def test_the_window_is_estimated_from_characters(text, fits):
    """Three ASCII characters a token, one of others, inclusive."""
    assert as_embedder(hashed, window=10).fits(text) is fits


def test_the_window_said_by_the_model_is_used():
    """`max_seq_length` of sentence-transformers; 256 where nothing is said."""
    assert not as_embedder(SentenceTransformersLike()).fits("a" * 25)
    assert as_embedder(SentenceTransformersLike(), window=100).fits("a" * 25)
    assert as_embedder(hashed).fits("a" * 768)
    assert not as_embedder(hashed).fits("a" * 769)


@pytest.mark.parametrize("window", [0, -5])
def test_a_window_below_one_is_refused(window):
    """0 is not "no limit"."""
    with pytest.raises(UsageError, match="window"):
        as_embedder(hashed, window=window)


def broken(texts):
    raise ConnectionError("no route")


def test_a_failure_is_an_embedder_error_with_its_cause():
    """The cache's caller sees one kind of error."""
    with pytest.raises(EmbedderError, match="ConnectionError: no route") as caught:
        as_embedder(broken).embed(["a"])
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_nothing_is_called_for_no_texts():
    """An empty batch costs no request."""
    assert as_embedder(broken).embed([]).shape[0] == 0
