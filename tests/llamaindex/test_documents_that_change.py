"""Vector stores and docstores of LlamaIndex whose changes the cache is told of."""

import copy
import itertools

import pytest
from llama_index.core import Document, StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from pydantic import PrivateAttr

import stemma
from stemma_llamaindex import WatchedDocumentStore, WatchedVectorStore

STYLES = ("sync", "async")


class Angles(BaseEmbedding):
    """Each word has an angle: a text's vector is that of its first word."""

    def _get_query_embedding(self, query):
        first = query.split()[0] if query.split() else ""
        return [float(len(first)), float(sum(map(ord, first)) % 7 + 1)]

    def _get_text_embedding(self, text):
        return self._get_query_embedding(text)

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


class Keeping(SimpleVectorStore):
    """A vector store that gives its nodes, as those of servers do."""

    _nodes: dict = PrivateAttr(default_factory=dict)

    def add(self, nodes, **kwargs):
        self._nodes |= {node.node_id: node.model_copy() for node in nodes}
        return super().add(nodes, **kwargs)

    def get_nodes(self, node_ids=None, filters=None):
        return [node for node in self._nodes.values() if node_ids is None or node.id_ in node_ids]


class Failing(SimpleVectorStore):
    """Fails after it has done what was asked."""

    def add(self, nodes, **kwargs):
        super().add(nodes, **kwargs)
        raise ConnectionError("gone")

    def delete(self, ref_doc_id, **kwargs):
        super().delete(ref_doc_id, **kwargs)
        raise ConnectionError("gone")


@pytest.fixture
def told(cache, monkeypatch):
    """What the cache was told, besides being told it."""
    heard = []
    kind = type(cache)
    whole, awhole = kind.documents_changed, kind.adocuments_changed

    def noted(named):
        heard.append({name: list(value) for name, value in named.items()})

    def documents_changed(self, index, **named):
        noted({"index": [index], **named})
        return whole(self, index, **named)

    async def adocuments_changed(self, index, **named):
        noted({"index": [index], **named})
        return await awhole(self, index, **named)

    monkeypatch.setattr(kind, "documents_changed", documents_changed)
    monkeypatch.setattr(kind, "adocuments_changed", adocuments_changed)
    return heard


def take(heard):
    """What was told since the last time, all together, less what is empty."""
    found = {}
    for one in heard:
        assert one.pop("index") == ["handbook"]
        for name, values in one.items():
            found.setdefault(name, []).extend(values)
    heard.clear()
    return {name: values for name, values in found.items() if values}


async def do(style, thing, name, *args, **kwargs):
    """Call a method, or the async one of the name that LlamaIndex gives it."""
    if style == "sync":
        return getattr(thing, name)(*args, **kwargs)
    twin = next(n for n in (f"a{name}", f"async_{name}") if hasattr(thing, n))
    return await getattr(thing, twin)(*args, **kwargs)


def node(id, text, document=None, **metadata):
    made = TextNode(id_=id, text=text, metadata=metadata, embedding=[float(len(text)), 1.0])
    if document is not None:
        made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=document)
    return made


def depend(cache, *documents):
    """An answer that was built on each of these documents; gives which are still served."""
    for document in documents:
        if not cache.answers.lookup(f"what of {document}").hit:
            with cache.trace() as frame:
                miss = cache.answers.lookup(f"what of {document}")
                source = stemma.Source(document=document, chunk=f"{document}/1", content="c")
                frame.read_sources([(source, document)], stemma.frames.marks())
                assert cache.answers.put(miss.ticket, f"answer of {document}")

    def served():
        return [d for d in documents if cache.answers.lookup(f"what of {d}").hit]

    assert served() == list(documents)
    return served


def retrieve(cache):
    """A cached retrieval from the index, whose chunks nobody has noted."""
    cache.retrievals.get_or_compute("q", lambda: ["a chunk"], index="handbook")
    assert cache.retrievals.lookup("q", index="handbook").hit


# ------------------------------------------------------------------- vector stores


@pytest.mark.parametrize("style", STYLES)
async def test_a_new_node_is_told_with_its_vector(cache, told, style):
    store = WatchedVectorStore(cache, Keeping(), index="handbook")
    assert await do(style, store, "add", [node("1", "a"), node("2", "bb")]) == ["1", "2"]
    assert take(told) == {"added": [[1.0, 1.0], [2.0, 1.0]]}


