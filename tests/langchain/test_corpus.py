"""Vector stores and record managers that tell the cache what changes in them."""

import asyncio
import copy
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import chromadb
import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from langchain_tests.integration_tests import VectorStoreIntegrationTests

import stemma
from stemma.stores.memory import MemoryStore
from stemma_langchain import (
    CachedChain,
    CachedRetriever,
    LocalEmbeddings,
    WatchedRecordManager,
    WatchedVectorStore,
    adding,
)
from stemma_langchain.fingerprint import index_identity

TOPICS = ("cancel an order", "ship to Canada", "refund a gift card", "reach support by phone")
EMBEDDINGS = LocalEmbeddings("hashing")


def make(kind):
    if kind == "memory":
        return InMemoryVectorStore(EMBEDDINGS)
    return Chroma(
        collection_name=f"c{uuid.uuid4().hex}",
        embedding_function=EMBEDDINGS,
        client=chromadb.EphemeralClient(),
        collection_configuration={"hnsw": {"space": "cosine"}},
    )


@pytest.fixture(params=["memory", "chroma"])
def store(request):
    return make(request.param)


@pytest.fixture
def cache():
    with stemma.open(embedder=None, tenant="t") as opened:
        yield opened


class Shop:
    """A watched store, questions about it, and what was asked anew."""

    def __init__(self, cache, store):
        self.cache = cache
        self.store = WatchedVectorStore(cache, store)
        self.retriever = CachedRetriever(cache, self.store.as_retriever(search_kwargs={"k": 1}))

    def documents(self, edition="first", topics=TOPICS):
        return [
            Document(f"How to {topic}: {edition} edition.", id=topic, metadata={"source": topic})
            for topic in topics
        ]

    def ask(self, topic):
        """The answer, and whether it was computed."""

        def compute():
            return self.retriever.invoke(f"How to {topic}?")[0].page_content

        served = self.cache.answers.get_or_compute(topic, compute, meaning=False)
        return served.value, not served.outcome.hit

    def computed(self):
        return [topic for topic in TOPICS if self.ask(topic)[1]]


@pytest.fixture
def shop(cache, store):
    made = Shop(cache, store)
    made.store.add_documents(made.documents())
    assert made.computed() == list(TOPICS)
    assert made.computed() == []
    return made


def test_a_changed_document_takes_its_answers_with_it_and_no_others(shop):
    shop.store.add_documents(shop.documents("second", TOPICS[1:2]))
    assert shop.computed() == [TOPICS[1]]
    assert "second" in shop.ask(TOPICS[1])[0]


def test_what_is_added_again_unchanged_changes_nothing(shop):
    shop.store.add_documents(shop.documents())
    shop.store.add_texts(
        [one.page_content for one in shop.documents()],
        [one.metadata for one in shop.documents()],
        ids=list(TOPICS),
    )
    assert shop.computed() == []


def test_metadata_that_changes_is_a_change(shop):
    (document,) = shop.documents(topics=TOPICS[:1])
    document.metadata["acl"] = "staff"
    shop.store.add_documents([document])
    assert shop.computed() == [TOPICS[0]]


def test_a_deleted_document_takes_its_answers_with_it(shop):
    shop.store.delete([TOPICS[2]])
    assert shop.computed() == [TOPICS[2]]
    shop.store.delete(["never there"])
    assert shop.computed() == []


def test_a_new_document_takes_back_the_searches_it_belongs_to(shop):
    text = f"How to {TOPICS[3]}? Call us."
    shop.store.add_texts([text])
    assert shop.computed() == [TOPICS[3]]
    assert shop.ask(TOPICS[3])[0] == text


async def test_async_changes_are_told_as_well(shop):
    await shop.store.aadd_documents(shop.documents("second", TOPICS[:1]))
    assert shop.computed() == [TOPICS[0]]
    await shop.store.aadd_texts([f"How to {TOPICS[1]}? By sea."])
    assert shop.computed() == [TOPICS[1]]
    await shop.store.adelete([TOPICS[2]])
    assert shop.computed() == [TOPICS[2]]


