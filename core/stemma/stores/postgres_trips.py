"""One trip to a PostgreSQL server: statements out together, replies in, within a time.

A server that is frozen, or a network that swallows everything, would hold a caller for ever: the
statement timeout is the server's to keep. So trips under way are watched, and one that takes too
long has its socket shut; whoever waits on it wakes with an error. A task that is cancelled shuts
the socket at once, and does not wait for the server to agree.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from stemma.errors import StoreUnavailable
from stemma.stores.postgres_steps import Rows, Say

import psycopg  # isort: skip - whoever imports this has imported the module that says how to get it

__all__ = ["Async", "Sync", "Watch", "atrip", "trip"]

Sync = psycopg.Connection[Any]
Async = psycopg.AsyncConnection[Any]

_GRACE = 1.0
"""How much longer than the server's own limit a trip may take, seconds."""


class Watch:
    """Shuts the sockets of trips that take too long.

    Args:
        timeout: How long a trip may take, seconds; a second more is given for the way.
    """

    def __init__(self, timeout: float) -> None:
        self.limit = timeout + _GRACE
        self._lock = threading.Lock()
        self._under_way: dict[int, float] = {}
        self._cut: set[int] = set()
        self._thread: threading.Thread | None = None

    def begin(self, connection: Sync | Async) -> int:
        """Watch a trip; gives its socket."""
        number = connection.pgconn.socket
        with self._lock:
            self._under_way[number] = time.monotonic() + self.limit
            if self._thread is None:
                self._thread = threading.Thread(
                    target=_look, args=(weakref.ref(self),), name="stemma-postgres", daemon=True
                )
                self._thread.start()
        return number

    def end(self, number: int) -> bool:
        """The trip is over; gives whether it was cut short. Must come before its socket closes."""
        with self._lock:
            self._under_way.pop(number, None)
            late = number in self._cut
            self._cut.discard(number)
        return late

    def look(self) -> bool:
        """Cut what takes too long; gives whether there is anything to watch."""
        with self._lock:
            now = time.monotonic()
            for number, ends in list(self._under_way.items()):
                if ends < now:
                    del self._under_way[number]
                    self._cut.add(number)
                    _shut(number)
            if not self._under_way:
                self._thread = None
            return self._thread is not None


def trip(connection: Sync, says: Sequence[Say], watch: Watch | None) -> list[Rows]:
    """Send statements together, and give the rows of each.

    Raises:
        StoreUnavailable: It took too long.
        psycopg.Error: Something else went wrong.
    """
    number = None if watch is None else watch.begin(connection)
    try:
        replies = _exchange(connection, says)
    except psycopg.Error as error:
        if watch is not None and number is not None and watch.end(number):
            raise _late(watch) from error
        raise
    finally:
        if watch is not None and number is not None:
            watch.end(number)
    return replies


async def atrip(connection: Async, says: Sequence[Say], watch: Watch | None) -> list[Rows]:
    """Send statements together, and give the rows of each. Closes the connection if cancelled.

    Raises:
        StoreUnavailable: It took too long.
        psycopg.Error: Something else went wrong.
    """
    exchange = asyncio.ensure_future(_aexchange(connection, says))
    try:
        async with asyncio.timeout(None if watch is None else watch.limit):
            return await asyncio.shield(exchange)
    except TimeoutError as error:
        if watch is None:
            raise
        raise _late(watch) from error
    finally:
        if not exchange.done():
            _shut(connection.pgconn.socket)
            await _over(exchange)


async def _over(exchange: asyncio.Future[list[Rows]]) -> None:
    """Wait until a trip whose socket was shut has noticed, however often we are cancelled."""
    while not exchange.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([exchange])
    if not exchange.cancelled():
        exchange.exception()  # it has one, and nobody waits for it


def _exchange(connection: Sync, says: Sequence[Say]) -> list[Rows]:
    cursors = []
    with connection.pipeline():
        for say in says:
            cursor = connection.cursor(binary=True)
            cursor.execute(say.text.encode(), say.values)
            cursors.append(cursor)
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


async def _aexchange(connection: Async, says: Sequence[Say]) -> list[Rows]:
    cursors = []
    async with connection.pipeline():
        for say in says:
            cursor = connection.cursor(binary=True)
            await cursor.execute(say.text.encode(), say.values)
            cursors.append(cursor)
    return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _late(watch: Watch) -> StoreUnavailable:
    return StoreUnavailable(
        f"the server gave no answer in {watch.limit:g} seconds; the connection was dropped"
    )


def _shut(number: int) -> None:
    """Shut a socket for both directions, without closing it."""
    with suppress(OSError), socket.socket(fileno=os.dup(number)) as copy:
        copy.shutdown(socket.SHUT_RDWR)


def _look(watching: weakref.ref[Watch]) -> None:
    """Watch until there is nothing to watch any more."""
    while (watch := watching()) is not None and watch.look():
        pause = min(0.25, watch.limit / 8)
        del watch
        time.sleep(pause)
