"""Retrievers behind the cache."""

import copy
import pickle
import threading
import warnings
from typing import Any

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

import stemma
from stemma_langchain import CachedRetriever

CALLS: list = []


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", tenant="t") as opened:
        yield opened


class Shelf(BaseRetriever):
    """Gives documents about the query; keeps and hands out the very same objects."""

    k: int = 2
    label: str = ""
    ids: bool = True
    extra: Any = None

    def _documents(self, query, kwargs):
        CALLS.append((query, kwargs))
        k = kwargs.get("k", self.k)
        return [
            Document(
                f"{query} {n}",
                id=f"{query}-{n}" if self.ids else None,
                metadata={"source": f"book of {query}", "page": n}
                | ({} if self.extra is None else {"extra": self.extra}),
            )
            for n in range(k)
        ]

    def _get_relevant_documents(self, query, *, run_manager, **kwargs):
        return self._documents(query, kwargs)

    async def _aget_relevant_documents(self, query, *, run_manager, **kwargs):
        CALLS.append("async")
        return self._documents(query, kwargs)


def searched():
    return [call for call in CALLS if call != "async"]


def plain(documents):
    return [
        (d.id, d.page_content, {k: v for k, v in d.metadata.items() if k != "stemma"})
        for d in documents
    ]


async def test_the_second_call_does_not_reach_the_retriever(cache):
    retriever = CachedRetriever(cache, Shelf())
    first = retriever.invoke("codex")
    assert first == Shelf().invoke("codex")  # a miss gives just what the retriever gave
    CALLS.clear()
    again = [
        retriever.invoke("codex"),
        await retriever.ainvoke("codex"),
        *retriever.batch(["codex"]),
        *await retriever.abatch(["codex"]),
        next(iter(retriever.stream("codex"))),
    ]
    assert all(plain(documents) == plain(first) for documents in again)
    assert CALLS == []


async def test_async_calls_reach_the_async_side(cache):
    await CachedRetriever(cache, Shelf()).ainvoke("codex")
    assert CALLS[0] == "async"


def test_a_batch_searches_each_query_once(cache):
    retriever = CachedRetriever(cache, Shelf())
    found = retriever.batch(["a", "b", "a"])
    assert [documents[0].page_content for documents in found] == ["a 0", "b 0", "a 0"]
    assert sorted(searched()) == [("a", {}), ("b", {})]


async def test_hits_carry_the_same_note_in_every_style(cache):
    retriever = CachedRetriever(cache, Shelf())
    retriever.invoke("codex")
    hits = [
        retriever.invoke("codex"),
        await retriever.ainvoke("codex"),
        retriever.batch(["codex"])[0],
        (await retriever.abatch(["codex"]))[0],
    ]
    notes = [{**d.metadata["stemma"], "age": 0} for found in hits for d in found]
    assert len(notes) == 8
    assert all(note == notes[0] and note["hit"] is True for note in notes)


def test_a_query_is_matched_exactly(cache):
    retriever = CachedRetriever(cache, Shelf())
    for query in ("What is a codex?", "what is a codex", "What is a codex? ", "", "\x00", "\ud800"):
        retriever.invoke(query)
    assert len(searched()) == 6


def test_changing_what_was_given_changes_nothing_that_is_stored(cache):
    retriever = CachedRetriever(cache, Shelf())
    clean = plain(retriever.invoke("codex"))
    for _ in range(3):
        found = retriever.invoke("codex")
        assert plain(found) == clean
        found[0].metadata["mine"] = 1
        found[0].page_content = "cut"
        found.reverse()
    missed = retriever.invoke("scroll")
    missed[0].metadata["mine"] = 1
    assert "mine" not in retriever.invoke("scroll")[0].metadata


def test_every_argument_of_the_search_is_in_the_key(cache):
    retriever = CachedRetriever(cache, Shelf())
    calls = [{}, {"k": 1}, {"k": 3}, {"filter": {"a": 1}}, {"filter": {"a": 2}}, {"future": True}]
    for _ in range(2):
        for kwargs in calls:
            retriever.invoke("codex", **kwargs)
    assert [kwargs for _, kwargs in searched()] == calls
    assert len(retriever.invoke("codex", k=3)) == 3


def test_the_retrievers_own_settings_are_in_the_key(cache):
    for shelf in (Shelf(), Shelf(k=3), Shelf(label="other"), Shelf()):
        CachedRetriever(cache, shelf).invoke("codex")
    assert len(CALLS) == 3
    held = CachedRetriever(cache, Shelf())
    held.retriever.k = 5
    assert len(held.invoke("codex")) == 5


