"""Token vectors of all texts that an aligner is trained on, or whose pairs are measured."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evals.quality.texts import Pair
from stemma.embedders import Matrix, TokenEmbedder

__all__ = ["token_vectors"]

_BATCH = 32


def token_vectors(of: Iterable[Pair], embedder: TokenEmbedder) -> dict[str, Matrix]:
    """The token vectors of each text of these pairs, shape (tokens, dimensions)."""
    texts = sorted({text for pair in of for text in (pair.one, pair.other)}, key=len)
    found: dict[str, Matrix] = {}
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        found.update(zip(batch, embedder.embed_tokens(batch), strict=True))
    return {text: np.asarray(rows, dtype=np.float32) for text, rows in found.items()}