@pytest.mark.parametrize("style", STYLES)
async def test_a_node_added_again_has_changed_only_with_its_content(cache, told, style):
    store = WatchedVectorStore(cache, Keeping(), index="handbook")
    await do(style, store, "add", [node("1", "a", acl="all"), node("2", "b", acl="all")])
    take(told)
    again = [node("1", "a", acl="all"), node("2", "bb", acl="all"), node("3", "ccc")]
    await do(style, store, "add", again)
    assert take(told) == {"added": [[2.0, 1.0], [3.0, 1.0]], "changed": ["2"]}
    await do(style, store, "add", [node("1", "a", acl="none")])
    assert take(told) == {"added": [[1.0, 1.0]], "changed": ["1"]}, "its rights are content, too"


@pytest.mark.parametrize("style", STYLES)
async def test_where_the_store_cannot_give_its_nodes_each_may_have_changed(cache, told, style):
    store = WatchedVectorStore(cache, SimpleVectorStore(), index="handbook")
    await do(style, store, "add", [node("1", "a"), node("2", "b")])
    assert take(told)["changed"] == ["1", "2"]


@pytest.mark.parametrize("style", STYLES)
async def test_what_is_deleted_is_told(cache, told, style):
    store = WatchedVectorStore(cache, Keeping(), index="handbook")
    await do(style, store, "add", [node("1", "a", "A"), node("2", "b", "B"), node("3", "c", "C")])
    served = depend(cache, "A", "B")
    take(told)
    await do(style, store, "delete", "A")
    assert take(told) == {"removed": ["A"]}
    assert served() == ["B"]
    await do(style, store, "delete_nodes", ["2"])
    assert take(told) == {"removed": ["2"]}
    assert list(store.data.embedding_dict) == ["3"]


@pytest.mark.parametrize("style", STYLES)
async def test_deleting_by_a_filter_and_clearing_spare_no_retrieval(cache, told, style):
    for inner, known in ((Keeping(), ["1"]), (SimpleVectorStore(), [])):
        store = WatchedVectorStore(cache, inner, index="handbook")
        filters = MetadataFilters(
            filters=[MetadataFilter(key="team", value="x", operator=FilterOperator.EQ)]
        )
        await do(style, store, "add", [node("1", "a", team="x")])
        take(told)
        retrieve(cache)
        await do(style, store, "delete_nodes", filters=filters)
        assert list(store.data.embedding_dict) == []
        assert take(told) == {"added": [None], **({"removed": known} if known else {})}
        assert [entry.index for entry in cache.engine.parts.store.find(limit=9)] == []
        retrieve(cache)
        await do(style, store, "clear")
        assert not cache.retrievals.lookup("q", index="handbook").hit


@pytest.mark.parametrize("style", STYLES)
async def test_what_failed_half_way_is_told_as_well(cache, told, style):
    store = WatchedVectorStore(cache, Failing(), index="handbook")
    with pytest.raises(ConnectionError, match="gone"):
        await do(style, store, "add", [node("1", "a", "A")])
    assert take(told)["added"] == [[1.0, 1.0]]
    served = depend(cache, "A")
    with pytest.raises(ConnectionError, match="gone"):
        await do(style, store, "delete", "A")
    assert served() == []


async def test_what_is_read_is_the_stores_own(cache, told, tmp_path):
    inner = Keeping()
    store = WatchedVectorStore(cache, inner, index="handbook")
    store.add([node("1", "a"), node("2", "bb")])
    query = VectorStoreQuery(query_embedding=[2.0, 1.0], similarity_top_k=1)
    assert store.query(query).ids == (await store.aquery(query)).ids == ["2"]
    assert [found.id_ for found in store.get_nodes(["1"])] == ["1"]
    assert [found.id_ for found in await store.aget_nodes(["1"])] == ["1"]
    assert (store.stores_text, store.is_embedding_query, store.client) == (False, True, None)
    assert store.get("1") == [1.0, 1.0], "what only stores of its kind have"
    store.persist(str(tmp_path / "vectors.json"))
    again = SimpleVectorStore.from_persist_path(str(tmp_path / "vectors.json"))
    assert list(again.data.embedding_dict) == ["1", "2"]
    assert copy.copy(store).inner is inner
    with pytest.raises(AttributeError, match="nothing_like_it"):
        store.nothing_like_it  # noqa: B018 - that it is not there is the point


# ------------------------------------------------------------------------ indexes


def index_over(cache, inner):
    store = WatchedVectorStore(cache, inner, index="handbook")
    docstore = WatchedDocumentStore(cache, SimpleDocumentStore(), vector_store=store)
    storage = StorageContext.from_defaults(vector_store=store, docstore=docstore)
    documents = [Document(text=f"{word} text", id_=word) for word in ("alpha", "beta", "gamma")]
    return VectorStoreIndex.from_documents(
        documents, storage_context=storage, embed_model=Angles(), transformations=[]
    )


