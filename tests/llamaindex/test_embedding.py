"""Embedding models of LlamaIndex behind the cache."""

import copy
import math
import pickle
import struct
import warnings

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.callbacks.schema import CBEventType
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.embedding import EmbeddingEndEvent
from llama_index.core.schema import TextNode
from pydantic import Field, PrivateAttr

import stemma
from stemma_llamaindex import CachedEmbedding, CacheHitEvent
from stemma_llamaindex.describing import embedding_identity


def vector(model, role, text):
    """What a model gives for a text in a role."""
    digest = stemma.digest(model, role, text)
    return [int(digest[i : i + 8], 16) / 7.3e9 for i in range(0, 32, 8)]


class Asymmetric(BaseEmbedding):
    """A query and a document of one text have other vectors, as with `query:` and `passage:`."""

    model_name: str = "m"
    api_key: str = Field(default="secret")
    _calls: list = PrivateAttr(default_factory=list)

    @property
    def calls(self):
        return self._calls

    def _get_query_embedding(self, query):
        self._calls.append(("query", query))
        return vector(self.model_name, "query", query)

    def _get_text_embedding(self, text):
        self._calls.append(("text", text))
        return vector(self.model_name, "passage", text)

    def _get_text_embeddings(self, texts):
        self._calls.append(("texts", list(texts)))
        return [vector(self.model_name, "passage", text) for text in texts]

    async def _aget_query_embedding(self, query):
        self._calls.append("async")
        return self._get_query_embedding(query)

    async def _aget_text_embedding(self, text):
        self._calls.append("async")
        return self._get_text_embedding(text)

    async def _aget_text_embeddings(self, texts):
        self._calls.append("async")
        return self._get_text_embeddings(texts)


def passages(texts, model="m"):
    """The vectors that a model gives for texts of documents."""
    return [vector(model, "passage", text) for text in texts]


def bits(vectors):
    return [struct.pack(f"{len(v)}d", *v) for v in vectors]


@pytest.fixture
def inner():
    return Asymmetric()


@pytest.fixture
def cached(cache, inner):
    return CachedEmbedding(cache, inner)


async def test_the_second_call_does_not_reach_the_model(cached, inner):
    for _ in range(2):
        assert cached.get_text_embedding_batch(["a", "b"]) == passages("ab")
        assert cached.get_text_embedding("a") == vector("m", "passage", "a")
        assert cached.get_query_embedding("a") == vector("m", "query", "a")
        assert await cached.aget_query_embedding("a") == vector("m", "query", "a")
        assert await cached.aget_text_embedding("b") == vector("m", "passage", "b")
        assert bits(await cached.aget_text_embedding_batch(["b", "a"])) == bits(passages("ba"))
    assert inner.calls == [("texts", ["a", "b"]), ("query", "a")]


async def test_async_calls_reach_the_async_side(cached, inner):
    await cached.aget_query_embedding("a")
    await cached.aget_text_embedding("a")
    await cached.aget_text_embedding_batch(["a", "b"])
    assert [call for call in inner.calls if call != "async"] == [
        ("query", "a"),
        ("text", "a"),
        ("texts", ["b"]),
    ]
    assert inner.calls.count("async") == 3


async def test_every_vector_comes_back_to_its_own_text(cached, inner):
    """A batch of cached, new, repeated and blank texts: one call, each missing text once."""
    cached.get_text_embedding_batch(["a"])
    texts = ["b", "a", "c", "a", "", "b"]
    assert bits(cached.get_text_embedding_batch(texts)) == bits(passages(texts))
    assert inner.calls[1:] == [("texts", ["b", "c", ""])]
    both = ["d", *texts]
    assert bits(await cached.aget_text_embedding_batch(both)) == bits(passages(both))


async def test_the_model_is_given_batches_of_its_own_size(cache):
    inner = Asymmetric(embed_batch_size=2)
    cached = CachedEmbedding(cache, inner)
    cached.get_text_embedding("b")
    assert cached.get_text_embedding_batch(list("abcdea")) == passages("abcdea")
    assert inner.calls[1:] == [("texts", ["a", "c"]), ("texts", ["d", "e"])]
    assert await cached.aget_text_embedding_batch(list("afgh")) == passages("afgh")
    assert [c for c in inner.calls[3:] if c != "async"] == [("texts", ["f", "g"]), ("texts", ["h"])]


