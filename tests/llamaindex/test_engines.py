"""LlamaIndex's query engines and chat engines behind the cache."""

import asyncio

import pytest
from llama_index.core import (
    Document,
    MockEmbedding,
    StorageContext,
    SummaryIndex,
    VectorStoreIndex,
    get_response_synthesizer,
)
from llama_index.core.base.base_selector import BaseSelector, MultiSelection, SingleSelection
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.llms import ChatMessage, CustomLLM
from llama_index.core.memory import (
    ChatMemoryBuffer,
    SimpleComposableMemory,
    VectorMemory,
)
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
)
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, ToolOutput
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_instrumentation.dispatcher import instrument_tags
from pydantic import BaseModel

import stemma
from stemma import UsageError
from stemma_llamaindex import (
    CachedChatEngine,
    CachedLLM,
    CachedQueryEngine,
    CachedRetriever,
    WatchedDocumentStore,
    WatchedVectorStore,
)
from stemma_llamaindex.codec import NOTE

CALLS: list = []
SEARCHES: list = []


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()
    SEARCHES.clear()


@pytest.fixture
def cache():
    with stemma.open(":memory:", embedder="hashing", policy="threshold", tenant="t") as opened:
        yield opened


class Speaker(CustomLLM):
    """Answers with how often it was asked."""

    finish: str = "stop"
    said: str | None = None
    model: str = "speaker"

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True, model_name=self.model)

    def complete(self, prompt, formatted=False, **kwargs):
        CALLS.append(prompt)
        text = f"answer {len(CALLS)}" if self.said is None else self.said
        return CompletionResponse(text=text, raw=self._raw())

    def stream_complete(self, prompt, formatted=False, **kwargs):
        said = ""
        for piece in self.complete(prompt).text.split(" "):
            delta = f" {piece}" if said else piece
            said += delta
            yield CompletionResponse(text=said, delta=delta, raw=self._raw())

    def _raw(self):
        return {"finish_reason": self.finish, "usage": {"total_tokens": 11}}


class Shelf(BaseRetriever):
    """One node about the question."""

    def __init__(self, k=1, empty=False):
        super().__init__()
        self.k = k
        self.empty = empty

    def _retrieve(self, query_bundle):
        SEARCHES.append(query_bundle.query_str)
        query_bundle.embedding = [1.0]  # as LlamaIndex's own retrievers do
        nodes = [TextNode(id_=f"n{place}", text=f"chunk {place}") for place in range(self.k)]
        return [] if self.empty else [NodeWithScore(node=node, score=0.5) for node in nodes]

    async def _aretrieve(self, query_bundle):
        return self._retrieve(query_bundle)


def engine(streaming=False, llm=None, retriever=None, **named):
    synthesizer = get_response_synthesizer(
        llm=Speaker() if llm is None else llm, streaming=streaming, **named
    )
    return RetrieverQueryEngine(
        Shelf() if retriever is None else retriever, response_synthesizer=synthesizer
    )


QUESTION = "What does invoice 7 of the year say?"


async def query(cached, asked=QUESTION):
    return cached.query(asked)


async def aquery(cached, asked=QUESTION):
    return await cached.aquery(asked)


async def text(response):
    if isinstance(response, AsyncStreamingResponse):
        return "".join([piece async for piece in response.async_response_gen()])
    if isinstance(response, StreamingResponse):
        return "".join(response.response_gen)
    return str(response)


STYLES = (query, aquery)
KINDS = {
    (False, query): Response,
    (False, aquery): Response,
    (True, query): StreamingResponse,
    (True, aquery): AsyncStreamingResponse,
}


# ---------------------------------------------------------------------------- queries


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("first", STYLES)
@pytest.mark.parametrize("second", STYLES)
async def test_the_second_question_asks_neither_retriever_nor_model(
    cache, first, second, streaming
):
    cached = CachedQueryEngine(cache, engine(streaming))
    made, found = await first(cached), None
    said = await text(made)
    found = await second(cached)
    assert type(found) is KINDS[streaming, second]
    assert (said, await text(found)) == ("answer 1", "answer 1")
    assert (len(CALLS), len(SEARCHES)) == (1, 1)
    assert [node.node_id for node in found.source_nodes] == ["n0"]
    assert found.source_nodes[0].score == 0.5
    assert found.metadata.keys() - {NOTE} == made.metadata.keys() == {"n0"}
    note = found.metadata[NOTE]
    assert (note["hit"], note["tier"], note["saved_tokens"]) == (True, "exact", 11)


