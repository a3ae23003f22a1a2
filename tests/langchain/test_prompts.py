"""LangChain's strings for prompts and models, read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from stemma_langchain.prompts import read_model, read_prompt

texts = st.text(st.characters(codec=None), max_size=20)
QUESTION = "Who leads Acme?"
CHUNK = "Acme is led by Ann, who has been there for forty-seven years."


def prompt(*messages):
    return dumps(list(messages))


def key(read):
    return read.exact, read.focus


def test_the_focus_is_the_runs_question_where_it_occurs_once_in_the_last_turn():
    said = prompt(SystemMessage("Be brief."), HumanMessage(f"{CHUNK}\nQ: {QUESTION}\nA:"))
    read = read_prompt(said, QUESTION, [CHUNK])
    assert read.focus == QUESTION
    other = read_prompt(said.replace("Who leads", "Who owns"), "Who owns Acme?", [CHUNK])
    assert other.focus == "Who owns Acme?"
    assert other.exact == read.exact
    assert read_prompt(said.replace("Ann", "Bob"), QUESTION).exact != read.exact
    assert read_prompt(said.replace("nA:", "nB:"), QUESTION).exact != read.exact


@pytest.mark.parametrize("question", [None, "", "  ", "Who owns Zenith?", "led"])
def test_without_it_the_focus_is_the_whole_last_turn_unless_it_holds_a_chunk(question):
    said = f"{CHUNK} Led by whom: {QUESTION} led."
    assert read_prompt(prompt(HumanMessage(said)), question).focus == said
    assert read_prompt(prompt(HumanMessage(said)), question, [CHUNK]).focus is None
    assert read_prompt(said, question).focus == said
    assert read_prompt(said, question, [CHUNK]).focus is None


def test_a_question_that_occurs_twice_is_not_cut_out():
    said = f"{QUESTION} {CHUNK} {QUESTION}"
    assert read_prompt(prompt(HumanMessage(said)), QUESTION).focus == said


@pytest.mark.parametrize("last", [
    AIMessage(QUESTION), SystemMessage(QUESTION), ToolMessage(QUESTION, tool_call_id="1"),
    HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {"url": "x"}}]),
    HumanMessage([QUESTION, QUESTION]),
])  # fmt: skip
def test_what_is_no_users_turn_of_text_alone_has_no_focus(last):
    assert read_prompt(prompt(last), QUESTION).focus is None


def test_after_the_question_there_may_be_calls_of_tools_and_what_they_gave():
    def read(question=QUESTION, text="", args="it", given="seen", after=()):
        call = {"name": "look", "args": {"at": args}, "id": "c1", "type": "tool_call"}
        called = AIMessage(text, tool_calls=[call])
        turns = [HumanMessage("Hello."), AIMessage("Yes?"), HumanMessage(question), called]
        return read_prompt(prompt(*turns, ToolMessage(given, tool_call_id="c1"), *after), None)

    one = read()
    assert (one.focus, one.before) == (QUESTION, ("Hello.", "Yes?"))
    assert read("Another?").exact == one.exact
    assert read("Another?").focus == "Another?"
    for other in (read(text="I look."), read(args="that"), read(given="gone")):
        assert other.focus == QUESTION
        assert other.exact != one.exact
    assert read(after=[AIMessage("It is there.")]).focus is None
    assert read(after=[SystemMessage("Be brief.")]).focus is None
    image = HumanMessage([{"type": "image_url", "image_url": {"url": "x"}}])
    assert read(after=[image]).focus is None


@settings(max_examples=100, deadline=None)
@given(before=texts, question=texts, after=texts, other=texts)
def test_focus_and_rest_together_are_the_prompt(before, question, after, other):
    """Two prompts with equal keys are one prompt, wherever their questions stand."""
    one, two = f"{before}{question}{after}", f"{before}{other}{after}"
    for form in (lambda text: text, lambda text: prompt(HumanMessage(text))):
        left, right = read_prompt(form(one), question), read_prompt(form(two), other)
        if one != two:
            assert key(left) != key(right) or question != other
        if left.focus is not None and right.focus is not None and key(left) == key(right):
            assert one == two


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, min_size=2, max_size=3, unique=True))
def test_different_turns_have_different_keys(turns):
    whole = {key(read_prompt(prompt(*map(HumanMessage, turns)), None))}
    whole.add(key(read_prompt(prompt(HumanMessage("".join(turns))), None)))
    whole.add(key(read_prompt(prompt(*map(HumanMessage, reversed(turns))), None)))
    whole.add(key(read_prompt(prompt(AIMessage(turns[0]), *map(HumanMessage, turns[1:])), None)))
    whole.add(key(read_prompt("".join(turns), None)))
    assert len(whole) == 5


def test_a_text_that_looks_like_noise_is_text():
    """What a user writes cannot make a prompt look like one with ids, nor remove its words."""
    noise = [
        '"id": "x"',
        '{"id": "x"}',
        '"content": [',
        '"response_metadata": {"a": 1}',
        '"tool_call_id": "1"',
    ]
    keys = {
        key(read_prompt(prompt(SystemMessage(text), HumanMessage("q")), None)) for text in noise
    }
    assert len(keys) == len(noise)


def test_ids_usage_and_metadata_do_not_count_in_any_turn():
    def said(number):
        return prompt(
            HumanMessage([{"type": "text", "text": "Hi", "id": f"b{number}"}], id=f"h{number}"),
            AIMessage(
                "Hi!",
                id=f"a{number}",
                response_metadata={"request": number, "stemma": {"hit": True}},
                usage_metadata={"input_tokens": number, "output_tokens": 0, "total_tokens": number},
            ),
            HumanMessage(QUESTION, id=f"l{number}"),
        )

    assert key(read_prompt(said(1), None)) == key(read_prompt(said(2), None))
    bare = prompt(HumanMessage("Hi"), AIMessage("Hi!"), HumanMessage(QUESTION))
    assert key(read_prompt(bare, None)) == key(read_prompt(said(1), None))


@pytest.mark.parametrize("text", [
    "", "[", "{}", "null", "[]", "[1]", '[{"lc"', '[{"lc": 1}]', '[{"lc": 1, "id": 3}]',
    '[{"lc": 1, "type": "constructor", "id": null, "kwargs": {}}]',
    '[{"lc": 1, "type": "constructor", "id": ["messages", "A"], "kwargs": [1]}]',
    '[{"lc": 1, "type": "constructor", "id": ["messages", "A"], "kwargs": {"tool_calls": 3}}]',
    '[{"lc": 1, "type": "constructor", "id": ["messages", "A"], "kwargs": {"tool_calls": [3]}}]',
    '[{"lc": 1, "type": "constructor", "id": ["messages", "A"], "kwargs": {"content": [null, 3]}}]',
    '[{"lc": ' + "[" * 50_000,
])  # fmt: skip
def test_any_text_is_a_prompt(text):
    assert read_prompt(text, None).exact != read_prompt(text + "x", None).exact or (
        read_prompt(text, None).focus != read_prompt(text + "x", None).focus
    )


@settings(max_examples=100, deadline=None)
@given(texts)
def test_texts_never_share_a_key_with_messages(text):
    chat = prompt(HumanMessage(text))
    assert key(read_prompt(text, None)) != key(read_prompt(chat, None))
    assert key(read_prompt(json.dumps([text]), None)) != key(read_prompt(chat, None))


@pytest.mark.parametrize(("said", "name", "sampled"), [
    ("[('_type', 'x'), ('model', 'm'), ('stop', None)]", "m", False),
    ("[('model_name', 'm'), ('temperature', 0.7)]", "m", True),
    ("[('temperature', 0)]", "", False),
    ("[('temperature', 0.0), ('n', 1)]", "", False),
    ("[('temperature', None)]", "", False),
    ("[('temperature', 1e-3)]", "", True),
    ("[('n', 2)]", "", True),
    ('{"kwargs": {"model_name": "m", "temperature": 0.5}}---[(\'stop\', None)]', "m", True),
    ('{"kwargs": {"temperature": 0.5}}---[(\'temperature\', 0)]', "", False),
    ('{"kwargs": {"temperature": 0}}---[(\'temperature\', 0.5)]', "", True),
    ("", "", False),
    ("temperature 0.7", "", False),
    ("['temperature': 1.2.3e--]", "", False),
])  # fmt: skip
def test_what_a_models_string_says_of_it(said, name, sampled):
    read = read_model(said)
    assert (read.name, read.sampled) == (name, sampled)
