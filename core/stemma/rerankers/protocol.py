"""What a reranker is: one method, and what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ["Reranker"]


@runtime_checkable
class Reranker(Protocol):
    """A query and texts to scores. Each text's score depends on it and the query alone.

    `revision` names the model and its version: it is part of the key of every score. Which range
    the scores have, the reranker says; higher is closer. An async twin `ascore` is used where
    there is one; without it, async callers run `score` in a thread.
    """

    revision: str

    def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """One score a text, in the order of the texts."""
        ...
