"""Retrievers of LlamaIndex behind the cache, over a real vector index."""

import math
import warnings

import pytest
from llama_index.core import Document, QueryBundle, StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import IndexNode, MetadataMode, NodeWithScore, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from pydantic import PrivateAttr

import stemma
from stemma_llamaindex import (
    CachedRetriever,
    CacheHitEvent,
    WatchedDocumentStore,
    WatchedVectorStore,
)

STYLES = ("sync", "async")


class Angles(BaseEmbedding):
    """A text begins with an angle in degrees: that is its vector. Notes what it embeds."""

    _calls: list = PrivateAttr(default_factory=list)

    def _get_query_embedding(self, query):
        self._calls.append(query)
        angle = math.radians(float(query.split()[0]))
        return [math.cos(angle), math.sin(angle)]

    def _get_text_embedding(self, text):
        return self._get_query_embedding(text)

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


class Counting(SimpleVectorStore):
    """Notes how many nodes each search asks for."""

    _searches: list = PrivateAttr(default_factory=list)

    def query(self, query, **kwargs):
        self._searches.append(query.similarity_top_k)
        return super().query(query, **kwargs)


class Other(BaseRetriever):
    """Gives what it is made with, and notes every query."""

    def __init__(self, given, **named):
        self.given = given
        self._calls = []
        super().__init__(**named)

    @property
    def stemma_identity(self):
        return "other"

    def _retrieve(self, query_bundle):
        self._calls.append(query_bundle.query_str)
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


class World:
    """An index whose changes the cache is told of."""

    def __init__(self, cache, angles=range(0, 360, 4), store=None):
        self.cache = cache
        self.embedder = Angles()
        self.store = Counting() if store is None else store
        watched = WatchedVectorStore(cache, self.store)
        storage = StorageContext.from_defaults(
            vector_store=watched,
            docstore=WatchedDocumentStore(cache, _docstore(), vector_store=watched),
        )
        self.index = VectorStoreIndex.from_documents(
            [document(angle) for angle in angles],
            storage_context=storage,
            embed_model=self.embedder,
            transformations=[],
        )
        self.embedder._calls.clear()

    def retriever(self, k=3, face=None, **named):
        inner = self.index.as_retriever(similarity_top_k=k, **named)
        return CachedRetriever(self.cache, inner, **(face if face is not None else {}))

    def direct(self, query, k=3, **named):
        return self.index.as_retriever(similarity_top_k=k, **named).retrieve(query)

    @property
    def searches(self):
        return len(self.store._searches)


def _docstore():
    from llama_index.core.storage.docstore import SimpleDocumentStore  # noqa: PLC0415 - its place

    return SimpleDocumentStore()


def document(angle, **metadata):
    made = Document(
        text=f"{angle} degrees",
        id_=f"at {angle}",
        metadata={"half": "left" if angle >= 180 else "right"},
    )
    made.metadata |= metadata
    made.excluded_embed_metadata_keys = list(made.metadata)
    return made


@pytest.fixture
def world(cache):
    return World(cache)


async def ask(style, retriever, query):
    return retriever.retrieve(query) if style == "sync" else await retriever.aretrieve(query)


def plain(found):
    """Ids, texts and scores, the latter to the accuracy of float32."""
    return [(one.node.text, pytest.approx(one.score, abs=1e-6)) for one in found]


def note_of(found):
    notes = [one.node.metadata.get("stemma") for one in found]
    assert all(note == notes[0] for note in notes)
    return notes[0]


# ---------------------------------------------------------------------------- the same query


@pytest.mark.parametrize("style", STYLES)
async def test_the_second_call_does_not_search(world, style):
    first = await ask(style, world.retriever(), "41 what")
    assert plain(first) == plain(world.direct("41 what"))
    assert note_of(first) is None
    world.store._searches.clear()
    world.embedder._calls.clear()
    for again in ("41 what", QueryBundle("41 what")):
        found = await ask(style, world.retriever(), again)
        assert plain(found) == plain(first)
        assert [one.node.node_id for one in found] == [one.node.node_id for one in first]
        assert (note_of(found)["tier"], note_of(found)["list"]) == ("exact", "exact")
    assert (world.searches, world.embedder._calls) == (0, [])