async def test_a_rewording_is_served_and_another_number_is_not(cache):
    cached = CachedQueryEngine(cache, engine())
    cached.query(QUESTION)
    near = cached.query("what does Invoice 7 of the year say")
    assert near.metadata[NOTE]["tier"] == "semantic"
    cached.query("What does invoice 8 of the year say?")
    assert len(CALLS) == 2
    exactly = CachedQueryEngine(cache, engine(), meaning=False)
    exactly.query("what does invoice 7 of the year SAY")
    assert len(CALLS) == 3


def test_every_hit_is_a_copy(cache):
    cached = CachedQueryEngine(cache, engine())
    cached.query(QUESTION)
    one = cached.query(QUESTION)
    one.source_nodes[0].node.metadata["scribble"] = 1
    one.source_nodes.clear()
    two = cached.query(QUESTION)
    assert two.source_nodes[0].node.metadata == {}


@pytest.mark.parametrize(
    "other",
    [
        lambda: engine(llm=Speaker(model="another")),
        lambda: engine(retriever=Shelf(k=2)),
        lambda: engine(text_qa_template=PromptTemplate("{context_str} so: {query_str}")),
        lambda: engine(response_mode="tree_summarize"),
        lambda: engine(llm=Speaker(system_prompt="Be curt.")),
    ],
)
def test_whatever_shapes_the_answer_is_in_the_key(cache, other):
    CachedQueryEngine(cache, engine()).query(QUESTION)
    CachedQueryEngine(cache, engine()).query(QUESTION)
    assert len(CALLS) == 1
    CachedQueryEngine(cache, other()).query(QUESTION)
    assert len(CALLS) > 1


def test_a_version_is_in_the_key_and_an_identity_stands_for_the_engine(cache):
    CachedQueryEngine(cache, engine(), version="1").query(QUESTION)
    CachedQueryEngine(cache, engine(), version="2").query(QUESTION)
    assert len(CALLS) == 2
    CachedQueryEngine(cache, engine(), identity="mine").query(QUESTION)
    CachedQueryEngine(cache, engine(retriever=Shelf(k=2)), identity="mine").query(QUESTION)
    assert len(CALLS) == 3


def test_updated_prompts_ask_anew(cache):
    cached = CachedQueryEngine(cache, engine())
    cached.query(QUESTION)
    (name,) = [name for name in cached.get_prompts() if name.endswith("text_qa_template")]
    cached.update_prompts({name: PromptTemplate("{context_str} so: {query_str}")})
    assert "so: " in cached.get_prompts()[name].get_template()
    cached.query(QUESTION)
    assert len(CALLS) == 2
    assert "so: " in CALLS[1]


def test_the_rest_of_a_bundle_is_in_the_key_and_a_bundle_can_be_asked_twice(cache):
    cached = CachedQueryEngine(cache, engine())
    bundle = QueryBundle(QUESTION)
    for _ in range(2):
        cached.query(bundle)
    assert (len(CALLS), bundle.embedding) == (1, None)
    cached.query(QueryBundle(QUESTION, custom_embedding_strs=["other"]))
    cached.query(QueryBundle(QUESTION, embedding=[0.5]))
    assert len(CALLS) == 3


def index(texts=("the cat sat", "dogs bark")):
    documents = [Document(text=one, id_=f"doc-{place}") for place, one in enumerate(texts)]
    return VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(8))


def test_an_index_in_memory_is_known_while_it_lives_and_never_taken_for_another(cache):
    one, two = index(), index()
    for each in (one, one, two):
        CachedQueryEngine(cache, each.as_query_engine(llm=Speaker())).query(QUESTION)
    assert len(CALLS) == 2
    CachedQueryEngine(cache, one.as_query_engine(llm=Speaker(), similarity_top_k=1)).query(QUESTION)
    assert len(CALLS) == 3