def test_two_indexes_do_not_share_and_one_index_named_does(cache):
    def found(**named):
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
        store.add_documents([Document("a", id="1")])
        return CachedRetriever(cache, store.as_retriever(), **named)

    heard = []
    cache.listen(lambda e: heard.append(e.outcome) if e.kind == "lookup" else None)
    found().invoke("q")
    found().invoke("q")
    found(index="left").invoke("q")
    found(index="right").invoke("q")
    assert heard == ["cold"] * 4


def test_k_of_the_face_reaches_the_retriever_unless_the_call_says_otherwise(cache):
    retriever = CachedRetriever(cache, Shelf(), k=1)
    assert len(retriever.invoke("codex")) == 1
    assert len(retriever.invoke("codex", k=3)) == 3
    assert searched() == [("codex", {"k": 1}), ("codex", {"k": 3})]
    deaf = RunnableLambda(lambda query: [Document(query, id=str(n)) for n in range(9)])
    assert len(CachedRetriever(cache, deaf, k=2).invoke("x")) == 2


def test_it_wraps_any_runnable_that_gives_documents(cache):
    thing = RunnableLambda(lambda query: CALLS.append((query, {})) or [Document(query, id="1")])
    retriever = CachedRetriever(cache, thing)
    assert plain(retriever.invoke("x")) == plain(retriever.invoke("x"))
    assert len(CALLS) == 1


# ---------------------------------------------------------------------- not stored


def test_nothing_found_is_not_stored(cache):
    retriever = CachedRetriever(cache, Shelf(k=0))
    assert retriever.invoke("x") == retriever.invoke("x") == []
    assert len(CALLS) == 2


async def test_an_error_passes_through_unstored(cache):
    def failing(query):
        CALLS.append((query, {}))
        raise TimeoutError("no answer")

    retriever = CachedRetriever(cache, RunnableLambda(failing))
    with pytest.raises(TimeoutError, match="no answer"):
        retriever.invoke("x")
    with pytest.raises(TimeoutError, match="no answer"):
        await retriever.ainvoke("x")
    assert len(CALLS) == 2


def test_metadata_without_a_stored_form_is_given_uncached_with_a_reason(cache):
    heard = []
    cache.listen(heard.append)
    thing = object()
    retriever = CachedRetriever(cache, Shelf(extra=thing))
    assert retriever.invoke("x")[0].metadata["extra"] is thing
    assert retriever.invoke("x")[0].metadata["extra"] is thing
    assert [e.outcome for e in heard if e.kind == "put"] == ["unstorable"] * 2


def test_documents_without_ids_are_known_by_content_and_that_is_said_once(cache):
    heard = []
    cache.listen(lambda e: heard.append(e.detail) if e.kind == "warning" else None)
    retriever = CachedRetriever(cache, Shelf(ids=False))
    retriever.invoke("codex")
    retriever.invoke("scroll")
    assert len(heard) == 1
    assert "content hash" in heard[0]
    chunk = stemma.content_digest("codex 0")
    assert cache.recall(source=chunk, dry_run=True).by_node == {"retrieval": 1}


# ------------------------------------------------------------------- tenants, sources


def test_two_tenants_get_nothing_of_each_other(cache):
    retriever = CachedRetriever(cache, Shelf())
    for tenant in ("acme", "zenith"):
        retriever.invoke("codex", {"metadata": {"tenant": tenant}})
        with cache.using(tenant=tenant):
            retriever.invoke("codex")
    assert len(CALLS) == 2


async def test_without_a_tenant_it_passes_by_and_warns_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        retriever = CachedRetriever(nobody, Shelf())
        with pytest.warns(RuntimeWarning, match="no tenant"):
            retriever.invoke("codex")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            retriever.invoke("codex")
            await retriever.ainvoke("codex")
    assert len(searched()) == 3


def test_documents_are_sources_with_the_index_that_vouches_for_them(cache):
    retriever = CachedRetriever(cache, Shelf(), index="shelf/1", source_key="source")
    with cache.trace() as frame:
        retriever.invoke("codex")
        missed = {read.source for read in frame.visible() if read.source is not None}
    with cache.trace() as frame:
        retriever.invoke("codex")
        hit = {read.source for read in frame.visible() if read.source is not None}
    assert missed == hit
    assert {(s.document, s.chunk, s.index, s.owner) for s in hit} == {
        ("book of codex", f"codex-{n}", "shelf/1", "") for n in range(2)
    }


