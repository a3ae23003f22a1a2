"""Rerank scores: one per query and chunk. Pure functions of content, so they have no lineage."""

from __future__ import annotations

from stemma.nodes.node import Asked
from stemma.request import Request

__all__ = ["rerank"]


def rerank(query: str, *, chunk: str, model: str, life: float | None = None) -> Asked:
    """Ask for the score that a reranker gives one chunk for one query.

    Args:
        query: The query.
        chunk: The chunk's content hash (`stemma.content_digest` of its text).
        model: The reranker with its revision.
        life: Base life, seconds.
    """
    return Asked(
        scope={"model": model}, request=Request(exact=[query, chunk], meaning=False), life=life
    )