@pytest.mark.parametrize("style", STYLES)
async def test_fewer_are_the_first_of_them_and_more_are_a_miss(world, style):
    await ask(style, world.retriever(k=3), "41 what")
    found = await ask(style, world.retriever(k=2), "41 what")
    assert note_of(found)["list"] == "prefix"
    assert plain(found) == plain(world.direct("41 what", k=2))
    many = await ask(style, world.retriever(k=40), "41 what")
    assert note_of(many) is None
    assert plain(many) == plain(world.direct("41 what", k=40))


async def test_hits_are_copies_and_models_are_not_shown_the_note(world):
    world.retriever().retrieve("41 what")
    one, two = world.retriever().retrieve("41 what"), world.retriever().retrieve("41 what")
    one[0].node.metadata["half"] = "changed"
    one[0].score = 9.0
    assert two[0].node.metadata["half"] == "right"
    assert two[0].score == pytest.approx(world.direct("41 what")[0].score)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert "stemma" not in two[0].node.get_content(metadata_mode=mode)
    assert "stemma" not in world.direct("41 what")[0].node.metadata


def test_settings_of_the_search_never_share(world):
    half = MetadataFilters(filters=[MetadataFilter(key="half", value="left")])
    other = MetadataFilters(filters=[MetadataFilter(key="half", value="right")])
    named = [{}, {"filters": half}, {"filters": other}, {"doc_ids": ["at 40"]}]
    named += [{"vector_store_query_mode": "mmr"}, {"vector_store_kwargs": {"mmr_threshold": 0.5}}]
    named += [{"embed_model": Angles(model_name="other")}]
    for _ in range(2):
        for one in named:
            if one.get("doc_ids") is None:
                found = world.retriever(**one).retrieve("41 what")
                assert plain(found) == plain(world.direct("41 what", **one))
            else:
                world.retriever(**one).retrieve("41 what")
    assert world.searches == len(named) + 2 * (len(named) - 1)


# -------------------------------------------------------------------------- near queries


@pytest.mark.parametrize("style", STYLES)
async def test_a_near_query_is_served_with_scores_of_its_own(world, style):
    await ask(style, world.retriever(), "41 what")
    world.store._searches.clear()
    found = await ask(style, world.retriever(), "43 what")
    note = note_of(found)
    assert world.searches == 0
    assert (note["tier"], note["list"]) == ("semantic", "proven")
    assert plain(found) == plain(world.direct("43 what"))
    again = await ask(style, world.retriever(), "43 what")
    assert plain(again) == plain(found)
    assert note_of(again)["tier"] == "exact"


def test_a_far_query_is_searched(world):
    world.retriever().retrieve("41 what")
    found = world.retriever().retrieve("150 what")
    assert note_of(found) is None
    assert plain(found) == plain(world.direct("150 what"))


def test_with_one_candidate_only_the_same_query_hits(world):
    narrow = {"candidates": 1}
    world.retriever(face=narrow).retrieve("41 what")
    assert world.store._searches == [3]
    assert note_of(world.retriever(face=narrow).retrieve("41.1 what")) is None
    assert note_of(world.retriever(face=narrow).retrieve("41 what"))["list"] == "exact"


@pytest.mark.parametrize(
    ("score", "served"),
    [
        (lambda s: (1 + s) / 2, True),
        (lambda s: math.exp(s - 1), True),
        (lambda s: 1 - s, True),
        (lambda s: 2 - 2 * s, True),
        (lambda s: s**3 - 5, False),
    ],
)
def test_scores_of_another_kind_are_kept_or_the_list_is_not_reused(cache, score, served):
    class Scoring(Counting):
        def query(self, query, **kwargs):
            result = super().query(query, **kwargs)
            result.similarities = [score(one) for one in result.similarities]
            return result

    world = World(cache)
    world.store.__class__ = Scoring
    first = world.retriever().retrieve("41 what")
    assert plain(world.retriever().retrieve("41 what")) == plain(first)
    found = world.retriever().retrieve("43 what")
    assert (note_of(found) is not None) is served
    assert plain(found) == plain(world.direct("43 what"))


