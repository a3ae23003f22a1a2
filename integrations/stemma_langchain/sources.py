"""LangChain's documents as sources."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from stemma import Source, content_digest

__all__ = ["documents_as_sources"]


def documents_as_sources(
    documents: Sequence[Document],
    *,
    source_key: str = "source",
    index: str = "",
    owner: str = "",
) -> list[tuple[Source, str]]:
    """Documents as sources, each with its text.

    The chunk's id is the document's `id`, else the hash of its text; the document's id is
    `metadata[source_key]`, else the chunk's id.

    Args:
        documents: The documents.
        source_key: Where their metadata names the document they are a chunk of.
        index: The identity of the index that vouches for them.
        owner: Whose they are; empty means the tenant's who reads them.
    """
    found = []
    for document in documents:
        content = content_digest(document.page_content)
        chunk = document.id if document.id is not None else content
        named = document.metadata.get(source_key)
        whole = named if isinstance(named, str) and named != "" else chunk
        source = Source(document=whole, chunk=chunk, content=content, owner=owner, index=index)
        found.append((source, document.page_content))
    return found
