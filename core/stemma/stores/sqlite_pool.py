"""How connections to SQLite are made and ended, and the idle ones of a file."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from stemma.stores.sqlite_errors import FAULTS, explain
from stemma.stores.sqlite_marker import NOTHING, Identity

__all__ = [
    "LEVELS",
    "MOST_IDLE",
    "Connect",
    "Durability",
    "Pool",
    "connect",
    "end",
    "is_open",
    "made",
]

Connect = Callable[[str, float], sqlite3.Connection]
Durability = Literal["normal", "full"]

MOST_IDLE = 16
MOST_BYTES = 64 * 1024 * 1024
"""No text, blob or row beyond this is read or written."""

LEVELS: Mapping[Durability, str] = {
    "normal": "PRAGMA synchronous = NORMAL",
    "full": "PRAGMA synchronous = FULL",
}

_open_files: list[Identity] = []
"""The files that stores of this process have open, once for each."""


def connect(path: str, timeout: float) -> sqlite3.Connection:
    """Open a file with the standard library's `sqlite3`.

    Args:
        path: The file.
        timeout: How long to wait for a lock, seconds.
    """
    return sqlite3.connect(
        f"{Path(path).as_uri()}?mode=rw",  # it is never made here: by others it could be read then
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def made(make: Connect, path: Path, timeout: float, durability: Durability) -> sqlite3.Connection:
    """A connection as the store uses it.

    Raises:
        StoreError: It cannot be made.
    """
    try:
        connection = make(str(path), timeout)
    except FAULTS as error:
        raise explain(error, path) from error
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        connection.execute(LEVELS[durability])
        # Read, not mapped: a page that a fault of the disk or of somebody else has taken away
        # is then an error, and not the end of the process.
        connection.execute("PRAGMA mmap_size = 0")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
    except FAULTS as error:
        connection.close()
        raise explain(error, path) from error
    return connection


def end(cursor: sqlite3.Cursor) -> None:
    """Close a connection, which rolls back what was not committed.

    Its cursor first: a statement that is still running would keep it open, and its locks held.
    """
    connection = cursor.connection
    cursor.close()
    connection.close()


class Pool:
    """The idle connections to one file, which is known by its device and inode."""

    def __init__(self, file: Identity, idle: Iterable[sqlite3.Cursor] = ()) -> None:
        self.file = file
        self.idle = deque(idle)
        if file != NOTHING:
            _open_files.append(file)

    def close(self) -> None:
        """Close them for good."""
        self.drain()
        with suppress(ValueError):
            _open_files.remove(self.file)

    def drain(self) -> None:
        """Close them."""
        while self.idle:
            with suppress(IndexError, sqlite3.Error):
                end(self.idle.pop())


def is_open(file: Identity) -> bool:
    """Whether a store of this process has a file open."""
    return file in _open_files
