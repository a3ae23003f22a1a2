"""A node postprocessor as a reranker of one list, and what LlamaIndex is told of a reranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from stemma.rerankers import Foreign, Order, places
from stemma_llamaindex.codec import node_text

__all__ = ["Postprocessing", "shown_text", "tell_end", "tell_start", "uncut", "with_metadata"]

_dispatcher = get_dispatcher(__name__)

_PICTURES = ("image", "image_path", "image_url")
_RESOURCES = ("image_resource", "audio_resource", "video_resource")


class Postprocessing:
    """A node postprocessor as a `stemma.rerankers.ListReranker` of some nodes.

    It is given copies of the nodes. `asked` says whether it was.

    Args:
        inner: The postprocessor.
        bundle: The query.
        nodes: The nodes.
    """

    def __init__(
        self, inner: BaseNodePostprocessor, bundle: QueryBundle, nodes: Sequence[NodeWithScore]
    ) -> None:
        self._inner = inner
        self._bundle = bundle
        self._nodes = nodes
        self.asked = False

    def order(self, chosen: Sequence[int], *, scored: bool) -> Order | Foreign:
        """See `stemma.rerankers.ListReranker`."""
        inner, given = self._given(chosen, scored=scored)
        found = inner.postprocess_nodes(list(given), query_bundle=self._bundle)
        return self._order(found, given, chosen)

    async def aorder(self, chosen: Sequence[int], *, scored: bool) -> Order | Foreign:
        """As `order`."""
        inner, given = self._given(chosen, scored=scored)
        found = await inner.apostprocess_nodes(list(given), query_bundle=self._bundle)
        return self._order(found, given, chosen)

    def _given(
        self, chosen: Sequence[int], *, scored: bool
    ) -> tuple[BaseNodePostprocessor, list[NodeWithScore]]:
        self.asked = True
        inner = uncut(self._inner, len(chosen)) if scored else self._inner
        nodes = [self._nodes[place] for place in chosen]
        # The score of an earlier stage must not be taken for this one's.
        return inner, [
            NodeWithScore(node=with_metadata(one.node, {}), score=None if scored else one.score)
            for one in nodes
        ]

    def _order(
        self,
        found: Sequence[NodeWithScore],
        given: Sequence[NodeWithScore],
        chosen: Sequence[int],
    ) -> Order | Foreign:
        at = places(found, given, lambda one: id(one.node), _id_and_text)
        if at is None:
            return Foreign(list(found))
        for place, one in zip(at, found, strict=True):
            if node_text(one.node) != node_text(self._nodes[chosen[place]].node):
                return Foreign(list(found))  # the same node, with another text
        return [
            [place, None if one.score is None else float(one.score)]
            for place, one in zip(at, found, strict=True)
        ]


def uncut(inner: BaseNodePostprocessor, count: int) -> BaseNodePostprocessor:
    """A postprocessor that gives back so many nodes, where it has a cut at all."""
    if "top_n" not in type(inner).model_fields:
        return inner
    return inner.model_copy(update={"top_n": count})


def shown_text(node: BaseNode) -> str:
    """All that a reranker may be shown of a node: text, metadata, and what else it holds."""
    parts = [node.get_content(MetadataMode.EMBED), node.get_content(MetadataMode.LLM)]
    parts += [str(held) for name in _PICTURES if (held := getattr(node, name, None)) is not None]
    held = [getattr(node, name, None) for name in _RESOURCES]
    return "\x00".join([*parts, *(resource.hash for resource in held if resource is not None)])


def with_metadata(node: BaseNode, more: Mapping[str, Any], *, hidden: str = "") -> BaseNode:
    """A copy of a node, with more metadata; the node itself stays as it is.

    Args:
        node: The node.
        more: What to add.
        hidden: A key of the metadata that no model is shown.
    """
    update: dict[str, Any] = {"metadata": {**node.metadata, **more}}
    if hidden in more:
        for keys in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
            update[keys] = [*dict.fromkeys([*getattr(node, keys), hidden])]
    return node.model_copy(update=update)


def tell_start(nodes: list[NodeWithScore], bundle: QueryBundle, *, top_n: int, model: str) -> None:
    """Tell LlamaIndex that a reranking begins."""
    _dispatcher.event(ReRankStartEvent(query=bundle, nodes=nodes, top_n=top_n, model_name=model))


def tell_end(nodes: list[NodeWithScore]) -> None:
    """Tell LlamaIndex what a reranking gave."""
    _dispatcher.event(ReRankEndEvent(nodes=nodes))


def _id_and_text(one: NodeWithScore) -> tuple[str, str]:
    return one.node.node_id, node_text(one.node)