def test_what_only_chroma_can_do_is_told_as_well(cache):
    shop = Shop(cache, make("chroma"))
    shop.store.add_documents(shop.documents())
    shop.computed()
    shop.store.update_document(TOPICS[0], shop.documents("second")[0])
    assert shop.computed() == [TOPICS[0]]
    shop.store.delete(where={"source": TOPICS[1]})
    assert shop.computed() == list(TOPICS)
    shop.store.reset_collection()
    assert len(cache.engine.parts.store.find()) == 0


@pytest.mark.parametrize("cleanup", ["incremental", "full"])
def test_the_indexing_api_tells_by_itself(cache, store, cleanup):
    shop = Shop(cache, store)
    manager = InMemoryRecordManager("shop")
    manager.create_schema()
    how = {"cleanup": cleanup, "source_id_key": "source", "key_encoder": "sha256"}
    index(shop.documents(), manager, shop.store, **how)
    shop.computed()
    index(shop.documents(), manager, shop.store, **how)
    assert shop.computed() == []
    documents = shop.documents()
    documents[1] = shop.documents("second")[1]
    index(documents, manager, shop.store, **how)
    assert TOPICS[1] in shop.computed()
    assert "second" in shop.ask(TOPICS[1])[0]


async def test_a_record_manager_tells_where_the_store_cannot(cache, store):
    retriever = CachedRetriever(cache, store.as_retriever(search_kwargs={"k": 1}))
    inner = InMemoryRecordManager("shop")
    manager = WatchedRecordManager(cache, inner, store)
    await manager.acreate_schema()
    how = {"cleanup": "full", "source_id_key": "source", "key_encoder": "sha256"}
    first = [Document("We ship to Canada in a week.", metadata={"source": "shipping"})]
    await aindex(first, manager, store, **how)
    retriever.invoke("Canada?")
    await aindex(first, manager, store, **how)
    assert "stemma" in retriever.invoke("Canada?")[0].metadata
    second = [Document("We ship to Canada in a day.", metadata={"source": "shipping"})]
    index(second, manager, store, **how)
    found = retriever.invoke("Canada?")
    assert "stemma" not in found[0].metadata
    assert "day" in found[0].page_content
    assert await manager.alist_keys() == manager.list_keys() == inner.list_keys()
    assert manager.exists(manager.list_keys()) == await manager.aexists(manager.list_keys())
    assert manager.get_time() <= await manager.aget_time()


def test_to_the_cache_it_is_the_store_itself(cache, store):
    watched = WatchedVectorStore(cache, store)
    assert index_identity(watched) == index_identity(store)
    watched.add_texts(["How to ship to Canada."], ids=["1"])
    CachedRetriever(cache, store.as_retriever()).invoke("Canada?")
    through = CachedRetriever(cache, watched.as_retriever()).invoke("Canada?")
    assert through[0].metadata["stemma"]["tier"] == "exact"


def test_all_else_passes_through(cache, store):
    watched = WatchedVectorStore(cache, store)
    watched.add_texts(["one text", "another text"], ids=["1", "2"])
    for method in (
        "similarity_search",
        "similarity_search_with_score",
        "max_marginal_relevance_search",
        "similarity_search_with_relevance_scores",
    ):
        if isinstance(store, InMemoryVectorStore) and "relevance" in method and "mar" not in method:
            continue  # LangChain's in-memory store has no relevance scores
        assert getattr(watched, method)("text") == getattr(store, method)("text")
    retriever = watched.as_retriever()
    assert isinstance(retriever, VectorStoreRetriever)
    assert retriever.vectorstore is watched
    assert watched.embeddings is store.embeddings
    with pytest.raises(AttributeError):
        _ = watched.nothing_of_the_kind


class Silent(MemoryStore):
    """Takes no recall while it is told so."""

    out = False

    def recall_all(self, selectors, *, now):
        if self.out:
            raise stemma.StoreUnavailable("out")
        return super().recall_all(selectors, now=now)


def test_what_could_not_be_told_is_told_first_the_next_time():
    store = Silent()
    with stemma.open(store, embedder=None, tenant="t") as cache:
        shop = Shop(cache, make("memory"))
        shop.store.add_documents(shop.documents())
        shop.computed()
        store.out = True
        with pytest.raises(stemma.StoreUnavailable, match="in the index"):
            shop.store.add_documents(shop.documents("second", TOPICS[:1]))
        store.out = False
        shop.store.add_documents(shop.documents("second", TOPICS[:1]))
        assert shop.computed() == [TOPICS[0]]


