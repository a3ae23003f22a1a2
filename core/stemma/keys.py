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

_MAX_BITS = 2_048
"""Python refuses to write longer integers in decimal, from a limit that a process may set."""

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
    try:
        return _line(_plain(value, "value", 0))
    except UnkeyableValue:
        raise
    except Exception as error:  # whatever a foreign object raises while it is read
        raise UnkeyableValue(
            f"the value cannot be read: {type(error).__name__}; "
            "pass plain values, a dataclass or a pydantic model"
        ) from error


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
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        return value if value.bit_length() <= _MAX_BITS else {"$int": f"{value:x}"}
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
    if isinstance(value, np.ma.MaskedArray):
        raise UnkeyableValue(f"{where} is a masked NumPy array; fill it before")
    kind = value.dtype.str if value.dtype.names is None else value.dtype.descr
    data = blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
    return {"$array": [kind, list(value.shape), data]}


def _scalar(value: np.generic, where: str, depth: int) -> Any:
    if value.dtype.names is not None:
        return _array(np.asarray(value), where)
    item = value.item()
    if isinstance(value, (np.datetime64, np.timedelta64)) and (item is None or type(item) is int):
        # Without its unit, such a time would be a number; "not a time" would be None.
        return {"$scalar": [value.dtype.str, str(value)]}
    if isinstance(value, np.longdouble) and isinstance(item, np.generic):
        near = float(value)
        exact = near == value or np.isnan(value)
        return _number(near) if exact else {"$longdouble": np.format_float_scientific(value)}
    if isinstance(item, np.generic):
        raise UnkeyableValue(f"{where} is a {_name(type(value))}, which has no stable key")
    return _plain(item, where, depth + 1)


def _decimal(value: decimal.Decimal) -> str:
    """Exact, whatever the precision of the context; '1.50' is '1.5'."""
    sign, digits, exponent = value.as_tuple()
    written = "".join(map(str, digits))
    minus = "-" if sign else ""
    if isinstance(exponent, str):  # infinite, or not a number
        return f"{minus}{exponent}{written}"
    kept = written.rstrip("0")
    return f"{minus}{kept}E{exponent + len(written) - len(kept)}" if kept else "0"


def _moment(value: dt.datetime | dt.time) -> Any:
    return [value.isoformat(), value.fold] if value.fold else value.isoformat()


def _span(value: dt.timedelta) -> list[int]:
    # A subclass may be finer than the microsecond.
    finer = getattr(value, "nanoseconds", 0)
    return [value.days, value.seconds, value.microseconds, *([finer] if finer else [])]


_FORMS: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (bytes, "bytes", lambda v: base64.b64encode(v).decode("ascii")),
    (bytearray, "bytes", lambda v: base64.b64encode(v).decode("ascii")),
    (dt.datetime, "datetime", _moment),
    (dt.date, "date", dt.date.isoformat),
    (dt.time, "time", _moment),
    (dt.timedelta, "timedelta", _span),
    (decimal.Decimal, "decimal", _decimal),
    (uuid.UUID, "uuid", str),
    (pathlib.PurePath, "path", lambda v: v.as_posix()),
    (complex, "complex", lambda v: [repr(v.real), repr(v.imag)]),
)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _base(value: str | float) -> str | float:
    """The content of a subclass (NumPy's float64 too), not what its own methods say it is."""
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def _special(value: Any, where: str, depth: int) -> Any:
    if isinstance(value, enum.Enum):
        return {"$enum": [_name(type(value)), value.name or value.value]}
    # Subclasses, NumPy's float64 among them: their content, not what their own methods say.
    if isinstance(value, (str, int, float)):
        return _plain(_base(value), where, depth + 1)
    if isinstance(value, np.ndarray):
        return _array(value, where)
    if isinstance(value, np.generic):
        return _scalar(value, where, depth)
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
    declared = getattr(type(value), "model_fields", None)
    if not isinstance(declared, Mapping) or not hasattr(value, "model_dump"):
        return None
    # Not its dump, which drops excluded fields and the classes of what it holds.
    extra = getattr(value, "__pydantic_extra__", None)
    fields = {name: getattr(value, name) for name in declared}
    return fields if extra is None else fields | extra
