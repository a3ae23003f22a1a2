"""`CachedReranker`: any reranker behind the cache, as a node postprocessor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from stemma import Cache, Ranked, Reranking, UnkeyableValue, UsageError, digest, frames
from stemma.rerankers import Foreign, PairScores, Reranker, as_reranker
from stemma_llamaindex.codec import NOTE
from stemma_llamaindex.describing import describe, describe_whole
from stemma_llamaindex.events import tell_hit
from stemma_llamaindex.reranking import (
    Postprocessing,
    shown_text,
    tell_end,
    tell_start,
    uncut,
    with_metadata,
)
from stemma_llamaindex.sources import nodes_as_sources

__all__ = ["CachedReranker"]


class CachedReranker(BaseNodePostprocessor):
    """A reranker whose scores are cached by query, content and revision.

    What scores pair by pair is asked once for the pairs that are missing, each text once; the
    scores stay with their nodes whatever the order of the list, and `top_n` may change freely. Of
    what ranks a list as a whole, as language models do, the whole list is cached: the same nodes'
    texts with the same scores in the same order.

    Nodes come out as copies of those that went in, best first, with their own ids and metadata. A
    hit says so under `metadata["stemma"]`, which no model is shown, with `"list": "whole"` where
    the list was cached as a whole. What comes out are sources of whatever is built from it.

    Not stored are: scores that are not finite numbers (they rank last); empty lists; what a
    postprocessor gives that it was not given, or with another text. Without a query, nothing is
    cached: a postprocessor is asked, and for other rerankers the nodes stay as they are.

    Args:
        cache: The cache.
        inner: What reranks: whatever `stemma.rerankers.as_reranker` takes (a Stemma reranker, a
            cross-encoder, a function of a query and texts), or a node postprocessor.
        model: Its name and revision, for the key and for `recall(model=…)`; by default derived.
        pairwise: Whether a postprocessor scores pair by pair. By default only LlamaIndex's
            `SentenceTransformerRerank` is known to.
        top_n: How many nodes to give back at most; by default as the postprocessor is set, else
            all.
        text: What of a node the reranker reads; by default its text with the metadata that
            embedding models are shown, and for a postprocessor all that it may be shown.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    cache: Cache = Field(exclude=True, repr=False)
    inner: Any = Field(exclude=True)
    model: str | None = Field(default=None, min_length=1)
    pairwise: bool | None = None
    top_n: int | None = Field(default=None, ge=1)
    text: Callable[[BaseNode], str] | None = Field(default=None, exclude=True)
    life: float | None = Field(default=None, gt=0)

    _reranker: Reranker | None = PrivateAttr(default=None)

    def __init__(self, cache: Cache, inner: Any, **named: Any) -> None:
        if isinstance(inner, BaseNodePostprocessor):
            named.setdefault("callback_manager", inner.callback_manager)
        super().__init__(**{"cache": cache, "inner": inner, **named})
        if not isinstance(inner, BaseNodePostprocessor):
            if self.pairwise is False:
                raise UsageError("pairwise=False is for node postprocessors; this scores pairs")
            self._reranker = as_reranker(inner, revision=self.model)
        elif self.pairwise is not False and _sorts_by_scores(inner):
            self._reranker = as_reranker(getattr(inner, "_model", None), revision=self.model)

    @classmethod
    def class_name(cls) -> str:
        """The component's name."""
        return "CachedReranker"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None and isinstance(self.inner, BaseNodePostprocessor):
            return self.inner.postprocess_nodes(nodes)
        if query_bundle is None or not nodes:
            return nodes[: self.top_n]
        call = self._begin(nodes, query_bundle)
        return self._end(call, self.cache.reranks.order(self._asked(call)))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None and isinstance(self.inner, BaseNodePostprocessor):
            return await self.inner.apostprocess_nodes(nodes)
        if query_bundle is None or not nodes:
            return nodes[: self.top_n]
        call = self._begin(nodes, query_bundle)
        return self._end(call, await self.cache.reranks.aorder(self._asked(call)))

    @property
    def stemma_identity(self) -> Any:
        """What an engine around it is told of it."""
        return {
            "reranker": self._named() if self._reranker is None else self._reranker.revision,
            "pairwise": self.pairwise,
            "top_n": self._most(),
            "text": None if self.text is None else describe(self.text),
        }

    def _begin(self, nodes: list[NodeWithScore], bundle: QueryBundle) -> _Call:
        whole = None
        if self._reranker is None:
            whole = Postprocessing(self.inner, bundle, nodes)
        call = _Call(nodes, bundle, whole, frames.marks())
        if whole is None:
            self._tell_start(call)
        return call

    def _asked(self, call: _Call) -> Reranking:
        query, life, whole = call.bundle.query_str, self.life, call.whole
        if whole is None:
            texts = [self._text(one.node, _embedded_text) for one in call.nodes]
            return Reranking(query=query, texts=texts, reranker=self._reranker, life=life)
        texts = [self._text(one.node, shown_text) for one in call.nodes]
        more = [call.bundle.image_path, call.bundle.custom_embedding_strs]
        revision = self._revision() if self.pairwise and not any(more) else None
        pairs = None if revision is None else PairScores(whole, texts, revision=revision)
        scores = [one.score for one in call.nodes]

        def named() -> tuple[str, Any]:
            model, parameters = self._named()
            return model, [parameters, scores, more]

        return Reranking(
            query=query, texts=texts, reranker=pairs, whole=whole, named=named, life=life
        )

    def _text(self, node: BaseNode, usual: Callable[[BaseNode], str]) -> str:
        return usual(node) if self.text is None else self.text(node)

    def _revision(self) -> str | None:
        """What names a postprocessor that scores pairs; `None`: nor has the whole list a key."""
        if self.model is not None:
            return self.model
        try:
            said = digest("reranker/1", describe(uncut(self.inner, 0)))
        except UnkeyableValue:
            return None
        return f"{self.inner.class_name()}@{said[:12]}"

    def _named(self) -> tuple[str, Any]:
        """The postprocessor's name, and what else shapes its order."""
        if self.model is not None:
            return self.model, getattr(self.inner, "top_n", None)
        described = describe_whole(self.inner)
        model = described.model if described.model != "" else self.inner.class_name()
        return model, described.value

    def _most(self) -> int | None:
        inner = getattr(self.inner, "top_n", None)
        own = inner if isinstance(self.inner, BaseNodePostprocessor) else None
        return self.top_n if self.top_n is not None else own

    def _tell_start(self, call: _Call) -> None:
        most = self._most()
        model = self.inner.class_name() if self._reranker is None else self._reranker.revision
        tell_start(
            call.nodes,
            call.bundle,
            top_n=len(call.nodes) if most is None else most,
            model=model if self.model is None else self.model,
        )

    def _end(self, call: _Call, order: list[Ranked] | Foreign) -> list[NodeWithScore]:
        most = self._most()
        if isinstance(order, Foreign):
            found: list[NodeWithScore] = order.items[:most]
        else:
            found = [self._given(call.nodes[one.place], one) for one in order[:most]]
            for hit in {one.hit.entry.id: one.hit for one in order if one.hit}.values():
                tell_hit(hit)
        if call.whole is None:
            tell_end(found)
        elif not call.whole.asked:  # one that is asked tells of it itself
            self._tell_start(call)
            tell_end(found)
        frame = frames.current()
        if frame is not None:
            frame.read_sources(nodes_as_sources(found), call.marks, unless_known=True)
        return found

    def _given(self, one: NodeWithScore, ranked: Ranked) -> NodeWithScore:
        """A copy of a node that went in, with its score and the note of a hit."""
        more: dict[str, Any] = {}
        if self._reranker is not None and getattr(self.inner, "keep_retrieval_score", False):
            more["retrieval_score"] = one.score
        if ranked.hit is not None:
            more[NOTE] = ranked.note()
        return NodeWithScore(node=with_metadata(one.node, more, hidden=NOTE), score=ranked.score)


class _Call(NamedTuple):
    nodes: list[NodeWithScore]
    bundle: QueryBundle
    whole: Postprocessing | None
    marks: Mapping[int, int]


def _embedded_text(node: BaseNode) -> str:
    return node.get_content(MetadataMode.EMBED)


def _sorts_by_scores(inner: BaseNodePostprocessor) -> bool:
    """Whether a postprocessor does nothing but sort by the scores of a cross-encoder it holds."""
    known = inner.class_name() == "SentenceTransformerRerank"
    return known and hasattr(getattr(inner, "_model", None), "predict")