class Troubled(InMemoryVectorStore):
    """Does what it is asked, and then something else than to say so, or before that."""

    trouble = ""
    entered = threading.Event()
    gate = threading.Event()

    def add_documents(self, documents, ids=None, **kwargs):
        if self.trouble == "slow":
            self.entered.set()
            assert self.gate.wait(30)
        given = super().add_documents(documents, ids=ids, **kwargs)
        if self.trouble == "breaks":
            raise OSError("the line broke")
        return {"names none": None, "names too few": given[:-1]}.get(self.trouble, given)

    def delete(self, ids=None, **kwargs):
        super().delete(ids, **kwargs)
        if self.trouble == "breaks":
            raise OSError("the line broke")

    async def aadd_documents(self, documents, ids=None, **kwargs):
        return await asyncio.to_thread(self.add_documents, documents, ids, **kwargs)

    async def adelete(self, ids=None, **kwargs):
        return await asyncio.to_thread(self.delete, ids, **kwargs)

    def get_by_ids(self, ids, /):
        if self.trouble == "unreadable":
            raise OSError("not just now")
        return super().get_by_ids(ids)

    def add_embeddings(self, pairs):
        super().add_texts([text for text, _ in pairs], ids=[text for text, _ in pairs])

    async def aadd_embeddings(self, pairs):
        self.add_embeddings(pairs)


@pytest.fixture
def troubled(cache):
    shop = Shop(cache, Troubled(EMBEDDINGS))
    shop.store.add_documents(shop.documents())
    shop.computed()
    return shop


def test_what_fails_half_way_is_told_all_the_same(troubled):
    troubled.store.watched.trouble = "breaks"
    with pytest.raises(OSError, match="broke"):
        troubled.store.add_documents(troubled.documents("second", TOPICS[1:2]))
    with pytest.raises(OSError, match="broke"):
        troubled.store.delete([TOPICS[2]])
    assert "second" in troubled.ask(TOPICS[1])[0]
    assert TOPICS[2] not in troubled.ask(TOPICS[2])[0]


async def test_what_fails_half_way_is_told_in_async_calls_too(troubled):
    troubled.store.watched.trouble = "breaks"
    with pytest.raises(OSError, match="broke"):
        await troubled.store.aadd_documents(troubled.documents("second", TOPICS[1:2]))
    with pytest.raises(OSError, match="broke"):
        await troubled.store.adelete([TOPICS[2]])
    assert "second" in troubled.ask(TOPICS[1])[0]
    assert TOPICS[2] not in troubled.ask(TOPICS[2])[0]


@pytest.mark.parametrize("trouble", ["names none", "names too few", "unreadable", "no vectors"])
def test_a_store_that_says_little_of_what_it_did_is_taken_to_have_done_it(
    troubled, trouble, monkeypatch
):
    troubled.store.watched.trouble = trouble
    if trouble == "no vectors":
        monkeypatch.setattr(adding, "stored_vectors", lambda *_: 1 / 0)
    new = Document(f"How to {TOPICS[3]}? Call us.", id="new")
    troubled.store.add_documents([*troubled.documents("second", TOPICS[1:2]), new])
    troubled.store.watched.trouble = ""
    assert "second" in troubled.ask(TOPICS[1])[0]
    assert "Call us" in troubled.ask(TOPICS[3])[0]


async def test_a_change_whose_caller_is_cancelled_comes_to_its_end_and_is_told(troubled):
    inner = troubled.store.watched
    inner.trouble = "slow"
    inner.entered.clear()
    inner.gate.clear()
    adding = asyncio.create_task(
        troubled.store.aadd_documents(troubled.documents("second", TOPICS[1:2]))
    )
    await asyncio.to_thread(inner.entered.wait, 30)
    adding.cancel()
    await asyncio.sleep(0)
    inner.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await adding
    assert "second" in troubled.ask(TOPICS[1])[0]


