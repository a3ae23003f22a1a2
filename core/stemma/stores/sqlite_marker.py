"""The small file beside a database, by which a damaged one is known to be ours.

A file that is no database any more does not say whose it was. With this marker beside it, it was
ours, and may be set aside; without, it is left alone.

The marker is also the lock under which a database is opened, begun and set aside, so that of many
processes one does it; and it notes what is being set aside, so that one that was killed half way
is followed up by the next.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from stemma.errors import StoreUnavailable
from stemma.files import settle
from stemma.stores.sqlite_schema import ticks

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Marker"]

ENDINGS = ("", "-wal", "-shm")
"""What lies in a database's files, in the order in which they are moved.

The database goes first: who opens its path meanwhile finds nothing, and not a database that has
lost its log.
"""

_WIDTH = 512
_PAUSE = 0.005


@dataclass(frozen=True, kw_only=True, slots=True)
class _Note:
    """What the marker says: where the database's sequence began, and what is being set aside.

    `used` is whether it says anything: if not, it lies beside its first database.
    """

    began: int = 0
    aside: str = ""
    used: bool = False


class Marker:
    """The marker of one database.

    Args:
        database: The database's path.
        patience: Seconds to wait for another process that opens it or sets it aside.
    """

    def __init__(self, database: Path, patience: float) -> None:
        self._database = database
        self._path = Path(f"{database}-stemma")
        self._patience = patience
        self._file = -1

    def present(self) -> bool:
        """Whether there is one."""
        return os.path.isfile(self._path)  # noqa: PTH113 - false, too, where nobody may look

    @contextmanager
    def held(self) -> Iterator[None]:
        """Alone among processes; what was left half done is done first.

        Where no marker can be made, as in a directory that may only be read, nobody is kept out.

        Raises:
            StoreUnavailable: Another process does not come to an end with it.
        """
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            if os.fstat(self._file).st_size == 0:
                self._path.chmod(0o600)  # whatever the umask took away
        except OSError:
            yield
            return
        try:
            self._lock()
            self._finish()
            yield
        finally:
            os.close(self._file)  # which frees the lock
            self._file = -1

    def begin(self, *, anew: bool) -> int:
        """Where a new database's sequence begins: at 0, or beyond all that its predecessor's had.

        Args:
            anew: Whether there is known to have been one before. The marker may know of one, too.
        """
        note = self._read()
        began = max(ticks(), note.began + 1) if anew or note.used else 0
        self._write(replace(note, began=began))
        settle(self._path.parent)  # loss of power leaves no database without it
        return began

    def set_aside(self) -> Path:
        """Move the database away, with its log; gives where it is now. Only while held.

        Raises:
            OSError: It cannot be moved.
        """
        if self._file < 0:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        number = 1
        while (aside := Path(f"{self._database}-damaged-{number}")).exists():
            number += 1
        self._write(replace(self._read(), aside=aside.name))
        self._finish()
        return aside

    def _finish(self) -> None:
        note = self._read()
        if not note.aside:
            return
        aside = self._database.with_name(note.aside)
        for ending in ENDINGS:
            moved = Path(f"{aside}{ending}")
            if not moved.exists():
                with suppress(FileNotFoundError):
                    Path(f"{self._database}{ending}").rename(moved)
        settle(self._database.parent)
        self._write(replace(note, aside=""))

    def _lock(self) -> None:
        until = time.monotonic() + self._patience
        while not self._locked():
            if time.monotonic() >= until:
                raise StoreUnavailable(
                    f"{self._database}: another process has been opening it for "
                    f"{self._patience:g} seconds; wait, or raise busy_timeout"
                )
            time.sleep(_PAUSE)

    def _locked(self) -> bool:
        """Whether this process has the lock now, or there are no locks to be had."""
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                pass  # no locks on this file system
        return True

    def _read(self) -> _Note:
        if self._file < 0:
            return _Note()
        try:
            said = json.loads(os.pread(self._file, _WIDTH, 0))
            note = _Note(began=int(said["began"]), aside=str(said["aside"]), used=True)
        except (OSError, ValueError, KeyError, TypeError):
            return _Note()
        return note if Path(note.aside).name == note.aside else _Note()

    def _write(self, note: _Note) -> None:
        """In one piece, over what was there: the lock is on this very file."""
        if self._file < 0:
            return
        os.pwrite(
            self._file,
            json.dumps({"began": note.began, "aside": note.aside}).ljust(_WIDTH).encode("ascii"),
            0,
        )
        os.fsync(self._file)
