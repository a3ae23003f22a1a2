"""Values to bytes and back: JSON, versioned, nothing executed on reading.

Plain JSON values, tuples, sets, bytes, dates, `Decimal`, `UUID` and non-finite floats come back
as what they were. Anything else is refused with `CodecError`, unless a `Form` for its type was
given: that is how the framework packages teach the codec their messages and documents. Reading
builds only types that have a form; an unknown tag is an error, never a guess.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stemma.errors import CodecError
from stemma.keys import digest

__all__ = [
    "MAX_PAYLOAD",
    "BytesCodec",
    "Call",
    "Codec",
    "Encoded",
    "Form",
    "JsonCodec",
    "VectorCodec",
    "storable",
]

MAX_PAYLOAD = 16 * 1024 * 1024
"""The largest payload that is stored or read, bytes."""

Call = tuple[str, Mapping[str, Any]]
"""A tool that is called: its name and its arguments."""

MAX_DEPTH = 100
WIDE = 1 << 63


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value ready to be stored.

    Args:
        payload: The bytes to store.
        value: The value hash: equal for equal answers, whatever their message ids.
        text: The value's text, by which it is recognised in later prompts; empty if it has none.
    """

    payload: bytes = field(repr=False)
    value: str
    text: str = field(default="", repr=False)


