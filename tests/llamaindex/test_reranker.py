"""Rerankers behind the cache, as node postprocessors."""

import asyncio
import math
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata, MockLLM
from llama_index.core.postprocessor import (
    LLMRerank,
    LongContextReorder,
    MetadataReplacementPostProcessor,
    SentenceTransformerRerank,
    SimilarityPostprocessor,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import (
    ImageNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index_instrumentation.dispatcher import instrument_tags
from pydantic import ValidationError

import stemma
from stemma_llamaindex import CachedReranker
from stemma_llamaindex.describing import describe
from stemma_llamaindex.reranking import tell_end, tell_start

QUERY = "red fox"
TEXTS = ["a blue whale", "a red hen", "a red fox"]
CALLS: list = []


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None, tenant="t") as opened:
        yield opened


def overlap(query, text):
    return len(set(query.split()) & set(text.split())) + 0.1


def words(query, texts):
    CALLS.append(list(texts))
    return [overlap(query, text) for text in texts]


class Hosted(BaseNodePostprocessor):
    """Scores each node, writes into what it is given, sorts it in place and cuts."""

    top_n: int = 3
    skips: str | None = None
    label: Any = None

    def _ranked(self, nodes, bundle):
        CALLS.append([one.node.text for one in nodes])
        for one in nodes:
            one.node.metadata["seen"] = True
            one.score = (
                None if one.node.text == self.skips else overlap(bundle.query_str, one.node.text)
            )
        nodes.sort(key=lambda one: -one.score if one.score is not None else 0)
        return nodes[: self.top_n]

    def _postprocess_nodes(self, nodes, query_bundle=None):
        if query_bundle is None:
            raise ValueError("a query is needed")
        return self._ranked(nodes, query_bundle)

    async def _apostprocess_nodes(self, nodes, query_bundle=None):
        CALLS.append("async")
        return self._postprocess_nodes(nodes, query_bundle)


class CrossEncoder:
    """In place of the one of sentence-transformers."""

    def __init__(self, *_, **__):
        pass

    def predict(self, sentences):
        return words(sentences[0][0], [text for _, text in sentences])


class Choosing(CustomLLM):
    """Says which documents to choose, and counts how often it was asked."""

    said: str = "Doc: 3, Relevance: 9\nDoc: 1, Relevance: 2"

    @property
    def metadata(self):
        return LLMMetadata(model_name="chooser")

    def complete(self, prompt, formatted=False, **_):
        CALLS.append(prompt)
        return CompletionResponse(text=self.said)

    def stream_complete(self, prompt, formatted=False, **_):
        raise NotImplementedError


def nodes(texts=TEXTS):
    return [
        NodeWithScore(
            node=TextNode(
                text=text,
                id_=f"id-{n}",
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc-{n}")},
            ),
            score=0.5,
        )
        for n, text in enumerate(texts)
    ]


def shown(found):
    return [(one.node.node_id, one.node.text, one.score) for one in found]


RANKED = [("id-2", "a red fox", 2.1), ("id-1", "a red hen", 1.1), ("id-0", "a blue whale", 0.1)]
PAIRWISE = {"function": (lambda: words, {}), "a host's": (Hosted, {"pairwise": True})}
KINDS = PAIRWISE | {"whole list": (Hosted, {})}


@pytest.fixture(params=PAIRWISE)
def pairwise(request, cache):
    make, named = PAIRWISE[request.param]
    return CachedReranker(cache, make(), **named)


@pytest.fixture(params=KINDS)
def reranker(request, cache):
    make, named = KINDS[request.param]
    return CachedReranker(cache, make(), **named)


@pytest.fixture(params=["sync", "async"])
def rerank(request):
    """Calls a reranker in one of the two styles."""
    if request.param == "sync":
        return lambda reranker, found, query=QUERY: reranker.postprocess_nodes(
            found, query_str=query
        )
    return lambda reranker, found, query=QUERY: asyncio.run(
        reranker.apostprocess_nodes(found, query_str=query)
    )


def scored():
    return [call for call in CALLS if call != "async"]


def test_the_second_call_does_not_reach_the_reranker(rerank, reranker):
    first, again = rerank(reranker, nodes()), rerank(reranker, nodes())
    assert shown(first) == shown(again) == RANKED
    assert scored() == [TEXTS]
    assert all("stemma" not in one.node.metadata for one in first)
    assert all(one.node.metadata["stemma"]["node"] == "rerank" for one in again)


def test_async_calls_reach_the_async_side(cache):
    for pairs in (True, False):
        CALLS.clear()
        reranker = CachedReranker(cache, Hosted(), pairwise=pairs)
        asyncio.run(reranker.apostprocess_nodes(nodes(), query_str=QUERY))
        assert CALLS[0] == "async"


def test_only_missing_pairs_reach_it_in_one_batch(rerank, pairwise):
    rerank(pairwise, nodes()[:2])
    found = rerank(pairwise, nodes([*TEXTS, "fox", TEXTS[0]]))
    assert scored() == [TEXTS[:2], ["a red fox", "fox"]]
    assert [one.node.node_id for one in found] == ["id-2", "id-1", "id-3", "id-0", "id-4"][
        : len(found)
    ]
    assert ["stemma" in one.node.metadata for one in found[:3]] == [False, True, False]


def test_scores_follow_the_nodes_when_the_list_is_shuffled(rerank, pairwise):
    rerank(pairwise, nodes())
    for order in ([2, 0, 1], [1, 2, 0], [2, 1, 0]):
        assert shown(rerank(pairwise, [nodes()[place] for place in order])) == RANKED
    assert len(scored()) == 1


def test_nodes_of_equal_text_keep_their_own_ids_and_metadata(rerank, reranker):
    twins = nodes(["a red fox", "a blue whale", "a red fox"])
    for _ in range(2):
        found = rerank(reranker, twins)
        assert [one.node.node_id for one in found] == ["id-0", "id-2", "id-1"]
        assert [one.score for one in found] == [2.1, 2.1, 0.1]


def test_what_went_in_is_left_alone_and_what_came_out_may_be_changed(rerank, reranker):
    given = nodes()
    before = [one.model_copy(deep=True) for one in given]
    for _ in range(3):
        found = rerank(reranker, given)
        assert shown(found) == RANKED
        assert given == before
        found[0].node.metadata["mine"] = 1
        found[0].score = 7.0
        found.reverse()


def test_no_model_is_shown_the_note(rerank, reranker):
    rerank(reranker, nodes())
    found = rerank(reranker, nodes())
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert [one.node.get_content(mode) for one in found] == [text for _, text, _ in RANKED]
    again = rerank(reranker, found)  # a list with notes has the same texts
    assert [one.node.node_id for one in again] == ["id-2", "id-1", "id-0"]


def test_top_n_changes_freely_and_costs_nothing(rerank, pairwise):
    for most in (3, 1, 2, None):
        pairwise.top_n = most
        assert shown(rerank(pairwise, nodes())) == RANKED[:most]
    assert len(scored()) == 1


def test_a_host_that_cuts_scores_all_that_is_missing(rerank, cache):
    reranker = CachedReranker(cache, Hosted(top_n=1), pairwise=True)
    assert shown(rerank(reranker, nodes())) == RANKED[:1]
    reranker.top_n = 3
    assert shown(rerank(reranker, nodes())) == RANKED
    assert len(scored()) == 1
    assert reranker.inner.top_n == 1


def test_a_whole_list_is_kept_by_its_order_its_scores_and_the_postprocessors_settings(
    rerank, cache
):
    lists = [
        (Hosted(), nodes()),
        (Hosted(), nodes()[::-1]),
        (Hosted(), [NodeWithScore(node=one.node, score=None) for one in nodes()]),
        (Hosted(top_n=2), nodes()),
        (Hosted(label="b"), nodes()),
    ]
    for _ in range(2):
        for inner, given in lists:
            found = rerank(CachedReranker(cache, inner), given)
            assert shown(found) == RANKED[: inner.top_n]
    assert len(scored()) == len(lists)
    assert all(one.node.metadata["stemma"]["list"] == "whole" for one in found)


def test_a_language_model_that_ranks_the_list_is_asked_once(rerank, cache):
    reranker = CachedReranker(cache, LLMRerank(llm=Choosing(), top_n=2))
    for hit in (False, True):
        found = rerank(reranker, nodes())
        assert shown(found) == [("id-2", "a red fox", 9.0), ("id-0", "a blue whale", 2.0)]
        assert all(("stemma" in one.node.metadata) is hit for one in found)
    assert len(CALLS) == 1
    assert cache.recall(model="chooser", dry_run=True).by_node == {"rerank": 1}
    other = Choosing(said="Doc: 1, Relevance: 5")
    assert len(rerank(CachedReranker(cache, LLMRerank(llm=other, top_n=2)), nodes())) == 1


def test_a_choice_of_nothing_is_not_kept(rerank, cache):
    reranker = CachedReranker(cache, LLMRerank(llm=Choosing(said="I cannot tell."), top_n=2))
    for _ in range(2):
        assert rerank(reranker, nodes()) == []
    assert len(CALLS) == 2


def test_llamaindexes_own_cross_encoder_reranker_scores_pairs(rerank, cache, monkeypatch):
    module = SimpleNamespace(CrossEncoder=CrossEncoder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    inner = SentenceTransformerRerank(top_n=2, device="cpu", keep_retrieval_score=True)
    expected = inner.postprocess_nodes(nodes(), query_str=QUERY)
    CALLS.clear()
    reranker = CachedReranker(cache, inner)
    rerank(reranker, nodes()[1:])
    found = rerank(reranker, nodes())
    assert shown(found) == shown(expected) == RANKED[:2]
    assert [one.node.metadata["retrieval_score"] for one in found] == [0.5, 0.5]
    assert [TEXTS[1:], TEXTS[:1]] == CALLS


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("style", ["sync", "async"])
def test_without_a_query_nothing_is_cached(cache, style):
    def call(reranker, found):
        if style == "sync":
            return reranker.postprocess_nodes(found)
        return asyncio.run(reranker.apostprocess_nodes(found))

    given = nodes()
    assert call(CachedReranker(cache, words), given) == given
    assert call(CachedReranker(cache, words, top_n=2), given) == given[:2]
    with pytest.raises(ValueError, match="a query is needed"):
        call(CachedReranker(cache, Hosted()), given)
    inner = SimilarityPostprocessor(similarity_cutoff=0.9)
    assert call(CachedReranker(cache, inner), given) == []
    assert scored() == []


def test_nothing_in_nothing_out(rerank, reranker):
    assert rerank(reranker, []) == []
    assert CALLS == []


def test_a_blank_query_and_nodes_without_text_are_scored_like_others(rerank, reranker):
    for query in ("", " ", "\ud800"):
        first = rerank(reranker, nodes(["", "  "]), query)
        assert shown(rerank(reranker, nodes(["", "  "]), query)) == shown(first)
    assert len(scored()) == 3


def test_what_is_no_finite_score_ranks_last_and_is_told_once(rerank, cache):
    def broken(query, texts):
        return [math.nan if "fox" in text else overlap(query, text) for text in texts]

    reranker = CachedReranker(cache, broken, model="broken/1")
    with pytest.warns(RuntimeWarning, match="1 of 3 texts"):
        found = rerank(reranker, nodes())
    assert shown(found) == [RANKED[1], RANKED[2], ("id-2", "a red fox", None)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shown(rerank(reranker, nodes())) == shown(found)


def test_a_postprocessor_that_leaves_some_unscored_is_kept_as_a_whole_from_then_on(rerank, cache):
    reranker = CachedReranker(cache, Hosted(skips="a red hen"), pairwise=True)
    with pytest.warns(RuntimeWarning, match="cached as a whole"):
        first = rerank(reranker, nodes())
    assert shown(rerank(reranker, nodes())) == shown(first)
    assert ("id-1", "a red hen", None) in shown(first)
    assert len(scored()) == 2


def test_other_texts_and_other_nodes_are_given_and_not_kept(rerank, cache):
    """One puts another text into the very nodes that it is given."""
    windowed = nodes()
    for one in windowed:
        one.node.metadata["window"] = f"{one.node.text}, and more"
    inner = MetadataReplacementPostProcessor(target_metadata_key="window")
    for _ in range(2):
        found = rerank(CachedReranker(cache, inner), windowed)
        assert [one.node.text for one in found] == [f"{text}, and more" for text in TEXTS]
        assert all("stemma" not in one.node.metadata for one in found)


def test_one_that_goes_by_scores_is_right_whatever_the_scores(rerank, cache):
    reranker = CachedReranker(cache, LongContextReorder())
    for scores in ([1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [1.0, 2.0, 3.0]):
        given = [NodeWithScore(node=n.node, score=s) for n, s in zip(nodes(), scores, strict=True)]
        expected = LongContextReorder().postprocess_nodes(list(given))
        assert shown(rerank(reranker, given)) == shown(expected)


def test_two_pictures_without_text_are_two(rerank, cache):
    reranker = CachedReranker(cache, Hosted())
    for picture in ("a.png", "b.png", "a.png"):
        rerank(reranker, [NodeWithScore(node=ImageNode(image_path=picture, id_="i"), score=1.0)])
    assert len(scored()) == 2


def test_what_the_reranker_raises_passes_through_unstored(rerank, cache):
    def failing(query, texts):
        CALLS.append(1)
        raise TimeoutError("no answer")

    reranker = CachedReranker(cache, failing, model="failing/1")
    for _ in range(2):
        with pytest.raises(TimeoutError, match="no answer"):
            rerank(reranker, nodes())
    assert len(CALLS) == 2


async def test_without_a_tenant_it_passes_by_and_warns_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        reranker = CachedReranker(nobody, words)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert shown(reranker.postprocess_nodes(nodes(), query_str=QUERY)) == RANKED
            assert shown(await reranker.apostprocess_nodes(nodes(), query_str=QUERY)) == RANKED
    assert ["no tenant" in str(one.message) for one in told] == [True]
    assert len(CALLS) == 2


@pytest.mark.parametrize(
    "named", [{"top_n": 0}, {"life": 0}, {"unknown": 1}, {"model": ""}, {"pairwise": "some"}]
)
def test_wrong_arguments_are_refused(cache, named):
    with pytest.raises(ValidationError):
        CachedReranker(cache, words, **named)


def test_what_does_not_rerank_is_refused(cache):
    with pytest.raises(stemma.UsageError, match="is no reranker"):
        CachedReranker(cache, 42)
    with pytest.raises(stemma.UsageError, match="this scores pairs"):
        CachedReranker(cache, words, pairwise=False)


# ------------------------------------------------------------------ what is read, and the key


def test_the_metadata_that_embedding_models_are_shown_is_read(rerank, cache):
    reranker = CachedReranker(cache, words)
    for title in ("red", "blue", "red"):
        node = TextNode(text="fox", metadata={"title": title}, id_="x")
        rerank(reranker, [NodeWithScore(node=node)])
    assert CALLS == [["title: red\n\nfox"], ["title: blue\n\nfox"]]
    bare = CachedReranker(cache, words, text=lambda node: node.text)
    rerank(bare, [NodeWithScore(node=node)])
    assert CALLS[-1] == ["fox"]


def test_all_of_the_query_is_in_the_key(cache):
    for pairs in (True, False):
        CALLS.clear()
        reranker = CachedReranker(cache, Hosted(label=str(pairs)), pairwise=pairs)
        for bundle in (
            QueryBundle(QUERY),
            QueryBundle(QUERY, custom_embedding_strs=["fox"]),
            QueryBundle(QUERY, image_path="a.png"),
        ) * 2:
            assert shown(reranker.postprocess_nodes(nodes(), bundle)) == RANKED
        assert len(scored()) == 3


# -------------------------------------------------------------------- engines, events


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle):
        return nodes()


def engine(reranker):
    return RetrieverQueryEngine(
        Shelf(), get_response_synthesizer(llm=MockLLM()), node_postprocessors=[reranker]
    )


def test_it_works_in_a_query_engine_and_what_it_keeps_are_sources(cache):
    asked = engine(CachedReranker(cache, words, top_n=2))
    answers = [asked.query(QUERY), asyncio.run(asked.aquery(QUERY))]
    assert [shown(answer.source_nodes) for answer in answers] == [RANKED[:2]] * 2
    assert len(CALLS) == 1


def test_nodes_from_elsewhere_are_sources_of_what_is_built_on_them(cache):
    reranker = CachedReranker(cache, words, top_n=1)
    for question in ("computed", "a hit"):
        with cache.trace():
            reranker.postprocess_nodes(nodes(), query_str=QUERY)
            cache.answers.get_or_compute(question, lambda: "built on it")
    assert cache.recall(source="doc-2", dry_run=True).by_node == {"answer": 2}
    assert cache.recall(source="doc-0", dry_run=True).by_node == {}


def test_the_tenant_that_tags_name_is_the_tenant(cache):
    asked = engine(CachedReranker(cache, words))
    for tenant in ("acme", "zenith", "acme"):
        with instrument_tags({"tenant": tenant}):
            asked.query(QUERY)
    assert len(CALLS) == 2


class Heard(BaseEventHandler):
    """Notes the names of events."""

    names: list[str]

    def handle(self, event, **_):
        if event.class_name() in ("ReRankStartEvent", "ReRankEndEvent", "CacheHitEvent"):
            self.names.append(event.class_name())


@pytest.fixture
def heard():
    handler, dispatcher = Heard(names=[]), get_dispatcher()
    dispatcher.add_event_handler(handler)
    yield handler.names
    dispatcher.event_handlers.remove(handler)


BOTH = ["ReRankStartEvent", "ReRankEndEvent"]


def test_a_reranking_is_told_once_and_a_hit_says_so(cache, heard):
    reranker = CachedReranker(cache, words)
    reranker.postprocess_nodes(nodes(), query_str=QUERY)
    assert heard == BOTH
    heard.clear()
    asyncio.run(reranker.apostprocess_nodes(nodes(), query_str=QUERY))
    assert heard == ["ReRankStartEvent", *["CacheHitEvent"] * 3, "ReRankEndEvent"]


def test_what_tells_of_it_itself_is_not_told_of_twice(cache, heard):
    class Telling(Hosted):
        def _ranked(self, nodes, bundle):
            tell_start(nodes, bundle, top_n=3, model="telling")
            found = super()._ranked(nodes, bundle)
            tell_end(found)
            return found

    for pairs in (True, False):
        heard.clear()
        reranker = CachedReranker(cache, Telling(), pairwise=pairs)
        reranker.postprocess_nodes(nodes(), query_str=QUERY)
        assert heard == BOTH
        heard.clear()
        reranker.postprocess_nodes(nodes(), query_str=QUERY)
        assert [name for name in heard if name != "CacheHitEvent"] == BOTH
        assert heard.count("CacheHitEvent") == (3 if pairs else 1)


# --------------------------------------------------------------------- as an object


def test_it_is_a_component(cache):
    manager = CallbackManager()
    reranker = CachedReranker(cache, Hosted(callback_manager=manager), top_n=2)
    assert BaseNodePostprocessor.__name__ in [base.__name__ for base in CachedReranker.__mro__]
    assert reranker.class_name() == "CachedReranker"
    assert reranker.to_dict()["class_name"] == "CachedReranker"
    assert "cache" not in reranker.to_dict()
    assert reranker.callback_manager is manager


def test_an_engine_around_it_is_told_what_it_is(cache):
    kinds = [
        CachedReranker(cache, words),
        CachedReranker(cache, words, top_n=1),
        CachedReranker(cache, words, model="other"),
        CachedReranker(cache, words, text=lambda node: node.text),
        CachedReranker(cache, Hosted()),
        CachedReranker(cache, Hosted(), pairwise=True),
        CachedReranker(cache, Hosted(top_n=7)),
    ]
    assert len({stemma.digest(describe(kind)) for kind in kinds}) == len(kinds)
    before = stemma.digest(describe(kinds[0]))
    kinds[0].postprocess_nodes(nodes(), query_str=QUERY)
    assert stemma.digest(describe(kinds[0])) == before
