"""What an embedder is: one method, and what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

__all__ = ["Embedder", "Matrix", "TokenEmbedder"]

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors.

    `revision` names the model and its version: it is part of the Scope, so that vectors of two
    models never meet. It must be known without loading the model.
    """

    revision: str

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of shape (texts, dimensions), float32, each of length 1.

        Raises:
            EmbedderError: The model cannot be loaded or gave something unfit.
        """
        ...

    def fits(self, text: str) -> bool:
        """Whether the whole text is inside the model's window. One that is cut is never matched."""
        ...


@runtime_checkable
class TokenEmbedder(Protocol):
    """An embedder that gives a vector for each token as well."""

    def embed_tokens(self, texts: Sequence[str]) -> list[Matrix]:
        """For each text, its tokens' vectors, shape (tokens, dimensions), each of length 1."""
        ...
