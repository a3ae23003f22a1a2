"""Token vectors of texts seen before, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from stemma import forking
from stemma.embedders.protocol import Matrix

__all__ = ["TokenMemory"]

K = TypeVar("K", bound=Hashable)
"""A text, or whose text it is beside it."""


class TokenMemory(Generic[K]):
    """Token vectors by text; the least recently used go. It may be used from any thread.

    What it knows is quicker: who shares one can tell by that what the others have asked.

    Args:
        most: How many bytes of vectors to keep, 0 or more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._vectors: OrderedDict[K, Matrix] = OrderedDict()
        self._lock = forking.Lock()

    def get(self, texts: Iterable[K]) -> dict[K, Matrix]:
        """The vectors of those of the texts that are known."""
        with self._lock:
            found = {text: self._vectors[text] for text in texts if text in self._vectors}
            for text in found:
                self._vectors.move_to_end(text)
        return found

    def add(self, vectors: Mapping[K, Matrix]) -> None:
        """Keep these; what is larger than the whole memory is not kept."""
        with self._lock:
            for text, matrix in vectors.items():
                if text not in self._vectors and matrix.nbytes <= self._most:
                    self._vectors[text] = matrix
                    self._size += matrix.nbytes
            while self._size > self._most:
                self._size -= self._vectors.popitem(last=False)[1].nbytes