def test_a_store_that_gives_no_scores_gives_none_on_a_hit(cache):
    class Silent(Counting):
        def query(self, query, **kwargs):
            result = super().query(query, **kwargs)
            result.similarities = None
            return result

    world = World(cache)
    world.store.__class__ = Silent
    for query in ("41 what", "41 what", "43 what"):
        assert [one.score for one in world.retriever().retrieve(query)] == [None] * 3
    assert world.searches == 1


# ---------------------------------------------------------------------- documents that change


@pytest.mark.parametrize("style", STYLES)
async def test_a_new_node_is_found_where_it_belongs_and_spoils_nothing_else(world, style):
    """What an index contains is no part of what a retrieval is known by."""
    await ask(style, world.retriever(), "41 what")
    await ask(style, world.retriever(), "221 what")
    world.index.insert(document(41.5))
    world.store._searches.clear()
    near = await ask(style, world.retriever(), "41 what")
    assert note_of(near) is None
    assert near[0].node.text == "41.5 degrees"
    assert plain(near) == plain(world.direct("41 what"))
    assert note_of(await ask(style, world.retriever(), "221 what")) is not None


@pytest.mark.parametrize("style", STYLES)
async def test_what_is_changed_or_deleted_is_never_served(world, style):
    for query in ("41 what", "81 what", "221 what"):
        await ask(style, world.retriever(), query)
    world.index.delete_ref_doc("at 40", delete_from_docstore=True)
    world.index.update_ref_doc(document(80, acl="none"))
    for query in ("41 what", "81 what"):
        found = await ask(style, world.retriever(), query)
        assert note_of(found) is None
        assert plain(found) == plain(world.direct(query))
    assert note_of(await ask(style, world.retriever(), "221 what")) is not None


@pytest.mark.parametrize("style", STYLES)
async def test_what_nobody_told_the_cache_is_seen_when_it_is_read_again(world, style):
    """The second line: nodes are read by their ids, as the index has them now."""
    await ask(style, world.retriever(), "41 what")
    (node,) = [n for n in world.index.docstore.docs.values() if n.text == "40 degrees"]
    node.metadata["acl"] = "none"
    world.index.docstore.inner.add_documents([node])
    found = await ask(style, world.retriever(), "41 what")
    assert note_of(found) is None
    assert found[0].node.metadata["acl"] == "none"
    del world.index.index_struct.nodes_dict[node.node_id]
    world.store.delete_nodes([node.node_id])
    found = await ask(style, world.retriever(), "41 what")
    assert "40 degrees" not in [one.node.text for one in found]


def test_a_retriever_that_knows_fewer_nodes_than_its_index_is_another(world):
    old = world.retriever()
    world.index.insert(document(41))
    assert world.retriever().retrieve("41 what")[0].node.text == "41 degrees"
    assert old.retrieve("41 what")[0].node.text == "40 degrees"
    assert world.retriever().retrieve("41 what")[0].node.text == "41 degrees"


def test_a_recall_of_its_index_or_of_a_document_takes_it_back(world):
    face = world.retriever()
    face.retrieve("41 what")
    face.retrieve("221 what")
    assert face.index_identity() == world.index.vector_store.index
    assert len(world.cache.recall(source="at 40")) == 1
    assert len(world.cache.recall(index=face.index_identity())) == 1


class Keeping(Counting):
    """A store that keeps the nodes themselves, and gives them by their ids, as servers do."""

    stores_text: bool = True
    _nodes: dict = PrivateAttr(default_factory=dict)

    def add(self, nodes, **kwargs):
        self._nodes |= {node.node_id: node for node in nodes}
        return super().add(nodes, **kwargs)

    def get_nodes(self, node_ids=None, filters=None):
        return [self._nodes[one] for one in node_ids if one in self._nodes]

    def query(self, query, **kwargs):
        query.node_ids = query.node_ids or None  # an index over such a store names no nodes
        result = super().query(query, **kwargs)
        result.nodes = [self._nodes[one] for one in result.ids]
        return result


