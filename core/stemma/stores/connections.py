"""Connections to one SQLite file: made in one place, lent out, given back, closed.

A thread borrows a cursor with a connection of its own for one operation, and gives it back; so
there are as many connections as operations at once, and a thread that ends holds none.

SQLite's locks are not inherited by a forked process. Idle connections are therefore closed before
a fork, and both processes open new ones when they need them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from stemma.errors import StoreError, StoreUnavailable, UsageError
from stemma.stores.sqlite_schema import VERSION, create, examine, refuse_newer
from stemma.stores.text import Damaged

__all__ = ["Connect", "Connections", "Durability", "connect", "explain"]

Connect = Callable[[str, float], sqlite3.Connection]
Durability = Literal["normal", "full"]

MOST_IDLE = 16
MOST_BYTES = 64 * 1024 * 1024
"""No text, blob or row beyond this is read or written."""

_LEVELS: Mapping[Durability, str] = {
    "normal": "PRAGMA synchronous = NORMAL",
    "full": "PRAGMA synchronous = FULL",
}

_LOCKED = "it stayed locked: another process has been writing; wait, or raise busy_timeout"
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check the path and its permissions",
    sqlite3.SQLITE_READONLY: "it may only be read; check the file's permissions",
    sqlite3.SQLITE_PERM: "it may not be opened; check the file's permissions",
    sqlite3.SQLITE_FULL: "the disk is full; make room",
    sqlite3.SQLITE_IOERR: "reading or writing failed; check the disk",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
}


def connect(path: str, timeout: float) -> sqlite3.Connection:
    """Open a file with the standard library's `sqlite3`.

    Args:
        path: The file.
        timeout: How long to wait for a lock, seconds.
    """
    return sqlite3.connect(
        path,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def explain(error: Exception, path: Path) -> StoreError:
    """The error of ours for one of `sqlite3`'s."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    words = str(error)
    if code in _UNAVAILABLE:
        return StoreUnavailable(f"{path}: {_UNAVAILABLE[code]} ({words})")
    if code == 0 and isinstance(error, sqlite3.OperationalError):
        return StoreUnavailable(f"{path}: {words}")
    if isinstance(error, Damaged) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(
            f"{path} is damaged ({words or 'a record'}); run a check, or name another file"
        )
    return StoreError(f"{path}: {words}")


class Connections:
    """The connections to one file. See the module's text.

    Args:
        path: The file; made if it is not there.
        durability: `full` survives loss of power; so does `normal`, but for the last transactions
            that did not have to `last`.
        busy_timeout: How long to wait for another writer, seconds.
        make: Opens a connection; every connection is made by it.

    Raises:
        UsageError: An argument is out of its range.
        StoreError: The file cannot be opened, or is not ours.
    """

    def __init__(
        self, path: Path, *, durability: Durability, busy_timeout: float, make: Connect
    ) -> None:
        if durability not in ("normal", "full"):
            raise UsageError(f"durability must be 'normal' or 'full', not {durability!r}")
        if not 0 <= busy_timeout <= 3600:  # noqa: PLR2004 - an hour
            raise UsageError(f"busy_timeout must be 0 to 3600 seconds, not {busy_timeout!r}")
        self.path = path
        self.durability = durability
        self._timeout = busy_timeout
        self._make = make
        self._idle: deque[sqlite3.Cursor] = deque()
        self._closed = False
        self._writer = threading.Lock()
        self._start()
        _all.add(self)

    def take(self) -> sqlite3.Cursor:
        """Borrow a cursor; give it back with `give`.

        Raises:
            StoreError: No connection can be made, or the store is closed.
        """
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()

    def give(self, cursor: sqlite3.Cursor) -> None:
        """Give a cursor back."""
        if cursor.connection.in_transaction:
            cursor.connection.close()  # which rolls it back
            return
        self._idle.append(cursor)
        if self._closed:
            self.drain()
        elif len(self._idle) > MOST_IDLE:
            with suppress(IndexError):
                self._idle.popleft().connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """A transaction that sees one state of the file."""
        cursor = self.take()
        try:
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute("COMMIT")
        except (sqlite3.Error, Damaged) as error:
            raise explain(error, self.path) from error
        finally:
            self.give(cursor)

    @contextmanager
    def writing(self, *, last: bool = False) -> Iterator[sqlite3.Cursor]:
        """A transaction that writes: all of it, or nothing.

        Writers of this process queue for a lock of their own, so that only processes wait for each
        other by polling.

        Args:
            last: Whether it must survive loss of power, whatever the durability, and with it all
                that was committed before.
        """
        if not self._writer.acquire(timeout=self._timeout):
            raise StoreUnavailable(f"{self.path}: other threads wrote for {self._timeout} seconds")
        try:
            cursor = self.take()
            try:
                cursor.execute(_LEVELS["full" if last else self.durability])
                cursor.execute("BEGIN IMMEDIATE")
                yield cursor
                cursor.execute("COMMIT")
            except (sqlite3.Error, OverflowError, Damaged) as error:
                raise explain(error, self.path) from error
            finally:
                self.give(cursor)
        finally:
            self._writer.release()

    def drain(self) -> None:
        """Close the idle connections."""
        while self._idle:
            with suppress(IndexError, sqlite3.Error):
                self._idle.pop().connection.close()

    def close(self) -> None:
        """Close all connections: the idle ones now, the others when they are given back."""
        self._closed = True
        self.drain()

    def after_fork(self) -> None:
        """Begin anew in the child: the parent's connections and locks are not its own."""
        self._idle = deque()
        self._writer = threading.Lock()

    def _start(self) -> None:
        ours = examine(self.path)
        connection = self._connection()
        try:
            if not ours:
                create(connection, self.path)
            self._prepare(connection)
        except sqlite3.Error as error:
            connection.close()
            raise explain(error, self.path) from error
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection.cursor())

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        refuse_newer(self.path, version)
        if version != VERSION:
            raise StoreError(f"{self.path} has no complete schema; name another file")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreUnavailable(
                f"{self.path}: a write-ahead log cannot be kept there; name a file on a local disk"
            )

    def _open(self) -> sqlite3.Cursor:
        if self._closed:
            raise StoreUnavailable(f"the store of {self.path} was closed; open another one")
        if not self.path.exists():
            raise StoreUnavailable(f"{self.path} is gone; open the store anew to begin another")
        return self._connection().cursor()

    def _connection(self) -> sqlite3.Connection:
        try:
            connection = self._make(str(self.path), self._timeout)
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
            connection.execute(_LEVELS[self.durability])
            connection.execute("PRAGMA mmap_size = 1073741824")
            connection.execute("PRAGMA cache_size = -16384")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
        except sqlite3.Error as error:
            connection.close()
            raise explain(error, self.path) from error
        return connection


_all: weakref.WeakSet[Connections] = weakref.WeakSet()


def _before_fork() -> None:
    for connections in list(_all):
        connections.drain()


def _after_fork() -> None:
    for connections in list(_all):
        connections.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
