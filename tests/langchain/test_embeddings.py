"""Embedding models behind the cache."""

import copy
import math
import pickle
import struct
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import BaseModel

import stemma
from stemma.embedders import HashingEmbedder
from stemma_langchain import CachedEmbeddings, LocalEmbeddings, WatchedVectorStore

CALLS: list = []


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None, tenant="t") as opened:
        yield opened


class Asymmetric(Embeddings):
    """A query and a document of one text have other vectors, as with `query:` and `passage:`."""

    def __init__(self, model="m"):
        self.model = model

    def vector(self, role, text):
        digest = stemma.digest(self.model, role, text)
        return [int(digest[i : i + 8], 16) / 7.3e9 for i in range(0, 32, 8)]

    def embed_documents(self, texts):
        CALLS.append(("documents", list(texts)))
        return [self.vector("passage", text) for text in texts]

    def embed_query(self, text):
        CALLS.append(("query", text))
        return self.vector("query", text)

    async def aembed_documents(self, texts):
        CALLS.append("async")
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        CALLS.append("async")
        return self.embed_query(text)


def bits(vectors):
    return [struct.pack(f"{len(v)}d", *v) for v in vectors]


def direct(texts):
    plain = Asymmetric()
    return [plain.vector("passage", text) for text in texts]


async def test_the_second_call_does_not_reach_the_model(cache):
    cached = CachedEmbeddings(cache, Asymmetric())
    first = cached.embed_documents(["a", "b"])
    query = cached.embed_query("a")
    CALLS.clear()
    assert bits(cached.embed_documents(["a", "b"])) == bits(first) == bits(direct(["a", "b"]))
    assert bits(await cached.aembed_documents(["b", "a"])) == bits(first[::-1])
    assert bits([cached.embed_query("a"), await cached.aembed_query("a")]) == bits([query, query])
    assert CALLS == []


async def test_every_vector_comes_back_to_its_own_text(cache):
    """A batch of cached, new, repeated and empty texts: one call, each missing text once."""
    cached = CachedEmbeddings(cache, Asymmetric())
    cached.embed_documents(["a"])
    texts = ["b", "a", "c", "a", "", "b"]
    assert bits(cached.embed_documents(texts)) == bits(direct(texts))
    assert CALLS[1:] == [("documents", ["b", "c", ""])]
    assert bits(await cached.aembed_documents(["d", *texts])) == bits(direct(["d", *texts]))


async def test_async_calls_reach_the_async_side(cache):
    cached = CachedEmbeddings(cache, Asymmetric())
    await cached.aembed_documents(["a"])
    await cached.aembed_query("a")
    assert CALLS == ["async", ("documents", ["a"]), "async", ("query", "a")]


def test_query_and_document_never_share_a_vector(cache):
    cached = CachedEmbeddings(cache, Asymmetric())
    for _ in range(2):
        (document,) = cached.embed_documents(["t"])
        assert document == Asymmetric().vector("passage", "t")
        assert cached.embed_query("t") == Asymmetric().vector("query", "t")
    assert len(CALLS) == 2


def test_models_lengths_and_instructions_never_share(cache):
    faces = [
        CachedEmbeddings(cache, Asymmetric()),
        CachedEmbeddings(cache, Asymmetric("other")),
        CachedEmbeddings(cache, Asymmetric(), model="named"),
        CachedEmbeddings(cache, Asymmetric(), dimensions=2),
        CachedEmbeddings(cache, Asymmetric(), instruction="query: "),
    ]
    for _ in range(2):
        for face in faces:
            face.embed_query("t")
            face.embed_documents(["t"])
    assert len(CALLS) == 2 * len(faces)


def test_a_model_changed_in_place_is_another(cache):
    inner = Asymmetric()
    cached = CachedEmbeddings(cache, inner)
    cached.embed_query("t")
    inner.model = "other"
    assert cached.embed_query("t") == Asymmetric("other").vector("query", "t")


def test_what_moves_with_each_run_does_not_count(cache):
    """An unchanged text of a new date is not embedded again: the model is told no metadata."""
    for date in ("Monday", "Tuesday"):
        store = InMemoryVectorStore(CachedEmbeddings(cache, Asymmetric()))
        store.add_documents([Document(page_content="a", metadata={"last_modified": date})])
    assert CALLS == [("documents", ["a"])]


def test_numbers_come_back_bit_by_bit_as_python_floats(cache):
    class Odd(Embeddings):
        values = (0.1, -0.0, 1e-310, math.pi, 2.0**-149, 3.4e38, 1e300)

        def embed_documents(self, texts):
            return [np.array(self.values) for _ in texts]

        def embed_query(self, text):
            return list(np.array(self.values[:6], dtype=np.float32))

    cached = CachedEmbeddings(cache, Odd())
    for _ in range(2):
        (found,) = cached.embed_documents(["a"])
        assert bits([found]) == bits([Odd.values])
        query = cached.embed_query("a")
        assert bits([query]) == bits([[float(np.float32(v)) for v in Odd.values[:6]]])
        assert {type(value) for value in [*found, *query]} == {float}


