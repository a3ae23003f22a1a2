"""The real `sentence_transformers.CrossEncoder`, small and with random weights, made here."""

import pytest

import stemma
from stemma.errors import RerankerError, UsageError
from stemma.rerankers import as_reranker

WHY = "sentence-transformers is not installed"
torch = pytest.importorskip("torch", reason=WHY)
sentence_transformers = pytest.importorskip("sentence_transformers", reason=WHY)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def loaded(folder, **named):
    return sentence_transformers.CrossEncoder(folder, device="cpu", **named)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, saved):
    return saved(tmp_path_factory.mktemp("models") / "tiny-ranker")


@pytest.fixture
def encoder(folder):
    return loaded(folder)


TEXTS = ["red fox", "blue whale", "hen"]


def test_its_scores_are_those_of_predict(encoder):
    scores = as_reranker(encoder).score("fox", TEXTS)
    expected = encoder.predict([("fox", text) for text in TEXTS])
    assert scores == pytest.approx(expected.tolist(), abs=1e-6)
    assert len(set(scores)) == 3
    assert as_reranker(encoder).score("fox", []) == []


def test_only_missing_pairs_reach_it_in_one_batch(encoder, monkeypatch):
    asked = []
    predict = encoder.predict
    monkeypatch.setattr(encoder, "predict", lambda pairs: asked.append(pairs) or predict(pairs))
    reranker = as_reranker(encoder)
    with stemma.open(":memory:", embedder=None, tenant="t") as cache:
        first = cache.reranks.score("fox", TEXTS[:2], reranker)
        again = cache.reranks.score("fox", TEXTS[::-1], reranker)
    assert asked == [[("fox", text) for text in TEXTS[:2]], [("fox", "hen")]]
    assert [one.value for one in again[:0:-1]] == [one.value for one in first]


def test_its_revision_names_the_model_and_knows_its_weights(folder, tmp_path, saved):
    revision = as_reranker(loaded(folder)).revision
    assert "CrossEncoder tiny-ranker@" in revision
    assert str(folder) not in revision
    assert as_reranker(loaded(folder)).revision == revision
    others = [
        loaded(saved(tmp_path / "tiny-ranker", seed=2)),
        loaded(folder, max_length=16),
        loaded(folder, activation_fn=torch.nn.Identity()),
        loaded(folder, prompts={"query": "find: "}, default_prompt_name="query"),
    ]
    trained = loaded(folder)
    with torch.no_grad():
        trained.model.classifier.bias.add_(0.5)
    found = {as_reranker(one).revision for one in (*others, trained)}
    assert len(found | {revision}) == len(others) + 2


def test_one_that_classifies_is_refused_with_a_word_of_what_to_do(tmp_path, saved):
    reranker = as_reranker(loaded(saved(tmp_path / "labels", labels=3)))
    with pytest.raises(RerankerError, match="3 numbers for one text; pass a function"):
        reranker.score("fox", TEXTS)


def test_one_whose_weights_cannot_be_seen_needs_a_name(encoder, monkeypatch):
    monkeypatch.setattr(encoder, "named_parameters", lambda: iter(()))
    with pytest.raises(UsageError, match="shows no weights"):
        as_reranker(encoder)
    assert as_reranker(encoder, revision="tiny/onnx").revision == "tiny/onnx"


def test_langchains_wrapper_of_it_knows_the_weights_too(folder, tmp_path, saved):
    wrapper = pytest.importorskip("langchain_community.cross_encoders").HuggingFaceCrossEncoder
    one = wrapper(model_name=folder, model_kwargs={"device": "cpu"})
    reranker = as_reranker(one)
    expected = one.score([("fox", text) for text in TEXTS])
    assert reranker.score("fox", TEXTS) == pytest.approx(list(expected), abs=1e-6)
    revision = reranker.revision
    one.client = loaded(saved(tmp_path / "other", seed=3))
    assert as_reranker(one).revision != revision
