"""What a class says of its objects, read once per class."""

from __future__ import annotations

import functools
import inspect
from typing import Any

__all__ = ["declared", "declaring", "holds_more", "name_of", "slots_of", "top_package"]


def name_of(kind: type) -> str:
    """Module and name."""
    return f"{kind.__module__}.{kind.__qualname__}"


def top_package(kind: type) -> str:
    """The package that defines it."""
    return kind.__module__.partition(".")[0]


def declaring(kind: Any, name: str) -> Any:
    """The class that declares an attribute; where none does, the class itself."""
    for base in kind.__mro__:
        if name in inspect.get_annotations(base) or name in base.__dict__:
            return base
    return kind


def declared(kind: type, name: str) -> Any:
    """What a class holds under a name, its own or inherited, without a descriptor being asked."""
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)


def slots_of(kind: type) -> tuple[str, ...]:
    """The names of a class's slots, as they are in its `__dict__`."""
    said = kind.__dict__.get("__slots__", ())
    names = (said,) if isinstance(said, str) else tuple(said)
    return tuple(
        f"_{kind.__name__.lstrip('_')}{name}"
        if name.startswith("__") and not name.endswith("__")
        else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    )


@functools.lru_cache(maxsize=4_096)
def holds_more(kind: type) -> bool:
    """Whether objects of a class hold more than attributes and slots: whatever C keeps in them."""
    word = tuple.__itemsize__
    known = object.__basicsize__ + word * sum(len(slots_of(base)) for base in kind.__mro__)
    known += word * (kind.__dictoffset__ > 0) + word * (kind.__weakrefoffset__ > 0)
    return kind.__basicsize__ > known or kind.__itemsize__ > 0