def test_two_vectors_of_one_text_are_two_lists(cache):
    cached = CachedEmbeddings(cache, Asymmetric())
    for _ in range(2):
        one, two = cached.embed_documents(["a", "a"])
        one[0] = 9.0
        assert two[0] != 9.0
        query = cached.embed_query("a")
        query[0] = 9.0
    assert cached.embed_query("a")[0] != 9.0


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
async def test_blank_texts_go_to_the_model_each_time(cache, text):
    cached = CachedEmbeddings(cache, Asymmetric())
    for _ in range(2):
        cached.embed_query(text)
        await cached.aembed_query(text)
        cached.embed_documents([text])
    assert len([call for call in CALLS if call != "async"]) == 6
    assert cache.engine.parts.store.sizes() == {}


@pytest.mark.parametrize(
    "text", ["\x00", "\ud800", "🍎", "é", "e\u0301", "x" * 100_000, " a", "a "]
)
def test_hostile_texts_are_texts_of_their_own(cache, text):
    cached = CachedEmbeddings(cache, Asymmetric())
    cached.embed_documents(["a", "é"])
    for _ in range(2):
        assert cached.embed_query(text) == Asymmetric().vector("query", text)
    assert len(CALLS) == 2


async def test_no_texts_are_no_call(cache):
    cached = CachedEmbeddings(cache, Asymmetric())
    assert cached.embed_documents([]) == await cached.aembed_documents([]) == []
    assert CALLS == []


def test_missing_texts_go_to_the_model_in_batches(cache):
    cached = CachedEmbeddings(cache, Asymmetric(), batch_size=2)
    cached.embed_documents(["b"])
    assert bits(cached.embed_documents(list("abcde"))) == bits(direct("abcde"))
    assert [texts for _, texts in CALLS[1:]] == [["a", "c"], ["d", "e"]]


def test_what_was_computed_before_a_batch_failed_is_kept(cache):
    class Failing(Asymmetric):
        def embed_documents(self, texts):
            if "bad" in texts:
                raise ConnectionError("gone")
            return super().embed_documents(texts)

    cached = CachedEmbeddings(cache, Failing(), batch_size=1)
    with pytest.raises(ConnectionError, match="gone"):
        cached.embed_documents(["a", "bad", "b"])
    cached.embed_documents(["a"])
    assert CALLS == [("documents", ["a"])]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_a_number_is_given_but_not_stored(cache, value):
    class Broken(Asymmetric):
        def vector(self, role, text):
            return [value, 1.0]

    cached = CachedEmbeddings(cache, Broken())
    for _ in range(2):
        assert str(cached.embed_query("a")) == str([value, 1.0])
        assert str(cached.embed_documents(["a"])) == str([[value, 1.0]])
    assert len(CALLS) == 4


async def test_a_model_that_gives_too_few_vectors_is_an_error(cache):
    class Short(Asymmetric):
        def embed_documents(self, texts):
            return super().embed_documents(texts)[:-1]

    cached = CachedEmbeddings(cache, Short())
    with pytest.raises(stemma.EmbedderError, match="1 vectors for 2 texts"):
        cached.embed_documents(["a", "b"])
    with pytest.raises(stemma.EmbedderError, match="1 vectors for 2 texts"):
        await cached.aembed_documents(["a", "b"])
    assert cache.engine.parts.store.sizes() == {}


# ----------------------------------------------------------------------------- tenants


def test_two_tenants_get_nothing_of_each_other(cache):
    cached = CachedEmbeddings(cache, Asymmetric())
    for tenant in ("acme", "zenith"):
        with cache.using(tenant=tenant):
            for _ in range(2):
                cached.embed_query("a")
                cached.embed_documents(["a"])
    assert len(CALLS) == 4


def test_the_tenant_of_a_run_reaches_the_embeddings_in_it(cache):
    store = InMemoryVectorStore(CachedEmbeddings(cache, Asymmetric()))
    store.add_texts(["a"], ids=["1"])
    for tenant in ("acme", "zenith", "acme"):
        store.as_retriever().invoke("q", {"metadata": {"tenant": tenant}})
    assert [call for call in CALLS if call[0] == "query"] == [("query", "q")] * 2


async def test_vectors_of_public_documents_are_shared_by_who_names_the_pool(cache):
    public = CachedEmbeddings(cache, Asymmetric(), shared="handbook")
    private = CachedEmbeddings(cache, Asymmetric())
    other = CachedEmbeddings(cache, Asymmetric(), shared="cookbook")
    with cache.using(tenant="acme"):
        public.embed_documents(["a", "b"])
        public.embed_query("a")
    CALLS.clear()
    with cache.using(tenant="zenith"):
        assert bits(public.embed_documents(["b", "a"])) == bits(direct("ba"))
        assert bits(await public.aembed_documents(["a"])) == bits(direct("a"))
        assert CALLS == []
        private.embed_documents(["a"])
        other.embed_documents(["a"])
        public.embed_query("a")
    assert CALLS == [("documents", ["a"]), ("documents", ["a"]), ("query", "a")]
    with cache.using(tenant="acme"):
        assert bits(private.embed_documents(["a"])) == bits(direct("a"))
    assert len(CALLS) == 4, "what was shared is not among the tenant's own"


