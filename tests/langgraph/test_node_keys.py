"""What is one input, and what is another."""

import dataclasses
import datetime as dt
import decimal
import os
import sqlite3
import subprocess
import sys
import uuid

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from pydantic import BaseModel

import stemma
from stemma import Frame, frames
from stemma_langchain import node_key


class Model(BaseModel):
    question: str
    found: list[int] = []


class Other(BaseModel):
    question: str
    found: list[int] = []


@dataclasses.dataclass
class Data:
    question: str


def ai(**fields):
    return AIMessage(**{"content": "a", **fields})


SAME = {
    "message ids": ({"messages": [HumanMessage("q", id="1"), ai(id="2")]},
                    {"messages": [HumanMessage("q", id="3"), ai()]}),
    "usage": (ai(usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}), ai()),
    "what the provider said": (ai(response_metadata={"id": "x", "stemma": {"age": 1.5}}), ai()),
    "the order of keys": ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
    "the note of a hit": (Document("d", metadata={"stemma": {"age": 1.0}}), Document("d")),
    "models": (Model(question="q", found=[1]), Model(question="q", found=[1])),
    "sets": ({"a", "b", "c"}, {"c", "b", "a"}),
    "arrays": (np.arange(3), np.arange(3)),
}  # fmt: skip

APART = {
    "dtypes of equal bytes": (np.array([200], np.uint8), np.array([-56], np.int8)),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "text and its type": ({"a": "1"}, {"a": 1}),
    "nothing and no field": ({"a": None}, {}),
    "no and zero": ({"a": False}, {"a": 0}),
    "fields that run into one another": (["doc1", "acme"], ["doc1str:orgstr:acme"]),
    "classes": (Model(question="q"), Other(question="q")),
    "a class and its fields": (Data("q"), {"question": "q"}),
    "what a message says": ([HumanMessage("q")], [HumanMessage("r")]),
    "who says it": ([HumanMessage("q")], [ai(content="q")]),
    "tool calls": (ai(tool_calls=[{"name": "f", "args": {"a": 1}, "id": "1"}]),
                   ai(tool_calls=[{"name": "f", "args": {"a": 2}, "id": "1"}])),
    "which call a tool answers": (ToolMessage("a", tool_call_id="1"),
                                  ToolMessage("a", tool_call_id="2")),
    "how a tool ended": (ToolMessage("a", tool_call_id="1"),
                         ToolMessage("a", tool_call_id="1", status="error")),
    "how a reply ended": (ai(response_metadata={"finish_reason": "length"}), ai()),
    "what is to be removed": (RemoveMessage(id="1"), RemoveMessage(id="2")),
    "documents": (Document("d", metadata={"page": 1}), Document("d", metadata={"page": 2})),
    "times": (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1)),  # noqa: DTZ001
    "bytes and text": (b"a", "a"),
    "numbers": (decimal.Decimal("0.1"), 0.1),
    "ids": (uuid.UUID(int=1), uuid.UUID(int=2)),
    "no numbers": (float("nan"), float("inf")),
}  # fmt: skip


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME)
def test_inputs_that_say_the_same_have_one_key(pair):
    one, two = pair
    assert node_key(one) == node_key(two)


@pytest.mark.parametrize("pair", APART.values(), ids=APART)
def test_inputs_that_say_something_else_have_keys_of_their_own(pair):
    one, two = pair
    assert node_key(one) == node_key(one)
    assert node_key(one) != node_key(two)


def test_how_a_task_is_called_counts():
    keys = {node_key(1, 2), node_key([1, 2]), node_key(1, b=2), node_key(a=1, b=2), node_key()}
    assert len(keys) == 5


def test_what_has_no_stable_key_never_has_the_same_again(tmp_path):
    """It misses, and is never taken for another."""
    with (tmp_path / "file").open("w") as handle, sqlite3.connect(":memory:") as connection:
        for one in (handle, connection, (n for n in "ab")):
            assert node_key({"deep": [one]}) != node_key({"deep": [one]})
    connection.close()


def test_a_state_that_holds_itself_has_a_key():
    loop: list = []
    loop.append(loop)
    assert node_key(loop) == node_key(loop)


def test_whose_run_it_is_is_part_of_the_key():
    cache = stemma.open(tenant="me", embedder=None)
    keys = [node_key("q")]
    for said in ({"tenant": "a"}, {"tenant": "b"}, {"pool": "a"}, {"language": "de"}):
        with cache.using(**said):
            keys.append(node_key("q"))
    for tenant in ("a", "b", ""):
        with frames.entered(Frame(tenant=tenant)):
            keys.append(node_key("q"))
    assert len(set(keys)) == len(keys)


def test_what_only_labels_a_call_is_not():
    cache = stemma.open(tenant="me", embedder=None)
    key = node_key("q")
    for context in (cache.using(session="s", user="u"), cache.refresh(), cache.bypass()):
        with context:
            assert node_key("q") == key


def test_keys_are_the_same_in_every_process():
    code = (
        "from langchain_core.messages import HumanMessage\n"
        "from stemma_langchain import node_key\n"
        "print(node_key({'messages': [HumanMessage('q')], 'seen': {'a', 'b', 'c'}, 'k': 1.5}))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