@pytest.mark.parametrize("workers", [None, 1, 2])
async def test_batches_that_were_computed_are_kept_when_another_fails(cache, workers):
    class Failing(Asymmetric):
        def _get_text_embeddings(self, texts):
            if "bad" in texts:
                raise ConnectionError("gone")
            return super()._get_text_embeddings(texts)

    inner = Failing(embed_batch_size=1, num_workers=workers)
    cached = CachedEmbedding(cache, inner)
    with pytest.raises(ConnectionError, match="gone"):
        await cached.aget_text_embedding_batch(["a", "bad"])
    with pytest.raises(ConnectionError, match="gone"):
        cached.get_text_embedding_batch(["b", "bad"])
    inner.calls.clear()
    assert cached.get_text_embedding_batch(["a", "b"]) == passages("ab")
    assert inner.calls == []


async def test_a_wrong_number_of_vectors_is_refused(cache):
    """One too few here and one too many there: the sum is right, each text's vector is not."""

    class Shifting(Asymmetric):
        def _get_text_embeddings(self, texts):
            found = super()._get_text_embeddings(texts)
            return found[:-1] if "a" in texts else [*found, found[-1]]

    cached = CachedEmbedding(cache, Shifting(embed_batch_size=2))
    with pytest.raises(stemma.EmbedderError, match="1 vectors for 2 texts"):
        cached.get_text_embedding_batch(list("abcd"))
    with pytest.raises(stemma.EmbedderError, match="vectors for 2 texts"):
        await cached.aget_text_embedding_batch(list("abcd"))
    assert cache.engine.parts.store.sizes() == {}


def test_models_lengths_and_instructions_never_share(cache):
    """One store, two models, query and text: four vectors; and so for every setting."""
    faces = [
        CachedEmbedding(cache, Asymmetric()),
        CachedEmbedding(cache, Asymmetric(model_name="other")),
        CachedEmbedding(cache, Asymmetric(), model="named"),
        CachedEmbedding(cache, Asymmetric(), dimensions=2),
        CachedEmbedding(cache, Asymmetric(), instruction="query: "),
    ]
    for _ in range(2):
        for face in faces:
            model = face.model_name
            assert face.get_query_embedding("t") == vector(model, "query", "t")
            assert face.get_text_embedding("t") == vector(model, "passage", "t")
    assert [len(face.inner.calls) for face in faces] == [2] * len(faces)


def test_what_is_said_of_a_model_is_all_that_shapes_its_vectors(cache):
    class Tuned(Asymmetric):
        normalize: bool = False
        additional_kwargs: dict = Field(default_factory=dict)

    named = [{}, {"normalize": True}, {"additional_kwargs": {"truncate": "END"}}]
    assert len({embedding_identity(Tuned(**one)) for one in named}) == 3
    noise = [{}, {"api_key": "x"}, {"embed_batch_size": 3}, {"num_workers": 2}]
    assert len({embedding_identity(Tuned(**one)) for one in noise}) == 1
    assert embedding_identity(Tuned()) != embedding_identity(Asymmetric())
    assert embedding_identity(MockEmbedding(embed_dim=3)) != embedding_identity(
        MockEmbedding(embed_dim=4)
    )
    assert embedding_identity(CachedEmbedding(cache, Tuned())) == embedding_identity(Tuned())


def test_a_model_changed_in_place_is_another(cached, inner):
    cached.get_query_embedding("t")
    inner.model_name = "other"
    assert cached.get_query_embedding("t") == vector("other", "query", "t")


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
async def test_blank_texts_go_to_the_model_each_time(cache, cached, inner, text):
    for _ in range(2):
        cached.get_query_embedding(text)
        cached.get_text_embedding(text)
        await cached.aget_text_embedding_batch([text])
    assert len([call for call in inner.calls if call != "async"]) == 6
    assert cache.engine.parts.store.sizes() == {}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_a_number_is_given_but_not_stored(cache, value):
    class Broken(Asymmetric):
        def _get_query_embedding(self, query):
            super()._get_query_embedding(query)
            return [value, 1.0]

    cached = CachedEmbedding(cache, Broken())
    for _ in range(2):
        assert str(cached.get_query_embedding("a")) == str([value, 1.0])
    assert len(cached.inner.calls) == 2


