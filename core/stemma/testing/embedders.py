"""What every embedder must do: subclass `EmbedderConformance` and give it your embedder.

```python
class TestMine(EmbedderConformance):
    @pytest.fixture
    def embedder(self):
        return MyEmbedder()
```
"""
# ruff: noqa: S101 - a suite of tests asserts

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stemma.embedders.health import PROBES, find_fault
from stemma.embedders.protocol import Embedder, TokenEmbedder

__all__ = ["HOSTILE_TEXTS", "EmbedderConformance", "TokenEmbedderConformance"]

HOSTILE_TEXTS = (
    "",
    "   \n\t ",
    "\x00",
    "nul\x00inside",
    "\ud800 a lone surrogate",
    "🍎🧑‍🚀🏳️‍🌈",
    "Cafe\u0301 and Caf\u00e9",
    "'; DROP TABLE entries; --",
    "\u202eright to left",
    "long " * 20_000,
    "x" * 100_000,
)
"""Texts that have broken embedders."""

_ROUNDING = 1e-4


class EmbedderConformance:
    """The suite. A subclass overrides the fixture `embedder`."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test."""
        raise NotImplementedError("override the fixture `embedder`")

    def test_is_an_embedder(self, embedder: Embedder) -> None:
        """It has the protocol's methods and names its model."""
        assert isinstance(embedder, Embedder)
        assert isinstance(embedder.revision, str)
        assert embedder.revision

    def test_gives_unit_rows_of_float32(self, embedder: Embedder) -> None:
        """One vector a text, float32, finite, of length 1."""
        found = embedder.embed(PROBES)
        assert found.shape[0] == len(PROBES)
        assert found.dtype == np.float32
        assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-3)

    def test_gives_no_rows_for_no_texts(self, embedder: Embedder) -> None:
        """An empty batch is an empty matrix, not an error."""
        assert embedder.embed([]).shape[0] == 0

    def test_tells_unrelated_sentences_apart(self, embedder: Embedder) -> None:
        """It passes the health check that the cache makes at first use."""
        assert find_fault(embedder.embed(PROBES), embedder.embed(PROBES[-1:])) is None

    def test_gives_each_text_its_own_vector_whatever_the_batch(self, embedder: Embedder) -> None:
        """Order, duplicates and neighbours of other lengths do not matter."""
        texts = ["b", PROBES[1], "a", PROBES[1] * 5, "c c c", "a"]
        together = embedder.embed(texts)
        alone = np.vstack([embedder.embed([text]) for text in texts])
        assert np.allclose(together, alone, atol=_ROUNDING)
        assert np.allclose(together[::-1], embedder.embed(texts[::-1]), atol=_ROUNDING)

    def test_leaves_what_it_was_given_alone(self, embedder: Embedder) -> None:
        """A list stays as it was, and a tuple will do."""
        texts = [PROBES[0], "a", PROBES[2]]
        found = embedder.embed(texts)
        assert texts == [PROBES[0], "a", PROBES[2]]
        assert np.array_equal(found, embedder.embed(tuple(texts)))

    @pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=lambda text: ascii(text[:12]))
    def test_survives_hostile_texts(self, embedder: Embedder, text: str) -> None:
        """Any text has a vector or fits; none crashes, and the next text is not harmed."""
        assert embedder.fits(text) in {True, False}
        found = embedder.embed([text, PROBES[0]])
        assert np.isfinite(found).all()
        assert np.allclose(found[1], embedder.embed([PROBES[0]])[0], atol=_ROUNDING)

    def test_a_short_question_fits(self, embedder: Embedder) -> None:
        """An ordinary question is inside the window."""
        assert embedder.fits(PROBES[0])

    def test_texts_that_fit_are_told_apart_by_their_ends(self, embedder: Embedder) -> None:
        """Where `fits` says yes, the last words count: none was cut."""
        for repeats in (1, 10, 30, 60, 200):
            texts = [f"{'and so on ' * repeats}{end}" for end in ("write a poem", "drop tables")]
            if all(embedder.fits(text) for text in texts):
                left, right = embedder.embed(texts)
                assert not np.array_equal(left, right)

    def test_serves_threads_at_once(self, embedder: Embedder) -> None:
        """Eight threads get what one gets."""
        texts = [f"{number} {probe}" for number in range(4) for probe in PROBES]
        expected = [embedder.embed([text])[0] for text in texts]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda text: embedder.embed([text])[0], texts))
        assert np.allclose(found, expected, atol=_ROUNDING)


class TokenEmbedderConformance(EmbedderConformance):
    """The suite for an embedder that gives token vectors too."""

    def test_is_a_token_embedder(self, embedder: Embedder) -> None:
        """It has the second capability's method."""
        assert isinstance(embedder, TokenEmbedder)

    def test_gives_token_vectors(self, embedder: Embedder) -> None:
        """A matrix of unit rows for each text in its order, with more rows for more words."""
        assert isinstance(embedder, TokenEmbedder)
        long, short = embedder.embed_tokens(["apple pie with cream on a plate", "apple"])
        assert 1 <= len(short) < len(long)
        for matrix in (short, long):
            assert matrix.dtype == np.float32
            assert np.allclose(np.linalg.norm(matrix, axis=1), 1.0, atol=1e-3)
        assert embedder.embed_tokens([]) == []
