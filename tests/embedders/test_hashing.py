"""The hashing embedder is an embedder, and the same everywhere."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from stemma.embedders import HashingEmbedder
from stemma.errors import UsageError
from stemma.testing.embedders import EmbedderConformance

KNOWN = [0.267, 0.802, 0.0, 0.267, 0.267, -0.267, 0.0, 0.267]
SCRIPT = """
from stemma.embedders import HashingEmbedder
print(HashingEmbedder().embed(["Grüße, world 🍎", "b"]).tobytes().hex())
"""


class TestConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self):
        return HashingEmbedder()


@pytest.mark.parametrize("seed", ["0", "12345"])
def test_the_hash_seed_of_the_process_does_not_matter(seed):
    """Another process under another seed gives the same bytes."""
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert told == HashingEmbedder().embed(["Grüße, world 🍎", "b"]).tobytes().hex()


def test_a_known_vector_stays_as_it_is():
    """The revision promises it: a change of the hash needs another revision."""
    vector = HashingEmbedder(8).embed(["cache"])[0]
    assert HashingEmbedder(8).revision == "hashing/1-8"
    assert vector.tolist() == pytest.approx(KNOWN, abs=1e-3)


def test_like_spelling_is_nearer_than_other_words():
    """The order that tests rely on."""
    asked, reworded, other = HashingEmbedder().embed(
        ["How do I reset my password?", "how can I reset my password", "Is the museum open today?"]
    )
    assert asked @ reworded > 0.6
    assert asked @ other < 0.3


def test_case_and_spaces_do_not_count():
    """What differs only there has one vector."""
    left, right = HashingEmbedder().embed(["Reset  my\tPASSWORD ", "reset my password"])
    assert np.array_equal(left, right)


@pytest.mark.parametrize("dimensions", [7, 0, -1])
def test_too_few_dimensions_are_refused(dimensions):
    """Below 8 everything collides."""
    with pytest.raises(UsageError, match="8 or more"):
        HashingEmbedder(dimensions)
