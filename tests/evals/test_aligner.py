"""What the aligner is trained on, and that training and serving compute the same."""

import importlib
import json
import math

import numpy as np
import pytest
from evals.aligner.crossed import HOME, aligned, name_of
from evals.aligner.wordnet import WordNet
from evals.quality.texts import Pair

from stemma.policies.alignment import shipped

SYNSETS = {
    "noun": [
        "00000001 03 n 02 car 0 auto 0 001 @ 00000009 n 0000 | a motor vehicle",
        "00000002 03 n 01 truck 0 001 @ 00000009 n 0000 | a larger one",
        "00000009 03 n 01 vehicle 0 002 ~ 00000001 n 0000 ~ 00000002 n 0000 | it moves",
    ],
    "verb": [],
    "adj": [
        "00000003 00 a 01 cheap 0 001 ! 00000004 a 0101 | of low price",
        "00000004 00 a 01 expensive 0 001 ! 00000003 a 0101 | of high price",
    ],
}
WORDS = {
    "noun": [
        "car n 1 1 @ 1 1 00000001",
        "auto n 1 1 @ 1 0 00000001",
        "truck n 1 1 @ 1 1 00000002",
        "vehicle n 1 1 ~ 1 1 00000009",
    ],
    "verb": [],
    "adj": ["cheap a 1 1 ! 1 1 00000003", "expensive a 1 1 ! 1 1 00000004"],
}
COUNTS = ["car%1:06:00:: 1 9", "truck%1:06:00:: 1 4", "cheap%3:00:00:: 1 5"]


@pytest.fixture
def training():
    pytest.importorskip("torch")
    return importlib.import_module("evals.aligner.training")


@pytest.fixture
def wordnet(tmp_path):
    for name, lines in SYNSETS.items():
        (tmp_path / f"data.{name}").write_text("\n".join(["  a licence", *lines]))
        (tmp_path / f"index.{name}").write_text("\n".join(WORDS[name]))
    (tmp_path / "cntlist.rev").write_text("\n".join(COUNTS))
    return WordNet(tmp_path)


def test_a_word_has_synonyms_opposites_and_its_like(wordnet):
    car, cheap = wordnet.word("car"), wordnet.word("cheap")
    assert (list(car.same), list(car.alike), car.part) == (["auto"], ["truck"], "n")
    assert (list(cheap.opposite), cheap.part) == (["expensive"], "a")
    assert wordnet.word("unheard") is None
    assert wordnet.word("auto") is None  # never counted: which sense is meant is not sure


def test_training_and_serving_compute_the_same(training):
    drawn = np.random.default_rng(0)
    tokens = {
        text: drawn.normal(size=(n, 384)).astype(np.float32) for n, text in ((3, "a"), (5, "b"))
    }
    tokens = {text: rows / np.linalg.norm(rows, axis=1)[:, None] for text, rows in tokens.items()}
    within = np.linalg.qr(drawn.normal(size=(384, training.WIDTH)))[0].astype(np.float32)
    net = training._Net().eval()
    aligner = net.aligner(within, "x")
    low = [tokens[text] @ within for text in "ab"]
    said = float(net(*training._padded(low[:1]), *training._padded(low[1:])).detach())
    served = aligner.align(*(aligner.projected(tokens[text]) for text in "ab"))
    assert served == pytest.approx(said, abs=0.02)  # the weights are rounded


def test_it_learns_what_says_the_same_and_what_does_not(training):
    drawn = np.random.default_rng(0)
    tokens = {str(n): drawn.normal(size=(4, training.WIDTH)).astype(np.float32) for n in range(20)}
    given = [
        (Pair(one=str(n), other=str(n if n % 2 else (n + 2) % 20), same=bool(n % 2), part=""), 1.0)
        for n in range(20)
    ]
    within = np.eye(384, training.WIDTH, dtype=np.float32)
    made = training.train(given * 5, tokens, within, embedder="x", seed=3)
    said = [
        made.align(*(made.projected(tokens[text] @ within.T) for text in (pair.one, pair.other)))
        for pair, _ in given
    ]
    assert min(said[1::2]) > max(said[::2])


def test_what_was_said_of_unseen_pairs_belongs_to_the_aligner_that_is_shipped():
    record = json.loads(HOME.read_text(encoding="utf-8"))
    assert record["aligner"] == shipped().revision
    assert all(map(math.isfinite, record["aligned"].values()))
    assert aligned("never", "seen") is None
    assert name_of("a", "b") != name_of("b", "a")
