"""`CachedRetriever`: any retriever behind the cache; vector searches by meaning, too."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from stemma import (
    Asked,
    Cache,
    Frame,
    Hit,
    Ranking,
    RankingCodec,
    Request,
    Search,
    Served,
    UsageError,
    frames,
    owner_of,
)
from stemma_llamaindex.codec import CODEC, NOTE
from stemma_llamaindex.describing import describe, index_identity
from stemma_llamaindex.events import tell_hit
from stemma_llamaindex.questions import bundle_rest
from stemma_llamaindex.searching import Sought, searches_by_similarity, settings
from stemma_llamaindex.sources import nodes_as_sources
from stemma_llamaindex.spans import spans

__all__ = ["CachedRetriever"]

_RANKINGS = RankingCodec(CODEC)


class CachedRetriever(BaseRetriever):
    """A retriever whose nodes are cached by query, index and every parameter of the search.

    The nodes it gives, cached or not, are sources of whatever is built from them. A hit gives
    fresh copies each time, with their scores, and the note of the hit under `metadata["stemma"]`,
    which neither models nor embedders are shown. On a miss, nodes are just what the retriever gave.

    Where the retriever is a vector index's own, searching by similarity (`index.as_retriever()`),
    more nodes are asked for than are given, and their vectors kept. Then

    * one that asks for fewer is given the first of them, one that asks for more is a miss;
    * a reworded query is served from the list of a near one, if that is *proven* to hold its
      nodes, or so likely that 999 in 1,000 places are right (*statistical*): see
      `stemma.policies.neighbours`. The note says which, under `"list"`. Proven means: as far as the
      list was what the index says it is, the nearest nodes; an index that only approximates them
      (HNSW) may have missed some in the first place. The scores are those of the new query;
      a list whose scores are no known function of the similarity serves the same query only;
    * nodes are read again by their ids at each hit, where the index can give them so. One that is
      gone, or has other text or metadata, makes it a miss.

    A query bundle with texts, an image or a vector of its own is served by the same bundle only.
    Not stored are: empty results, unless `negative` is given; nodes that the codec has no form
    for; results of a retriever of which no key can be made.

    Args:
        cache: The cache.
        inner: The retriever.
        index: The identity of its index, for the key and for `recall(index=…)`; by default derived
            from the vector store. Never of its contents.
        candidates: How many times more a vector index is asked for (at most 256 nodes), so that
            the list may serve reworded queries; 1: only the same query hits.
        audited: The share of statistical hits that are searched all the same, 0 to 1: the rule is
            calibrated by them, index by index.
        negative: How long an empty result is kept, seconds; by default it is not.
        life: Base life of what is stored, seconds; by default as the cache's policy says.
        owner: `"public"` if the nodes belong to everyone, `"pool:…"` if to the members of that
            pool; by default they are the tenant's, and nothing built on them is ever shared.
        tags: Tags for the entries.

    Raises:
        UsageError: An argument is wrong.
    """

    def __init__(
        self,
        cache: Cache,
        inner: BaseRetriever,
        *,
        index: str | None = None,
        candidates: int = 8,
        audited: float = 0.02,
        negative: float | None = None,
        life: float | None = None,
        owner: str | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        if not isinstance(cache, Cache):
            raise UsageError(f"cache must be a stemma.Cache, not {type(cache).__name__}")
        if not isinstance(inner, BaseRetriever):
            raise UsageError(f"inner must be a retriever, not {type(inner).__name__}")
        if index == "":
            raise UsageError("index must not be empty; leave it out to have it derived")
        if type(candidates) is not int or candidates < 1:
            raise UsageError(f"candidates must be a whole number from 1, not {candidates!r}")
        if not 0.0 <= audited <= 1.0:
            raise UsageError(f"audited must be from 0 to 1, not {audited!r}")
        super().__init__(callback_manager=inner.callback_manager, object_map=inner.object_map)
        self.cache = cache
        self.inner = inner
        self.index = index
        self.candidates = candidates
        self.audited = audited
        self.negative = negative
        self.life = life
        self.owner = owner_of(owner)
        self.tags = (tags,) if isinstance(tags, str) else tuple(tags)

    @property
    def stemma_identity(self) -> Any:
        """What an engine around it is told of it."""
        return {"retriever": describe(self.inner), "index": self.index}

    def index_identity(self) -> str:
        """The identity of its index, as `recall(index=…)` and `documents_changed` take it."""
        return self.index if self.index is not None else index_identity(self.inner)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        call = _Call(self, query_bundle)

        def compute() -> Any:
            if call.sought is not None:
                return call.found(call.sought.search())
            return call.given(self.inner._retrieve(query_bundle))  # noqa: SLF001 - events are told once

        return call.served(
            self.cache.retrievals.serve(
                call.asked, compute, admit=self._refusal, lasting=self._lasting
            )
        )

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        call = _Call(self, query_bundle)

        async def compute() -> Any:
            if call.sought is not None:
                return call.found(await call.sought.asearch())
            return call.given(await self.inner._aretrieve(query_bundle))  # noqa: SLF001 - as above

        return call.served(
            await self.cache.retrievals.aserve(
                call.asked, compute, admit=self._refusal, lasting=self._lasting
            )
        )

    def _refusal(self, found: Any) -> str | None:
        if not isinstance(found, (Ranking, list)):
            return "the retriever gave something else than a list of nodes"
        return "no nodes were found" if len(found) == 0 and self.negative is None else None

    def _lasting(self, found: Any) -> float | None:
        return self.negative if len(found) == 0 else None

    # ---------------------------------------------------------------- prompts of the inner one

    def _get_prompts(self) -> PromptDictType:
        return self.inner._get_prompts()  # noqa: SLF001 - the mixin's own way

    def _get_prompt_modules(self) -> PromptMixinType:
        return self.inner._get_prompt_modules()  # noqa: SLF001 - as above

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self.inner._update_prompts(prompts)  # noqa: SLF001 - as above


class _Call:
    """One call of a cached retriever.

    Args:
        face: The retriever.
        bundle: The query.
    """

    def __init__(self, face: CachedRetriever, bundle: QueryBundle) -> None:
        spans.noted()
        self._face = face
        self._marks: Mapping[int, int] = frames.marks()
        self._index = face.index_identity()
        rest = {name: said for name, said in bundle_rest(bundle).items() if said is not None}
        self.sought: Sought | None = None
        search: Search | None = None
        if searches_by_similarity(face.inner) and bundle.query_str.strip():
            self.sought = Sought(
                face.inner,  # type: ignore[arg-type]  # it is one
                bundle,
                times=face.candidates,
                index=self._index,
                owner=face.owner,
                note=self._note,
            )
            meaning = face.candidates > 1 and not rest
            search = Search(
                searcher=self.sought, k=self.sought.k, meaning=meaning, audited=face.audited
            )
        self.asked = Asked(
            scope={"index": self._index, "parameters": self._parameters()},
            request=Request(exact=rest or None, focus=bundle.query_str, meaning=False),
            codec=CODEC if search is None else _RANKINGS,
            prompt=(bundle.query_str,),
            life=face.life,
            tags=face.tags,
            search=search,
        )

    def _parameters(self) -> Any:
        inner = self._face.inner
        if self.sought is None:
            return {"retriever": describe(inner)}
        return {"search": settings(inner)}  # type: ignore[arg-type]  # it is one

    def given(self, found: list[NodeWithScore]) -> list[NodeWithScore]:
        """What the retriever gave, noted as sources before anything is stored."""
        self._note([one.node for one in found], frames.current())
        return found

    def found(self, ranking: Ranking) -> Ranking:
        """What a search gave, noted likewise."""
        self._note(self._first(ranking), frames.current())
        return ranking

    def served(self, served: Served) -> list[NodeWithScore]:
        """The nodes of an outcome; of a hit, copies with its note."""
        value = served.value
        if isinstance(value, Ranking):
            nodes = self._first(value)
            scores = value.scores if value.scores is not None else (None,) * len(nodes)
            value = [
                NodeWithScore(node=node, score=score)
                for node, score in zip(nodes, scores, strict=False)
            ]
        if not isinstance(served.outcome, Hit):
            return list(value)
        if self.sought is None:
            self._note([one.node for one in value], frames.current())
        return _marked(value, tell_hit(served.outcome))

    def _first(self, ranking: Ranking) -> list[BaseNode]:
        k = self.sought.k if self.sought is not None else len(ranking)
        return [] if ranking.documents is None else list(ranking.documents[:k])

    def _note(self, nodes: Sequence[BaseNode], frame: Frame | None) -> None:
        if frame is not None:
            sources = nodes_as_sources(nodes, index=self._index, owner=self._face.owner)
            frame.read_sources(sources, self._marks)


def _marked(found: Sequence[NodeWithScore], note: dict[str, Any]) -> list[NodeWithScore]:
    """Copies of nodes with the note of a hit, which is shown to neither models nor embedders."""
    copies = copy.deepcopy(list(found))
    for one in copies:
        node = one.node
        node.metadata[NOTE] = dict(note)
        for hidden in (node.excluded_llm_metadata_keys, node.excluded_embed_metadata_keys):
            if NOTE not in hidden:
                hidden.append(NOTE)
    return copies