@runtime_checkable
class Codec(Protocol):
    """Turns values to bytes and back. `name` carries the version and is stored with the entry."""

    name: str

    def encode(self, value: Any) -> Encoded:
        """Encode, or raise `CodecError` where the value would not come back as it was."""
        ...

    def decode(self, payload: bytes) -> Any:
        """A fresh value, or `CodecError` where the bytes are not of this codec."""
        ...

    def text(self, value: Any) -> str:
        """The value's text, by which it is recognised in later prompts; empty if it has none."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """How one type is written as JSON.

    Args:
        tag: Its name in the stored form, such as `lc.AIMessage`.
        kind: The exact type; subclasses are not taken.
        dump: The object as values that the codec can write.
        load: The object from those values. Must only build, never run anything.
        identity: What makes two objects equal answers; by default what `dump` gives.
        text: The object's text.
        calls: The tools that it calls, each with a name and its arguments.
        sure: How sure who made it was, 0 to 1; `None` where that is not told.
    """

    tag: str
    kind: type
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]
    identity: Callable[[Any], Any] | None = None
    text: Callable[[Any], str] = lambda _: ""
    calls: Callable[[Any], Sequence[Call]] = lambda _: ()
    sure: Callable[[Any], float | None] = lambda _: None


_BUILT_IN: tuple[Form, ...] = (
    Form(tag="tuple", kind=tuple, dump=list, load=tuple),
    Form(tag="set", kind=set, dump=lambda v: sorted(v, key=repr), load=set),
    Form(tag="frozenset", kind=frozenset, dump=lambda v: sorted(v, key=repr), load=frozenset),
    Form(
        tag="bytes",
        kind=bytes,
        dump=lambda v: base64.b64encode(v).decode("ascii"),
        load=lambda v: base64.b64decode(v, validate=True),
    ),
    Form(
        tag="datetime", kind=dt.datetime, dump=dt.datetime.isoformat, load=dt.datetime.fromisoformat
    ),
    Form(tag="date", kind=dt.date, dump=dt.date.isoformat, load=dt.date.fromisoformat),
    Form(tag="decimal", kind=decimal.Decimal, dump=str, load=decimal.Decimal),
    Form(tag="uuid", kind=uuid.UUID, dump=str, load=uuid.UUID),
    Form(tag="int", kind=int, dump=hex, load=lambda v: int(v, 16)),  # only where it is wide
    Form(tag="float", kind=float, dump=repr, load=float),  # only where it is not finite
)

_dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class JsonCodec:
    """JSON with tagged forms: `{"$": tag, "v": …}`.

    Args:
        name: The codec's name and version, stored with each entry.
        forms: Forms of further types.
    """

    def __init__(self, name: str = "json/1", forms: Sequence[Form] = ()) -> None:
        self.name = name
        every = (*_BUILT_IN, *forms)
        self._by_kind: Mapping[type, Form] = {form.kind: form for form in every}
        self._by_tag: Mapping[str, Form] = {form.tag: form for form in every}
        self._loads = json.JSONDecoder(object_hook=self._revived).decode

    def encode(self, value: Any) -> Encoded:
        """See `Codec.encode`."""
        try:
            written = self._write(value, 0)
            line = _dumps(written)
            if "\\ud" in line and json.loads(line) != written:
                raise CodecError("two lone surrogates in a text would come back as one character")
            identity = digest("value/1", self._identity(value, 0))
        except (ValueError, TypeError, RecursionError) as error:
            raise CodecError(f"cannot store this value: {error}") from error
        payload = line.encode("ascii")
        if len(payload) > MAX_PAYLOAD:
            raise CodecError(
                f"the value takes {len(payload)} bytes; at most {MAX_PAYLOAD} are stored"
            )
        return Encoded(payload, identity, self.text(value))

    def decode(self, payload: bytes) -> Any:
        """See `Codec.decode`."""
        if len(payload) > MAX_PAYLOAD:
            raise CodecError(
                f"the stored value takes {len(payload)} bytes; more than {MAX_PAYLOAD}"
            )
        try:
            return self._loads(payload.decode("ascii"))
        except CodecError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CodecError(f"cannot read the stored value: {type(error).__name__}") from error

    def text(self, value: Any) -> str:
        """The value's text: a string itself, an object by its form, a list of them joined."""
        if isinstance(value, str):
            return value
        form = self._by_kind.get(type(value))
        if form is not None:
            return form.text(value)
        if isinstance(value, list):
            return "\n".join(filter(None, map(self.text, value)))
        if isinstance(value, dict):
            return "\n".join(filter(None, map(self.text, value.values())))
        return ""

    def calls(self, value: Any) -> tuple[Call, ...]:
        """The tools that a value calls: those of its objects, by their forms."""
        return tuple(call for form, one in self._objects(value) for call in form.calls(one))

    def sure(self, value: Any) -> float | None:
        """How sure who made a value was, 0 to 1: the least sure of its objects that tell it."""
        told = (form.sure(one) for form, one in self._objects(value))
        return min((one for one in told if one is not None), default=None)

    def _objects(self, value: Any) -> Iterator[tuple[Form, Any]]:
        """The objects with a form in a value, with their forms."""
        if isinstance(value, (list, tuple)):
            parts: Iterable[Any] = value
        elif isinstance(value, dict):
            parts = value.values()
        else:
            form = self._by_kind.get(type(value))
            if form is not None:
                yield form, value
            return
        for part in parts:
            yield from self._objects(part)

    def _form(self, value: Any) -> Form | None:
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            return None
        return self._by_kind.get(type(value))

    def _write(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str or value is None or kind is bool:
            return value
        if kind is int:  # what is wider than 64 bits is a float to some readers of JSON
            return value if -WIDE <= value < WIDE else {"$": "int", "v": hex(value)}
        if depth > MAX_DEPTH:
            raise CodecError(f"the value is nested deeper than {MAX_DEPTH} levels")
        if kind is list:
            return [self._write(item, depth + 1) for item in value]
        if kind is dict:
            if all(type(key) is str for key in value) and "$" not in value:
                return {key: self._write(item, depth + 1) for key, item in value.items()}
            pairs = [
                [self._write(k, depth + 1), self._write(v, depth + 1)] for k, v in value.items()
            ]
            return {"$": "map", "v": pairs}
        form = self._form(value)
        if form is not None:
            return {"$": form.tag, "v": self._write(form.dump(value), depth + 1)}
        if kind is float:
            return value
        raise CodecError(f"a {kind.__module__}.{kind.__qualname__} would not come back as it was")

    def _identity(self, value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise CodecError(f"the value is nested deeper than {MAX_DEPTH} levels")
        if type(value) is list:
            return [self._identity(item, depth + 1) for item in value]
        if type(value) is dict:
            return {key: self._identity(item, depth + 1) for key, item in value.items()}
        form = self._form(value)
        if form is None:
            return value
        plain = (form.identity or form.dump)(value)
        return {"$": form.tag, "v": self._identity(plain, depth + 1)}

    def _revived(self, value: dict[str, Any]) -> Any:
        """A tagged mapping as what it stands for; called from the inside out."""
        if "$" not in value:
            return value
        tag, inner = value["$"], value["v"]
        if tag == "map":
            return {_hashable(key): item for key, item in inner}
        form = self._by_tag.get(tag) if type(tag) is str else None
        if form is None:
            raise CodecError("the stored value has a part of an unknown type")
        return form.load(inner)


def _hashable(key: Any) -> Any:
    if isinstance(key, (list, dict)):
        raise CodecError("the stored value has a key that cannot be one")
    return key


_plain = JsonCodec("plain/1")


def storable(values: Mapping[str, Any], *, without: str | None = None) -> dict[str, Any]:
    """The parts of a mapping that can be stored; a provider's live objects are left out.

    A pydantic model among them becomes plain values.

    Args:
        values: The mapping.
        without: A key to leave out besides.
    """
    kept: dict[str, Any] = {}
    for key, value in values.items():
        if key == without:
            continue
        plain = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
        try:
            _plain.encode(plain)
        except CodecError:
            continue
        kept[key] = plain
    return kept


class VectorCodec:
    """Embedding vectors, as little-endian float32, or float64 where float32 would lose digits.

    Takes a sequence of floats or a one-dimensional array; gives back a list of Python floats.
    """

    name = "vector/1"

    def encode(self, value: Any) -> Encoded:
        """See `Codec.encode`."""
        wide = np.asarray(value, dtype=np.float64)
        if wide.ndim != 1 or wide.size == 0 or not np.isfinite(wide).all():
            raise CodecError("an embedding must be a non-empty list of finite numbers")
        with np.errstate(over="ignore"):
            narrow = wide.astype("<f4")
        exact = bool((narrow.astype(np.float64) == wide).all())
        payload = b"f4" + narrow.tobytes() if exact else b"f8" + wide.astype("<f8").tobytes()
        return Encoded(payload, digest("vector/1", wide))

    def decode(self, payload: bytes) -> list[float]:
        """See `Codec.decode`."""
        kind, numbers = {b"f4": "<f4", b"f8": "<f8"}.get(payload[:2]), payload[2:]
        if kind is None or not numbers or len(numbers) % int(kind[2]):
            raise CodecError("the stored bytes are not an embedding")
        values: list[float] = (
            np.frombuffer(payload, dtype=kind, offset=2).astype(np.float64).tolist()
        )
        return values

    def text(self, value: Any) -> str:  # noqa: ARG002 - the protocol's signature
        """See `Codec.text`: a vector has none."""
        return ""


class BytesCodec:
    """Bytes as they are."""

    name = "bytes/1"

    def encode(self, value: Any) -> Encoded:
        """See `Codec.encode`."""
        if not isinstance(value, bytes):
            raise CodecError(f"only bytes are stored here, not {type(value).__name__}")
        if len(value) > MAX_PAYLOAD:
            raise CodecError(
                f"the value takes {len(value)} bytes; at most {MAX_PAYLOAD} are stored"
            )
        return Encoded(bytes(value), digest("bytes/1", value))

    def decode(self, payload: bytes) -> bytes:
        """See `Codec.decode`."""
        return bytes(payload)

    def text(self, value: Any) -> str:  # noqa: ARG002 - the protocol's signature
        """See `Codec.text`: bytes have none."""
        return ""