def test_what_an_engine_is_built_of_may_be_cached_as_well(cache):
    llm = CachedLLM(cache, Speaker())
    cached = CachedQueryEngine(cache, engine(llm=llm))
    cached.query(QUESTION)
    assert cached.query(QUESTION).metadata[NOTE]["tier"] == "exact"
    assert len(CALLS) == 1
    cache.clear(tenant="t", node="answer")
    cached.query(QUESTION)
    assert (len(CALLS), len(SEARCHES)) == (1, 2)


async def test_an_answer_of_a_router_is_kept_with_its_choice(cache):
    class First(BaseSelector):
        def _select(self, choices, query):
            return MultiSelection(selections=[SingleSelection(index=0, reason="the first")])

        async def _aselect(self, choices, query):
            return self._select(choices, query)

        def _get_prompts(self):
            return {}

        def _update_prompts(self, prompts):
            pass

    tool = QueryEngineTool.from_defaults(engine(), description="all there is")
    router = RouterQueryEngine(First(), [tool], llm=Speaker())
    for ask in STYLES:
        answer = await ask(CachedQueryEngine(cache, router))
        assert answer.metadata["selector_result"].reason == "the first"
    assert answer.metadata[NOTE]["tier"] == "exact"
    assert len(CALLS) == 1


def test_a_recalled_document_takes_the_answer_with_it(cache):
    cached = CachedQueryEngine(cache, index().as_query_engine(llm=Speaker()))
    cached.query(QUESTION)
    gone = cache.recall(source="doc-0")
    assert len(gone.entries) == 1
    cached.query(QUESTION)
    assert len(CALLS) == 2


class Letters(MockEmbedding):
    """A text's vector is that of its first letter."""

    def _get_query_embedding(self, query):
        place = ord(query[0].lower()) - ord("a")
        return [float(place == other) for other in range(self.embed_dim)]

    _get_text_embedding = _get_query_embedding

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def watched(cache):
    store = WatchedVectorStore(cache, SimpleVectorStore())
    return VectorStoreIndex.from_documents(
        [Document(text="What invoice 7 says.", id_="seven")],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=Letters(26),
    )


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("ask", STYLES)
async def test_a_new_document_concerns_all_that_a_retriever_nobody_wrapped_may_have_missed(
    cache, ask, streaming
):
    books = watched(cache)

    async def answered():
        made = books.as_query_engine(llm=Speaker(), streaming=streaming)
        await text(await ask(CachedQueryEngine(cache, made)))
        return len(CALLS)

    assert [await answered(), await answered()] == [1, 1]
    books.insert(Document(text="Zebras are elsewhere.", id_="zebras"))
    assert await answered() == 2


def test_a_new_document_concerns_answers_from_an_index_over_a_docstore(cache):
    documents = WatchedDocumentStore(cache, SimpleDocumentStore(), index="handbook")
    handbook = SummaryIndex.from_documents(
        [Document(text="What invoice 7 says.", id_="seven")],
        storage_context=StorageContext.from_defaults(docstore=documents),
    )
    retriever = CachedRetriever(cache, handbook.as_retriever())
    assert retriever.index_identity() == "handbook"
    plain = CachedQueryEngine(cache, handbook.as_query_engine(llm=Speaker()))
    cached = CachedQueryEngine(cache, engine(retriever=retriever, llm=Speaker(model="other")))
    for one in (plain, cached):
        one.query(QUESTION)
        assert one.query(QUESTION).metadata[NOTE]["tier"] == "exact"
    handbook.insert(Document(text="Zebras are elsewhere.", id_="zebras"))
    assert len(plain.query(QUESTION).source_nodes) == 2
    assert len(cached.query(QUESTION).source_nodes) == 2


def test_a_new_document_concerns_of_cached_retrievals_those_that_it_belongs_to(cache):
    books = watched(cache)

    def ask():
        retriever = CachedRetriever(cache, books.as_retriever(similarity_top_k=1))
        CachedQueryEngine(cache, engine(retriever=retriever)).query(QUESTION)
        return len(CALLS)

    assert [ask(), ask()] == [1, 1]
    books.insert(Document(text="Zebras are elsewhere.", id_="zebras"))
    assert ask() == 1
    books.update_ref_doc(Document(text="What invoice 7 now says.", id_="seven"))
    assert ask() == 2


