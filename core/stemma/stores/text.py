"""Texts as they are written: any Python text, injectively, in what every database can hold.

Databases stop at NUL, and cannot hold lone surrogates. Both, the escape character itself and the
separator of packed texts are written as an escape and four hexadecimal digits; any other text is
written as it is. Nothing is normalised: texts that look alike stay different.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["ESCAPE", "SEPARATOR", "Damaged", "escape", "unescape"]

ESCAPE = "\x1b"
"""Begins every escape; no text without one holds it."""

SEPARATOR = "\x1f"
"""Occurs in no escaped text."""

_unsafe = re.compile("[\x00\x1b\x1f\ud800-\udfff]")
_escaped = re.compile("\x1b([0-9a-f]{4})")


class Damaged(Exception):
    """A stored record is not what was written: it fails its checksum, or is no record."""


def escape(text: str) -> str:
    """The text as it is written."""
    if _unsafe.search(text) is None:
        return text
    return _unsafe.sub(lambda found: f"{ESCAPE}{ord(found[0]):04x}", text)


def unescape(text: Any) -> str:
    """The text that was escaped.

    Raises:
        Damaged: What is stored there is no text.
    """
    if not isinstance(text, str):
        raise Damaged
    if ESCAPE not in text:
        return text
    return _escaped.sub(lambda found: chr(int(found[1], 16)), text)