@pytest.mark.parametrize("style", STYLES)
async def test_whatever_an_index_does_to_its_documents_is_told(cache, told, style):
    index = index_over(cache, SimpleVectorStore())
    served = depend(cache, "alpha", "beta", "gamma")
    take(told)
    await do(style, index, "insert", Document(text="delta text", id_="delta"))
    assert len(take(told)["added"]) == 1
    assert served() == ["alpha", "beta", "gamma"]
    await do(style, index, "update_ref_doc", Document(text="alpha changed", id_="alpha"))
    assert served() == ["beta", "gamma"]
    await do(style, index, "delete_ref_doc", "beta", delete_from_docstore=True)
    assert served() == ["gamma"]
    take(told)
    refreshed = [Document(text="gamma text", id_="gamma"), Document(text="beta text", id_="beta")]
    await do(style, index, "refresh_ref_docs", refreshed)
    assert served() == ["gamma"], "an unchanged document is no reason to take anything back"
    await do(style, index, "refresh_ref_docs", [Document(text="gamma changed", id_="gamma")])
    assert served() == []
    await do(style, index, "insert_nodes", [TextNode(text="epsilon", id_="e")])
    take(told)
    await do(style, index, "delete_nodes", ["e"])
    assert take(told) == {"removed": ["e"]}


def test_an_index_without_vectors_tells_by_its_docstore(cache, told):
    docstore = WatchedDocumentStore(cache, SimpleDocumentStore(), index="handbook")
    storage = StorageContext.from_defaults(docstore=docstore)
    index = SummaryIndex.from_documents(
        [Document(text="alpha", id_="alpha"), Document(text="beta", id_="beta")],
        storage_context=storage,
        transformations=[],
    )
    assert None in take(told)["added"]
    served = depend(cache, "alpha", "beta")
    index.delete_ref_doc("alpha", delete_from_docstore=True)
    assert served() == ["beta"]
    take(told)
    index.insert(Document(text="gamma", id_="gamma"))
    assert take(told)["added"]
    assert served() == ["beta"]


# ---------------------------------------------------------------------- pipelines


@pytest.mark.parametrize(
    ("strategy", "gone"),
    [
        (DocstoreStrategy.UPSERTS, ["changed"]),
        (DocstoreStrategy.UPSERTS_AND_DELETE, ["changed", "dropped"]),
        (DocstoreStrategy.DUPLICATES_ONLY, ["changed"]),
    ],
)
@pytest.mark.parametrize("style", STYLES)
async def test_every_strategy_of_a_pipeline_is_told(cache, told, style, strategy, gone):
    store = WatchedVectorStore(cache, SimpleVectorStore(), index="handbook")
    pipeline = IngestionPipeline(
        transformations=[Angles()],
        vector_store=store,
        docstore=WatchedDocumentStore(cache, SimpleDocumentStore(), vector_store=store),
        docstore_strategy=strategy,
        disable_cache=True,
    )
    names = ["same", "changed", "dropped"]
    await do(style, pipeline, "run", documents=[Document(text=name, id_=name) for name in names])
    served = depend(cache, *names)
    take(told)
    documents = [
        Document(text="same", id_="same"),
        Document(text="changed now", id_="changed"),
        Document(text="new", id_="new"),
    ]
    await do(style, pipeline, "run", documents=documents)
    assert served() == [name for name in names if name not in gone]
    assert len(take(told)["added"]) == 2


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.filterwarnings("ignore:docstore_strategy")
async def test_a_pipeline_without_a_vector_store_is_told_too(cache, told, style):
    docstore = WatchedDocumentStore(cache, SimpleDocumentStore(), index="handbook")
    pipeline = IngestionPipeline(transformations=[Angles()], docstore=docstore, disable_cache=True)
    await do(style, pipeline, "run", documents=[Document(text="a", id_="A")])
    served = depend(cache, "A")
    await do(style, pipeline, "run", documents=[Document(text="a", id_="A")])
    assert served() == ["A"]
    await do(style, pipeline, "run", documents=[Document(text="b", id_="A")])
    assert served() == []


# ---------------------------------------------------------------------- docstores


