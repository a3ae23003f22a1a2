"""What graphs give, written and read back: built, never run."""

import enum
import json
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from langchain_core.messages import AIMessage, RemoveMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Overwrite, Send
from pydantic import BaseModel, PrivateAttr, field_validator

import stemma
from stemma_langchain.graph_codec import GraphCodec

ran = []


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Frozen:
    name: str

    def __post_init__(self):
        ran.append("dataclass")


@dataclass(slots=True)
class Slotted:
    name: str
    parts: list = field(default_factory=list, init=False)


class Plan(BaseModel):
    steps: list[str]
    colour: Colour = Colour.RED
    reply: AIMessage | None = None

    @field_validator("steps")
    @classmethod
    def seen(cls, value):
        ran.append("model")
        return value


class Secretive(BaseModel):
    _hidden: int = PrivateAttr(default=1)


ALLOWED = (Colour, Point, Frozen, Slotted, Plan)


def values():
    slotted = Slotted("a")
    slotted.parts = [Point(1, 2)]
    return [
        *(Colour.RED, Point(1, 2), Frozen("a"), slotted, Plan(steps=["a"])),
        *(deque([("a", 1)]), Send("node", {"a": Frozen("b")}), Overwrite(value=[1])),
        RemoveMessage(id=REMOVE_ALL_MESSAGES),
    ]


@pytest.mark.parametrize("value", values(), ids=lambda value: type(value).__name__)
def test_values_come_back_as_they_were(value):
    codec = GraphCodec(ALLOWED)
    ran.clear()
    again = codec.decode(codec.encode([value, {"deep": value}]).payload)
    assert ran == []
    assert again == [value, {"deep": value}]
    assert [type(one) for one in (again[0], again[1]["deep"])] == [type(value)] * 2


def test_messages_in_models_are_fresh():
    codec = GraphCodec(ALLOWED)
    plan = Plan(steps=[], reply=AIMessage("a", id="1"))
    again = codec.decode(codec.encode(plan).payload)
    assert again.reply.content == "a"
    assert again.reply.id != "1"
    assert again.model_dump(exclude={"reply": {"id"}}) == plan.model_dump(exclude={"reply": {"id"}})


def test_it_is_a_serializer_of_langgraphs():
    codec = GraphCodec()
    assert isinstance(codec, SerializerProtocol)
    assert codec.loads_typed(codec.dumps_typed({"a": (1, 2)})) == {"a": (1, 2)}
    for kind in ("pickle", "msgpack", "json", "json/1"):
        with pytest.raises(stemma.CodecError, match="of the kind"):
            codec.loads_typed((kind, b"{}"))


class Holder(dict):
    pass


UNWRITABLE = {
    "a class that is not named": Frozen("a"),
    "a subclass": Holder(),
    "a command": Command(goto="node"),
    "a function": len,
    "a Send that may take so long only": Send("node", {}, timeout=1.0),
}


@pytest.mark.parametrize("value", UNWRITABLE.values(), ids=UNWRITABLE)
def test_other_values_are_not_written(value):
    with pytest.raises(stemma.CodecError):
        GraphCodec().encode({"a": [value]})


def test_objects_that_hold_more_than_their_fields_are_not_written():
    @dataclass
    class Loose:
        name: str

    class Extra(BaseModel, extra="allow"):
        name: str

    loose = Loose("a")
    codec = GraphCodec([Loose, Extra])
    codec.encode([loose, Extra(name="a")])
    loose.more = 1
    for one in (loose, Extra(name="a", more=1)):
        with pytest.raises(stemma.CodecError, match=r"more than its fields|extra fields"):
            codec.encode(one)


HOSTILE = [
    {"$": "class:os.system", "v": "true"},
    {"$": f"class:{__name__}.Frozen", "v": {"name": "a"}},
    {"$": f"class:{__name__}.Plan", "v": {"steps": [], "colour": 1}},
    {"$": f"class:{__name__}.Plan", "v": ["steps"]},
    {"$": f"class:{__name__}.Colour", "v": "green"},
    {"$": "lg.Send", "v": "node"},
    {"$": "pickle", "v": "gASVCAAAAAAAAABLAS4="},
    {"lc": 2, "type": "constructor", "id": ["os", "system"], "kwargs": {}, "$": "lc"},
]


@pytest.mark.parametrize("stored", HOSTILE, ids=lambda one: one["$"])
def test_what_somebody_wrote_is_not_read(stored):
    """Classes that are not named, other fields than the class has, other values than it takes."""
    allowed = () if stored["$"].endswith("Frozen") else ALLOWED
    with pytest.raises(stemma.CodecError):
        GraphCodec(allowed).decode(json.dumps([stored]).encode())


@pytest.mark.parametrize("kind", [dict, "Plan", Secretive, int, len, tuple])
def test_only_classes_with_fields_can_be_named(kind):
    with pytest.raises(stemma.UsageError):
        GraphCodec([kind])
