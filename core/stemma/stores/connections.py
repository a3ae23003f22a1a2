"""Connections to one SQLite file: made in one place, lent out, given back, closed.

A thread borrows a cursor with a connection of its own for one operation, and gives it back; so
there are as many connections as operations at once, and a thread that ends holds none.

A connection belongs to a file, not to its path. Where another file has come in its place, or none
is there any more, all connections are given up and the path is opened anew, so that no process
goes on with a file in which others no longer write. A file found damaged is set aside.

SQLite's locks are not inherited by a forked process, and its mutexes are as they were. Before a
fork, operations under way are therefore waited for and idle connections closed, and both processes
open new ones when they need them.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from stemma import forking
from stemma.errors import DamagedDatabase, StoreError, StoreUnavailable, UsageError
from stemma.stores.sqlite_errors import FAULTS, explain
from stemma.stores.sqlite_marker import NOTHING, Marker, identity
from stemma.stores.sqlite_pool import (
    LEVELS,
    MOST_IDLE,
    Connect,
    Durability,
    Pool,
    end,
    is_open,
    made,
)
from stemma.stores.sqlite_schema import VERSION, bring_up_to_date, examine, refuse_newer, succeed
from stemma.stores.text import Damaged

__all__ = ["Connections"]

RETRY = 1.0
"""Seconds after which a file that could not be opened is tried again; until then calls fail at
once."""

QUIET = 5.0
"""Seconds for which a fork waits for operations under way."""

_opening = forking.Lock()
"""Held while a file is opened: a child would keep the marker's lock for as long as it lives."""


