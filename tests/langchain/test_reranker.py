"""Rerankers behind the cache: cross-encoders, functions, and document compressors."""

import asyncio
import copy
import json
import math
import pickle
import warnings
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import (
    CrossEncoderReranker,
    LLMListwiseRerank,
)
from langchain_core.callbacks import CallbackManager
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from pydantic import ValidationError

import stemma
from stemma_langchain import CachedReranker, CachedRetriever
from stemma_langchain.fingerprint import fingerprint

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


class Words(BaseCrossEncoder):
    """A cross-encoder that counts common words."""

    def score(self, text_pairs):
        CALLS.append([text for _, text in text_pairs])
        return [overlap(query, text) for query, text in text_pairs]


def function(query, texts):
    CALLS.append(list(texts))
    return [overlap(query, text) for text in texts]


class Hosted(BaseDocumentCompressor):
    """Like the rerankers of hosts: sorted copies without ids, cut, with the score in metadata."""

    top_n: int | None = 3
    key: str = "relevance_score"
    drops: str | None = None
    label: Any = ""

    def _ranked(self, documents, query):
        CALLS.append([one.page_content for one in documents])
        scored = [
            Document(
                one.page_content,
                metadata={**one.metadata, self.key: overlap(query, one.page_content)},
            )
            for one in documents
            if one.page_content != self.drops
        ]
        return sorted(scored, key=lambda one: -one.metadata[self.key])[: self.top_n]

    def compress_documents(self, documents, query, callbacks=None):
        return self._ranked(documents, query)

    async def acompress_documents(self, documents, query, callbacks=None):
        CALLS.append("async")
        return self._ranked(documents, query)


class Mutating(BaseDocumentCompressor):
    """Writes into the documents it is given, sorts them in place, gives the same objects."""

    def compress_documents(self, documents, query, callbacks=None):
        CALLS.append([one.page_content for one in documents])
        for one in documents:
            one.metadata["relevance_score"] = overlap(query, one.page_content)
        documents.sort(key=lambda one: -one.metadata["relevance_score"])
        return documents


def documents(texts=TEXTS):
    return [
        Document(text, id=f"id-{n}", metadata={"source": f"doc-{n}", "rights": [n]})
        for n, text in enumerate(texts)
    ]


def shown(found):
    return [(one.id, one.page_content, one.metadata.get("relevance_score")) for one in found]


def plain(found):
    return [
        (one.id, one.page_content, {k: v for k, v in one.metadata.items() if k != "stemma"})
        for one in found
    ]


RANKED = [("id-2", "a red fox", 2.1), ("id-1", "a red hen", 1.1), ("id-0", "a blue whale", 0.1)]
PAIRWISE = {
    "cross-encoder": lambda: (Words(), {}),
    "function": lambda: (function, {}),
    "langchain's reranker": lambda: (CrossEncoderReranker(model=Words(), top_n=9), {}),
    "a host's": lambda: (Hosted(), {"pairwise": True}),
}
KINDS = PAIRWISE | {"whole list": lambda: (Mutating(), {})}


@pytest.fixture(params=PAIRWISE)
def pairwise(request, cache):
    inner, named = PAIRWISE[request.param]()
    return CachedReranker(cache, inner, **named)


@pytest.fixture(params=KINDS)
def reranker(request, cache):
    inner, named = KINDS[request.param]()
    return CachedReranker(cache, inner, **named)


@pytest.fixture(params=["sync", "async"])
def rerank(request):
    """Calls a reranker in one of the two styles."""
    if request.param == "sync":
        return lambda reranker, *args, **named: reranker.compress_documents(*args, **named)
    return lambda reranker, *args, **named: asyncio.run(
        reranker.acompress_documents(*args, **named)
    )


def scored():
    return [call for call in CALLS if call != "async"]


def test_the_second_call_does_not_reach_the_reranker(rerank, reranker):
    first = rerank(reranker, documents(), QUERY)
    again = rerank(reranker, documents(), QUERY)
    assert shown(first) == shown(again) == RANKED
    assert plain(first) == plain(again)
    assert scored() == [TEXTS]
    assert all("stemma" not in one.metadata for one in first)
    assert all(one.metadata["stemma"]["node"] == "rerank" for one in again)


