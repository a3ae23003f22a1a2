"""The identity of what shapes an answer."""

import dataclasses
import functools
import operator
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.tools import BaseTool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, PrivateAttr, create_model

from stemma import UnkeyableValue
from stemma_langchain.fingerprint import (
    describe,
    describe_chain,
    embedding_identity,
    fingerprint,
    index_identity,
)

STYLE = "short"


def styled(text):
    return f"{STYLE}: {text}"


def openai(**named):
    return ChatOpenAI(**{"model": "m-1", "api_key": "key-1", "temperature": 0.0, **named})


def chain(*, template="Answer {question}", model=None, parser=None):
    model = model if model is not None else openai()
    parser = parser if parser is not None else StrOutputParser()
    return ChatPromptTemplate.from_template(template) | model | parser


def test_equal_chains_have_equal_fingerprints():
    assert fingerprint(chain()) == fingerprint(chain())


@pytest.mark.parametrize(
    "other",
    [
        chain(template="Answer {question}!"),
        chain(model=openai(model="m-2")),
        chain(model=openai(temperature=0.7)),
        chain(model=openai(temperature=None)),
        chain(model=openai(max_tokens=5)),
        chain(model=openai(seed=1)),
        chain(model=openai(base_url="http://localhost:1/v1")),
        chain(model=openai(model_kwargs={"future_field": 1})),
        chain(model=openai().bind(stop=["x"])),
        chain(model=openai().bind_tools([{"name": "f", "description": "d", "parameters": {}}])),
        chain(parser=JsonOutputParser()),
        chain(model=openai().with_fallbacks([openai(model="m-2")])),
        chain(model=openai().with_retry(stop_after_attempt=2)),
        chain() | str.upper,
    ],
)
def test_whatever_shapes_the_answer_changes_it(other):
    assert fingerprint(other) != fingerprint(chain())


def test_two_keys_are_two_accounts_and_neither_is_readable():
    one, two = chain(model=openai(api_key="sk-one")), chain(model=openai(api_key="sk-two"))
    assert fingerprint(one) != fingerprint(two)
    assert "sk-one" not in str(describe(one))


def test_it_is_taken_from_the_live_object():
    """LangChain's own string for a model is computed once, and would miss this."""
    model = openai()
    before = fingerprint(chain(model=model))
    model.temperature = 0.9
    assert fingerprint(chain(model=model)) != before


@pytest.mark.parametrize(
    "same",
    [
        chain(model=openai(max_retries=7)),
        chain(model=openai(timeout=3)),
        chain(model=openai(tags=["t"], metadata={"a": 1}, verbose=True)),
        chain(model=openai(streaming=True)),
        chain().with_config(run_name="other", tags=["x"], metadata={"tenant": "t"}),
        chain().with_listeners(on_start=lambda _: None),
    ],
)
def test_whatever_does_not_shape_the_answer_leaves_it(same):
    assert fingerprint(same) == fingerprint(chain())


def test_what_is_configured_counts():
    model = openai().configurable_fields(temperature=ConfigurableField(id="t"))
    cold = chain(model=model).with_config(configurable={"t": 0.1})
    warm = chain(model=model).with_config(configurable={"t": 0.9})
    assert fingerprint(cold) != fingerprint(warm)


def test_partial_variables_and_messages_of_a_prompt_count():
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You are {who}"), MessagesPlaceholder("history"), ("human", "{q}")]
    )
    assert fingerprint(prompt.partial(who="A")) != fingerprint(prompt.partial(who="B"))
    assert fingerprint(PromptTemplate.from_template("{a}")) != fingerprint(
        PromptTemplate.from_template("{{ a }}", template_format="mustache")
    )


def test_a_function_is_its_code_and_what_it_captured():
    def made(prefix, k=3):
        return RunnableLambda(lambda text, n=k: prefix + text * n)

    assert fingerprint(made("a")) == fingerprint(made("a"))
    assert fingerprint(made("a")) != fingerprint(made("b"))
    assert fingerprint(made("a")) != fingerprint(made("a", k=4))
    assert fingerprint(RunnableLambda(lambda x: x + 1)) != fingerprint(
        RunnableLambda(lambda x: x + 2)
    )


def test_a_functions_constant_and_its_neighbours_count(monkeypatch):
    thing = RunnableLambda(lambda text: styled(text) + ".")
    before = fingerprint(thing)
    monkeypatch.setitem(globals(), "STYLE", "long")
    assert fingerprint(thing) != before


def test_partials_and_methods_are_told_apart():
    class Join:
        def __init__(self, by):
            self.by = by

        def join(self, texts):
            return self.by.join(texts)

    assert fingerprint(Join(",").join) != fingerprint(Join(";").join)
    assert fingerprint(functools.partial(max, 1)) != fingerprint(functools.partial(max, 2))
    assert fingerprint(functools.partial(max, 1)) == fingerprint(functools.partial(max, 1))