def test_the_nodes_of_a_response_are_sources_where_no_retriever_was_seen(cache):
    class Own(CustomQueryEngine):
        def custom_query(self, query_str):
            CALLS.append(query_str)
            node = NodeWithScore(node=TextNode(id_="own", text="own text"))
            return Response("own answer", source_nodes=[node])

    cached = CachedQueryEngine(cache, Own())
    cached.query(QUESTION)
    assert len(cache.recall(source="own").entries) == 1


def test_tenants_do_not_share(cache):
    cached = CachedQueryEngine(cache, engine())
    for tenant in ("acme", "bolt", "acme"):
        with instrument_tags({"tenant": tenant}):
            cached.query(QUESTION)
    assert len(CALLS) == 2


class Invoice(BaseModel):
    """An invoice."""

    number: int


def test_an_answer_of_an_own_class_comes_back_as_one(cache):
    llm = Speaker(said='{"number": 7}')
    cached = CachedQueryEngine(cache, engine(llm=llm, output_cls=Invoice))
    made, found = cached.query(QUESTION), cached.query(QUESTION)
    assert type(found) is type(made) is PydanticResponse
    assert made.response == found.response == Invoice(number=7)
    assert len(CALLS) == 1


async def test_those_who_ask_at_once_share_one_computation(cache):
    class Slow(Shelf):
        async def _aretrieve(self, query_bundle):
            await asyncio.sleep(0.01)
            return self._retrieve(query_bundle)

    cached = CachedQueryEngine(cache, engine(retriever=Slow()))
    said = await asyncio.gather(*(cached.aquery(QUESTION) for _ in range(5)))
    assert {str(one) for one in said} == {"answer 1"}
    assert len(CALLS) == 1


# ------------------------------------------------------------------------- not stored


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "bad",
    [
        {"llm": Speaker(finish="length")},
        {"llm": Speaker(said=" ")},
        {"retriever": Shelf(empty=True)},
    ],
    ids=["cut off", "blank", "nothing found"],
)
async def test_answers_that_are_no_answers_are_not_stored(cache, bad, streaming):
    cached = CachedQueryEngine(cache, engine(streaming, **bad))
    for style in (query, aquery):
        await text(await style(cached))
    assert len(SEARCHES) == 2


async def test_a_streamed_answer_that_nobody_reads_to_its_end_is_not_stored(cache):
    cached = CachedQueryEngine(cache, engine(streaming=True))
    next(cached.query(QUESTION).response_gen)
    await anext((await cached.aquery(QUESTION)).response_gen)
    assert await text(cached.query(QUESTION)) == "answer 3"


def test_what_the_engine_raises_passes_through(cache):
    class Failing(Shelf):
        def _retrieve(self, query_bundle):
            raise OSError("no shelf")

    with pytest.raises(OSError, match="no shelf"):
        CachedQueryEngine(cache, engine(retriever=Failing())).query(QUESTION)


def test_an_engine_that_changes_while_it_runs_is_not_stored(cache):
    class Counting(Shelf):
        seen = 0

        def _retrieve(self, query_bundle):
            self.seen += 1
            return super()._retrieve(query_bundle)

    cached = CachedQueryEngine(cache, engine(retriever=Counting()))
    with pytest.warns(RuntimeWarning, match="changed while it ran"):
        cached.query(QUESTION)
    cached.query(QUESTION)
    assert len(CALLS) == 2


def test_an_engine_of_which_no_key_can_be_made_is_bypassed_with_a_word(cache):
    class Open(Shelf):
        handle = None

    shelf = Open()
    shelf.handle = (n for n in ())
    cached = CachedQueryEngine(cache, engine(retriever=shelf))
    with pytest.warns(RuntimeWarning, match="bypassed"):
        cached.query(QUESTION)
    cached.query(QUESTION)
    assert len(CALLS) == 2
    named = CachedQueryEngine(cache, engine(retriever=shelf), identity="open shelf")
    for _ in range(2):
        named.query(QUESTION)
    assert len(CALLS) == 3


# ------------------------------------------------------------ what the engine itself does


