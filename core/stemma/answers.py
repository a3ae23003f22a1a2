"""What a stored or computed value answers, taken apart so that two can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stemma.codec import Codec, JsonCodec
from stemma.keys import digest
from stemma.policies.same_answer import Answer

__all__ = ["Parted", "parted"]

PROSE = {"prose": True}
"""Stands for a text in a shape, and for whatever only has a text."""


class Parted(NamedTuple):
    """A value's answer.

    Args:
        shape: The digest of what must be equal: numbers, keys, order, texts of one word. All prose
            stands for the same in it.
        answer: Its prose and its calls of tools.
    """

    shape: str
    answer: Answer


def parted(codec: Codec, value: Any) -> Parted:
    """Take a value apart.

    Raises:
        UnkeyableValue: A structured value or an argument has no stable form.
    """
    calls = codec.calls(value) if isinstance(codec, JsonCodec) else ()
    shape = PROSE if isinstance(value, str) else _shape(value)
    return Parted(digest("shape/1", shape), Answer(text=codec.text(value), calls=calls))


def _shape(value: Any) -> Any:
    """The value with its prose left out; a text of one word is a label, and stays."""
    if isinstance(value, str):
        words = value.split()
        return PROSE if len(words) != 1 else words[0].casefold().rstrip(".!")
    if isinstance(value, Mapping):
        return [[str(key), _shape(held)] for key, held in value.items()]
    if isinstance(value, (list, tuple)):
        shapes = [_shape(held) for held in value]
        # How many documents or messages there are says nothing of what they answer.
        return PROSE if shapes and all(one is PROSE for one in shapes) else shapes
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return PROSE
