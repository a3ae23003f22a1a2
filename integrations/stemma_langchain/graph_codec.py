"""What LangGraph's nodes and tasks give, as stored values. Reading builds, and runs nothing.

Besides messages and documents (`stemma_langchain.codec`) these are `Send`, `Overwrite`, the
message that removes all messages, queues, and the user's own classes that are named. A value of
any other class is not stored; a stored one whose class is not named any more is not read.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections import deque
from collections.abc import Iterable
from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.types import Overwrite, Send
from pydantic import BaseModel

from stemma import CodecError, Form, JsonCodec, UsageError
from stemma.classes import name_of
from stemma_langchain.codec import FORMS, built

__all__ = ["GraphCodec"]


class GraphCodec(JsonCodec):
    """The codec of graph values; a serializer in LangGraph's sense, too.

    Args:
        allowed: The user's own classes that may be stored: dataclasses, pydantic models, enums and
            named tuples. Reading one sets its fields, and calls neither `__init__` nor validators.

    Raises:
        UsageError: A class is of another kind, or holds more than its fields.
    """

    def __init__(self, allowed: Iterable[type] = ()) -> None:
        super().__init__("langgraph/1", (*FORMS, *_FORMS, *map(_form, allowed)))

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """See LangGraph's `SerializerProtocol`.

        Raises:
            CodecError: The object would not come back as it was.
        """
        return self.name, self.encode(obj).payload

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """See LangGraph's `SerializerProtocol`.

        Raises:
            CodecError: The bytes were not written by this codec.
        """
        kind, payload = data
        if kind != self.name:
            raise CodecError(f"the bytes are of the kind {kind!r}, not {self.name!r}")
        return self.decode(payload)


def _dump_send(send: Send) -> Any:
    if getattr(send, "timeout", None) is not None:
        raise CodecError("a Send with a timeout of its own is not stored")
    return [send.node, send.arg]


_FORMS: tuple[Form, ...] = (
    Form(tag="deque", kind=deque, dump=list, load=deque),
    Form(tag="lg.Send", kind=Send, dump=_dump_send, load=lambda values: Send(*values)),
    Form(
        tag="lg.Overwrite",
        kind=Overwrite,
        dump=lambda v: v.value,
        load=lambda v: Overwrite(value=v),
    ),
    Form(
        tag="lc.RemoveMessage",
        kind=RemoveMessage,
        dump=lambda message: message.id,
        load=lambda removed: RemoveMessage(id=removed),
    ),
)


def _form(kind: Any) -> Form:
    """The form of a class of the user's."""
    if not inspect.isclass(kind):
        raise UsageError(f"allowed= takes classes, not {kind!r}")
    tag = f"class:{name_of(kind)}"
    if issubclass(kind, enum.Enum):
        return Form(tag=tag, kind=kind, dump=lambda one: one.value, load=kind)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return Form(tag=tag, kind=kind, dump=list, load=lambda values: tuple.__new__(kind, values))
    if issubclass(kind, BaseModel):
        return _model_form(tag, kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass_form(tag, kind)
    raise UsageError(
        f"{name_of(kind)} is no dataclass, pydantic model, enum or named tuple; give plain values"
    )


def _model_form(tag: str, kind: type[BaseModel]) -> Form:
    if kind.__private_attributes__:
        raise UsageError(f"{name_of(kind)} has private attributes, which would not come back")

    def dump(model: BaseModel) -> Any:
        if model.model_extra:
            raise CodecError(f"this {name_of(kind)} has extra fields, which would not come back")
        return {name: getattr(model, name) for name in kind.model_fields}

    return Form(
        tag=tag,
        kind=kind,
        dump=dump,
        load=lambda values: built(kind, _all_fields(kind, kind.model_fields, values)),
    )


def _dataclass_form(tag: str, kind: type) -> Form:
    names = [one.name for one in dataclasses.fields(kind)]

    def dump(thing: Any) -> Any:
        if set(getattr(thing, "__dict__", ())) - set(names):
            raise CodecError(f"this {name_of(kind)} holds more than its fields")
        return {name: getattr(thing, name) for name in names}

    def load(values: Any) -> Any:
        made: Any = object.__new__(kind)
        for name, value in _all_fields(kind, names, values).items():
            object.__setattr__(made, name, value)
        return made

    return Form(tag=tag, kind=kind, dump=dump, load=load)


def _all_fields(kind: type, names: Iterable[str], values: Any) -> dict[str, Any]:
    if not isinstance(values, dict) or set(values) != set(names):
        raise CodecError(f"the stored {name_of(kind)} has other fields than the class has now")
    return values
