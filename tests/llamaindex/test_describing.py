"""What of LlamaIndex's objects counts as what they are."""

import subprocess
import sys
from typing import Any

import chromadb
import pytest
from llama_index.core import MockEmbedding, PromptTemplate, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.memory import (
    ChatMemoryBuffer,
    FactExtractionMemoryBlock,
    Memory,
    StaticMemoryBlock,
    VectorMemoryBlock,
)
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import (
    MetadataFilter,
    MetadataFilters,
    SimpleVectorStore,
)
from pydantic import PrivateAttr

from stemma import UnkeyableValue, digest
from stemma_llamaindex.describing import describe, describe_whole, index_identity


def index(**named):
    return VectorStoreIndex(
        [TextNode(text="a"), TextNode(text="b")], embed_model=MockEmbedding(4), **named
    )


class Texts(SimpleVectorStore):
    """A store that keeps the texts."""

    stores_text: bool = True


def same(one, two):
    return digest(describe(one)) == digest(describe(two))


def filters(value):
    return MetadataFilters(filters=[MetadataFilter(key="a", value=value)])


def test_a_retriever_counts_with_its_settings_and_its_index():
    one = index()
    assert same(one.as_retriever(), one.as_retriever())
    assert not same(one.as_retriever(), index().as_retriever())
    for other in ({"similarity_top_k": 5}, {"filters": filters(1)}):
        assert not same(one.as_retriever(), one.as_retriever(**other))
    first = list(one.index_struct.nodes_dict.values())[:1]
    assert not same(one.as_retriever(), VectorIndexRetriever(one, node_ids=first))
    assert not same(one.as_retriever(filters=filters(1)), one.as_retriever(filters=filters(2)))


def test_contents_do_not_count():
    one = index()
    before = digest(describe(one.as_retriever()))
    one.insert_nodes([TextNode(text="c")])
    assert digest(describe(one.as_retriever())) == before


def test_an_engine_counts_with_all_it_is_made_of():
    one = index()
    engine = one.as_query_engine(llm=MockLLM())
    assert same(engine, one.as_query_engine(llm=MockLLM()))
    assert not same(engine, one.as_query_engine(llm=MockLLM(max_tokens=3)))
    cut = SimilarityPostprocessor(similarity_cutoff=0.5)
    assert not same(engine, one.as_query_engine(llm=MockLLM(), node_postprocessors=[cut]))
    template = PromptTemplate("{context_str} {query_str}")
    assert not same(engine, one.as_query_engine(llm=MockLLM(), text_qa_template=template))


def test_templates_that_are_functions_count_by_their_code():
    def mapped(word):
        return PromptTemplate("{a}", function_mappings={"a": lambda **_: word})

    assert same(mapped("x"), mapped("x"))
    assert not same(mapped("x"), mapped("y"))


def test_a_memory_has_no_key_unless_it_is_told_apart():
    memory = ChatMemoryBuffer.from_defaults(token_limit=99, tokenizer_fn=str.split)
    with pytest.raises(UnkeyableValue):
        digest(describe({"of": memory}))
    assert digest(describe_whole({"of": memory}, aside=memory).value)


def blocks(*held, **named):
    return Memory.from_defaults(memory_blocks=list(held), **named)


def fixed(text):
    return blocks(StaticMemoryBlock(name="who", static_content=text))


def learned(fact):
    return blocks(FactExtractionMemoryBlock(llm=MockLLM(), facts=[fact]))


@pytest.mark.parametrize(
    ("make", "one", "other"),
    [
        (fixed, "It is Ann.", "It is Bob."),
        (learned, "It is Ann.", "It is Bob."),
        (lambda limit: blocks(token_limit=limit), 3_000, 4_000),
    ],
)
def test_of_a_memory_told_apart_counts_what_it_adds_to_the_conversation(make, one, other):
    def described(memory):
        return digest(describe_whole({"of": memory}, aside=memory).value)

    assert described(make(one)) == described(make(one))
    assert described(make(one)) != described(make(other))


def test_a_block_that_remembers_by_itself_has_no_key():
    memory = blocks(VectorMemoryBlock(vector_store=Texts(), embed_model=MockEmbedding(4)))
    with pytest.raises(UnkeyableValue):
        digest(describe_whole({"of": memory}, aside=memory).value)


def test_an_index_is_known_by_its_store():
    class Placed(SimpleVectorStore):
        stores_text: bool = True
        collection_name: str = "books"
        uri: str = "db.example"

    def identity(uri="db.example"):
        store = Placed()
        store.uri = uri
        return index_identity(VectorStoreIndex.from_vector_store(store, MockEmbedding(4)))

    assert identity().startswith("Placed:books@")
    assert identity() == identity()
    assert identity() != identity(uri="other.example")
    other = VectorStoreIndex.from_vector_store(Placed(), MockEmbedding(5))
    assert index_identity(other) == identity()  # which model asks it is told apart elsewhere
    assert not same(other.as_retriever(), index().as_retriever())


def test_a_store_that_was_given_a_collection_is_known_by_it(tmp_path):
    class Given(SimpleVectorStore):
        """As LlamaIndex's store over Chroma, which is told no name of its own."""

        stores_text: bool = True
        collection_name: str | None = None
        _held: Any = PrivateAttr()

        def __init__(self, held):
            super().__init__()
            self._held = held

        @property
        def client(self):
            return self._held

    def identity(name, place="one"):
        held = chromadb.PersistentClient(str(tmp_path / place)).get_or_create_collection(name)
        return index_identity(Given(held))

    assert identity("books").startswith("Given:books@")
    assert identity("books") == identity("books")
    assert len({identity("books"), identity("films"), identity("books", place="two")}) == 3


def test_an_index_in_memory_has_a_name_as_long_as_it_lives():
    one = index()
    assert index_identity(one) == index_identity(one.as_retriever()) == index_identity(one)
    assert index_identity(one) != index_identity(index())


def test_an_object_may_say_what_it_is():
    class Own:
        def __init__(self, said):
            self.stemma_identity = said

    assert index_identity(Own("books/2")) == "books/2"
    assert same(Own("x"), Own("x"))
    assert not same(Own("x"), Own("y"))


def test_the_one_model_is_named():
    class Named(MockLLM):
        @property
        def metadata(self):
            return super().metadata.model_copy(update={"model_name": "gpt-x"})

    assert describe_whole(index().as_query_engine(llm=Named())).model == "gpt-x"
    assert describe_whole(index().as_query_engine(llm=MockLLM())).model == ""


HERE = """
from llama_index.core import PromptTemplate, get_response_synthesizer
from llama_index.core.llms import MockLLM
from stemma import digest
from stemma_llamaindex.describing import describe
template = PromptTemplate("{context_str} {query_str}", function_mappings={"a": lambda **_: {1, 2}})
print(digest(describe(get_response_synthesizer(llm=MockLLM(), text_qa_template=template))))
"""


def test_it_is_the_same_in_another_process_under_another_hash_seed(monkeypatch):
    said = set()
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", HERE], capture_output=True, text=True, check=True
        )
        said.add(run.stdout)
    assert len(said) == 1