async def test_what_a_store_can_do_besides_takes_back_everything(troubled):
    troubled.store.add_embeddings([("How to ship to Canada? By sea.", None)])
    assert troubled.computed() == list(TOPICS)
    await troubled.store.aadd_embeddings([("How to ship to Canada? By air.", None)])
    assert troubled.computed() == list(TOPICS)
    assert troubled.store.similarity_search("Canada", k=1)
    assert troubled.computed() == []


def test_changes_told_from_many_threads_are_all_told(cache, monkeypatch):
    shop = Shop(cache, make("memory"))
    told, real = [], cache.documents_changed

    def slowly(index, **named):
        time.sleep(0.002)
        told.extend(named["removed"])
        return real(index, **named)

    monkeypatch.setattr(cache, "documents_changed", slowly)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: shop.store.delete([f"d{n}"]), range(64)))
    assert sorted(told) == sorted(f"d{n}" for n in range(64))


def test_ids_may_be_numbers_or_come_one_by_one(troubled):
    troubled.store.delete([7])
    troubled.store.delete([TOPICS[2]])
    assert troubled.computed() == [TOPICS[2]]


def test_a_copy_of_a_watched_store_is_another_index(cache):
    store = WatchedVectorStore(cache, InMemoryVectorStore(EMBEDDINGS))
    store.add_texts(["How to ship to Canada."], ids=["1"])
    other = copy.deepcopy(store)
    assert index_identity(other) != index_identity(store)
    retriever = CachedRetriever(cache, other.as_retriever())
    assert len(retriever.invoke("Canada?")) == 1
    other.add_texts(["Canada?"], ids=["2"])
    assert retriever.invoke("Canada?")[0].id == "2"


@pytest.mark.parametrize("arguments", [(None, None), ("cache", None)])
def test_wrong_arguments_are_refused(cache, arguments):
    with pytest.raises(stemma.UsageError):
        WatchedVectorStore(cache if arguments[0] else None, arguments[1])
    with pytest.raises(stemma.UsageError, match="wrap"):
        WatchedVectorStore.from_texts(["text"], EMBEDDINGS)


class TestStandard(VectorStoreIntegrationTests):
    """LangChain's own suite, over a watched store."""

    @pytest.fixture
    def vectorstore(self):
        with stemma.open(embedder=None, tenant="t") as cache:
            yield WatchedVectorStore(cache, InMemoryVectorStore(self.get_embeddings()))


@pytest.mark.parametrize("asked", ["retriever", "record manager"])
def test_who_names_the_index_at_the_watched_store_need_not_name_it_again(cache, store, asked):
    watched = WatchedVectorStore(cache, store, index="shop")
    retriever = CachedRetriever(cache, watched.as_retriever(search_kwargs={"k": 1}))
    assert retriever.index_identity() == "shop"
    watched.add_documents([Document("Orders can be cancelled.", id="1")])
    query = "May orders be cancelled by phone?"
    assert [one.id for one in retriever.invoke(query)] == ["1"]
    new = Document(query, id="2")
    if asked == "retriever":
        watched.add_documents([new])
    else:
        store.add_documents([new])
        manager = WatchedRecordManager(cache, InMemoryRecordManager(namespace="shop"), watched)
        manager.update(["2"])
    assert [one.id for one in retriever.invoke(query)] == ["2"]


@pytest.mark.parametrize("index", [None, "shop"])
@pytest.mark.parametrize("streamed", [False, True])
def test_answers_of_a_chain_over_a_plain_retriever_go_with_any_new_document(cache, index, streamed):
    """Nothing tells what it looked for; a document of another index concerns it not."""
    store = WatchedVectorStore(cache, make("memory"), index=index)
    other = WatchedVectorStore(cache, make("memory"), index="another")
    store.add_texts(["We ship to Canada."], ids=["1"])
    chain = CachedChain(cache, store.as_retriever() | first_text)

    def ask():
        chunks = list(chain.stream("Can I pay by cheque?")) if streamed else []
        return chunks[-1] if streamed else chain.invoke("Can I pay by cheque?")

    assert ask() == ask() == "We ship to Canada."
    other.add_texts(["Can I pay by cheque? No."])
    assert ask() == "We ship to Canada."
    store.add_texts(["Can I pay by cheque? Yes, you can pay by cheque."])
    assert "cheque" in ask()


def first_text(documents):
    return documents[0].page_content
