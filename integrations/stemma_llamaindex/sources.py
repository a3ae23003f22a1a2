"""LlamaIndex's nodes as sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo

from stemma import Frame, Source, content_digest
from stemma_llamaindex.codec import node_text
from stemma_llamaindex.describing import indexes_in

__all__ = ["document_id", "nodes_as_sources", "note_read"]


def document_id(node: BaseNode) -> str:
    """The id of the document that a node is a chunk of; its own where it names none."""
    related = node.relationships.get(NodeRelationship.SOURCE)
    return related.node_id if isinstance(related, RelatedNodeInfo) else str(node.node_id)


def nodes_as_sources(
    nodes: Iterable[NodeWithScore | BaseNode], *, index: str = "", owner: str = ""
) -> list[tuple[Source, str]]:
    """Nodes as sources, each with its text.

    The chunk's id is the node's, the document's id that of the node it came from (`ref_doc_id`),
    else the node's own. The content hash is that of the text without its metadata, so neither the
    order nor the values of metadata change it.

    Args:
        nodes: The nodes, with or without scores.
        index: The identity of the index that vouches for them.
        owner: Whose they are; empty means the tenant's who reads them.
    """
    found = []
    for one in nodes:
        node = one.node if isinstance(one, NodeWithScore) else one
        text = node_text(node)
        source = Source(
            document=document_id(node),
            chunk=str(node.node_id),
            content=content_digest(text),
            owner=owner,
            index=index,
        )
        found.append((source, text))
    return found


def note_read(
    thing: Any, nodes: Iterable[NodeWithScore], frame: Frame, read_at: Mapping[int, int]
) -> None:
    """Note in a frame what an engine, or a tool that is made of one, has read.

    Its nodes, where no retriever was seen to give them; and the indexes that were searched by
    retrievers that nobody wrapped: no entry tells what was looked for, so whatever comes into one
    of them may concern the answer.

    Args:
        thing: The engine or tool.
        nodes: The nodes that its answer names.
        frame: The frame.
        read_at: The sequence numbers known before anything was read.
    """
    if not any(read.kind == "source" for read in frame.visible()):
        frame.read_sources(nodes_as_sources(nodes), read_at)
    for index in indexes_in(thing):
        frame.read_unstored(index, read_at)
