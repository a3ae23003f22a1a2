"""Stable, injective keys for anything that shapes an answer.

`canonical` turns a value into one line of ASCII JSON: equal values give equal lines, different
values different ones, in every process and under every hash seed. `digest` hashes such lines.

Rules that matter to callers:

* `1` and `1.0` are one value, `True` is not `1`, and an absent field is not `None`.
* The order of a mapping does not count, the order of a list does; a tuple counts as a list.
* `datetime`, `Decimal`, `UUID`, `Path`, `bytes`, sets, enums, dataclasses, pydantic models and
  NumPy arrays (with dtype and shape) have a stable form. Functions, open handles and other
  objects do not: they raise `UnkeyableValue`, and are never keyed by their `repr`.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import pathlib
import re
import uuid
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import Any

import numpy as np

from stemma.errors import UnkeyableValue

__all__ = ["canonical", "digest", "digest_text"]

MAX_DEPTH = 64
"""Nesting beyond this is refused: it would be an attack or a cycle."""

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def digest_text(line: str) -> str:
    """The 128-bit BLAKE2b digest of an ASCII line, as 32 hexadecimal digits."""
    return blake2b(line.encode("ascii"), digest_size=16).hexdigest()


def digest(*parts: Any) -> str:
    """The 128-bit digest of several values: injective in the parts and in their number.

    Raises:
        UnkeyableValue: A part has no stable form.
    """
    return digest_text(canonical(parts))


def canonical(value: Any) -> str:
    """The value as one line of ASCII JSON.

    Raises:
        UnkeyableValue: The value, or something in it, has no stable form; says where.
    """
    return _line(_plain(value, "value", 0))


def _line(plain: Any) -> str:
    line = _encode(plain)
    # JSON writes two lone surrogates as the one character that such a pair stands for in UTF-16.
    return _encode(_told_apart(plain)) if "\\ud" in line else line


def _told_apart(plain: Any) -> Any:
    if isinstance(plain, str):
        if _PAIR.search(plain) is None:
            return plain
        return {"$text": plain.encode("utf-8", "surrogatepass").hex()}
    if isinstance(plain, list):
        return [_told_apart(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if not any(map(_PAIR.search, plain)):
        return {key: _told_apart(item) for key, item in plain.items()}
    pairs = [[_told_apart(key), _told_apart(item)] for key, item in plain.items()]
    return {"$map": sorted(pairs, key=_encode)}


def _plain(value: Any, where: str, depth: int) -> Any:
    kind = type(value)
    if kind is str or kind is bool or value is None or kind is int:
        return value
    if depth > MAX_DEPTH:
        raise UnkeyableValue(f"{where} is nested deeper than {MAX_DEPTH} levels")
    if kind is float:
        return _number(value)
    if kind is list or kind is tuple:
        return [_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        return _mapping(value, where, depth)
    return _special(value, where, depth)


def _number(value: float) -> Any:
    if math.isfinite(value):
        return int(value) if value == int(value) else value
    return {"$float": repr(value)}


def _mapping(value: Mapping[Any, Any], where: str, depth: int) -> Any:
    # A user's own "$…" key could imitate a tagged value, so such mappings take the tagged form too.
    if all(type(key) is str and not key.startswith("$") for key in value):
        return {key: _plain(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    pairs = [
        [_plain(key, f"{where} key", depth + 1), _plain(item, f"{where}[{key!r}]", depth + 1)]
        for key, item in value.items()
    ]
    return {"$map": sorted(pairs, key=_encode)}


def _array(value: np.ndarray[Any, Any], where: str) -> Any:
    if value.dtype.hasobject:
        raise UnkeyableValue(f"{where} is a NumPy array of objects; convert it to plain values")
    data = blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
    return {"$array": [value.dtype.str, list(value.shape), data]}


_FORMS: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (bytes, "bytes", lambda v: base64.b64encode(v).decode("ascii")),
    (bytearray, "bytes", lambda v: base64.b64encode(v).decode("ascii")),
    (dt.datetime, "datetime", dt.datetime.isoformat),
    (dt.date, "date", dt.date.isoformat),
    (dt.time, "time", dt.time.isoformat),
    (dt.timedelta, "timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    (decimal.Decimal, "decimal", lambda v: str(v.normalize())),
    (uuid.UUID, "uuid", str),
    (pathlib.PurePath, "path", lambda v: v.as_posix()),
    (complex, "complex", lambda v: [repr(v.real), repr(v.imag)]),
)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _special(value: Any, where: str, depth: int) -> Any:
    if isinstance(value, enum.Enum):
        return {"$enum": [_name(type(value)), value.name]}
    if isinstance(value, (str, bool, int, float)):  # subclasses, NumPy's float64 among them
        base = next(b for b in (str, bool, int, float) if isinstance(value, b))
        return _plain(base(value), where, depth)
    if isinstance(value, np.ndarray):
        return _array(value, where)
    if isinstance(value, np.generic):
        return _plain(value.item(), where, depth)
    if isinstance(value, (list, tuple)):
        return _plain(list(value), where, depth)
    if isinstance(value, AbstractSet):
        return {"$set": sorted(_line(_plain(item, f"{where} item", depth + 1)) for item in value)}
    for kind, tag, form in _FORMS:
        if isinstance(value, kind):
            return {f"${tag}": form(value)}
    fields = _fields(value)
    if fields is not None:
        return {"$object": [_name(type(value)), _plain(fields, where, depth + 1)]}
    raise UnkeyableValue(
        f"{where} is a {_name(type(value))}, which has no stable key; "
        "pass plain values, a dataclass or a pydantic model"
    )


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(type(value), "model_fields") and hasattr(value, "model_dump"):
        dumped: dict[str, Any] = value.model_dump()
        return dumped
    return None
