"""Ways in which the files of a SQLite database are damaged: by disks, by copying, by people."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

__all__ = ["KINDS", "PAGE", "Files", "spoiled"]

PAGE = 4096
HEADER = 100

Files = dict[str, bytes]
"""The files of a database, by the ending of their name; the database itself has none."""


def _cut(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    files[""] = files[""][: lucky.randrange(1, len(files[""]))]


def _flip_bits(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    files[""] = _flipped(files[""], lucky.choice((1, 8, 64)), len(files[""]), lucky)


def _zero_page(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    at = lucky.randrange(len(files[""]) // PAGE) * PAGE
    files[""] = files[""][:at] + bytes(PAGE) + files[""][at + PAGE :]


def _lose_beginning(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    files[""] = lucky.randbytes(PAGE) + files[""][PAGE:]


def _flip_header(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    files[""] = _flipped(files[""], lucky.randrange(1, 5), HEADER, lucky)


def _empty(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    files[""] = b""


def _append(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    files[""] += lucky.randbytes(lucky.randrange(1, 3 * PAGE))


def _noisy_log(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    head = files.get("-wal", b"")[: lucky.choice((0, 32, 56))]
    files["-wal"] = head + lucky.randbytes(lucky.randrange(1, 20 * PAGE))


def _flipped_log(files: Files, other: Files, lucky: random.Random) -> None:
    log = files.get("-wal", other["-wal"])
    files["-wal"] = _flipped(log, lucky.choice((1, 8, 64)), len(log), lucky)


def _other_log(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    files["-wal"] = other["-wal"]


def _noisy_memory(files: Files, other: Files, lucky: random.Random) -> None:  # noqa: ARG001
    files["-shm"] = lucky.randbytes(8 * PAGE)


KINDS: Mapping[str, Callable[[Files, Files, random.Random], None]] = {
    "cut short": _cut,
    "bits flipped": _flip_bits,
    "a page zeroed": _zero_page,
    "a first page of noise": _lose_beginning,
    "the header flipped": _flip_header,
    "emptied": _empty,
    "bytes appended": _append,
    "a log of noise": _noisy_log,
    "bits of the log flipped": _flipped_log,
    "the log of another file": _other_log,
    "shared memory of noise": _noisy_memory,
}
"""Each changes the files of a database; the second argument is another database's."""


def spoiled(files: Files, other: Files, kind: str, lucky: random.Random) -> Files:
    """The files after damage of one of `KINDS`."""
    changed = dict(files)
    KINDS[kind](changed, other, lucky)
    return changed


def _flipped(data: bytes, count: int, within: int, lucky: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(count):
        changed[lucky.randrange(within)] ^= 1 << lucky.randrange(8)
    return bytes(changed)