def test_two_vectors_of_one_text_are_two_lists(cached):
    for _ in range(2):
        one, two = cached.get_text_embedding_batch(["a", "a"])
        one[0] = 9.0
        assert two[0] != 9.0
    assert cached.get_text_embedding("a")[0] != 9.0


def test_aggregated_queries_are_made_of_cached_ones(cached, inner):
    expected = [(x + y) / 2 for x, y in zip(*(vector("m", "query", t) for t in "ab"), strict=True)]
    for _ in range(2):
        assert cached.get_agg_embedding_from_queries(["a", "b"]) == pytest.approx(expected)
    assert inner.calls == [("query", "a"), ("query", "b")]


# ----------------------------------------------------------------- limits, events


class Limiter:
    def __init__(self):
        self.acquired = 0

    def acquire(self, num_tokens=0):
        self.acquired += 1

    async def async_acquire(self, num_tokens=0):
        self.acquired += 1


async def test_only_what_reaches_the_model_counts_with_its_rate_limiter(cache):
    limiter = Limiter()
    inner = Asymmetric(embed_batch_size=2, rate_limiter=limiter)
    cached = CachedEmbedding(cache, inner)
    for _ in range(2):
        cached.get_text_embedding_batch(["a", "b", "c"])
        cached.get_query_embedding("a")
        await cached.aget_query_embedding("b")
        await cached.aget_text_embedding_batch(["c", "d"])
    assert limiter.acquired == len([call for call in inner.calls if call != "async"]) == 5


async def test_each_event_is_told_once(cache):
    ended, hits = [], []

    class Handler(BaseEventHandler):
        @classmethod
        def class_name(cls):
            return "Handler"

        def handle(self, event, **_):
            if isinstance(event, EmbeddingEndEvent):
                ended.append(event.chunks)
            elif isinstance(event, CacheHitEvent):
                hits.append((event.node, event.tier))

    debug = LlamaDebugHandler(print_trace_on_end=False)
    cached = CachedEmbedding(cache, Asymmetric(callback_manager=CallbackManager([debug])))
    handler = Handler()
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        for _ in range(2):
            cached.get_query_embedding("a")
            cached.get_text_embedding_batch(["a", "b"])
            await cached.aget_text_embedding_batch(["a"])
    finally:
        dispatcher.event_handlers.remove(handler)
    assert ended == [["a"], ["a", "b"], ["a"]] * 2
    assert hits == [("embedding", "exact")] * 5, "a query, and four texts of documents"
    assert len(debug.get_event_pairs(CBEventType.EMBEDDING)) == 6


def test_what_is_told_of_it_holds_no_secret(cached):
    assert "secret" not in str(cached.to_dict())
    assert "secret" not in str(cached.to_payload())
    assert "secret" not in cached.stemma_identity
    assert cached.to_dict()["stemma_identity"] == cached.stemma_identity
    assert cached.to_payload()["model_name"] == "m"


# --------------------------------------------------------------------- in LlamaIndex


async def test_nodes_get_their_own_vectors_in_an_ingestion(cached, inner):
    nodes = [TextNode(text="a", id_="1"), TextNode(text="b", id_="2"), TextNode(text="a", id_="3")]
    expected = list(zip("123", passages("aba"), strict=True))
    done = cached([node.model_copy() for node in nodes])
    assert [(node.node_id, node.embedding) for node in done] == expected
    done = await cached.acall([node.model_copy() for node in nodes])
    assert [(node.node_id, node.embedding) for node in done] == expected
    assert inner.calls == [("texts", ["a", "b"])]


