"""What LlamaIndex's values become when they are stored, and what they are when they come back."""

import base64
import pathlib

import pytest
from llama_index.core.base.base_selector import MultiSelection, SingleSelection
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    ChatResponse,
    CitableBlock,
    CitationBlock,
    CompletionResponse,
    DocumentBlock,
    ImageBlock,
    LogProb,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.tools import ToolOutput
from pydantic import BaseModel

from stemma import CodecError, content_digest
from stemma_llamaindex.codec import CODEC, NOTE, codec_with
from stemma_llamaindex.sources import nodes_as_sources

DATA = base64.b64encode(b"\x89PNG data")


def related(id_, kind=ObjectType.TEXT):
    return RelatedNodeInfo(node_id=id_, node_type=kind, metadata={"b": 1, "a": 2}, hash="h")


NODE = TextNode(
    id_="n",
    text="a text",
    metadata={"b": 1, "a": [1, 2]},
    embedding=[0.5, 0.25],
    relationships={
        NodeRelationship.SOURCE: related("doc", ObjectType.DOCUMENT),
        NodeRelationship.CHILD: [related("c1"), related("c2")],
    },
    start_char_idx=0,
    end_char_idx=6,
    excluded_llm_metadata_keys=["b"],
)

BLOCKS = [
    TextBlock(text="words"),
    ImageBlock(image=DATA, image_mimetype="image/png", detail="low"),
    ImageBlock(url="https://example.com/a.png"),
    AudioBlock(audio=DATA, format="wav"),
    VideoBlock(video=DATA, video_mimetype="video/mp4", fps=2),
    DocumentBlock(data=DATA, title="t", document_mimetype="application/pdf"),
    CachePoint(cache_control=CacheControl(type="ephemeral")),
    CitableBlock(title="t", source="s", content=[TextBlock(text="cited")]),
    CitationBlock(
        cited_content=TextBlock(text="c"), source="s", title="t", additional_location_info={"a": 1}
    ),
    ThinkingBlock(content="hm", num_tokens=3, additional_information={"signature": "x"}),
    ToolCallBlock(tool_call_id="1", tool_name="look", tool_kwargs={"about": ["x", {"y": 1}]}),
]