def test_branches_parallels_and_assignments_are_walked():
    def branching(word):
        return RunnableBranch((lambda x: x > 0, lambda x: word), lambda x: x)

    assert fingerprint(branching("a")) != fingerprint(branching("b"))
    assert fingerprint(RunnableParallel(a=chain())) != fingerprint(RunnableParallel(b=chain()))
    assert fingerprint(RunnablePassthrough.assign(a=branching("a"))) != fingerprint(
        RunnablePassthrough.assign(a=branching("b"))
    )


def test_the_order_of_a_mapping_does_not_count():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint([["a", 1]])


def test_a_schema_counts_by_its_fields():
    one = create_model("Answer", text=(str, ...))
    two = create_model("Answer", text=(int, ...))
    assert fingerprint(PydanticOutputParser(pydantic_object=one)) != fingerprint(
        PydanticOutputParser(pydantic_object=two)
    )


def test_tools_count_by_name_and_description():
    @tool
    def search(query: str) -> str:
        """Search."""
        return query

    before = fingerprint(search)
    search.description = "Search the web."
    assert fingerprint(search) != before
    search.description, search.name = "Search.", "find"
    assert fingerprint(search) != before


def test_being_used_does_not_change_it():
    """Not even for LangChain's test models, which count their calls, or lambdas with caches."""
    thing = RunnableLambda(lambda d: d["q"]) | FakeListChatModel(responses=["a", "b"])
    before = fingerprint(thing)
    thing.invoke({"q": "x"})
    thing.get_graph()
    assert fingerprint(thing) == before


def test_an_object_may_say_what_it_is():
    class Mine:
        def __init__(self, said):
            self.stemma_identity = said
            self.calls = 0

    one = Mine("v1")
    before = fingerprint(one)
    one.calls += 1
    assert fingerprint(one) == before
    assert fingerprint(Mine("v2")) != before


def test_a_plain_object_counts_by_its_public_plain_attributes():
    class Settings:
        def __init__(self, style):
            self.style = style
            self._private = object()
            self.opaque = object()

    assert fingerprint(Settings("a")) == fingerprint(Settings("a"))
    assert fingerprint(Settings("a")) != fingerprint(Settings("b"))


def test_a_cycle_ends():
    loop: list = []
    loop.append(loop)
    assert fingerprint(loop) == fingerprint(loop)


def test_what_is_too_deep_has_no_fingerprint():
    deep: list = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(UnkeyableValue):
        fingerprint(deep)


def test_the_model_is_named_where_there_is_one():
    assert describe_chain(chain()).model == "m-1"
    assert describe_chain(chain(model=openai().with_fallbacks([openai(model="m-2")]))).model == ""


