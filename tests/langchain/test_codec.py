"""What is stored comes back as it was, and builds nothing but what is known."""

import contextlib
import json
import math
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, Generation, GenerationChunk
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue

from stemma import CodecError
from stemma_langchain.codec import CODEC, NOTE, fresh_id, message_text

PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
texts = st.text(st.characters(codec=None), max_size=12).filter(lambda text: not PAIR.search(text))
keys = st.one_of(texts, st.sampled_from(["$", "v", "lc", "type", "id", "kwargs", NOTE]))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(keys.filter(lambda key: key != NOTE), plain, max_size=3)
blocks = st.lists(
    texts
    | st.fixed_dictionaries({"type": st.just("text"), "text": texts})
    | st.fixed_dictionaries({"type": st.just("image_url"), "image_url": mappings}),
    max_size=3,
)
contents = texts | blocks
names = st.none() | texts
calls = st.lists(
    st.fixed_dictionaries(
        {"name": texts, "args": mappings, "id": names, "type": st.just("tool_call")}
    ),
    max_size=2,
)
bad_calls = st.lists(
    st.fixed_dictionaries(
        {"name": names, "args": names, "id": names, "error": names,
         "type": st.just("invalid_tool_call")}
    ),
    max_size=2,
)  # fmt: skip
counts = st.integers(0, 10**9)
usages = st.none() | st.fixed_dictionaries(
    {"input_tokens": counts, "output_tokens": counts, "total_tokens": counts},
    optional={"input_token_details": st.fixed_dictionaries({"cache_read": counts})},
)
common = {
    "content": contents, "name": names, "additional_kwargs": mappings, "response_metadata": mappings
}  # fmt: skip
replies = {**common, "tool_calls": calls, "invalid_tool_calls": bad_calls, "usage_metadata": usages}
ai = st.builds(AIMessage, **replies)
messages = st.one_of(
    ai,
    st.builds(AIMessageChunk, **common),
    st.builds(HumanMessage, **common),
    st.builds(SystemMessage, **common),
    st.builds(ChatMessage, role=texts, **common),
    st.builds(FunctionMessage, **{**common, "name": texts}),
    st.builds(
        ToolMessage,
        tool_call_id=texts,
        artifact=plain,
        status=st.sampled_from(["success", "error"]),
        **common,
    ),
)
infos = st.none() | mappings
generations = st.one_of(
    st.builds(Generation, text=texts, generation_info=infos),
    st.builds(GenerationChunk, text=texts, generation_info=infos),
    st.builds(ChatGeneration, message=ai, generation_info=infos),
    st.builds(
        ChatGenerationChunk, message=st.builds(AIMessageChunk, **common), generation_info=infos
    ),
)
documents = st.builds(Document, page_content=texts, id=names, metadata=mappings)
prompts = st.one_of(
    st.builds(ChatPromptValue, messages=st.lists(messages, max_size=2)),
    st.builds(StringPromptValue, text=texts),
)
one = st.one_of(messages, generations, documents, prompts, plain)
values = st.one_of(
    one, st.lists(one, max_size=3), st.dictionaries(keys, one, max_size=3), st.tuples(one, one)
)
often = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def same(left, right):
    """Equal in every field but a message's id; NaN equals itself, True is not 1."""
    if isinstance(left, str) and isinstance(right, str):
        return left == right  # LangChain's texts of messages are a kind of str
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if hasattr(left, "model_fields"):
        fields = set(type(left).model_fields)
        if hasattr(left, "response_metadata"):
            fields -= {"id"}
        return all(same(getattr(left, name), getattr(right, name)) for name in fields)
    return bool(left == right)


@pytest.mark.filterwarnings("ignore:Accessing the 'model_fields'")
@often
@given(values)
def test_every_known_value_comes_back_as_it_was(value):
    encoded = CODEC.encode(value)
    assert same(CODEC.decode(encoded.payload), value)