class Connections:
    """The connections to one file. See the module's text.

    Args:
        path: The file; made if it is not there.
        durability: `full` survives loss of power; so does `normal`, but for the last transactions
            that did not have to `last`.
        busy_timeout: How long to wait for another writer, seconds.
        make: Opens a connection; every connection is made by it.
        set_aside: Whether a damaged file is set aside, and another one begun.

    Raises:
        UsageError: An argument is out of its range.
        StoreError: The file cannot be opened, or is not ours.
    """

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability,
        busy_timeout: float,
        make: Connect,
        set_aside: bool = True,
    ) -> None:
        if durability not in ("normal", "full"):
            raise UsageError(f"durability must be 'normal' or 'full', not {durability!r}")
        if not 0 <= busy_timeout <= 3600:  # noqa: PLR2004 - an hour
            raise UsageError(f"busy_timeout must be 0 to 3600 seconds, not {busy_timeout!r}")
        self.path = path
        self.durability = durability
        self._timeout = busy_timeout
        self._make = make
        self._sets_aside = set_aside
        self._closed = False
        self._gate: threading.Event | None = None  # where others wait while a fork is under way
        self._name = str(path)
        self._pool = Pool(NOTHING)
        self.reached = 0  # what the store's sequence was last seen to be
        self._out: tuple[float, StoreError] | None = None
        self._locks()
        forking.follow(self)
        with self._renewing, _opening:
            told = self._begin()
        if told is not None:
            warnings.warn(str(told), stacklevel=3)

    def take(self) -> sqlite3.Cursor:
        """Borrow a cursor; give it back with `give`.

        Raises:
            StoreError: No connection can be made, or the store is closed.
        """
        while True:
            try:
                found = os.stat(self._name)  # noqa: PTH116 - half the time, on the hot path
                moved = (found.st_dev, found.st_ino) != self._pool.file
            except OSError:
                moved = True
            if moved:
                told = self._renew(self._pool)
                if told is not None:
                    raise told
            pool = self._pool
            try:
                cursor = pool.idle.pop()
            except IndexError:
                cursor = self._open()
            self._lent[cursor] = pool
            gate = self._gate
            if gate is None:
                return cursor
            self.give(cursor)
            gate.wait(QUIET)

    def give(self, cursor: sqlite3.Cursor) -> None:
        """Give a cursor back."""
        pool = self._lent.pop(cursor, None)
        if pool is None or cursor.connection.in_transaction:
            end(cursor)
            return
        pool.idle.append(cursor)
        if self._closed or pool is not self._pool:
            pool.drain()
        elif len(pool.idle) > MOST_IDLE:
            with suppress(IndexError):
                end(pool.idle.popleft())

    def failed(self, error: BaseException, cursor: sqlite3.Cursor) -> StoreError:
        """The error of ours for what went wrong with a borrowed cursor.

        A damaged file is set aside, and another one begun in its place.
        """
        told = explain(error, self.path)
        if not isinstance(told, DamagedDatabase):
            return told
        try:
            return self._renew(self._lent.get(cursor), told) or told
        except StoreError as worse:
            return worse

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """A transaction that sees one state of the file."""
        cursor = self.take()
        try:
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute("COMMIT")
        except FAULTS as error:
            raise self.failed(error, cursor) from error
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
                cursor.execute(LEVELS["full" if last else self.durability])
                cursor.execute("BEGIN IMMEDIATE")
                self._refuse_moved(cursor)  # while it waited for its turn
                refuse_newer(self.path, *cursor.execute("PRAGMA user_version").fetchone())
                yield cursor
                cursor.execute("COMMIT")
                self._refuse_moved(cursor)  # nobody reads what was written there
            except (*FAULTS, OverflowError) as error:
                raise self.failed(error, cursor) from error
            finally:
                self.give(cursor)
        finally:
            self._writer.release()

    def _refuse_moved(self, cursor: sqlite3.Cursor) -> None:
        pool = self._lent.get(cursor)
        if pool is None or identity(self.path) != pool.file:
            raise StoreUnavailable(
                f"{self.path} was removed, replaced or set aside meanwhile: nothing was done; try "
                "again"
            )

    def close(self) -> None:
        """Close all connections: the idle ones now, the others when they are given back."""
        self._closed = True
        self._pool.close()

    def before_fork(self) -> None:
        """Let operations under way end, and no others begin."""
        self._gate = threading.Event()
        self._renewing.acquire(timeout=QUIET)
        until = time.monotonic() + QUIET
        while self._lent and time.monotonic() < until:
            time.sleep(0.001)
        self._pool.drain()

    def after_fork_here(self) -> None:
        """Go on, in the parent."""
        with suppress(RuntimeError):  # it could not be had
            self._renewing.release()
        if self._gate is not None:
            self._gate.set()
        self._gate = None

    def after_fork(self) -> None:
        """Begin anew in the child: the parent's connections and locks are not its own."""
        self._pool = Pool(self._pool.file)
        self._locks()

    def _locks(self) -> None:
        self._lent: dict[sqlite3.Cursor, Pool] = {}
        self._writer = threading.Lock()
        self._renewing = threading.RLock()
        self._gate = None

    def _renew(
        self, pool: Pool | None, damage: DamagedDatabase | None = None
    ) -> DamagedDatabase | None:
        """Open what is at the path now, unless that was done; gives what is told of damage."""
        with self._renewing:
            self._refuse_closed()
            if pool is not self._pool:
                return None
            if self._out is not None and time.monotonic() < self._out[0]:
                raise self._out[1]
            try:
                with _opening:
                    return self._begin(damage)
            except StoreError as error:
                self._out = (time.monotonic() + RETRY, error)
                raise

    def _begin(self, damage: DamagedDatabase | None = None) -> DamagedDatabase | None:
        """Open the file, or make it; a damaged one is set aside, and that is given in words.

        Args:
            damage: What is known to be wrong with the file that was open, if that is it still.
        """
        first = self._pool.file == NOTHING  # later, a call waits for it
        marker = Marker(self.path, self._timeout if first else min(self._timeout, RETRY))
        if not marker.present():
            self._examine(marker)  # beside what is not ours, nothing is put
        with marker.held():
            if damage is None or identity(self.path) != self._pool.file:
                try:
                    self._start(marker)
                except DamagedDatabase as found:
                    damage = found
                else:
                    return None
            if not self._sets_aside:
                raise DamagedDatabase(f"{damage}; it was left as it is: see docs/stores.md")
            try:
                aside = marker.set_aside()
            except OSError as error:
                raise DamagedDatabase(
                    f"{damage}, and cannot be set aside ({error.strerror}); remove it, or name "
                    "another file"
                ) from error
            told = f"{damage}: it was set aside as {aside.name}"
            try:
                self._start(marker)
            except StoreError as error:
                raise StoreUnavailable(f"{told}, and another cannot be begun: {error}") from error
            return DamagedDatabase(f"{told}, and the cache begins anew")

    def _examine(self, marker: Marker) -> None:
        known = is_open(identity(self.path))
        examine(self.path, marked=marker.present(), known=known)

    def _start(self, marker: Marker) -> None:
        """Open a connection to a file that is ours, as it should be, or made now."""
        self._examine(marker)
        connection = made(self._make, self.path, self._timeout, self.durability)
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != VERSION:
                bring_up_to_date(connection, self.path, partial(marker.begin, self.reached))
            self._prepare(connection)
            if self._pool.file != NOTHING:
                succeed(connection, self.reached)
            marker.opened()
        except FAULTS as error:
            connection.close()
            raise explain(error, self.path) from error
        except BaseException:
            connection.close()
            raise
        former, self._pool = self._pool, Pool(identity(self.path), [connection.cursor()])
        former.close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Have it keep a log, and read what every use of it reads: damage there is told at once."""
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreUnavailable(
                f"{self.path}: a write-ahead log cannot be kept there; name a file on a local disk"
            )
        row = connection.execute("SELECT sequence FROM meta").fetchone()
        if row is None or not isinstance(row[0], int):
            raise Damaged

    def _open(self) -> sqlite3.Cursor:
        with self._renewing:
            self._refuse_closed()
            return made(self._make, self.path, self._timeout, self.durability).cursor()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"the store of {self.path} was closed; open another one")