def test_sync_and_async_share_what_is_stored_and_the_same_note(reranker):
    reranker.compress_documents(documents(), QUERY)
    left = reranker.compress_documents(documents(), QUERY)
    right = asyncio.run(reranker.acompress_documents(documents(), QUERY))
    notes = [{**one.metadata["stemma"], "age": 0} for one in (*left, *right)]
    assert notes[:3] == notes[3:]
    assert len(CALLS) == 1


def test_async_calls_reach_the_async_side(cache):
    for pairwise in (True, False):
        CALLS.clear()
        reranker = CachedReranker(cache, Hosted(), pairwise=pairwise)
        asyncio.run(reranker.acompress_documents(documents(), QUERY))
        assert CALLS[0] == "async"


def test_only_missing_pairs_reach_it_in_one_batch(rerank, pairwise):
    rerank(pairwise, documents()[:2], QUERY)
    found = rerank(pairwise, documents([*TEXTS, "fox", TEXTS[0]]), QUERY)
    assert scored() == [TEXTS[:2], ["a red fox", "fox"]]
    assert [one.id for one in found] == ["id-2", "id-1", "id-3", "id-0", "id-4"][: len(found)]
    assert ["stemma" in one.metadata for one in found[:3]] == [False, True, False]


def test_scores_follow_the_documents_when_the_list_is_shuffled(rerank, pairwise):
    first = rerank(pairwise, documents(), QUERY)
    for order in ([2, 0, 1], [1, 2, 0], [2, 1, 0]):
        shuffled = [documents()[place] for place in order]
        assert plain(rerank(pairwise, shuffled, QUERY)) == plain(first)
    assert len(scored()) == 1


def test_a_shuffled_whole_list_is_another_list(rerank, cache):
    reranker = CachedReranker(cache, Mutating())
    for order in (1, -1, 1):
        assert shown(rerank(reranker, documents()[::order], QUERY)) == RANKED
    assert scored() == [TEXTS, TEXTS[::-1]]


def test_documents_of_equal_text_keep_their_own_ids_rights_and_metadata(rerank, reranker):
    twins = [
        Document("a red fox", id="one", metadata={"rights": "all"}),
        Document("a blue whale", id="two", metadata={}),
        Document("a red fox", id="three", metadata={"rights": "few"}),
    ]
    for _ in range(2):
        found = rerank(reranker, twins, QUERY)
        assert [one.id for one in found] == ["one", "three", "two"]
        assert [one.metadata.get("rights") for one in found] == ["all", "few", None]
        assert [one.metadata["relevance_score"] for one in found] == [2.1, 2.1, 0.1]


def test_other_documents_of_the_same_texts_come_out_as_themselves(rerank, reranker):
    rerank(reranker, documents(), QUERY)
    others = [one.model_copy(update={"id": f"x-{one.id}"}) for one in documents()]
    others[0].metadata["rights"] = "none"
    found = rerank(reranker, others, QUERY)
    assert [one.id for one in found] == ["x-id-2", "x-id-1", "x-id-0"]
    assert found[2].metadata["rights"] == "none"
    assert len(scored()) == 1


def test_what_went_in_is_left_alone_and_what_came_out_may_be_changed(rerank, reranker):
    given = documents()
    for _ in range(3):
        found = rerank(reranker, given, QUERY)
        assert shown(found) == RANKED
        assert plain(given) == plain(documents())
        found[0].metadata["mine"] = 1
        found[0].page_content = "cut"
        found.reverse()


def test_top_n_changes_freely_and_costs_nothing(rerank, pairwise):
    assert shown(rerank(pairwise, documents(), QUERY)) == RANKED
    for most in (1, 2, 3, 50):
        assert shown(rerank(pairwise, documents(), QUERY, top_n=most)) == RANKED[:most]
    narrow = CachedReranker(pairwise.cache, pairwise.inner, pairwise=pairwise.pairwise, top_n=1)
    assert shown(rerank(narrow, documents(), QUERY)) == RANKED[:1]
    assert shown(rerank(narrow, documents(), QUERY, top_n=2)) == RANKED[:2]
    narrow.top_n = 2
    assert shown(rerank(narrow, documents(), QUERY)) == RANKED[:2]
    assert len(scored()) == 1