VALUES = [
    *(ChatMessage(role=MessageRole.ASSISTANT, blocks=[block]) for block in BLOCKS),
    ChatMessage(role=MessageRole.TOOL, content="seen", additional_kwargs={"tool_call_id": "1"}),
    ChatMessage(role=MessageRole.USER, blocks=[]),
    ChatResponse(
        message=ChatMessage(role=MessageRole.ASSISTANT, blocks=BLOCKS),
        logprobs=[[LogProb(token="a", logprob=-0.5, bytes=[97])]],
        additional_kwargs={"prompt_tokens": 3},
    ),
    CompletionResponse(text="words", additional_kwargs={"finish": None}),
    NODE,
    TextNode(id_="plain"),
    ImageNode(id_="i", text="t", image=DATA.decode(), image_mimetype="image/png"),
    IndexNode(id_="x", text="t", index_id="other"),
    IndexNode(id_="x", text="t", index_id="other", obj=NODE),
    Document(id_="d", text="whole", metadata={"a": 1}),
    Node(
        id_="m",
        text_resource=MediaResource(text="t"),
        image_resource=MediaResource(data=b"raw", path=pathlib.Path("a.png")),
        audio_resource=MediaResource(url="https://example.com/a.wav"),
    ),
    NodeWithScore(node=NODE, score=0.5),
    NodeWithScore(node=Document(id_="d", text="whole"), score=None),
    Response("said", source_nodes=[NodeWithScore(node=NODE)], metadata={"n": {"page": 1}}),
    Response(None),
    AgentChatResponse(
        "said",
        source_nodes=[NodeWithScore(node=NODE)],
        sources=[ToolOutput("look", "seen", raw_input={"a": 1}, raw_output=Response("in it"))],
    ),
    MultiSelection(selections=[SingleSelection(index=1, reason="it says so")]),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_it_comes_back_as_it_was_and_as_a_copy(value):
    payload = CODEC.encode(value).payload
    one, two = CODEC.decode(payload), CODEC.decode(payload)
    assert type(one) is type(value)
    assert one == value
    assert one is not two
    assert CODEC.encode(one).value == CODEC.encode(value).value
    if isinstance(value, BaseModel):
        assert one.model_dump(mode="json") == value.model_dump(mode="json")


def test_nodes_have_the_same_hash_when_they_come_back():
    for node in (value for value in VALUES if isinstance(value, (TextNode, Node))):
        back = CODEC.decode(CODEC.encode(node).payload)
        assert back.hash == node.hash
        assert back.get_content() == node.get_content()


@pytest.mark.parametrize("node", [TextNode(), Document(text="t")])
def test_copies_share_nothing(node):
    one, two = (CODEC.decode(CODEC.encode(node).payload) for _ in range(2))
    one.metadata["scribble"] = 1
    one.relationships[NodeRelationship.SOURCE] = related("x")
    assert (two.metadata, two.relationships) == ({}, {})


def reply(**named):
    message = ChatMessage(role=MessageRole.ASSISTANT, blocks=named.pop("blocks", BLOCKS[-1:]))
    return ChatResponse(message=message, **named)


def test_equal_answers_have_one_value_hash_whatever_ids_and_usage():
    other = ToolCallBlock(tool_call_id="2", tool_name="look", tool_kwargs=BLOCKS[-1].tool_kwargs)
    third = ToolCallBlock(tool_call_id="1", tool_name="look", tool_kwargs={})
    first = CODEC.encode(reply()).value
    assert CODEC.encode(reply(blocks=[other], additional_kwargs={"total_tokens": 9})).value == first
    assert CODEC.encode(reply(raw={"id": "x"})).value == first
    assert CODEC.encode(reply(blocks=[third])).value != first


def test_a_providers_own_objects_are_left_out():
    class Live:
        pass

    value = reply(raw=Live(), additional_kwargs={"live": Live(), "kept": 1})
    back = CODEC.decode(CODEC.encode(value).payload)
    assert (back.raw, back.additional_kwargs) == (None, {"kept": 1})


def test_usage_is_taken_out_of_what_the_provider_gave():
    class Usage(BaseModel):
        input_tokens: int = 3
        output_tokens: int = 4

    class Raw(BaseModel):
        usage: Usage = Usage()

    back = CODEC.decode(CODEC.encode(reply(raw=Raw())).payload)
    assert back.additional_kwargs == {
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
    }


def test_notes_of_hits_are_not_stored():
    node = TextNode(
        id_="n",
        metadata={"a": 1, NOTE: {"hit": True}},
        excluded_llm_metadata_keys=["a", NOTE],
        excluded_embed_metadata_keys=[NOTE],
    )
    back = CODEC.decode(CODEC.encode(node).payload)
    assert (back.metadata, back.excluded_llm_metadata_keys) == ({"a": 1}, ["a"])
    assert back.excluded_embed_metadata_keys == []
    assert CODEC.decode(CODEC.encode(Response("x", metadata={NOTE: 1})).payload).metadata == {}
    by_node = Response("x", metadata={"n": node.metadata, "more": 2})
    assert CODEC.decode(CODEC.encode(by_node).payload).metadata == {"n": {"a": 1}, "more": 2}


@pytest.mark.parametrize(
    "value",
    [
        TextNode(metadata={"live": object()}),
        IndexNode(index_id="x", obj=object()),
        PydanticResponse(
            response=NODE.relationships[NodeRelationship.SOURCE].__class__(node_id="x")
        ),
    ],
    ids=["metadata", "object of an index node", "an own class"],
)
def test_what_would_not_come_back_is_refused(value):
    if isinstance(value, PydanticResponse):
        value.response = type("Own", (BaseModel,), {})()
    with pytest.raises(CodecError):
        CODEC.encode(value)


class Book(BaseModel):
    """A book."""

    title: str


def test_an_own_class_comes_back_only_where_it_was_named():
    value = PydanticResponse(response=Book(title="Emma"))
    payload = codec_with(Book).encode(value).payload
    assert codec_with(Book).decode(payload).response == Book(title="Emma")
    with pytest.raises(CodecError):
        CODEC.decode(payload)


def test_an_unknown_tag_is_an_error_and_nothing_is_built_by_name():
    for tag in ("li.Nothing", "llama_index.core.schema.TextNode"):
        with pytest.raises(CodecError):
            CODEC.decode(b'{"$":"%s","v":{}}' % tag.encode())


def test_texts_are_found_in_prompts():
    assert CODEC.text(Response("said")) == "said"
    assert CODEC.text(reply(blocks=[TextBlock(text="said")])) == "said"
    assert CODEC.text([NodeWithScore(node=NODE)]) == "a text"


# ---------------------------------------------------------------------------- sources


def test_a_node_is_a_chunk_of_the_document_it_came_from():
    ((source, text),) = nodes_as_sources([NodeWithScore(node=NODE)], index="i", owner="public")
    assert (source.document, source.chunk, text) == ("doc", "n", "a text")
    assert (source.index, source.owner) == ("i", "public")
    assert source.content == content_digest("a text")


def test_a_node_without_a_document_is_one_itself():
    ((source, _),) = nodes_as_sources([Document(id_="d", text="whole")])
    assert (source.document, source.chunk) == ("d", "d")


def test_neither_the_order_nor_the_values_of_metadata_change_the_content():
    nodes = [
        TextNode(id_="n", text="t", metadata=metadata)
        for metadata in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"moved": "today"})
    ]
    assert len({source.content for source, _ in nodes_as_sources(nodes)}) == 1