@pytest.mark.parametrize("style", STYLES)
async def test_a_store_that_keeps_the_nodes_is_read_again(cache, style):
    world = World(cache, store=Keeping())
    await ask(style, world.retriever(), "41 what")
    found = await ask(style, world.retriever(), "43 what")
    assert note_of(found)["list"] == "proven"
    assert plain(found) == plain(world.direct("43 what"))
    assert "stemma" not in world.direct("43 what")[0].node.metadata, "what it keeps stays clean"
    (node,) = [one for one in world.store._nodes.values() if one.text == "44 degrees"]
    del world.store._nodes[node.node_id]
    world.store.delete_nodes([node.node_id])
    assert "44 degrees" not in [
        one.node.text for one in await ask(style, world.retriever(), "43 what")
    ]


# ----------------------------------------------------------------------------- query bundles


async def test_a_bundle_with_more_than_a_question_is_served_by_the_same_only(world):
    bundles = [
        lambda: QueryBundle("41 what", embedding=[0.02, 1.0]),
        lambda: QueryBundle("41 what", custom_embedding_strs=["100 a", "141 b"]),
        lambda: QueryBundle("41 what", custom_embedding_strs=["100 a", "145 b"]),
        lambda: QueryBundle("41 what", image_path="a.png"),
        lambda: QueryBundle("41 what"),
    ]
    for make in bundles:
        found = world.retriever().retrieve(make())
        assert note_of(found) is None
        assert plain(found) == plain(world.direct(make()))
    before = world.searches
    for make in bundles:
        assert note_of(world.retriever().retrieve(make())) is not None
        assert note_of(await world.retriever().aretrieve(make())) is not None
    assert world.searches == before


def test_a_blank_query_is_searched_as_it_would_be(cache):
    given = [NodeWithScore(node=TextNode(text="a", id_="a"), score=0.5)]
    inner = Other(given)
    face = CachedRetriever(cache, inner)
    for _ in range(2):
        assert [one.node.text for one in face.retrieve("")] == ["a"]
    assert inner._calls == [""]


# -------------------------------------------------------------------------- other retrievers


@pytest.mark.parametrize("style", STYLES)
async def test_any_other_retriever_is_cached_by_its_exact_query(cache, style):
    given = [
        NodeWithScore(node=TextNode(text="a", id_="a"), score=0.5),
        NodeWithScore(node=TextNode(text="b", id_="b"), score=None),
        NodeWithScore(node=TextNode(text="c", id_="c"), score=math.nan),
    ]
    inner = Other(given)
    face = CachedRetriever(cache, inner)
    for _ in range(2):
        found = await ask(style, face, "q")
        assert [one.node.text for one in found] == ["a", "b", "c"]
        assert str([one.score for one in found]) == "[0.5, None, nan]"
    assert note_of(found)["tier"] == "exact"
    assert "stemma" not in given[0].node.metadata
    await ask(style, face, "other")
    assert inner._calls == ["q", "other"]


def test_other_modes_of_a_vector_index_are_cached_exactly(world):
    for _ in range(2):
        found = world.retriever(vector_store_query_mode="mmr").retrieve("41 what")
    assert note_of(found)["tier"] == "exact"
    assert world.store._searches == [3]
    assert note_of(world.retriever(vector_store_query_mode="mmr").retrieve("41.1 what")) is None


@pytest.mark.parametrize("style", STYLES)
async def test_errors_and_nothing_found_are_not_kept(cache, style):
    failing, empty = Other(ConnectionError("gone")), Other([])
    for _ in range(2):
        with pytest.raises(ConnectionError, match="gone"):
            await ask(style, CachedRetriever(cache, failing), "q")
        assert await ask(style, CachedRetriever(cache, empty), "q") == []
    assert len(failing._calls) == len(empty._calls) == 2
    assert cache.engine.parts.store.sizes() == {}
    for _ in range(2):
        assert await ask(style, CachedRetriever(cache, empty, negative=60), "q") == []
    assert len(empty._calls) == 3