def test_as_many_come_back_as_the_wrapped_compressor_is_set_to(rerank, cache):
    for inner in (CrossEncoderReranker(model=Words(), top_n=2), Hosted(top_n=2)):
        for pairwise in (True, False):
            reranker = CachedReranker(cache, inner, pairwise=pairwise)
            for _ in range(2):
                assert len(rerank(reranker, documents(), QUERY)) == 2


def test_a_host_that_cuts_scores_all_that_is_missing(rerank, cache):
    reranker = CachedReranker(cache, Hosted(top_n=1), pairwise=True)
    assert shown(rerank(reranker, documents(), QUERY)) == RANKED[:1]
    assert shown(rerank(reranker, documents(), QUERY, top_n=3)) == RANKED
    assert len(scored()) == 1
    assert reranker.inner.top_n == 1


def test_the_compressors_own_cut_is_in_the_key_of_a_whole_list(rerank, cache):
    for most in (1, 2, 1):
        inner = Hosted(top_n=most)
        assert shown(rerank(CachedReranker(cache, inner), documents(), QUERY)) == RANKED[:most]
    assert len(scored()) == 2


def test_a_whole_list_says_so_and_may_be_cut(rerank, cache):
    reranker = CachedReranker(cache, Mutating())
    rerank(reranker, documents(), QUERY)
    found = rerank(reranker, documents(), QUERY, top_n=2)
    assert shown(found) == RANKED[:2]
    found[0].metadata["stemma"]["mine"] = 1
    assert "mine" not in found[1].metadata["stemma"]
    assert all(one.metadata["stemma"]["list"] == "whole" for one in found)
    assert len(scored()) == 1


def test_a_language_model_that_ranks_the_list_is_asked_once(rerank, cache):
    class Ranks(GenericFakeChatModel):
        def with_structured_output(self, schema, **_):
            return self | RunnableLambda(lambda said: schema(**json.loads(said.content)))

    model = Ranks(messages=iter([AIMessage('{"ranked_document_ids": [2, 0]}')] * 3))
    inner = LLMListwiseRerank.from_llm(model, top_n=2)
    reranker = CachedReranker(cache, inner, model="lists/1")
    given = documents()
    expected = [("id-2", "a red fox", None), ("id-0", "a blue whale", None)]
    for hit in (False, True, True):
        found = rerank(reranker, given, QUERY)
        assert shown(found) == expected
        assert all(("stemma" in one.metadata) is hit for one in found)
    assert cache.recall(model="lists/1", dry_run=True).by_node == {"rerank": 1}


# ---------------------------------------------------------------------------- bad input


def test_nothing_in_nothing_out(rerank, reranker):
    assert rerank(reranker, [], QUERY) == []
    assert CALLS == []


def test_blank_queries_and_documents_without_text_are_scored_like_others(rerank, reranker):
    blank = [Document("", id="a"), Document("  ", id="b")]
    for query in ("", " ", "\x00", "\ud800"):
        first = rerank(reranker, blank, query)
        assert plain(rerank(reranker, blank, query)) == plain(first)
    assert len(scored()) == 4


def test_documents_without_ids_and_with_strange_metadata_pass(rerank, reranker):
    thing = object()
    given = [Document("a red fox", metadata={"thing": thing}), Document("a hen")]
    for _ in range(2):
        found = rerank(reranker, given, QUERY)
        assert found[0].metadata["thing"] is thing
        assert [one.id for one in found] == [None, None]
    assert len(scored()) == 1


