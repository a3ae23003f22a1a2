"""An offline reranker: MaxSim over the token vectors of an embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stemma.embedders.adapters import as_embedder
from stemma.embedders.protocol import Matrix, TokenEmbedder
from stemma.embedders.token_memory import TokenMemory
from stemma.errors import UsageError

__all__ = ["MEMORY", "MaxSimReranker"]

MEMORY = 64 * 1024 * 1024
"""Bytes of token vectors that are kept: about 500 chunks of 90 tokens of MiniLM."""

_LEAST = -1.0


class MaxSimReranker:
    """Late interaction: each token of the query looks for the nearest token of the text.

    A score is the mean, over the query's tokens, of the highest cosine that each has with a token
    of the text: −1 to 1, higher is closer. A text or a query without tokens has −1. What does not
    fit the embedder's window is not read.

    The texts' token vectors are kept, so that a text seen before costs no model call. It may be
    used from any thread.

    Args:
        embedder: An embedder with token vectors, or `"local"`.
        memory: How many bytes of token vectors to keep, 0 or more; the least recently used go.

    Raises:
        UsageError: The embedder gives no token vectors, or `memory` is below 0.
        EmbedderError: `"local"` was asked for and its files are not there.

    Example:
        ```python
        reranker = MaxSimReranker()
        near, far = reranker.score("a fast car", ["a quick automobile", "cold soup"])
        ```
    """

    revision: str

    def __init__(self, embedder: TokenEmbedder | Any = "local", *, memory: int = MEMORY) -> None:
        embedder = as_embedder(embedder) if isinstance(embedder, str) else embedder
        if not isinstance(embedder, TokenEmbedder) or not hasattr(embedder, "revision"):
            raise UsageError(
                f"{embedder!r} gives no token vectors; pass 'local' or a TokenEmbedder"
            )
        if memory < 0:
            raise UsageError(f"memory must be 0 bytes or more, not {memory}")
        self._embedder = embedder
        self._kept: TokenMemory[str] = TokenMemory(memory)
        self.revision = f"maxsim/1-{embedder.revision}"

    def __repr__(self) -> str:
        return f"MaxSimReranker(revision={self.revision!r})"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text, −1 to 1, in the order of the texts.

        Raises:
            EmbedderError: The model cannot be loaded or run.
        """
        if not texts:
            return []
        known = self._kept.get(texts)
        new = [text for text in dict.fromkeys(texts) if text not in known]
        asked, *found = self._embedder.embed_tokens([query, *new])
        fresh = dict(zip(new, found, strict=True))
        self._kept.add(fresh)
        known |= fresh
        return [_maxsim(asked, known[text]) for text in texts]


def _maxsim(query: Matrix, text: Matrix) -> float:
    if len(query) == 0 or len(text) == 0:
        return _LEAST
    return float((query @ text.T).max(axis=1).mean())