def test_index_nodes_lead_on_to_what_they_stand_for(cache):
    """On a hit as well; and only what the retriever itself gave was kept."""
    further = Other([NodeWithScore(node=TextNode(text="beyond", id_="b"), score=0.9)])
    given = [NodeWithScore(node=IndexNode(text="door", id_="d", index_id="room"), score=0.5)]
    inner = Other(given, object_map={"room": further})
    face = CachedRetriever(cache, inner)
    for _ in range(2):
        assert [one.node.text for one in face.retrieve("q")] == ["beyond"]
    assert (inner._calls, further._calls) == (["q"], ["q", "q"])


# ------------------------------------------------------------------------- in a query engine


async def test_its_nodes_are_sources_of_what_is_built_from_them(world):
    engine = RetrieverQueryEngine.from_args(world.retriever(), llm=MockLLM())
    for _ in range(2):
        response = engine.query("41 what")
        assert len(response.source_nodes) == 3
    with world.cache.trace():
        world.retriever().retrieve("41 what")
        world.cache.answers.get_or_compute("41 what", lambda: "forty")
    assert len(world.cache.recall(source="at 40", dry_run=True)) == 2


async def test_each_retrieval_is_told_once_and_each_hit(world):
    heard = []

    class Handler(BaseEventHandler):
        @classmethod
        def class_name(cls):
            return "Handler"

        def handle(self, event, **_):
            if isinstance(event, (RetrievalEndEvent, CacheHitEvent)):
                heard.append(type(event).__name__)

    handler = Handler()
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        world.retriever().retrieve("41 what")
        await world.retriever().aretrieve("41 what")
    finally:
        dispatcher.event_handlers.remove(handler)
    assert heard == ["RetrievalEndEvent", "CacheHitEvent", "RetrievalEndEvent"]


# ------------------------------------------------------------------------- tenants, faults


def test_two_tenants_get_nothing_of_each_other(world):
    for tenant in ("acme", "zenith"):
        with world.cache.using(tenant=tenant):
            assert note_of(world.retriever().retrieve("41 what")) is None
            assert note_of(world.retriever().retrieve("41 what")) is not None


async def test_without_a_tenant_it_passes_by_and_warns_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        world = World(nobody)
        face = world.retriever()
        with pytest.warns(RuntimeWarning, match="no tenant"):
            assert plain(face.retrieve("41 what")) == plain(world.direct("41 what"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert plain(await face.aretrieve("41 what")) == plain(world.direct("41 what"))


async def test_a_fault_of_the_cache_is_not_the_applications(world):
    direct = plain(world.direct("41 what"))
    world.cache.engine.parts.store.close()
    assert plain(world.retriever().retrieve("41 what")) == direct
    assert plain(await world.retriever().aretrieve("41 what")) == direct


@pytest.mark.parametrize(
    "named",
    [{"index": ""}, {"candidates": 0}, {"candidates": True}, {"audited": 2.0}, {"owner": "me"}],
)
def test_wrong_arguments_are_refused(cache, named):
    with pytest.raises(stemma.UsageError, match=next(iter(named))):
        CachedRetriever(cache, Other([]), **named)
    with pytest.raises(stemma.UsageError, match="cache"):
        CachedRetriever("answers.db", Other([]))
    with pytest.raises(stemma.UsageError, match="inner"):
        CachedRetriever(cache, "index")


@pytest.mark.parametrize("owner", ["public", "pool:support", None])
async def test_only_what_was_built_on_shared_nodes_may_be_shared(world, owner):
    cache = world.cache
    for _ in range(2):  # computed, and served
        with cache.using(pool="support"), cache.trace(), cache.refresh():
            world.retriever(face={"owner": owner}).retrieve("41 what")
            built = cache.answers.get_or_compute("41 what", lambda: "forty").stored.entry
        lineage = cache.engine.parts.store.lineage(built.id)
        assert {edge.source.owner for edge in lineage.sources} == {owner or "tenant:t"}
    refused = cache.pools.promote(built.id, by="pam").refused
    assert refused == (None if owner else "private_source")