@often
@given(values)
def test_equal_answers_have_one_value_hash_and_reading_twice_gives_two_objects(value):
    encoded = CODEC.encode(value)
    first, second = CODEC.decode(encoded.payload), CODEC.decode(encoded.payload)
    assert CODEC.encode(first).value == CODEC.encode(second).value == encoded.value
    assert first is not second or not isinstance(value, (list, dict, AIMessage, Document))


@pytest.mark.parametrize("build", [
    lambda mark: AIMessage("same", id=mark, usage_metadata=None),
    lambda mark: AIMessage("same", id=mark, response_metadata={"request": mark}),
    lambda mark: AIMessage("", tool_calls=[{"name": "f", "args": {"x": 1}, "id": mark}]),
    lambda mark: ToolMessage("same", tool_call_id=mark),
])  # fmt: skip
def test_ids_and_metadata_do_not_make_another_answer(build):
    assert CODEC.encode(build("1")).value == CODEC.encode(build("2")).value


def test_what_is_said_and_which_tool_is_called_do():
    said = [
        AIMessage("one"),
        AIMessage("two"),
        AIMessage(["one"]),
        AIMessage("one", name="ann"),
        HumanMessage("one"),
        AIMessage("", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "1"}]),
        AIMessage("", tool_calls=[{"name": "f", "args": {"x": 2}, "id": "1"}]),
        AIMessage("", tool_calls=[{"name": "g", "args": {"x": 1}, "id": "1"}]),
        ToolMessage("one", tool_call_id="1"),
        ToolMessage("one", tool_call_id="1", status="error"),
    ]
    assert len({CODEC.encode(message).value for message in said}) == len(said)


def test_a_message_comes_back_with_an_id_of_its_own():
    payload = CODEC.encode([AIMessage("a", id="given"), HumanMessage("b", id="given")]).payload
    seen = {message.id for _ in range(3) for message in CODEC.decode(payload)}
    assert len(seen) == 6
    assert "given" not in seen
    assert fresh_id() not in seen


