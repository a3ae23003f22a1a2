"""Connections to PostgreSQL: made in one place, lent out, given back, dropped in doubt.

Threads share one pool; each event loop has its own. A connection is made when one is needed and
none is idle. One on which anything went wrong, a cancellation included, is closed and not given
back: no reply is left on it for the next caller. Besides, every operation begins by asking for a
number of its own, and what does not bring that number back is no reply to it.

Where an idle connection turns out to be dead at the first trip of an operation, nothing was done
yet: all idle ones are dropped, and the operation begins again on a new one.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from stemma import forking
from stemma.errors import StoreError, StoreUnavailable
from stemma.stores.postgres_errors import explain, lost
from stemma.stores.postgres_session import Drive, Session
from stemma.stores.postgres_steps import WRITE, Steps
from stemma.stores.postgres_trips import Async, Sync, Watch, atrip, trip
from stemma.stores.text import Damaged

import psycopg  # isort: skip - after the module that says how to install it

__all__ = ["Server"]

T = TypeVar("T")

_IDLE = psycopg.pq.TransactionStatus.IDLE


class _Pool:
    """Idle connections, the last one given back first."""

    def __init__(self) -> None:
        self.idle: deque[Any] = deque()

    def take(self) -> Any | None:
        try:
            return self.idle.pop()
        except IndexError:
            return None

    def drain(self) -> None:
        while (connection := self.take()) is not None:
            connection.pgconn.finish()


class _LoopPool(_Pool):
    """The pool of one event loop."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.slots = asyncio.Semaphore(most)