@pytest.mark.parametrize("style", STYLES)
async def test_a_docstore_tells_what_changed_and_what_went(cache, told, style):
    store = WatchedVectorStore(cache, SimpleVectorStore(), index="handbook")
    docstore = WatchedDocumentStore(cache, SimpleDocumentStore(), vector_store=store)
    names = ["add_documents", "set_document_hash", "set_document_hashes", "delete_document"]
    documents = [Document(text=name, id_=name) for name in names]
    add = "add_documents"
    await do(style, docstore, add, documents)
    served = depend(cache, *names)
    await do(style, docstore, add, documents)
    await do(style, docstore, "set_document_hash", names[1], documents[1].hash)
    assert served() == names
    assert take(told) == {}, "new documents are told by the vector store beside it"
    await do(style, docstore, add, [Document(text="other", id_=names[0])])
    await do(style, docstore, "set_document_hash", names[1], "other")
    await do(style, docstore, "set_document_hashes", {names[2]: "other"})
    assert served() == [names[3]]
    await do(style, docstore, "delete_document", names[3])
    assert served() == []
    assert take(told) == {"changed": names[:3], "removed": [names[3]]}


@pytest.mark.parametrize("style", STYLES)
async def test_what_is_read_of_a_docstore_is_its_own(cache, style, tmp_path):
    docstore = WatchedDocumentStore(cache, SimpleDocumentStore(), index="handbook")
    chunk = node("1", "a", "A")
    await do(style, docstore, "add_documents", [chunk])
    assert (await do(style, docstore, "get_document", "1")).text == "a"
    assert (await do(style, docstore, "get_node", "1")).text == "a"
    assert [n.text for n in await do(style, docstore, "get_nodes", ["1"])] == ["a"]
    assert await do(style, docstore, "document_exists", "1")
    assert await do(style, docstore, "get_document_hash", "1") == chunk.hash
    assert await do(style, docstore, "get_all_document_hashes") == {chunk.hash: "1"}
    assert (await do(style, docstore, "get_ref_doc_info", "A")).node_ids == ["1"]
    assert list(await do(style, docstore, "get_all_ref_doc_info")) == ["A"]
    assert list(docstore.docs) == ["1"]
    assert docstore.ref_doc_exists("A"), "what only stores of its kind have"
    docstore.persist(str(tmp_path / "docstore.json"))
    again = SimpleDocumentStore.from_persist_path(str(tmp_path / "docstore.json"))
    assert list(again.docs) == ["1"]
    await do(style, docstore, "delete_ref_doc", "A")
    assert not docstore.docs


def test_a_change_that_the_cache_cannot_follow_is_an_error(cache):
    """The store has it; what was built on it before could not be taken back."""
    store = WatchedVectorStore(cache, SimpleVectorStore(), index="handbook")
    store.add([node("1", "a", "A")])
    cache.engine.parts.store.close()
    with pytest.raises(stemma.StoreUnavailable, match="next call"):
        store.delete("A")
    assert list(store.data.embedding_dict) == []


@pytest.mark.parametrize("style", STYLES)
async def test_what_the_cache_could_not_be_told_is_told_next_time(cache, told, style, monkeypatch):
    store = WatchedVectorStore(cache, SimpleVectorStore(), index="handbook")
    served = depend(cache, "A", "B")
    with monkeypatch.context() as patched:
        patched.setattr(cache.engine.parts.store, "recall", _unreachable)
        patched.setattr(cache.engine.parts.store, "recall_all", _unreachable, raising=False)
        with pytest.raises(stemma.StoreUnavailable):
            await do(style, store, "delete", "A")
    assert served() == ["A", "B"]
    await do(style, store, "delete", "B")
    assert served() == []


def _unreachable(*_, **__):
    raise stemma.StoreUnavailable("gone")


def test_wrong_arguments_are_refused(cache):
    vectors, documents = SimpleVectorStore(), SimpleDocumentStore()
    watched = WatchedVectorStore(cache, vectors, index="handbook")
    wrong = itertools.chain(
        (
            (WatchedVectorStore, ("answers.db", vectors), {"index": "i"}, "cache"),
            (WatchedVectorStore, (cache, documents), {"index": "i"}, "vector store"),
            (WatchedVectorStore, (cache, vectors), {"index": ""}, "index"),
        ),
        (
            (WatchedDocumentStore, ("answers.db", documents), {"index": "i"}, "cache"),
            (WatchedDocumentStore, (cache, vectors), {"index": "i"}, "docstore"),
            (WatchedDocumentStore, (cache, documents), {"index": ""}, "index"),
            (WatchedDocumentStore, (cache, documents), {}, "either"),
            (WatchedDocumentStore, (cache, documents), {"vector_store": vectors}, "watched"),
            (
                WatchedDocumentStore,
                (cache, documents),
                {"vector_store": watched, "index": "i"},
                "either",
            ),
        ),
    )
    for kind, args, named, match in wrong:
        with pytest.raises(stemma.UsageError, match=match):
            kind(*args, **named)
    assert isinstance(watched, BasePydanticVectorStore)
