"""Sign bits: packing them, and counting in how many two differ.

The bits of many vectors lie word by word: all first words, then all second ones. So each step of
counting runs over one unbroken stretch of memory, which the processor does several at a time.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Distances", "Words", "differing", "lowest", "packed"]

Words = np.ndarray[tuple[int, int], np.dtype[np.uint64]]
Distances = np.ndarray[tuple[int], np.dtype[np.uint16]]
_Counts = np.ndarray[tuple[int], np.dtype[np.uint8]]
_Word = np.ndarray[tuple[int], np.dtype[np.uint64]]
_Signs = np.ndarray[tuple[int, int], np.dtype[np.bool_]]
_Rows = np.ndarray[tuple[int], np.dtype[np.int64]]

_BITS = 64
_FOLD = 32
"""Distances of which the lowest is found first."""


def packed(signs: _Signs) -> Words:
    """Signs (vectors × dimensions) as words (words of a vector × vectors), filled up with zeros."""
    count, dimensions = signs.shape
    octets = np.zeros((count, -(-dimensions // _BITS) * 8), dtype=np.uint8)
    octets[:, : -(-dimensions // 8)] = np.packbits(signs, axis=1)
    return np.ascontiguousarray(octets.view(np.uint64).T)


def differing(words: Words, asked: Words, out: Distances) -> None:
    """Write into `out` in how many bits each vector differs from the one asked for.

    Args:
        words: The bits of many vectors, as `packed` gives them.
        asked: Those of one.
        out: As many numbers as there are vectors.
    """
    out.fill(0)
    unlike = np.empty(words.shape[1], dtype=np.uint64)
    for word, own in zip(words, asked[:, 0], strict=True):
        np.bitwise_xor(word, own, out=unlike)
        np.add(out, _ones(unlike), out=out)


def lowest(distances: Distances, count: int) -> _Rows:
    """The rows of the `count` lowest distances and of all that are equal to the last of them.

    Folded several times, the distances leave as many lowest ones; at least `count` distances
    reach the `count`-th of those. That leaves few to select from.
    """
    if count >= len(distances):
        return np.arange(len(distances))
    folds = min(_FOLD, max(1, len(distances) // (4 * count)))
    length = len(distances) // folds
    least = distances[: folds * length].reshape(folds, length).min(axis=0)
    rows = np.flatnonzero(distances <= np.partition(least, count - 1)[count - 1])
    few = distances[rows]
    return np.compress(few <= np.partition(few, count - 1)[count - 1], rows)


def _ones_by_halving(word: _Word) -> _Counts:
    """How many bits are set: in pairs, then in fours, then in bytes, then added by one product."""
    half = word >> np.uint64(1)
    half &= np.uint64(0x5555555555555555)
    ones = word - half
    np.right_shift(ones, np.uint64(2), out=half)
    half &= np.uint64(0x3333333333333333)
    ones &= np.uint64(0x3333333333333333)
    ones += half
    np.right_shift(ones, np.uint64(4), out=half)
    ones += half
    ones &= np.uint64(0x0F0F0F0F0F0F0F0F)
    ones *= np.uint64(0x0101010101010101)
    ones >>= np.uint64(56)
    counts: _Counts = ones.astype(np.uint8)
    return counts


_ones = getattr(np, "bitwise_count", _ones_by_halving)  # NumPy has it from 2.0 on
