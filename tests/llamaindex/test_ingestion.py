"""Steps of an ingestion behind the cache: each document by itself, with ids of its own."""

import copy
import warnings

import pytest
from llama_index.core import Document
from llama_index.core.extractors import BaseExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, TokenTextSplitter
from llama_index.core.schema import NodeRelationship, TextNode, TransformComponent
from pydantic import PrivateAttr

import stemma
from stemma_llamaindex import CachedTransformation, CacheHitEvent

STYLES = ("sync", "async")
SENTENCES = "A codex is a book. A scroll is rolled. A tablet is pressed. Parchment is skin. "


class Splitter(SentenceSplitter):
    """Notes the ids of the documents it splits."""

    _calls: list = PrivateAttr(default_factory=list)

    def _parse_nodes(self, nodes, show_progress=False, **kwargs):
        self._calls.append([node.node_id for node in nodes])
        return super()._parse_nodes(nodes, show_progress, **kwargs)


class Titles(BaseExtractor):
    """Extracts a title from each node, as a model would."""

    prefix: str = ""
    _calls: list = PrivateAttr(default_factory=list)

    async def aextract(self, nodes):
        self._calls.append([node.node_id for node in nodes])
        return [{"title": self.prefix + node.get_content()[:7]} for node in nodes]


class Reversed(TransformComponent):
    """Knows all nodes at once: nothing can be said of one document of them."""

    _calls: list = PrivateAttr(default_factory=list)

    def __call__(self, nodes, **kwargs):
        self._calls.append([node.node_id for node in nodes])
        return list(reversed(nodes))


def splitter(**named):
    return Splitter(**{"chunk_size": 12, "chunk_overlap": 0, **named})


def document(id, text=SENTENCES, **metadata):
    return Document(text=text, id_=id, metadata=metadata)


async def run(style, step, nodes, **kwargs):
    given = copy.deepcopy(nodes)
    return step(given, **kwargs) if style == "sync" else await step.acall(given, **kwargs)


def plain(nodes):
    """Everything about nodes, with their ids as places."""
    places = {}
    for node in nodes:
        places.setdefault(node.node_id, f"#{len(places)}")
    text = repr([node.to_dict() for node in nodes])
    for name, place in places.items():
        text = text.replace(name, place)
    return text


@pytest.mark.parametrize("style", STYLES)
async def test_the_second_run_does_not_reach_the_transformation(cache, style):
    inner = splitter()
    step = CachedTransformation(cache, inner)
    documents = [document("A", team="x"), document("B", "Papyrus is a reed. " * 4)]
    direct = await run(style, splitter(), documents)
    first = await run(style, step, documents)
    again = await run("sync", step, documents)
    later = await run("async", step, documents[::-1])
    assert inner._calls == [["A", "B"]]
    assert plain(first) == plain(direct)
    assert [node.to_dict() for node in again] == [node.to_dict() for node in first]
    assert {node.node_id for node in later} == {node.node_id for node in first}
    again[0].metadata["team"] = "changed"
    assert (await run(style, step, documents))[0].metadata == {"team": "x"}


@pytest.mark.parametrize("style", STYLES)
async def test_equal_documents_keep_ids_of_their_own(cache, style):
    """LlamaIndex's own cache gives the second document the nodes of the first."""
    inner = splitter()
    step = CachedTransformation(cache, inner)
    (one, two), direct = [await run(style, step, [document(name)]) for name in "AB"], splitter()
    assert inner._calls == [["A"]]
    assert {node.ref_doc_id for node in one} == {"A"}
    assert {node.ref_doc_id for node in two} == {"B"}
    assert not {node.node_id for node in one} & {node.node_id for node in two}
    assert plain(two) == plain(direct([document("B")])), "with its own neighbours, too"
    ids = [node.node_id for node in two]
    assert [node.node_id for node in await run(style, step, [document("B")])] == ids
    assert [node.next_node.node_id for node in two[:-1]] == ids[1:]
    both = await run(style, step, [document("A"), document("B"), document("C")])
    assert len({node.node_id for node in both}) == len(both) == 3 * len(one)


async def test_documents_do_not_run_into_each_other(cache):
    """LlamaIndex's own cache takes `["ab", "c"]` for `["a", "bc"]`."""
    step = CachedTransformation(cache, splitter())
    for texts in (["ab", "c"], ["a", "bc"]):
        nodes = step([document("A", texts[0]), document("B", texts[1])])
        assert [(node.ref_doc_id, node.text) for node in nodes] == list(
            zip("AB", texts, strict=True)
        )