def test_it_is_the_same_in_another_process_under_another_hash_seed():
    code = textwrap.dedent(
        """
        from langchain_core.prompts import ChatPromptTemplate
        from langchain_core.output_parsers import StrOutputParser
        from langchain_openai import ChatOpenAI
        from stemma_langchain.fingerprint import fingerprint
        word = "x"
        chain = (
            {"question": lambda d: d["q"] in {"a", "b", "c", "d"}}
            | ChatPromptTemplate.from_template("Answer {question}")
            | ChatOpenAI(model="m-1", api_key="key-1", temperature=0.0).bind(stop=["a", "b"])
            | StrOutputParser()
        )
        print(fingerprint(chain), fingerprint(frozenset({"a", "b", "c", word})))
        """
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(said) == 1


class Named(Embeddings):
    def __init__(self, **said):
        self.calls = 0
        self.__dict__.update(said)

    def embed_documents(self, texts):
        return [[1.0] for _ in texts]

    def embed_query(self, text):
        return [1.0]


def test_embedding_models_are_known_by_what_they_say():
    assert embedding_identity(Named(model="a")).startswith("a@")
    assert embedding_identity(Named(model="a")) != embedding_identity(Named(model="b"))
    assert embedding_identity(Named(model="a", dimensions=8)) != embedding_identity(
        Named(model="a", dimensions=9)
    )
    assert embedding_identity(Named()).startswith("Named@")
    assert embedding_identity(Named(stemma_identity="mine/2")) == "mine/2"


def test_how_often_a_model_was_asked_and_from_which_account_is_not_its_identity():
    used = Named(model="a")
    used.calls = 9
    assert embedding_identity(used) == embedding_identity(Named(model="a"))
    one = OpenAIEmbeddings(model="m", api_key="k1", chunk_size=3)
    two = OpenAIEmbeddings(model="m", api_key="k2", chunk_size=4)
    assert embedding_identity(one) == embedding_identity(two)
    assert embedding_identity(one) != embedding_identity(
        OpenAIEmbeddings(model="m", api_key="k1", dimensions=64)
    )


def store(*texts, size=8):
    made = InMemoryVectorStore(DeterministicFakeEmbedding(size=size))
    made.add_documents([Document(text, id=text) for text in texts])
    return made


def test_stores_without_a_name_are_never_taken_for_one():
    one, two = store("a"), store("a")
    assert index_identity(one) != index_identity(two)
    assert index_identity(one) == index_identity(one.as_retriever(search_kwargs={"k": 9}))


def test_contents_are_not_part_of_an_index():
    one = store("a")
    before = index_identity(one), fingerprint(one.as_retriever())
    one.add_documents([Document("b", id="b")])
    assert (index_identity(one), fingerprint(one.as_retriever())) == before


def test_a_named_store_is_known_by_name_place_and_embeddings():
    class Named(InMemoryVectorStore):
        def __init__(self, name, size=8):
            super().__init__(DeterministicFakeEmbedding(size=size))
            self._collection_name = name

    assert index_identity(Named("handbook")) == index_identity(Named("handbook"))
    assert index_identity(Named("handbook")).startswith("Named:handbook@")
    assert index_identity(Named("handbook")) != index_identity(Named("other"))
    assert index_identity(Named("handbook")) != index_identity(Named("handbook", size=9))


def test_two_chroma_folders_with_one_collection_name_are_two(tmp_path):
    def chroma(folder):
        return Chroma("docs", DeterministicFakeEmbedding(size=8), persist_directory=str(folder))

    one = index_identity(chroma(tmp_path / "a"))
    assert one == index_identity(chroma(tmp_path / "a"))
    assert one != index_identity(chroma(tmp_path / "b"))


def test_search_parameters_are_part_of_the_fingerprint_but_not_of_the_index():
    held = store("a")
    two, three = (
        held.as_retriever(search_kwargs={"k": 2}),
        held.as_retriever(search_kwargs={"k": 3}),
    )
    assert fingerprint(two) != fingerprint(three)
    assert fingerprint(two) != fingerprint(
        held.as_retriever(search_type="mmr", search_kwargs={"k": 2})
    )
    assert index_identity(two) == index_identity(three)


STYLE = {"tone": "brief", "most": [1, 2]}


def _styled(text):
    return f"[{STYLE['tone']}] {text}"


def test_a_mapping_of_the_module_that_a_function_names_counts(monkeypatch):
    before = fingerprint(RunnableLambda(_styled))
    assert fingerprint(RunnableLambda(_styled)) == before
    monkeypatch.setitem(STYLE, "tone", "long")
    assert fingerprint(RunnableLambda(_styled)) != before


class Persona:
    def __init__(self, name):
        self._name = name

    def __call__(self, text):
        return f"{self._name}: {text}"


class Slotted:
    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name


@dataclasses.dataclass
class Card:
    name: str


class Form(BaseModel):
    name: str


def cached(word):
    return functools.lru_cache(lambda text: word + text)


def capturing(thing):
    return lambda text: f"{thing}{text}"


@pytest.mark.parametrize(
    "made",
    [
        operator.itemgetter,
        operator.attrgetter,
        operator.methodcaller,
        Persona,
        cached,
        lambda name: name.join,
        lambda name: capturing(Slotted(name)),
        lambda name: capturing(Form(name=name)),
        lambda name: capturing([Card(name)]),
        lambda name: capturing(Persona(Card(name))),
    ],
)
def test_what_a_callable_holds_counts_wherever_it_holds_it(made):
    assert fingerprint(RunnableLambda(made("a"))) == fingerprint(RunnableLambda(made("a")))
    assert fingerprint(RunnableLambda(made("a"))) != fingerprint(RunnableLambda(made("b")))


def test_what_cannot_be_told_has_no_fingerprint():
    class Proxy:
        @property
        def __class__(self):
            raise RuntimeError("outside of a request")

    for opaque in (Proxy(), (number for number in [1])):
        with pytest.raises(UnkeyableValue):
            fingerprint(RunnableLambda(capturing(opaque)))


def test_a_store_that_does_not_tell_its_embeddings_is_still_known():
    class Silent(InMemoryVectorStore):
        @property
        def embeddings(self):
            raise NotImplementedError

    assert index_identity(Silent(DeterministicFakeEmbedding(size=8))).startswith("Silent@")


def graph(**compiled):
    made = StateGraph(MessagesState)
    made.add_node("answer", capturing("x"))
    made.add_edge(START, "answer")
    return made.compile(**compiled)


def test_a_graph_that_remembers_conversations_has_no_fingerprint():
    assert fingerprint(graph()) == fingerprint(graph())
    with pytest.raises(UnkeyableValue, match="RemembersConversations"):
        fingerprint(graph(checkpointer=InMemorySaver()))


class Remote(BaseChatModel):
    """As integrations write them: a client of their own, which has no stable description."""

    style: str = "plain"
    client: Any = None
    _calls: list = PrivateAttr(default_factory=list)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        raise NotImplementedError

    @property
    def _llm_type(self):
        return "remote"


def test_a_model_s_client_and_private_attributes_do_not_count_and_its_settings_do():
    one, other = (Remote(client=object()) for _ in range(2))
    other._calls.append("a prompt")
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint(Remote(style="formal"))


def test_a_tool_is_the_same_before_and_after_its_schema_was_read():
    class Look(BaseTool):
        name: str = "look"
        description: str = "Look at something."

        def _run(self, at: str) -> str:
            return at

    look = Look()
    before = fingerprint(look)
    assert look.tool_call_schema
    assert look.invoke({"at": "it"}) == "it"
    assert fingerprint(look) == before