def test_retrieving_and_synthesizing_are_the_engines_own(cache):
    cached = CachedQueryEngine(cache, engine())
    nodes = cached.retrieve(QueryBundle(QUESTION))
    assert [node.node_id for node in nodes] == ["n0"]
    assert str(cached.synthesize(QueryBundle(QUESTION), nodes)) == "answer 1"
    assert QueryEngineTool.from_defaults(cached).query_engine is cached


async def test_synthesizing_asynchronously_is_too(cache):
    cached = CachedQueryEngine(cache, engine())
    nodes = cached.retrieve(QueryBundle(QUESTION))
    assert str(await cached.asynthesize(QueryBundle(QUESTION), nodes)) == "answer 1"


def remembering():
    memory = VectorMemory.from_defaults(embed_model=MockEmbedding(8))
    return SimpleChatEngine.from_defaults(llm=Speaker(), memory=memory)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda cache: CachedQueryEngine("cache", engine()), "stemma.Cache"),
        (lambda cache: CachedQueryEngine(cache, Shelf()), "query engine"),
        (lambda cache: CachedChatEngine(cache, engine()), "chat engine"),
        (lambda cache: CachedChatEngine("cache", chat(SimpleChatEngine)), "stemma.Cache"),
        (lambda cache: CachedChatEngine(cache, remembering()), "which conversation came before"),
    ],
)
def test_wrong_arguments_are_errors(cache, wrong, words):
    with pytest.raises(UsageError, match=words):
        wrong(cache)


# ------------------------------------------------------------------------ chat engines


def chat(kind, said=(), llm=None):
    memory = ChatMemoryBuffer.from_defaults(
        chat_history=list(said), token_limit=10_000, tokenizer_fn=str.split
    )
    llm = Speaker() if llm is None else llm
    if kind is SimpleChatEngine:
        return kind.from_defaults(llm=llm, memory=memory)
    if kind is CondenseQuestionChatEngine:
        return kind.from_defaults(query_engine=engine(llm=llm), llm=llm, memory=memory)
    return kind.from_defaults(retriever=Shelf(), llm=llm, memory=memory)


async def say(cached, message, **named):
    return str(cached.chat(message, **named))


async def asay(cached, message, **named):
    return str(await cached.achat(message, **named))


async def stream(cached, message, **named):
    return "".join(cached.stream_chat(message, **named).response_gen)


async def astream(cached, message, **named):
    response = await cached.astream_chat(message, **named)
    return "".join([piece async for piece in response.async_response_gen()])


TALKS = (say, asay, stream, astream)
ENGINES = (SimpleChatEngine, ContextChatEngine, CondensePlusContextChatEngine)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("second", TALKS)
@pytest.mark.parametrize("first", TALKS)
async def test_the_second_conversation_does_not_reach_the_model(cache, kind, first, second):
    made = CachedChatEngine(cache, chat(kind))
    answers = [await first(made, QUESTION), await first(made, "And invoice 8?")]
    asked = len(CALLS)
    found = CachedChatEngine(cache, chat(kind))
    assert [await second(found, QUESTION), await second(found, "And invoice 8?")] == answers
    assert len(CALLS) == asked
    heard = [(one.role, one.content) for one in found.chat_history]
    assert heard == [(one.role, one.content) for one in made.chat_history]
    assert len(heard) == 4


async def test_condensing_engines_are_served_too(cache):
    for _ in range(2):
        cached = CachedChatEngine(cache, chat(CondenseQuestionChatEngine))
        assert await say(cached, QUESTION) == "answer 1"
        assert len(cached.chat_history) == 2
    assert len(CALLS) == 1


@pytest.mark.parametrize("talk", TALKS)
async def test_another_conversation_before_is_another_question(cache, talk):
    cached = CachedChatEngine(cache, chat(SimpleChatEngine))
    await talk(cached, QUESTION)
    await talk(cached, QUESTION)
    assert len(CALLS) == 2
    cached.reset()
    await talk(cached, QUESTION)
    assert len(CALLS) == 2