def test_what_moves_with_each_run_counts_only_where_the_model_is_told_it(cached, inner):
    """Unchanged documents of a new date are not embedded again, unless the date is embedded."""

    def run(date, excluded):
        node = TextNode(text="a", metadata={"title": "A", "last_modified": date})
        node.excluded_embed_metadata_keys = excluded
        cached([node])

    run("Monday", ["last_modified"])
    run("Tuesday", ["last_modified"])
    assert len(inner.calls) == 1
    run("Tuesday", [])
    assert len(inner.calls) == 2


def test_an_index_and_its_retriever_use_it(cached, inner):
    def found():
        index = VectorStoreIndex.from_documents(
            [Document(text="a codex", id_="1"), Document(text="a scroll", id_="2")],
            embed_model=cached,
        )
        return index.as_retriever(similarity_top_k=1).retrieve("a codex")

    first = found()
    calls = len(inner.calls)
    assert [node.text for node in found()] == [node.text for node in first]
    assert len(inner.calls) == calls == 2


def test_a_pipeline_takes_two_models_behind_the_cache_for_two(cache):
    """Settings are part of the keys of LlamaIndex's own ingestion cache."""
    documents = [Document(text="a", id_="1")]
    pipeline = IngestionPipeline(transformations=[CachedEmbedding(cache, Asymmetric())])
    (one,) = pipeline.run(documents=copy.deepcopy(documents))
    pipeline.transformations = [CachedEmbedding(cache, Asymmetric(model_name="other"))]
    (two,) = pipeline.run(documents=copy.deepcopy(documents))
    assert one.embedding == vector("m", "passage", "a")
    assert two.embedding == vector("other", "passage", "a")


# ------------------------------------------------------------------ tenants, sharing


def test_two_tenants_get_nothing_of_each_other(cache, cached, inner):
    for tenant in ("acme", "zenith"):
        with cache.using(tenant=tenant):
            for _ in range(2):
                cached.get_query_embedding("a")
                cached.get_text_embedding_batch(["a"])
    assert len(inner.calls) == 4


def test_vectors_of_public_documents_are_shared_by_who_names_the_pool(cache, inner):
    public = CachedEmbedding(cache, inner, shared="handbook")
    with cache.using(tenant="acme"):
        public.get_text_embedding("a")
        public.get_query_embedding("a")
    inner.calls.clear()
    with cache.using(tenant="zenith"):
        assert public.get_text_embedding_batch(["a"]) == passages("a")
        assert inner.calls == []
        CachedEmbedding(cache, inner).get_text_embedding("a")
        public.get_query_embedding("a")
    assert inner.calls == [("text", "a"), ("query", "a")]


async def test_without_a_tenant_it_passes_by_and_warns_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        cached = CachedEmbedding(nobody, Asymmetric())
        with pytest.warns(RuntimeWarning, match="no tenant"):
            cached.get_text_embedding_batch(["a", "b"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert await cached.aget_text_embedding_batch(["a"]) == passages("a")
            cached.get_query_embedding("a")


def test_a_fault_of_the_cache_is_not_the_applications(cache, cached):
    cache.engine.parts.store.close()
    assert cached.get_text_embedding_batch(["a", "b"]) == passages("ab")
    assert cached.get_query_embedding("a") == vector("m", "query", "a")


# --------------------------------------------------------------------------- as objects


def test_copies_and_pickles_use_the_same_cache(cache):
    cached = CachedEmbedding(cache, MockEmbedding(embed_dim=2), shared="handbook")
    cached.get_text_embedding("a")
    heard = []
    cache.listen(lambda event: heard.append(event.outcome))
    for other in (copy.deepcopy(cached), pickle.loads(pickle.dumps(cached))):
        assert other.get_text_embedding("a") == [0.5, 0.5]
        assert other.shared == "handbook"
    assert heard == ["exact", "exact"]


@pytest.mark.parametrize("named", [{"model": ""}, {"shared": ""}])
def test_wrong_arguments_are_refused(cache, named):
    with pytest.raises(stemma.UsageError, match=next(iter(named))):
        CachedEmbedding(cache, Asymmetric(), **named)
    with pytest.raises(stemma.UsageError, match="cache"):
        CachedEmbedding("answers.db", Asymmetric())
    with pytest.raises(stemma.UsageError, match="inner"):
        CachedEmbedding(cache, "local")