def test_what_is_shared_is_taken_back_for_all(cache):
    public = CachedEmbeddings(cache, Asymmetric(), model="m", shared="handbook")
    with cache.using(tenant="acme"):
        public.embed_documents(["a"])
    assert len(cache.recall(model="m")) == 1
    with cache.using(tenant="zenith"):
        public.embed_documents(["a"])
    assert len(CALLS) == 2


async def test_without_a_tenant_it_passes_by_and_warns_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        cached = CachedEmbeddings(nobody, Asymmetric())
        with pytest.warns(RuntimeWarning, match="no tenant"):
            cached.embed_documents(["a", "b"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert bits(await cached.aembed_documents(["a"])) == bits(direct(["a"]))
            cached.embed_query("a")


class Connected(BaseModel, Embeddings):
    """Holds a connection, of which nothing can be told."""

    line: Any

    def embed_documents(self, texts):
        return Asymmetric().embed_documents(texts)

    def embed_query(self, text):
        return Asymmetric().embed_query(text)


async def test_a_model_that_cannot_be_told_embeds_uncached_with_a_warning(cache):
    cached = CachedEmbeddings(cache, Connected(line=threading.local()))
    with pytest.warns(RuntimeWarning, match="bypassed"):
        assert cached.embed_documents(["a"]) == direct("a")
    assert await cached.aembed_documents(["a"]) == direct("a")
    assert cached.embed_query("a") == await cached.aembed_query("a")
    with pytest.raises(stemma.UsageError, match="index="):
        WatchedVectorStore(cache, InMemoryVectorStore(Connected(line=threading.local())))
    named = CachedEmbeddings(cache, Connected(line=threading.local()), model="m")
    CALLS.clear()
    assert named.embed_query("a") == named.embed_query("a")
    assert len(CALLS) == 1


def test_embeddings_are_nobodys_parent(cache):
    cached = CachedEmbeddings(cache, Asymmetric())
    with cache.trace() as frame:
        cached.embed_query("a")
        cached.embed_query("a")
        assert list(frame.visible()) == []


# --------------------------------------------------------------------------- as objects


def test_copies_and_pickles_use_the_same_cache(cache):
    cached = CachedEmbeddings(cache, DeterministicFakeEmbedding(size=4), batch_size=3)
    first = cached.embed_query("a")
    heard = []
    cache.listen(lambda e: heard.append(e.outcome))
    for other in (copy.deepcopy(cached), pickle.loads(pickle.dumps(cached))):
        assert other.embed_query("a") == first
        assert other.batch_size == 3
    assert heard == ["exact", "exact"]


def test_vectors_live_in_a_file_over_reopening(tmp_path):
    for _ in range(2):
        with stemma.open(tmp_path / "a.db", embedder=None, tenant="t") as cache:
            CachedEmbeddings(cache, Asymmetric()).embed_documents(["a", "b"])
    assert len(CALLS) == 1


@pytest.mark.parametrize("named", [{"batch_size": 0}, {"model": ""}, {"shared": ""}])
def test_wrong_arguments_are_refused(cache, named):
    with pytest.raises(stemma.UsageError, match=next(iter(named))):
        CachedEmbeddings(cache, Asymmetric(), **named)
    with pytest.raises(stemma.UsageError, match="cache"):
        CachedEmbeddings("answers.db", Asymmetric())


def test_a_stemma_embedder_serves_langchain_too(cache):
    local = LocalEmbeddings(HashingEmbedder())
    (one, two), query = local.embed_documents(["a codex", "a scroll"]), local.embed_query("a codex")
    assert one == query != two
    assert {type(value) for value in one} == {float}
    assert math.isclose(math.hypot(*one), 1.0, abs_tol=1e-5)
    assert local.embed_documents([]) == []
    cached = CachedEmbeddings(cache, local)
    assert cached.stemma_identity == HashingEmbedder().revision
    assert cached.embed_query("a codex") == query
    assert len(cache.recall(model=HashingEmbedder().revision, dry_run=True)) == 1


def test_one_model_serves_the_cache_and_the_vector_store():
    embeddings = LocalEmbeddings("hashing")
    with stemma.open(":memory:", embedder=embeddings.embedder, tenant="t") as cache:
        store = InMemoryVectorStore(CachedEmbeddings(cache, embeddings))
        store.add_texts(["a codex is a book", "a scroll is rolled"], ids=["1", "2"])
        assert store.similarity_search("a codex is a book", k=1)[0].id == "1"
        assert cache.engine.parts.embedder.revision == embeddings.stemma_identity