@pytest.mark.parametrize("style", STYLES)
async def test_only_what_is_missing_is_transformed(cache, style):
    inner = splitter()
    step = CachedTransformation(cache, inner)
    await run(style, step, [document("A"), document("B", "b.")])
    nodes = await run(style, step, [document("C", "c."), document("A"), document("B", "changed.")])
    assert inner._calls[1:] == [["C", "B"]]
    assert list(dict.fromkeys(node.ref_doc_id for node in nodes)) == ["C", "A", "B"]
    assert nodes[-1].text == "changed."


def test_whatever_shapes_the_nodes_is_in_the_key(cache):
    steps = [
        splitter(),
        splitter(chunk_size=13),
        splitter(include_metadata=False),
        splitter(tokenizer=str.split),
        splitter(chunking_tokenizer_fn=lambda text: text.split(",")),
    ]
    documents = [
        document("A"),
        document("A", team="x"),
        document("A", team="y"),
        document("A", "Other. "),
        Document(text=SENTENCES, id_="A", excluded_embed_metadata_keys=["team"]),
    ]
    for _ in range(2):
        for inner in steps:
            for given in documents:
                CachedTransformation(cache, inner)([copy.deepcopy(given)])
    assert [len(inner._calls) for inner in steps] == [len(documents)] * len(steps)


async def test_what_moves_with_each_run_may_be_told_not_to_count(cache):
    inner = splitter()
    step = CachedTransformation(cache, inner, ignored=["last_modified"])
    for day in ("Monday", "Tuesday"):
        nodes = step([document("A", team="x", last_modified=day)])
        assert {node.metadata["last_modified"] for node in nodes} == {day}
        assert {node.source_node.metadata["last_modified"] for node in nodes} == {day}
    assert len(inner._calls) == 1
    CachedTransformation(cache, inner)([document("A", team="x", last_modified="Tuesday")])
    assert len(inner._calls) == 2


@pytest.mark.parametrize("style", STYLES)
async def test_extractors_run_once_a_document(cache, style):
    inner = Titles()
    step = CachedTransformation(cache, inner)
    chunks = splitter()([document("A"), document("B", "Papyrus is a reed. " * 4)])
    first = await run(style, step, chunks)
    again = await run(style, step, chunks)
    assert [node.to_dict() for node in again] == [node.to_dict() for node in first]
    assert {node.metadata["title"] for node in again} == {n.get_content()[:7] for n in chunks}
    assert len(inner._calls) == 1
    other = splitter()([document("C")])
    moved = await run(style, step, other)
    assert [node.node_id for node in moved] == [node.node_id for node in other]
    assert [n.relationships for n in moved] == [n.relationships for n in other]
    assert len(inner._calls) == 1, "equal chunks of another document have equal titles"
    await run(style, CachedTransformation(cache, Titles(prefix="the ")), other)
    assert len(inner._calls) == 1


def test_a_hierarchy_is_moved_as_a_whole(cache):
    parser = HierarchicalNodeParser.from_defaults(chunk_sizes=[32, 12], chunk_overlap=0)
    step = CachedTransformation(cache, parser)
    one, two = step([document("A")]), step([document("B")])
    assert plain(two) == plain(parser([document("B")]))
    own = {node.node_id for node in two}
    for node in two:
        for kind, related in node.relationships.items():
            for info in related if isinstance(related, list) else [related]:
                assert info.node_id in (own if kind is not NodeRelationship.SOURCE else own | {"B"})
    assert not own & {node.node_id for node in one}


async def test_ids_that_say_something_are_never_replaced(cache):
    inner = splitter(id_func=lambda place, document: f"{document.id_}/{place}")
    step = CachedTransformation(cache, inner)
    for name in "ABA":
        nodes = step([document(name)])
        assert [node.node_id for node in nodes] == [
            f"{name}/{place}" for place in range(len(nodes))
        ]
    assert inner._calls == [["A"], ["B"]]


@pytest.mark.parametrize("style", STYLES)
async def test_what_knows_all_nodes_at_once_is_cached_as_a_whole(cache, style):
    inner = Reversed()
    step = CachedTransformation(cache, inner)
    nodes = [TextNode(text=text, id_=text) for text in "abc"]
    for _ in range(2):
        assert [node.text for node in await run(style, step, nodes)] == ["c", "b", "a"]
    assert len(inner._calls) == 1
    assert [node.text for node in await run(style, step, nodes[:2])] == ["b", "a"]
    assert len(inner._calls) == 2
    assert CachedTransformation(cache, inner, per="document").per == "document"