def test_documents_may_be_public(cache):
    with cache.trace() as frame:
        CachedRetriever(cache, Shelf(), owner="public").invoke("codex")
        owners = {read.source.owner for read in frame.visible() if read.source is not None}
    assert owners == {"public"}
    with cache.trace() as frame:
        CachedRetriever(cache, Shelf(), owner="pool:support").invoke("codices")
        owners = {read.source.owner for read in frame.visible() if read.source is not None}
    assert owners == {"pool:support"}
    with pytest.raises(ValidationError):
        CachedRetriever(cache, Shelf(), owner="nobody")


def test_the_inner_retrievers_run_does_not_note_its_documents_a_second_time(cache):
    """Under another source key they would be sources of other documents."""
    inner = EnsembleRetriever(retrievers=[Shelf(k=2), Shelf(k=1, label="b")], weights=[0.5, 0.5])
    with cache.trace() as frame:
        CachedRetriever(cache, inner, source_key="page").invoke("codex")
        noted = {read.source.document for read in frame.visible() if read.source is not None}
    assert noted == {"codex-0", "codex-1"}


def test_an_answer_built_on_a_hit_goes_with_its_document(cache):
    retriever = CachedRetriever(cache, Shelf())
    retriever.invoke("codex")
    with cache.trace():
        retriever.invoke("codex")
        cache.answers.get_or_compute("q", lambda: "built on it")
    gone = cache.recall(source="book of codex")
    assert gone.by_node == {"answer": 1, "retrieval": 1}
    retriever.invoke("codex")
    assert len(CALLS) == 2


def test_what_was_recalled_while_it_was_retrieved_is_not_stored(cache):
    def recalled(query):
        found = [Document(query, id="chunk", metadata={"source": "doc"})]
        if not CALLS:
            cache.answers.get_or_compute("unrelated", lambda: "x")
            cache.recall(source="chunk")
        CALLS.append((query, {}))
        return found

    retriever = CachedRetriever(
        cache, RunnableLambda(recalled).with_config(run_name="r"), index="i"
    )
    for _ in range(3):
        retriever.invoke("q")
    assert len(CALLS) == 2


def test_items_of_a_batch_have_no_edges_between_each_other(cache):
    retriever = CachedRetriever(cache, Shelf())
    with cache.trace():
        retriever.batch(["a", "b", "c"])
    for name in "abc":
        assert len(cache.recall(source=f"book of {name}", dry_run=True)) == 1


# --------------------------------------------------------------------- as an object


def test_its_tags_are_those_of_its_entries_and_its_runs(cache):
    CachedRetriever(cache, Shelf(), tags=("faq",)).invoke("codex")
    assert len(cache.recall(tag="faq", dry_run=True)) == 1


def test_copies_and_pickles_use_the_same_cache(cache):
    retriever = CachedRetriever(cache, Shelf(), k=1)
    first = plain(retriever.invoke("codex"))
    assert plain(copy.deepcopy(retriever).invoke("codex")) == first
    assert plain(pickle.loads(pickle.dumps(retriever)).invoke("codex")) == first
    assert plain(retriever.with_config(tags=["x"]).invoke("codex")) == first
    assert len(CALLS) == 1


def test_it_lives_in_a_file_over_reopening(tmp_path):
    for _ in range(2):
        with stemma.open(tmp_path / "a.db", embedder=None, tenant="t") as cache:
            found = CachedRetriever(cache, Shelf()).invoke("codex")
    assert found[0].metadata["stemma"]["tier"] == "exact"
    assert len(CALLS) == 1


@pytest.mark.parametrize("named", [{"k": 0}, {"life": 0}, {"unknown": 1}])
def test_wrong_arguments_are_refused(cache, named):
    with pytest.raises(ValidationError):
        CachedRetriever(cache, Shelf(), **named)


class Connected(BaseRetriever):
    """Holds a connection, of which nothing can be told."""

    line: Any

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(query)]


def test_a_retriever_that_cannot_be_told_is_called_uncached_with_a_warning(cache):
    retriever = CachedRetriever(cache, Connected(line=threading.local()))
    with pytest.warns(RuntimeWarning, match="bypassed"):
        assert [one.page_content for one in retriever.invoke("a")] == ["a"]
    assert "stemma" not in retriever.invoke("a")[0].metadata
    named = CachedRetriever(cache, Connected(line=threading.local()), index="docs")
    assert "stemma" not in named.invoke("a")[0].metadata
    assert "stemma" in named.invoke("a")[0].metadata
