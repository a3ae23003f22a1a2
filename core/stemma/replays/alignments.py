"""Alignments of texts as they come, over token vectors that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stemma.embedders.protocol import Matrix, TokenEmbedder
from stemma.policies.alignment import shipped

__all__ = ["Align", "Alignments"]

Align = Callable[[str, str], float]
"""The log-odds that the tokens of two texts say the same."""


class Alignments:
    """Aligns two texts with the aligner that comes with the package.

    Args:
        embedder: What gives the token vectors.
    """

    def __init__(self, embedder: TokenEmbedder) -> None:
        self._embedder, self._aligner = embedder, shipped()
        self._known: dict[str, Matrix] = {}

    def __call__(self, one: str, other: str) -> float:
        """See `Align`."""
        self.read((one, other))
        return self._aligner.align(self._known[one], self._known[other])

    def read(self, texts: Iterable[str]) -> None:
        """Have the model read those of the texts that it has not read yet."""
        for text in texts:
            if text not in self._known:
                tokens = self._embedder.embed_tokens([text])[0]
                self._known[text] = self._aligner.projected(tokens)
