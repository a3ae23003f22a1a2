"""Lists that a cached retriever gives, each compared with a fresh exact search."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evals.measuring import Figure
from evals.rag.exact_store import ExactStore, cached_retriever
from evals.rag.metrics import recall
from stemma import Cache

__all__ = ["LEAST", "SEARCHED", "Judged", "judging", "recall_figures"]

SEARCHED = "searched"
"""What is said of a list that came from the index itself."""

LEAST = {"exact": 1, "prefix": 1, "proven": 1, "statistical": 0.999}
"""The least mean recall of lists, by what a hit says of them."""

Judged = Callable[[str], tuple[str, float]]
"""Asks a query: what was said of its list, and the list's recall."""


def judging(cache: Cache, store: ExactStore, k: int) -> Judged:
    """A cached retriever over a store, whose every list is judged."""
    retriever = cached_retriever(cache, store, k)

    def judged(query: str) -> tuple[str, float]:
        found = retriever.invoke(query)
        note = found[0].metadata.get("stemma", {}) if found else {}
        similarities = store.similarities(store.embedding.embed_query(query))
        ids = [str(document.id) for document in found]
        return note.get("list", SEARCHED), recall(ids, similarities, k)

    return judged


def recall_figures(found: Mapping[str, Mapping[str, float]], what: str) -> list[Figure]:
    """The recall of each kind of list that has a target."""
    return [
        Figure(
            what=f"{what}, {told['lists']:,} {kind}",
            value=told["recall"],
            unit="",
            at_least=LEAST[kind],
        )
        for kind, told in found.items()
        if kind in LEAST
    ]
