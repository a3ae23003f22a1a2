"""Retrievals: which chunks an index gave for a query. For now by the exact query."""

from __future__ import annotations

from typing import Any

from stemma.codec import Codec
from stemma.nodes.node import JSON, Asked
from stemma.request import Request

__all__ = ["retrieval"]


def retrieval(
    query: str,
    *,
    index: str,
    k: int | None = None,
    filters: Any = None,
    parameters: Any = None,
    codec: Codec = JSON,
    life: float | None = None,
    tags: tuple[str, ...] = (),
) -> Asked:
    """Ask for the chunks that an index gives for a query.

    Args:
        query: The query.
        index: The index's identity (embedder, metric, chunking, collection), never its contents.
        k: How many chunks.
        filters: The filters of the search.
        parameters: Every other parameter of the search.
        codec: How the chunks are written.
        life: Base life, seconds.
        tags: Tags for the entry.
    """
    return Asked(
        scope={"index": index, "filters": filters, "parameters": {"k": k, "more": parameters}},
        request=Request(focus=query, meaning=False),
        codec=codec,
        prompt=(query,),
        life=life,
        tags=tags,
    )
