"""A key-value store for LlamaIndex's `embeddings_cache`."""

import warnings

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

import stemma
from stemma_llamaindex import CachedEmbedding, EmbeddingKVStore


class Symmetric(BaseEmbedding):
    """Embeds queries and texts alike, as most models do, and notes every text."""

    _calls: list = PrivateAttr(default_factory=list)

    def _get_query_embedding(self, query):
        self._calls.append(query)
        return [float(len(query)), float(len(self.model_name))]

    def _get_text_embedding(self, text):
        return self._get_query_embedding(text)

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def model(cache, name="m"):
    return Symmetric(model_name=name, embeddings_cache=EmbeddingKVStore(cache, model=name))


async def test_the_second_call_does_not_reach_the_model(cache):
    embed_model = model(cache)
    for _ in range(2):
        assert embed_model.get_text_embedding("ab") == [2.0, 1.0]
        assert embed_model.get_text_embedding_batch(["ab", "abc"]) == [[2.0, 1.0], [3.0, 1.0]]
        assert await embed_model.aget_text_embedding("abc") == [3.0, 1.0]
        assert await embed_model.aget_text_embedding_batch(["abcd"]) == [[4.0, 1.0]]
    assert embed_model._calls == ["ab", "abc", "abcd"]


def test_an_empty_store_is_not_taken_for_none(cache):
    """LlamaIndex leaves out a store that is false, as one of no length is."""
    assert EmbeddingKVStore(cache, model="m")


def test_models_and_settings_never_share(cache):
    """LlamaIndex's own stores take the raw text for the key, whatever the model."""
    for _ in range(2):
        for name in ("m", "other"):
            assert model(cache, name).get_text_embedding("ab") == [2.0, float(len(name))]
    stores = [
        EmbeddingKVStore(cache, model="n"),
        EmbeddingKVStore(cache, model="n", dimensions=2),
        EmbeddingKVStore(cache, model="n", instruction="passage: "),
        EmbeddingKVStore(cache, model="n", shared="handbook"),
    ]
    for number, store in enumerate(stores):
        store.put("a", {"id": [float(number)]}, "embeddings")
    for number, store in enumerate(stores):
        assert list(store.get("a", "embeddings").values()) == [[float(number)]]


async def test_it_shares_what_it_keeps_with_the_other_face(cache):
    """And only what is a text's: a query of an asymmetric model never comes out of it."""
    inner = Symmetric()
    face = CachedEmbedding(cache, inner, model="m")
    face.get_text_embedding("text")
    face.get_query_embedding("query")
    store = EmbeddingKVStore(cache, model="m")
    assert list(store.get("text", "embeddings").values()) == [[4.0, 7.0]]
    assert await store.aget("query", "embeddings") is None
    await store.aput("more", {"id": [1.0, 2.0]}, "embeddings")
    assert face.get_text_embedding("more") == [1.0, 2.0]
    assert inner._calls == ["text", "query"]


async def test_each_tenant_has_its_own_and_shares_what_is_shared(cache):
    own = EmbeddingKVStore(cache, model="m")
    public = EmbeddingKVStore(cache, model="m", shared="handbook")
    with cache.using(tenant="acme"):
        own.put("a", {"id": [1.0]})
        await public.aput_all([("a", {"id": [2.0]}), ("b", {"id": [3.0]})], batch_size=7)
    with cache.using(tenant="zenith"):
        assert own.get("a") is None
        assert not own.delete("a")
        assert list(public.get("a").values()) == [[2.0]]
        assert await public.adelete("b")
        assert await public.aget("b") is None
    with cache.using(tenant="acme"):
        assert list(own.get("a").values()) == [[1.0]]
        assert own.delete("a")
        assert own.get("a") is None


def test_what_is_no_vector_or_no_text_is_not_kept(cache):
    store = EmbeddingKVStore(cache, model="m")
    store.put_all([("a", {}), ("b", {"id": []}), ("c", {"id": [float("nan")]}), (" ", {"id": [1]})])
    assert cache.engine.parts.store.sizes() == {}


def test_without_a_tenant_nothing_is_kept_and_it_is_said_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        embed_model = model(nobody)
        with pytest.warns(RuntimeWarning, match="no tenant"):
            embed_model.get_text_embedding("a")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            embed_model.get_text_embedding("a")
        assert embed_model._calls == ["a", "a"]


async def test_what_it_cannot_do_it_says(cache):
    store = EmbeddingKVStore(cache, model="m")
    with pytest.raises(NotImplementedError, match="digests"):
        store.get_all("embeddings")
    with pytest.raises(NotImplementedError, match="digests"):
        await store.aget_all("embeddings")
    with pytest.raises(stemma.UsageError, match="only 'embeddings'"):
        store.get("a", "data")
    for named in ({"model": ""}, {"model": None}, {"model": "m", "shared": ""}):
        with pytest.raises(stemma.UsageError):
            EmbeddingKVStore(cache, **named)
    with pytest.raises(stemma.UsageError, match="cache"):
        EmbeddingKVStore({}, model="m")