class Server:
    """The connections to one database. See the module's text.

    Args:
        conninfo: How to connect, password included.
        where: The same as it may be shown.
        session: What every operation says first.
        most: How many connections the threads together, and each event loop, may have at once.
        timeout: How long to wait for a connection, and for the server to answer, seconds.
        prepare: Begins the operation that comes before all others, once it succeeds.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        where: str,
        session: Session,
        most: int,
        timeout: float,
        prepare: Callable[[], Steps[None]],
    ) -> None:
        self._conninfo = conninfo
        self._where = where
        self._session = session
        self._most = most
        self._timeout = timeout
        self._watch = Watch(timeout)
        self._prepare = prepare
        self._prepared = False
        self._closed = False
        self._left: list[Any] = []
        self._begin()
        forking.follow(self)

    def _begin(self) -> None:
        self._threads = _Pool()
        self._slots = threading.BoundedSemaphore(self._most)
        self._loops: dict[asyncio.AbstractEventLoop, _LoopPool] = {}

    def prepare(self) -> None:
        """Prepare the database, unless that was done. Several may do it at once."""
        if not self._prepared:
            self._run(self._prepare, WRITE)
            self._prepared = True

    def run(
        self,
        operation: Callable[[], Steps[T]],
        begin: str | None = None,
        *,
        patient: bool = False,
    ) -> T:
        """Run an operation in the calling thread.

        Args:
            operation: Begins the operation; called again if it has to begin anew.
            begin: The statement that begins its transaction; without one it is one trip.
            patient: Whether it may take any time.

        Raises:
            StoreError: The server cannot be reached, or could not do it.
        """
        self.prepare()
        return self._run(operation, begin, patient=patient)

    async def arun(
        self,
        operation: Callable[[], Steps[T]],
        begin: str | None = None,
        *,
        patient: bool = False,
    ) -> T:
        """Run an operation on the running event loop. See `run`."""
        if not self._prepared:
            await self._arun(self._prepare, WRITE)
            self._prepared = True
        return await self._arun(operation, begin, patient=patient)

    def _run(
        self, operation: Callable[[], Steps[T]], begin: str | None, *, patient: bool = False
    ) -> T:
        self._refuse_closed()
        slots, pool = self._slots, self._threads
        if not slots.acquire(timeout=self._timeout):
            raise self._crowded()
        try:
            while True:
                connection = pool.take()
                idle = connection is not None
                if connection is None:
                    connection = self._connect()
                drive = Drive(operation(), *self._session.opening(begin, patient=patient))
                done = False
                try:
                    says = drive.start()
                    while says is not None:
                        says = drive.go_on(trip(connection, says, None if patient else self._watch))
                    done = True
                except Exception as error:
                    if idle and drive.first and lost(error):
                        pool.drain()
                        continue
                    raise self._told(error) from error
                finally:
                    self._give(pool, connection, sound=done)
                result: T = drive.result
                return result
        finally:
            slots.release()

    async def _arun(
        self, operation: Callable[[], Steps[T]], begin: str | None, *, patient: bool = False
    ) -> T:
        self._refuse_closed()
        pool = self._loop_pool()
        try:
            async with asyncio.timeout(self._timeout):
                await pool.slots.acquire()
        except TimeoutError:
            raise self._crowded() from None
        try:
            while True:
                connection = pool.take()
                idle = connection is not None
                if connection is None:
                    connection = await self._aconnect()
                drive = Drive(operation(), *self._session.opening(begin, patient=patient))
                done = False
                try:
                    says = drive.start()
                    while says is not None:
                        replies = await atrip(connection, says, None if patient else self._watch)
                        says = drive.go_on(replies)
                    done = True
                except Exception as error:
                    if idle and drive.first and lost(error):
                        pool.drain()
                        continue
                    raise self._told(error) from error
                finally:
                    self._give(pool, connection, sound=done)
                result: T = drive.result
                return result
        finally:
            pool.slots.release()

    def close(self) -> None:
        """Close all connections: the idle ones now, the others when they are given back."""
        self._closed = True
        self._threads.drain()
        for pool in list(self._loops.values()):
            pool.drain()
        self._loops.clear()

    def idle(self) -> int:
        """How many connections are idle, those of all event loops included."""
        pools = (self._threads, *self._loops.values())
        return sum(len(pool.idle) for pool in pools)

    def after_fork(self) -> None:
        """Begin anew in the child: the parent's connections are not its own, nor to be closed."""
        for pool in (self._threads, *self._loops.values()):
            self._left.extend(pool.idle)
        self._watch = Watch(self._timeout)
        self._begin()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"the store of {self._where} was closed; open another one")

    def _crowded(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._where}: all {self._most} connections were in use for {self._timeout} seconds; "
            "raise max_connections"
        )

    def _told(self, error: Exception) -> Exception:
        """The error to raise: ours as it is, psycopg's in our words, others as they are."""
        if isinstance(error, Damaged):
            return StoreError(f"{self._where}: a record is damaged; run a check")
        return explain(error, self._where) if isinstance(error, psycopg.Error) else error

    def _give(self, pool: _Pool, connection: Sync | Async, *, sound: bool) -> None:
        """Give a connection back, or close it: in doubt, and with what was begun and not ended."""
        if not sound or connection.pgconn.transaction_status != _IDLE:
            connection.pgconn.finish()
            return
        pool.idle.append(connection)
        if self._closed:
            pool.drain()

    def _loop_pool(self) -> _LoopPool:
        """The running loop's pool; those of loops that ended are closed."""
        loop = asyncio.get_running_loop()
        for ended in [one for one in list(self._loops) if one.is_closed()]:
            pool = self._loops.pop(ended, None)
            if pool is not None:
                pool.drain()
        if (mine := self._loops.get(loop)) is None:
            mine = self._loops[loop] = _LoopPool(self._most)
        return mine

    def _arguments(self) -> dict[str, Any]:
        """Arguments for connecting; what the URL says of these goes before."""
        milliseconds = max(1, round(self._timeout * 1000))
        return {
            "connect_timeout": max(2, round(self._timeout)),  # libpq knows no less
            "tcp_user_timeout": milliseconds,
            "keepalives_idle": max(1, round(self._timeout)),
            "application_name": "stemma",
            **psycopg.conninfo.conninfo_to_dict(self._conninfo),
        }

    def _connect(self) -> Sync:
        try:
            return psycopg.Connection.connect(autocommit=True, **self._arguments())
        except psycopg.Error as error:
            raise explain(error, self._where, connecting=True) from error

    async def _aconnect(self) -> Async:
        try:
            return await psycopg.AsyncConnection.connect(autocommit=True, **self._arguments())
        except psycopg.Error as error:
            raise explain(error, self._where, connecting=True) from error