async def test_nothing_is_kept_where_nodes_are_of_no_document_that_was_given(cache):
    class Odd(TransformComponent):
        def __call__(self, nodes, **kwargs):
            return [*nodes, TextNode(text="added", id_="added")]

    step = CachedTransformation(cache, Odd(), per="document")
    nodes = [TextNode(text="a", id_="a")]
    assert [node.text for node in step(nodes)] == ["a", "added"]
    assert cache.engine.parts.store.sizes() == {}


@pytest.mark.parametrize("style", STYLES)
async def test_what_the_transformation_raises_passes_and_nothing_is_kept(cache, style):
    class Failing(Titles):
        async def aextract(self, nodes):
            raise ConnectionError("gone")

    step = CachedTransformation(cache, Failing())
    with pytest.raises(ConnectionError, match="gone"):
        await run(style, step, [TextNode(text="a", id_="a")])
    assert cache.engine.parts.store.sizes() == {}


# ------------------------------------------------------------------------- in a pipeline


@pytest.mark.parametrize("style", STYLES)
async def test_a_pipeline_runs_each_step_once_a_document(cache, style):
    split, titles = splitter(), Titles()
    pipeline = IngestionPipeline(
        transformations=[CachedTransformation(cache, split), CachedTransformation(cache, titles)],
        disable_cache=True,
    )

    async def ingest(*names):
        documents = [document(name) for name in names]
        if style == "sync":
            return pipeline.run(documents=documents)
        return await pipeline.arun(documents=documents)

    first = await ingest("A")
    again = await ingest("A", "B")
    assert [node.to_dict() for node in again[: len(first)]] == [node.to_dict() for node in first]
    assert {node.ref_doc_id for node in again[len(first) :]} == {"B"}
    assert (len(split._calls), len(titles._calls)) == (1, 1)


async def test_a_document_takes_its_own_nodes_back_and_no_others(cache):
    inner = splitter()
    step = CachedTransformation(cache, inner)
    with cache.trace():
        step([document("A", "a."), document("B", "b.")])
        step([document("C", "c.")])
    assert len(cache.recall(source="A")) == 1
    step([document("A", "a."), document("B", "b."), document("C", "c.")])
    assert inner._calls[-1] == ["A"]


async def test_a_hit_is_told_to_the_dispatcher(cache):
    heard = []

    class Handler(BaseEventHandler):
        @classmethod
        def class_name(cls):
            return "Handler"

        def handle(self, event, **_):
            if isinstance(event, CacheHitEvent):
                heard.append((event.node, event.tier))

    handler = Handler()
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(handler)
    try:
        step = CachedTransformation(cache, splitter())
        for _ in range(2):
            step([document("A"), document("B", "b.")])
    finally:
        dispatcher.event_handlers.remove(handler)
    assert heard == [("call", "exact")] * 2


def test_two_tenants_get_nothing_of_each_other(cache):
    inner = splitter()
    step = CachedTransformation(cache, inner)
    for tenant in ("acme", "zenith", "acme"):
        with cache.using(tenant=tenant):
            step([document("A")])
    assert len(inner._calls) == 2


def test_without_a_tenant_it_passes_by_and_warns_once():
    with stemma.open(":memory:", embedder=None) as nobody:
        step = CachedTransformation(nobody, splitter())
        with pytest.warns(RuntimeWarning, match="no tenant"):
            assert step([document("A"), document("B")])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert step([document("A")])


def test_a_fault_of_the_cache_is_not_the_applications(cache):
    step = CachedTransformation(cache, TokenTextSplitter())
    cache.engine.parts.store.close()
    assert [node.text for node in step([document("A", "a.")])] == ["a."]


def test_wrong_arguments_are_refused(cache):
    for args, named, match in (
        (("answers.db", splitter()), {}, "cache"),
        ((cache, "splitter"), {}, "inner"),
        ((cache, splitter()), {"per": "node"}, "per"),
        ((cache, splitter()), {"ignored": "date"}, "ignored"),
    ):
        with pytest.raises(stemma.UsageError, match=match):
            CachedTransformation(*args, **named)