def test_a_reply_read_the_fast_way_has_every_field():
    message = AIMessage(
        ["a", {"type": "text", "text": "b"}],
        name="n",
        additional_kwargs={"k": 1},
        response_metadata={"r": 1},
        tool_calls=[{"name": "f", "args": {}, "id": "1", "type": "tool_call"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    )
    (read,) = CODEC.decode(CODEC.encode([ChatGeneration(message=message)]).payload)
    assert read.text == message_text(message) == "ab"
    read.message.id = message.id
    assert read.message == message
    assert read.message.model_copy(deep=True) == message
    assert read.message.content_blocks == message.content_blocks
    read.message.content = "assigning still works"
    assert AIMessage.model_validate(read.message.model_dump()).content == "assigning still works"


def test_a_note_of_a_hit_is_not_stored_again_and_its_usage_is_the_replys_own():
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    hit = AIMessage(
        "a",
        response_metadata={NOTE: {"hit": True, "saved_usage": usage}, "r": 1},
        usage_metadata={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
    )
    read = CODEC.decode(CODEC.encode(hit).payload)
    assert read.response_metadata == {"r": 1}
    assert read.usage_metadata == usage
    document = Document("a", metadata={NOTE: {"hit": True}, "source": "s"})
    assert CODEC.decode(CODEC.encode(document).payload).metadata == {"source": "s"}


def test_a_text_that_json_would_change_is_refused():
    """Two lone surrogates would come back as one character; one alone comes back as it was."""
    for value in ("\ud83d\ude00", {"\ud83d\ude00": 1}, [AIMessage("\ud83d\ude00")]):
        with pytest.raises(CodecError, match="surrogates"):
            CODEC.encode(value)
    for text in ("\ud83d", "\ude00\ud83d", "😀", "\\ud83d\\ude00"):
        assert CODEC.decode(CODEC.encode([text]).payload) == [text]


@pytest.mark.parametrize("value", [object(), print, Document, type("Mine", (AIMessage,), {})("a")])
def test_what_has_no_form_is_refused(value):
    with pytest.raises(CodecError):
        CODEC.encode([value])
    with pytest.raises(CodecError):
        CODEC.encode(Document("a", metadata={"live": value}))


# ---------------------------------------------------------------------- planted payloads

BUILT: list = []


class Trap:
    """Says if it is ever made."""

    def __init__(self, *args, **kwargs):
        BUILT.append(args)


SECRET = {"lc": 1, "type": "secret", "id": ["STEMMA_TEST_SECRET"]}
CONSTRUCTOR = {"lc": 1, "type": "constructor", "id": ["tests", "Trap"], "kwargs": {"x": 1}}
MESSAGE = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
           "kwargs": {"content": "planted"}}  # fmt: skip
PLANTED = [SECRET, CONSTRUCTOR, MESSAGE, {"__lc_escaped__": MESSAGE},
           {"py/object": f"{__name__}.Trap"}, {"__reduce__": ["os.system", ["true"]]},
           {"!!python/object/apply:os.system": ["true"]}]  # fmt: skip


def wrapped(planted):
    yield planted
    yield [planted]
    yield {"$": "lc.AIMessage", "v": {"content": [planted], "additional_kwargs": {"k": planted}}}
    message = {"$": "lc.AIMessage", "v": {"content": "a", "response_metadata": {"k": planted}}}
    yield [{"$": "lc.ChatGeneration", "v": {"message": message, "info": planted}}]
    yield {"$": "lc.Document", "v": {"id": None, "text": "a", "metadata": {"k": planted}}}
    yield {"$": "map", "v": [["k", planted]]}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: str(next(iter(p.values())))[:20])
def test_planted_payloads_stay_what_they_are_and_read_no_environment(planted, monkeypatch):
    monkeypatch.setenv("STEMMA_TEST_SECRET", "the secret itself")
    for payload in wrapped(planted):
        read = CODEC.decode(json.dumps(payload, separators=(",", ":")).encode())
        assert "the secret itself" not in repr(read)
        assert BUILT == []
        again = json.loads(CODEC.encode(read).payload)
        assert json.dumps(planted)[1:-1] in json.dumps(again)


DAMAGED = [
    b"", b"\x80\x04cos\nsystem\n.", b"\x81\xa1a\x01", b"{", b"[", b"nul", b"[1,]", b"\xff", b"NaN]",
    b'{"$":"lc.AIMessage"}', b'{"$":"lc.AIMessage","v":1}', b'{"$":"lc.HumanMessage","v":{"x":1,"content":3}}',
    b'{"$":"lc.Unknown","v":{}}', b'{"$":"os.system","v":"true"}', b'{"$":["a"],"v":1}', b'{"$":null,"v":1}',
    b'{"$":{"a":1},"v":1}', b'{"$":"lc.Document","v":{"id":null}}', b'{"$":"lc.Document","v":[]}',
    b'{"$":"lc.ChatGeneration","v":{"message":"a"}}', b'{"$":"lc.Generation","v":{"text":3}}',
    b'{"$":"map","v":[[[1],2]]}', b'{"$":"map","v":3}', b'{"$":"datetime","v":"x"}', b'{"$":"bytes","v":"*"}',
    b'[{"$":"lc.ChatGeneration","v":{"message":{"$":"lc.AIMessage",',
    b'[{"$":"lc.ChatGeneration","v":{"message":{"$":"lc.AIMessage","v":3}}}]',
    b'[{"$":"lc.ChatGeneration","v":{"message":{"$":"lc.AIMessage","w":{}}}}]',
    b"[" * 100_000 + b"]" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("payload", DAMAGED, ids=lambda payload: repr(payload[:40]))
def test_a_damaged_or_unknown_form_is_a_codec_error(payload):
    with pytest.raises(CodecError):
        CODEC.decode(payload)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_damage_is_a_codec_error_or_a_value(data):
    """Bytes changed at any place: never another error, and never a type that has no form."""
    payload = bytearray(CODEC.encode(data.draw(values)).payload)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(payload) - 1))
        payload[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        payload = payload or bytearray(b" ")
    with contextlib.suppress(CodecError):
        CODEC.decode(bytes(payload))
