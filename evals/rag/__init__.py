"""RAG with the cache against RAG without: what is saved, what is lost, what goes stale.

Each part runs the same work with the cache, without it and, where there is one, with what else
there is. A part needs its texts (see `evals.rag.texts`) or its framework; without, it is skipped.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console

from evals import parts
from evals.measuring import Measured

__all__ = ["PARTS", "measured", "run"]

PARTS = {
    "stream": "a fixed stream through a whole chain: embed, search, rerank",
    "embedding": "cached vectors, against CacheBackedEmbeddings and LlamaIndex's embeddings_cache",
    "utterances": "real rewordings of one intent, and the retrieval of one served for another",
    "changes": "a manual is updated under cached answers, through every hook and through none",
    "recalls": "what taking back costs, by how much was built on a source and how much comes in",
    "edges": "random runs with a known truth, through LangChain, LangGraph and LlamaIndex",
}
"""Each module in this package that has a `run(size=, seed=, folder=)`, and what it measures."""


def measured(name: str, *, size: float, seed: int) -> Measured:
    """Run one part in a directory of its own."""
    return parts.measured(__name__, name, size=size, seed=seed)


def run(*, size: float, seed: int, out: Console, part: str | None = None) -> dict[str, Any]:
    """Run all parts, or one; print their figures beside their targets, and give all of them."""
    return parts.run(__name__, PARTS, size=size, seed=seed, out=out, part=part)
