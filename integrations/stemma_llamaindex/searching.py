"""A vector index of LlamaIndex as the cache sees it: a search by a vector, and nodes by id."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryMode

from stemma import (
    Found,
    Frame,
    Ranking,
    UnkeyableValue,
    candidates,
    content_digest,
    digest,
    ranked,
)
from stemma_llamaindex.codec import node_text
from stemma_llamaindex.describing import Walk, searches_everything
from stemma_llamaindex.sources import nodes_as_sources
from stemma_llamaindex.vector_store import WatchedVectorStore

__all__ = ["Sought", "searches_by_similarity", "settings"]


def searches_by_similarity(retriever: Any) -> bool:
    """Whether a retriever ranks by the similarity of vectors, and nothing else.

    A class derived from LlamaIndex's may do anything, so only that one itself is known.
    """
    return (
        type(retriever) is VectorIndexRetriever
        and retriever._vector_store_query_mode == VectorStoreQueryMode.DEFAULT  # noqa: SLF001 - it has no other name
        and retriever._vector_store.is_embedding_query  # noqa: SLF001 - as above
    )


def settings(retriever: VectorIndexRetriever) -> Any:
    """All that shapes a search besides its query and how many nodes are wanted of it."""
    elsewhere = {"_index", "_vector_store", "_similarity_top_k"}
    walk = Walk()
    noise = walk.noise(type(retriever)) | elsewhere
    if searches_everything(retriever):
        noise |= {"_node_ids"}
    return walk.fields(retriever, noise)


class Sought:
    """One query to one vector index: what the cache asks of it (`stemma.Searcher`).

    Args:
        retriever: The retriever.
        bundle: The query.
        times: How many times more nodes are asked for than are wanted.
        index: The index's identity.
        owner: Whose the nodes are; empty: the tenant's.
        note: Notes nodes as sources in a frame.
    """

    def __init__(
        self,
        retriever: VectorIndexRetriever,
        bundle: QueryBundle,
        *,
        times: int,
        index: str,
        owner: str,
        note: Callable[[Sequence[BaseNode], Frame | None], None],
    ) -> None:
        self.k: int = retriever.similarity_top_k
        self.note = note
        self._times = times
        self._wanted = candidates(self.k, times)
        self._index = index
        self._owner = owner
        self._bundle = bundle
        self._wider = copy.copy(retriever)  # what it is asked now, for more nodes
        self._wider.similarity_top_k = self._wanted
        store = retriever._vector_store  # noqa: SLF001 - it has no other name
        self._store: BasePydanticVectorStore = (
            store.inner if isinstance(store, WatchedVectorStore) else store
        )
        self._docstore = retriever._docstore  # noqa: SLF001 - as above
        self._embeds = retriever._embed_model  # noqa: SLF001 - as above

    def embed(self, _: str) -> Sequence[float]:
        """The bundle's vector; computed once, and left in it as the retriever leaves it."""
        bundle = self._bundle
        if bundle.embedding is None:
            bundle.embedding = self._embeds.get_agg_embedding_from_queries(bundle.embedding_strs)
        return bundle.embedding

    async def aembed(self, _: str) -> Sequence[float]:
        """As `embed`."""
        bundle = self._bundle
        if bundle.embedding is None:
            texts = bundle.embedding_strs
            bundle.embedding = await self._embeds.aget_agg_embedding_from_queries(texts)
        return bundle.embedding

    def read(self, chunks: Sequence[str]) -> Mapping[str, BaseNode]:
        """The nodes with these ids, as the index has them now; those it has."""
        if self._store.stores_text:
            return _by_id(self._store.get_nodes(list(chunks)))
        return _by_id(self._docstore.get_nodes(self._indexed(chunks), raise_error=False))

    async def aread(self, chunks: Sequence[str]) -> Mapping[str, BaseNode]:
        """As `read`."""
        if self._store.stores_text:
            return _by_id(await self._store.aget_nodes(list(chunks)))
        return _by_id(await self._docstore.aget_nodes(self._indexed(chunks), raise_error=False))

    def content(self, document: BaseNode) -> str:
        """A hash of text and metadata: rights may lie in these."""
        text = content_digest(node_text(document))
        try:
            return digest("node/1", text, document.metadata)
        except UnkeyableValue:
            return text

    def search(self) -> Ranking:
        """Search the index, for more than are wanted."""
        self.embed(self._bundle.query_str)
        found = self._wider._retrieve(self._bundle)  # noqa: SLF001 - events are told once
        nodes = [one.node for one in found]
        vectors = _held(self._store, nodes)
        if vectors is None:
            vectors = self._embeds.get_text_embedding_batch(_texts(nodes))
        try:
            again = self.read([node.node_id for node in nodes]) if nodes else {}
        except Exception:  # many stores have no such method
            again = {}
        return self._ranking(found, vectors, again)

    async def asearch(self) -> Ranking:
        """As `search`."""
        await self.aembed(self._bundle.query_str)
        found = await self._wider._aretrieve(self._bundle)  # noqa: SLF001 - as above
        nodes = [one.node for one in found]
        vectors = _held(self._store, nodes)
        if vectors is None:
            vectors = await self._embeds.aget_text_embedding_batch(_texts(nodes))
        try:
            again = await self.aread([node.node_id for node in nodes]) if nodes else {}
        except Exception:  # as above
            again = {}
        return self._ranking(found, vectors, again)

    def _ranking(
        self,
        found: Sequence[NodeWithScore],
        vectors: Sequence[Any],
        again: Mapping[str, BaseNode],
    ) -> Ranking:
        """What was found, as a list that knows how far it reaches.

        The nodes themselves are stored unless the index gives the same ones by their ids.
        """
        nodes = [one.node for one in found]
        contents = [self.content(node) for node in nodes]
        reread = [again.get(node.node_id) for node in nodes]
        written = [None if one is None else self.content(one) for one in reread] != contents
        sources = nodes_as_sources(nodes, index=self._index, owner=self._owner)
        return ranked(
            Found(
                documents=nodes,
                ids=[node.node_id for node in nodes],
                contents=contents,
                query=self._bundle.embedding,
                vectors=vectors,
                scores=tuple(one.score for one in found),
                complete=len(found) < self._wanted,
                cosine=isinstance(self._store, SimpleVectorStore),
                written=written,
                sources=[source for source, _ in sources] if written else (),
            ),
            k=self.k,
            reusable=self._times > 1,
        )

    def _indexed(self, chunks: Sequence[str]) -> list[str]:
        """Those that are still in the index: a docstore may keep what was deleted from it."""
        held = set(self._wider._index.index_struct.nodes_dict.values())  # noqa: SLF001 - as above
        return [chunk for chunk in chunks if chunk in held]


def _by_id(nodes: Sequence[BaseNode]) -> dict[str, BaseNode]:
    return {node.node_id: node for node in nodes}


def _texts(nodes: Sequence[BaseNode]) -> list[str]:
    """What was embedded of nodes when they came into the index."""
    return [node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes]


def _held(store: BasePydanticVectorStore, nodes: Sequence[BaseNode]) -> list[Any] | None:
    """The vectors of nodes, where the nodes or the store tell them."""
    vectors: list[Any] = [node.embedding for node in nodes]
    if isinstance(store, SimpleVectorStore):
        vectors = [store.data.embedding_dict.get(node.node_id) for node in nodes]
    return None if any(vector is None for vector in vectors) else vectors
