"""The SQLite store on a file system of ours: `apsw` in the place of the standard library's module.

`apsw` brings a SQLite of its own, whose calls to the file system can be watched and made to fail.
What the store uses of a connection of `sqlite3`'s is made of it here, errors included. Where a
file is also opened by the standard library's SQLite, that must be in another process, or when
this one has closed it: each would free the other's locks.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, cast

import apsw

from stemma.stores.sqlite_pool import Connect

__all__ = ["File", "FileSystem", "connecting"]

_KINDS: dict[type[apsw.Error], type[sqlite3.Error]] = {
    apsw.ConstraintError: sqlite3.IntegrityError,
    apsw.CorruptError: sqlite3.DatabaseError,
    apsw.InternalError: sqlite3.InternalError,
    apsw.MismatchError: sqlite3.IntegrityError,
    apsw.MisuseError: sqlite3.InterfaceError,
    apsw.NotADBError: sqlite3.DatabaseError,
    apsw.TooBigError: sqlite3.DataError,
}


class File(apsw.VFSFile):
    """A file of the default file system, watched."""

    def __init__(self, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__("", cast("str", name), flags)


class FileSystem(apsw.VFS):
    """The default file system, watched; registered under a name until the block ends."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name

    def __enter__(self) -> Self:
        self._hook = sys.unraisablehook
        sys.unraisablehook = self._overlook
        return self

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._hook
        self.unregister()

    def _overlook(self, told: sys.UnraisableHookArgs) -> None:
        """What SQLite passes over (it need not sync, or read ahead) is no news."""
        if not isinstance(told.exc_value, apsw.Error):
            self._hook(told)


def connecting(name: str, *, prepare: Sequence[str] = ()) -> Connect:
    """What opens the store's connections on the file system of this name.

    Args:
        name: Under which it is registered.
        prepare: Statements for each new connection.
    """

    def connect(path: str, timeout: float) -> sqlite3.Connection:
        with _translated():
            connection = apsw.Connection(path, vfs=name, statementcachesize=256)
            connection.set_busy_timeout(round(timeout * 1000))
            for statement in prepare:
                connection.execute(statement)
        return cast("sqlite3.Connection", _Connection(connection))

    return connect


class _Connection:
    """What the store uses of `sqlite3.Connection`."""

    text_factory: Callable[[bytes], str] = str  # which is all that sound files need

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def setlimit(self, category: int, limit: int) -> int:
        return self._connection.limit(category, limit)

    def cursor(self) -> _Cursor:
        return _Cursor(self, self._connection)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> _Cursor:
        return self.cursor().execute(statement, values)

    def close(self) -> None:
        with suppress(apsw.Error):  # as with the standard library, it is closed all the same
            self._connection.close()


class _Cursor:
    """What the store uses of `sqlite3.Cursor`."""

    rowcount = -1

    def __init__(self, connection: _Connection, inner: apsw.Connection) -> None:
        self.connection = connection
        self._inner = inner
        with _translated():
            self._cursor = inner.cursor()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Self:
        return self._run(self._cursor.execute, statement, values)

    def executemany(self, statement: str, values: Iterable[Sequence[Any]]) -> Self:
        return self._run(self._cursor.executemany, statement, values)

    def fetchone(self) -> Any:
        with _translated():
            return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        with _translated():
            return self._cursor.fetchall()

    def close(self) -> None:
        with _translated():
            self._cursor.close(True)  # whatever is still running

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with _translated():
            return next(self._cursor)

    def _run(self, run: Callable[[str, Any], object], statement: str, values: Any) -> Self:
        with _translated():
            before = self._inner.total_changes()
            run(statement, values)
            self.rowcount = self._inner.total_changes() - before
        return self


@contextmanager
def _translated() -> Iterator[None]:
    """Raise `apsw`'s errors as those of `sqlite3`."""
    try:
        yield
    except apsw.Error as error:
        kind = next((k for e, k in _KINDS.items() if isinstance(error, e)), None)
        ours = (sqlite3.OperationalError if kind is None else kind)(str(error))
        ours.sqlite_errorcode = getattr(error, "extendedresult", getattr(error, "result", 0))
        raise ours from error