@pytest.mark.parametrize("talk", TALKS)
async def test_a_new_document_concerns_a_conversation_as_well(cache, talk):
    books = watched(cache)

    async def converse():
        memory = ChatMemoryBuffer.from_defaults([], token_limit=999, tokenizer_fn=str.split)
        made = books.as_chat_engine(chat_mode="context", llm=Speaker(), memory=memory)
        await talk(CachedChatEngine(cache, made), QUESTION)
        return len(CALLS)

    assert [await converse(), await converse()] == [1, 1]
    books.insert(Document(text="Zebras are elsewhere.", id_="zebras"))
    assert await converse() == 2


@pytest.mark.parametrize("talk", TALKS)
async def test_a_history_that_is_given_replaces_the_memory(cache, talk):
    before = [
        ChatMessage(role="user", content="Hello"),
        ChatMessage(role="assistant", content="Hi"),
    ]
    for _ in range(2):
        cached = CachedChatEngine(cache, chat(SimpleChatEngine))
        assert await talk(cached, QUESTION, chat_history=list(before)) == "answer 1"
        assert [one.content for one in cached.chat_history] == ["Hello", "Hi", QUESTION, "answer 1"]
    assert len(CALLS) == 1


def limited(tokens):
    return ChatMemoryBuffer.from_defaults(token_limit=tokens, tokenizer_fn=str.split)


def composed(text):
    elsewhere = ChatMemoryBuffer.from_defaults([ChatMessage(role="user", content=text)])
    return SimpleComposableMemory.from_defaults(
        primary_memory=limited(99), secondary_memory_sources=[elsewhere]
    )


@pytest.mark.parametrize(
    ("memory", "one", "other"),
    [
        (limited, 20, 40),
        pytest.param(
            *(composed, "I am Ann.", "I am Bob."),
            marks=pytest.mark.filterwarnings("ignore:the cache is bypassed:RuntimeWarning"),
        ),
    ],
)
async def test_what_a_memory_adds_to_the_conversation_is_in_the_key(cache, memory, one, other):
    for held in (one, other):
        made = SimpleChatEngine.from_defaults(llm=Speaker(), memory=memory(held))
        await asay(CachedChatEngine(cache, made), QUESTION)
    assert len(CALLS) == 2


def test_a_chat_hit_says_so_and_is_a_whole_response(cache):
    cached = CachedChatEngine(cache, chat(ContextChatEngine))
    made = cached.chat(QUESTION)
    cached.reset()
    found = cached.chat(QUESTION)
    assert type(found) is type(made) is AgentChatResponse
    assert found.metadata[NOTE]["tier"] == "exact"
    assert [node.node_id for node in found.source_nodes] == ["n0"]
    assert [source.tool_name for source in found.sources] == [
        source.tool_name for source in made.sources
    ]


async def test_a_streamed_chat_hit_says_so_too(cache):
    cached = CachedChatEngine(cache, chat(ContextChatEngine))
    assert cached.stream_chat(QUESTION).metadata is None
    cached.reset()
    await stream(cached, QUESTION)
    cached.reset()
    assert cached.stream_chat(QUESTION).metadata[NOTE]["tier"] == "exact"
    cached.reset()
    found = await cached.astream_chat(QUESTION)
    assert found.metadata[NOTE]["tier"] == "exact"
    assert isinstance(found, StreamingAgentChatResponse)


@pytest.mark.parametrize("talk", TALKS)
async def test_chat_answers_that_are_no_answers_are_not_stored(cache, talk):
    for _ in range(2):
        cached = CachedChatEngine(cache, chat(SimpleChatEngine, llm=Speaker(finish="length")))
        await talk(cached, QUESTION)
    assert len(CALLS) == 2


def test_a_chat_answer_after_a_failed_tool_is_not_stored(cache):
    class Failing(BaseChatEngine):
        def __init__(self):
            self._memory = ChatMemoryBuffer.from_defaults(token_limit=99, tokenizer_fn=str.split)

        def chat(self, message, chat_history=None):
            CALLS.append(message)
            return AgentChatResponse(
                "sorry", sources=[ToolOutput("look", "x", raw_input={}, is_error=True)]
            )

        stream_chat = achat = astream_chat = chat

        def reset(self):
            self._memory.reset()

        @property
        def chat_history(self):
            return self._memory.get_all()

    cached = CachedChatEngine(cache, Failing())
    for _ in range(2):
        assert str(cached.chat(QUESTION)) == "sorry"
    assert len(CALLS) == 2
