"""What goes wrong with SQLite, in words of ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from stemma.errors import DamagedDatabase, StoreError, StoreUnavailable
from stemma.stores.text import Damaged

__all__ = ["FAULTS", "explain"]

FAULTS = (sqlite3.Error, UnicodeError, Damaged)
"""What comes of using a connection; a damaged schema or record can be no text at all."""

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
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def explain(error: BaseException, path: Path) -> StoreError:
    """The error of ours for one of `sqlite3`'s."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    words = str(error)
    if code in _UNAVAILABLE:
        return StoreUnavailable(f"{path}: {_UNAVAILABLE[code]} ({words})")
    if code == 0 and isinstance(error, sqlite3.OperationalError):
        return StoreUnavailable(f"{path}: {words}")
    lost = code == sqlite3.SQLITE_ERROR and "no such table" in words
    if isinstance(error, Damaged | UnicodeError) or code in _DAMAGED or lost:
        return DamagedDatabase(f"{path} is damaged ({words or 'a record'})")
    return StoreError(f"{path}: {words}")