def test_what_is_no_finite_score_ranks_last_is_not_stored_and_told_once(rerank, cache):
    def broken(query, texts):
        CALLS.append(list(texts))
        return [math.nan if "hen" in text else overlap(query, text) for text in texts]

    reranker = CachedReranker(cache, broken, model="broken/1")
    with pytest.warns(RuntimeWarning, match="1 of 3 texts"):
        found = rerank(reranker, documents(), QUERY)
    assert shown(found) == [RANKED[0], RANKED[2], ("id-1", "a red hen", None)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shown(rerank(reranker, documents(), QUERY)) == shown(found)
    assert scored() == [TEXTS, ["a red hen"]]


def test_what_the_reranker_raises_passes_through_unstored(rerank, cache):
    class Failing(Hosted):
        def _ranked(self, documents, query):
            CALLS.append("failed")
            raise TimeoutError("no answer")

    for pairwise in (True, False):
        reranker = CachedReranker(cache, Failing(), pairwise=pairwise)
        for _ in range(2):
            with pytest.raises(TimeoutError, match="no answer"):
                rerank(reranker, documents(), QUERY)
    assert CALLS.count("failed") == 4


@pytest.mark.parametrize("inner", [Hosted(key="score"), Hosted(drops="a red hen")])
def test_a_compressor_that_leaves_some_unscored_is_cached_as_a_whole_from_then_on(
    rerank, cache, inner
):
    reranker = CachedReranker(cache, inner, pairwise=True)
    expected = [one.page_content for one in inner.compress_documents(documents(), QUERY)]
    CALLS.clear()
    with pytest.warns(RuntimeWarning, match="cached as a whole"):
        found = rerank(reranker, documents(), QUERY)
    assert [one.page_content for one in found] == expected
    assert [one.page_content for one in rerank(reranker, documents(), QUERY)] == expected
    assert scored() == [TEXTS, TEXTS]


def test_the_score_of_an_earlier_stage_is_not_taken_for_a_pairs(rerank, cache):
    first = CachedReranker(cache, Words()).compress_documents(documents(), QUERY)
    reranker = CachedReranker(cache, Hosted(key="elsewhere"), pairwise=True)
    with pytest.warns(RuntimeWarning, match="left something without a score"):
        rerank(reranker, first, "blue")


@pytest.mark.parametrize("in_place", [True, False])
def test_extracts_are_given_and_not_stored(rerank, cache, in_place):
    class Extracts(BaseDocumentCompressor):
        def compress_documents(self, documents, query, callbacks=None):
            CALLS.append(1)
            found = documents if in_place else copy.deepcopy(documents)
            for one in found:
                one.page_content = one.page_content[:3]
            return found

    reranker = CachedReranker(cache, Extracts())
    for _ in range(2):
        found = rerank(reranker, documents(), QUERY)
        assert [one.page_content for one in found] == ["a b", "a r", "a r"]
        assert "stemma" not in found[0].metadata
    assert len(CALLS) == 2


def test_a_list_of_which_nothing_is_kept_is_not_stored(rerank, cache):
    class Nothing(BaseDocumentCompressor):
        def compress_documents(self, documents, query, callbacks=None):
            CALLS.append(1)
            return []

    reranker = CachedReranker(cache, Nothing())
    assert [rerank(reranker, documents(), QUERY) for _ in range(2)] == [[], []]
    assert len(CALLS) == 2


def test_a_score_of_an_earlier_stage_is_not_taken_for_the_compressors(rerank, cache):
    class Reverses(BaseDocumentCompressor):
        def compress_documents(self, documents, query, callbacks=None):
            return documents[::-1]

    first = CachedReranker(cache, Words()).compress_documents(documents(), QUERY)
    reranker = CachedReranker(cache, Reverses())
    for _ in range(2):
        assert shown(rerank(reranker, first, "other")) == RANKED[::-1]
    others = [one.model_copy(update={"metadata": {}}) for one in first]
    assert [score for *_, score in shown(rerank(reranker, others, "other"))] == [None] * 3


async def test_without_a_tenant_it_passes_by_and_warns_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        for inner in (Words(), Mutating()):
            reranker = CachedReranker(nobody, inner)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                assert shown(reranker.compress_documents(documents(), QUERY)) == RANKED
                assert shown(await reranker.acompress_documents(documents(), QUERY)) == RANKED
            assert len(told) == (1 if isinstance(inner, Words) else 0)
    assert len(scored()) == 4


@pytest.mark.parametrize("pairwise", [True, False])
def test_a_compressor_that_has_no_key_passes_by(rerank, cache, pairwise):
    reranker = CachedReranker(cache, Hosted(label=(n for n in "ab")), pairwise=pairwise)
    with pytest.warns(RuntimeWarning, match="bypassed"):
        assert shown(rerank(reranker, documents(), QUERY)) == RANKED
    assert shown(rerank(reranker, documents(), QUERY)) == RANKED
    named = CachedReranker(cache, reranker.inner, pairwise=pairwise, model="hosted/1")
    for _ in range(2):
        assert shown(rerank(named, documents(), QUERY)) == RANKED
    assert len(scored()) == 3


@pytest.mark.parametrize(
    "named", [{"top_n": 0}, {"life": 0}, {"unknown": 1}, {"model": ""}, {"pairwise": "some"}]
)
def test_wrong_arguments_are_refused(cache, named):
    with pytest.raises(ValidationError):
        CachedReranker(cache, Words(), **named)


def test_what_does_not_rerank_is_refused(cache):
    with pytest.raises(stemma.UsageError, match="is no reranker"):
        CachedReranker(cache, 42)
    with pytest.raises(stemma.UsageError, match="this scores pairs"):
        CachedReranker(cache, Words(), pairwise=False)
    with pytest.raises(stemma.UsageError, match="revision="):
        CachedReranker(cache, lambda query, texts: [])


# ---------------------------------------------------------------------- keys


def test_queries_models_tenants_and_settings_are_kept_apart(cache):
    for inner in (Hosted(), Hosted(label="b")):
        for pairwise in (True, False):
            CachedReranker(cache, inner, pairwise=pairwise).compress_documents(documents(), QUERY)
    CachedReranker(cache, Hosted()).compress_documents(documents(), "other")
    with cache.using(tenant="other"):
        CachedReranker(cache, Hosted()).compress_documents(documents(), QUERY)
    assert len(scored()) == 6
    CachedReranker(cache, Hosted()).compress_documents(documents(), QUERY)
    assert len(scored()) == 6


class Unlike(Words):
    """The other way round."""

    def score(self, text_pairs):
        return [-score for score in super().score(text_pairs)]


def test_a_compressor_whose_model_is_replaced_scores_with_the_new_one(cache):
    inner = CrossEncoderReranker(model=Words(), top_n=3)
    cached = CachedReranker(cache, inner)
    documents = [Document(text, id=text) for text in TEXTS]
    before = [one.id for one in cached.compress_documents(documents, QUERY)]
    inner.model = Unlike()
    for _ in range(2):
        after = cached.compress_documents(documents, QUERY)
        assert [one.id for one in after] == before[::-1]
    assert len(CALLS) == 2
    inner.model = Words()
    assert [one.id for one in cached.compress_documents(documents, QUERY)] == before
    assert len(CALLS) == 2


def test_what_the_reranker_reads_of_a_document_is_in_the_key(cache):
    def titled(document):
        return f"{document.metadata.get('title', '')} {document.page_content}"

    reranker = CachedReranker(cache, Words(), text=titled)
    for title in ("red", "blue", "red"):
        reranker.compress_documents([Document("fox", metadata={"title": title})], QUERY)
    assert CALLS == [["red fox"], ["blue fox"]]


# ---------------------------------------------------------------- runs, tenants, sources


class Shelf(BaseRetriever):
    """Gives the documents; asked with what query, it forgets."""

    def _get_relevant_documents(self, query, *, run_manager):
        return documents()


def test_it_works_in_a_compression_retriever_in_every_style(cache):
    reranker = CachedReranker(cache, Words(), top_n=2)
    retriever = ContextualCompressionRetriever(base_compressor=reranker, base_retriever=Shelf())
    found = [
        retriever.invoke(QUERY),
        asyncio.run(retriever.ainvoke(QUERY)),
        *retriever.batch([QUERY, QUERY]),
        *asyncio.run(retriever.abatch([QUERY])),
        next(iter(retriever.stream(QUERY))),
    ]
    assert all(shown(one) == RANKED[:2] for one in found)
    assert scored() == [TEXTS]


async def test_the_tenant_that_a_run_names_is_its_tenant(cache):
    reranker = CachedReranker(cache, Words())
    retriever = ContextualCompressionRetriever(base_compressor=reranker, base_retriever=Shelf())
    for tenant in ("acme", "zenith", "acme"):
        retriever.invoke(QUERY, {"metadata": {"tenant": tenant}})
        await retriever.ainvoke(QUERY, {"metadata": {"tenant": tenant}})
        retriever.batch([QUERY] * 2, {"metadata": {"tenant": tenant}})
    assert len(scored()) == 2
    assert {row.tenant for row in cache.stats().rows if row.node == "rerank"} == {"acme", "zenith"}


def test_the_tenant_that_callbacks_name_is_the_tenant_of_a_call_alone(rerank, cache):
    reranker = CachedReranker(cache, Words())
    for tenant in ("acme", "zenith", "acme"):
        manager = CallbackManager.configure(inheritable_metadata={"tenant": tenant})
        rerank(reranker, documents(), QUERY, manager)
    assert len(scored()) == 2
    rerank(reranker, documents(), QUERY)
    assert len(scored()) == 3
    rerank(reranker, documents(), QUERY, [])
    assert len(scored()) == 3


def test_documents_are_sources_and_those_a_retriever_noted_count_once(cache):
    retriever = CachedRetriever(cache, Shelf(), source_key="page", index="shelf/1")
    reranker = CachedReranker(cache, Words(), top_n=2)
    both = ContextualCompressionRetriever(base_compressor=reranker, base_retriever=retriever)
    for _ in range(2):
        with cache.trace() as frame:
            both.invoke(QUERY)
            seen = [read.source for read in frame.visible() if read.source is not None]
        assert sorted(one.chunk for one in seen) == ["id-0", "id-1", "id-2"]
        assert {one.index for one in seen} == {"shelf/1"}
        assert {one.document for one in seen} == {"id-0", "id-1", "id-2"}  # no page is named


def test_documents_from_elsewhere_are_sources_of_what_is_built_on_them(rerank, reranker):
    cache = reranker.cache
    for question in ("computed", "a hit"):
        with cache.trace():
            rerank(reranker, documents(), QUERY, top_n=2)
            cache.answers.get_or_compute(question, lambda: "built on it")
    assert cache.recall(source="doc-2", dry_run=True).by_node == {"answer": 2}
    assert cache.recall(source="doc-0", dry_run=True).by_node == {}


def test_a_recall_of_a_document_leaves_the_scores_which_are_functions_of_its_text(cache):
    reranker = CachedReranker(cache, Words())
    reranker.compress_documents(documents(), QUERY)
    cache.recall(source="doc-2")
    reranker.compress_documents(documents(), QUERY)
    assert len(scored()) == 1


# --------------------------------------------------------------------- as an object


def test_a_chain_around_it_is_told_what_it_is_and_not_what_it_remembers(cache):
    reranker = CachedReranker(cache, Words())
    chain = RunnableLambda(lambda found: reranker.compress_documents(found, QUERY))
    before = fingerprint(chain)
    assert fingerprint(reranker) == fingerprint(CachedReranker(cache, Words()))
    reranker.compress_documents(documents(), QUERY)
    assert fingerprint(reranker) == fingerprint(CachedReranker(cache, Words()))
    assert fingerprint(chain) == before
    others = [
        CachedReranker(cache, Words(), top_n=1),
        CachedReranker(cache, Words(), model="other"),
        CachedReranker(cache, Words(), text=lambda document: document.page_content[:9]),
        CachedReranker(cache, Hosted()),
        CachedReranker(cache, Hosted(), pairwise=True),
        CachedReranker(cache, Hosted(top_n=7)),
    ]
    assert len({fingerprint(one) for one in (reranker, *others)}) == len(others) + 1


def test_copies_and_pickles_use_the_same_cache(cache):
    reranker = CachedReranker(cache, Words(), top_n=2)
    reranker.compress_documents(documents(), QUERY)
    copies = [
        copy.deepcopy(reranker),
        reranker.model_copy(),
        pickle.loads(pickle.dumps(CachedReranker(cache, Hosted(), pairwise=True, model="h/1"))),
    ]
    assert [shown(one.compress_documents(documents(), QUERY))[:2] for one in copies] == [
        RANKED[:2]
    ] * 3
    assert len(scored()) == 2


def test_it_lives_in_a_file_over_reopening(tmp_path):
    for _ in range(2):
        with stemma.open(tmp_path / "a.db", embedder=None, tenant="t") as cache:
            found = CachedReranker(cache, Words()).compress_documents(documents(), QUERY)
    assert found[0].metadata["stemma"]["tier"] == "exact"
    assert len(scored()) == 1
