"""A store of bytes for LangChain's CacheBackedEmbeddings."""

import math
import warnings

import pytest
from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_core.embeddings import Embeddings
from langchain_tests.integration_tests.base_store import BaseStoreAsyncTests, BaseStoreSyncTests

import stemma
from stemma_langchain import EmbeddingByteStore

CALLS: list = []


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder=None, tenant="t") as opened:
        yield opened


class _Bytes:
    @pytest.fixture
    def three_values(self):
        return b"\x00\xff", b"", b"buzz"


class TestStandardSync(_Bytes, BaseStoreSyncTests[bytes]):
    @pytest.fixture
    def kv_store(self, cache):
        return EmbeddingByteStore(cache, model="m")


class TestStandardAsync(_Bytes, BaseStoreAsyncTests[bytes]):
    @pytest.fixture
    async def kv_store(self, cache):
        return EmbeddingByteStore(cache, model="m")


class Asymmetric(Embeddings):
    def __init__(self, model="m"):
        self.model = model

    def embed_documents(self, texts):
        CALLS.append(("documents", list(texts)))
        return [self.vector("passage", text) for text in texts]

    def embed_query(self, text):
        CALLS.append(("query", text))
        return self.vector("query", text)

    def vector(self, role, text):
        digest = stemma.digest(self.model, role, text)
        return [int(digest[i : i + 8], 16) / 7.3e9 for i in range(0, 32, 8)]


def backed(cache, model="m"):
    return CacheBackedEmbeddings.from_bytes_store(
        Asymmetric(model),
        EmbeddingByteStore(cache, model=model),
        query_embedding_cache=EmbeddingByteStore(cache, model=model, role="query"),
        key_encoder="sha256",
    )


async def test_the_second_call_does_not_reach_the_model(cache):
    embeddings, plain = backed(cache), Asymmetric()
    for _ in range(2):
        assert embeddings.embed_documents(["a", "b"]) == [
            plain.vector("passage", text) for text in "ab"
        ]
        assert embeddings.embed_query("a") == plain.vector("query", "a")
        assert await embeddings.aembed_query("a") == plain.vector("query", "a")
        assert await embeddings.aembed_documents(["b"]) == [plain.vector("passage", "b")]
    assert CALLS == [("documents", ["a", "b"]), ("query", "a")]


def test_models_and_roles_never_share_though_no_namespace_is_given(cache):
    """Two models, query and document, one text: four vectors."""
    for _ in range(2):
        for model in ("m", "n"):
            embeddings, plain = backed(cache, model), Asymmetric(model)
            assert embeddings.embed_documents(["t"]) == [plain.vector("passage", "t")]
            assert embeddings.embed_query("t") == plain.vector("query", "t")
    assert len(CALLS) == 4


def test_an_empty_store_is_not_taken_for_none(cache):
    """`CacheBackedEmbeddings` leaves out a store of queries that is false, as an empty dict is."""
    assert EmbeddingByteStore(cache, model="m", role="query")
    embeddings = backed(cache)
    embeddings.embed_query("a")
    embeddings.embed_query("a")
    assert CALLS == [("query", "a")]


def test_every_setting_is_a_store_of_its_own(cache):
    named = [
        {"model": "m"},
        {"model": "n"},
        {"model": "m", "role": "query"},
        {"model": "m", "dimensions": 2},
        {"model": "m", "instruction": "passage: "},
        {"model": "m", "shared": "handbook"},
    ]
    stores = [EmbeddingByteStore(cache, **one) for one in named]
    for number, store in enumerate(stores):
        store.mset([("k", bytes([number]))])
    assert [store.mget(["k"]) for store in stores] == [[bytes([n])] for n in range(len(stores))]
    assert [list(store.yield_keys()) for store in stores] == [["k"]] * len(stores)
    stores[0].mdelete(["k"])
    assert [store.mget(["k"])[0] is None for store in stores] == [True] + [False] * 5


async def test_each_tenant_has_keys_of_its_own_and_shares_what_is_shared(cache):
    own = EmbeddingByteStore(cache, model="m")
    public = EmbeddingByteStore(cache, model="m", shared="handbook")
    with cache.using(tenant="acme"):
        own.mset([("k", b"acme")])
        await public.amset([("p", b"public")])
    with cache.using(tenant="zenith"):
        assert own.mget(["k"]) == await own.amget(["k"]) == [None]
        assert list(own.yield_keys()) == []
        own.mdelete(["k"])
        assert await public.amget(["p"]) == [b"public"]
        assert [key async for key in public.ayield_keys()] == ["p"]
    with cache.using(tenant="acme"):
        assert own.mget(["k"]) == [b"acme"]


def test_without_a_tenant_nothing_is_kept_and_it_is_said_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        store = EmbeddingByteStore(nobody, model="m")
        with pytest.warns(RuntimeWarning, match="no tenant"):
            store.mset([("k", b"v")])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert store.mget(["k"]) == [None]
            assert list(store.yield_keys()) == []
            store.mdelete(["k"])


def test_what_the_cache_is_told_holds_here_too(cache):
    store = EmbeddingByteStore(cache, model="m")
    with cache.bypass():
        store.mset([("k", b"v")])
    assert store.mget(["k"]) == [None]
    store.mset([("k", b"v")])
    with cache.refresh():
        assert store.mget(["k"]) == [None]
    assert len(cache.recall(model="m")) == 1
    assert store.mget(["k"]) == [None]


def test_a_value_that_is_no_bytes_is_not_kept(cache):
    store = EmbeddingByteStore(cache, model="m")
    store.mset([("k", "text"), ("l", b"bytes")])
    assert store.mget(["k", "l"]) == [None, b"bytes"]


@pytest.mark.parametrize(
    "named",
    [
        {"model": ""},
        {"model": None},
        {"model": "m", "role": "passage"},
        {"model": "m", "role": "query", "shared": "handbook"},
        {"model": "m", "shared": ""},
    ],
)
def test_wrong_arguments_are_refused(cache, named):
    with pytest.raises(stemma.UsageError):
        EmbeddingByteStore(cache, **named)
    with pytest.raises(stemma.UsageError, match="cache"):
        EmbeddingByteStore({}, model="m")


def test_vectors_that_the_other_face_keeps_are_no_keys(cache):
    cache.embeddings.vector("a", lambda: [math.pi], model="m", role="document")
    store = EmbeddingByteStore(cache, model="m")
    assert list(store.yield_keys()) == []
    assert store.mget(["a"]) == [None]
