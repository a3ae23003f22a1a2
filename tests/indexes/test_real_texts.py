"""On real questions and their MiniLM vectors, neither bits nor a graph lose what is near.

The questions lie in `intents_banking77` of the folder that `STEMMA_DATA` names, by default
`../shared/data` beside the checkout; without it there is nothing to test on.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from stemma.embedders.local import LocalEmbedder
from stemma.indexes.bits import BitsGroup, BitsIndex
from stemma.indexes.graph import GraphIndex
from stemma.testing.indexes import ChangeLog

BESIDE = Path(__file__).parents[3] / "shared" / "data"
QUESTIONS = Path(os.environ.get("STEMMA_DATA", BESIDE), "intents_banking77", "utterances.jsonl")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not QUESTIONS.is_file(), reason="STEMMA_DATA names no folder of texts"),
]

STORED, ASKED = 1_500, 400


@pytest.fixture(scope="module")
def vectors():
    """Unit vectors of questions, in a fixed, mixed order."""
    lines = QUESTIONS.read_text(encoding="utf-8")
    texts = sorted({json.loads(line)["text"] for line in lines.splitlines()})
    order = np.random.default_rng(0).permutation(len(texts))[: STORED + ASKED]
    return LocalEmbedder().embed([texts[n] for n in order])


@pytest.mark.parametrize(
    ("made", "size"),
    [
        (BitsIndex, STORED),
        (BitsIndex, 10_000),
        (BitsIndex, 100_000),
        (partial(GraphIndex, beyond=1), 10_000),
    ],
)
def test_the_nearest_question_is_found(vectors, made, size):
    """Among the real ones alone, and among noisy copies of them up to a hundred thousand."""
    rng = np.random.default_rng(size)
    rows = vectors[:STORED]
    while len(rows) < size:
        copies = vectors[:STORED] + rng.uniform(0.5, 1.0) / np.sqrt(384) * rng.standard_normal(
            size=(STORED, 384), dtype=np.float32
        )
        copies /= np.linalg.norm(copies, axis=1, keepdims=True)
        rows = np.concatenate([rows, copies.astype(np.float32)])[:size]
    log, index = ChangeLog(), made(large=1)
    for number, row in enumerate(rows):
        log.put(f"{number:06}", row)
    if isinstance(index, GraphIndex):
        index.nearest(log.store, "g", vectors[0], 1)
        assert index.ready(250)
    stored = np.stack([vector for _, _, vector in log.entries.values()]).astype(np.float32)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    scores = vectors[STORED:] @ stored.T
    true = scores.argmax(axis=1)
    near = np.flatnonzero(scores.max(axis=1) >= 0.7)
    found = [index.nearest(log.store, "g", vectors[STORED + n], 8, 0.88)[0] for n in near]
    assert len(near) > 250
    assert [one.id for one in found] == [f"{n:06}" for n in true[near]]
    assert [one.similarity for one in found] == pytest.approx(
        scores.max(axis=1)[near].tolist(), abs=1e-5
    )
    assert isinstance(index._groups["g"], BitsGroup)
