"""Reading many vectors from SQLite: at the start of an index, all of them."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from stemma.stores.rows import Half, intact
from stemma.stores.sqlite_pages import readable
from stemma.stores.text import unescape

__all__ = ["gather"]

_AFTER = """SELECT entry, "group", vector, checksum FROM vectors
    WHERE sequence > ? ORDER BY sequence"""


def gather(cursor: sqlite3.Cursor, after: int) -> tuple[list[str], list[str], Sequence[Half]]:
    """The undamaged vectors put after a sequence: their entries, groups and numbers.

    Row by row into one piece of memory: a hundred thousand small objects would be slow to make,
    and leave the process's memory in shreds.
    """
    return readable(cursor, lambda: _gather(cursor.execute(_AFTER, (after,))))


def _gather(rows: Iterable[Any]) -> tuple[list[str], list[str], Sequence[Half]]:
    ids: list[str] = []
    groups: list[str] = []
    known: dict[str, str] = {}
    ends = array("q", [0])
    data = bytearray()
    for row in rows:
        if intact(row):
            name, group, vector, _ = row
            ids.append(unescape(name))
            if group not in known:
                known[group] = unescape(group)
            groups.append(known[group])
            data += vector
            ends.append(len(data) // 2)
    numbers = np.frombuffer(data, dtype="<f2")
    widths = set(np.diff(ends).tolist())
    if len(widths) == 1:
        return ids, groups, cast("Sequence[Half]", numbers.reshape(len(ids), *widths))
    return ids, groups, [numbers[start:end] for start, end in pairwise(ends)]
