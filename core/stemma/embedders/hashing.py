"""An embedder without a model: hashed words and letter groups. For tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from stemma.embedders.protocol import Matrix
from stemma.errors import UsageError

__all__ = ["HashingEmbedder"]

_SIZES = (3, 4, 5)
_WORDS = re.compile(r"\w+")
_WORD_WEIGHT = 2.0
_FEWEST = 8
_STEP = np.uint64(0x100000001B3)
_MIX = np.uint64(0xFF51AFD7ED558CCD)

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]


class HashingEmbedder:
    """Vectors of hashed words and groups of 3 to 5 letters: what is spelt alike is near.

    The same text gives the same vector in every process, on every machine. It knows no synonyms,
    so it is for unit tests and for trying things out, not for answering people. Any text fits; a
    blank one has a vector of its own.

    Args:
        dimensions: The length of a vector, at least 8.

    Raises:
        UsageError: `dimensions` is below 8.
    """

    quick = frozenset({"embed", "fits"})
    revision: str

    def __init__(self, dimensions: int = 384) -> None:
        if dimensions < _FEWEST:
            raise UsageError(f"dimensions must be {_FEWEST} or more, not {dimensions}")
        self._dimensions = dimensions
        self.revision = f"hashing/1-{dimensions}"

    def __repr__(self) -> str:
        return f"HashingEmbedder(dimensions={self._dimensions})"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of shape (texts, dimensions), each of length 1."""
        found = np.empty((len(texts), self._dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            found[row] = self._vector(text)
        return found

    def fits(self, text: str) -> bool:  # noqa: ARG002 - the protocol's signature
        """Always: every letter counts."""
        return True

    def _vector(self, text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        folded = " ".join(text.casefold().split())
        words = [crc32(word.encode("utf-8", "surrogatepass")) for word in _WORDS.findall(folded)]
        groups = _letter_groups(f" {folded} ")
        hashes = np.concatenate([_mixed(np.array(words, dtype=np.uint64)), groups])
        weights = np.ones(len(hashes))
        weights[: len(words)] = _WORD_WEIGHT
        weights[hashes >> np.uint64(63) == 1] *= -1.0
        places = (hashes % np.uint64(self._dimensions)).astype(np.int64)
        vector = np.bincount(places, weights, self._dimensions).astype(np.float64, copy=False)
        length = float(np.sqrt(vector @ vector))
        if length == 0.0:  # blank, or every hash met its opposite
            vector[crc32(folded.encode("utf-8", "surrogatepass")) % self._dimensions] = 1.0
            return vector
        return vector / length


def _letter_groups(text: str) -> Hashes:
    letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    letters = letters.astype(np.uint64) + np.uint64(1)
    found = []
    for size in _SIZES:
        count = len(letters) - size + 1
        if count < 1:
            break
        hashes = np.full(count, size, dtype=np.uint64)
        for offset in range(size):
            hashes = hashes * _STEP + letters[offset : offset + count]
        found.append(_mixed(hashes))
    return np.concatenate(found) if found else np.empty(0, dtype=np.uint64)


def _mixed(hashes: Hashes) -> Hashes:
    """The hashes with every bit spread over all others, so that the low ones can be a place."""
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _MIX
    return hashes ^ (hashes >> np.uint64(29))
