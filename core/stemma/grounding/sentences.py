"""A text cut into sentences: by marks and line breaks, English and Chinese. Pure."""

from __future__ import annotations

import re

__all__ = ["sentences"]

_END = re.compile(r"[.!?]+[\"'”’)\]]*\s+|[。！？]+[”’）]*|\s*\n\s*")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(.\"'“])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|No|Inc|Ltd|Co|etc|approx|e\.g|i\.e)$"
)
_ITEM = re.compile(r"\s*\d{1,2}")


def sentences(text: str) -> list[str]:
    """The sentences, in order, none empty; an initial, a title or a list's number ends none."""
    found, start = [], 0
    for mark in _END.finditer(text):
        before = text[start : mark.start()]
        if mark[0][0] == "." and (_ABBREVIATED.search(before) or _ITEM.fullmatch(before)):
            continue
        found.append(text[start : mark.end()].strip())
        start = mark.end()
    found.append(text[start:].strip())
    return [one for one in found if one]
