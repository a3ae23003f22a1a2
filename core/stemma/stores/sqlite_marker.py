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
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from stemma.errors import StoreUnavailable
from stemma.files import settle
from stemma.stores.sqlite_schema import ticks

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["NOTHING", "Identity", "Marker", "identity"]

Identity = tuple[int, int]
"""Device and inode of a file."""

NOTHING: Identity = (-1, -1)
"""Of no file."""

ENDINGS = ("-wal", "-shm")
"""What lies beside a database. It is moved after it: who opens the path meanwhile finds nothing,
and not a database that has lost its log."""

_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

_WIDTH = 8192  # a path may have 4,096 bytes, which JSON may write twice as long
_PAUSE = 0.005
_MOST = 2**62
_ASIDE = re.compile(r"[^/\\\0]{1,255}-damaged-[0-9]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Note:
    """What the marker says.

    Args:
        began: Where the database's sequence began.
        aside: The name under which it is being set aside; empty, if it is not.
        moving: Device and inode of what is being set aside.
        at: Where the database was when it was opened last: a copy of the marker says nothing of
            the files beside it.
        file: Device and inode of the database then …
        log: … and of its log.
        used: Whether it says anything: if not, it lies beside its first database.
    """

    began: int = 0
    aside: str = ""
    moving: Identity = NOTHING
    at: str = ""
    file: Identity = NOTHING
    log: Identity = NOTHING
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
        self._began = 0

    def present(self) -> bool:
        """Whether there is one, and not a file of somebody else's by that name."""
        try:
            file = os.open(self._path, os.O_RDONLY | _PLAIN)
        except OSError:
            return False
        try:
            return _note(file) is not None
        except OSError:
            return False
        finally:
            os.close(file)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Alone among processes; what was left half done is done first.

        Where no marker can be made, as in a directory that may only be read, nobody is kept out.

        Raises:
            StoreUnavailable: Another process does not come to an end with it.
        """
        try:
            self._file = self._open()
        except OSError:
            yield
            return
        try:
            self._lock()
            try:
                self._make()
                self._finish()
                self._leave_no_log_of_another()
            except OSError as error:
                raise StoreUnavailable(
                    f"{self._database}: what lies beside it cannot be moved or removed "
                    f"({error.strerror}); check the permissions of its directory"
                ) from error
            yield
        finally:
            os.close(self._file)  # which frees the lock
            self._file = -1

    def _open(self) -> int:
        """The marker's file, made if there is none.

        Raises:
            OSError: It cannot be opened, or is somebody else's.
        """
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o600)
        try:
            if os.fstat(file).st_size == 0:
                self._path.chmod(0o600)  # whatever the umask took away
            if _note(file) is None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        except OSError:
            os.close(file)
            raise
        return file

    def _make(self) -> None:
        """Write a new marker, so that loss of power leaves no database without it."""
        if os.fstat(self._file).st_size == 0:
            os.pwrite(self._file, b" " * _WIDTH, 0)
            os.fsync(self._file)
            settle(self._path.parent)

    def begin(self, reached: int) -> int:
        """Where a new database's sequence begins: at 0, or beyond all that its predecessor's had.

        Args:
            reached: What the predecessor's sequence is known to have reached; 0 where none is
                known. The marker may know of one, too.
        """
        note = self._read()
        self._began = max(ticks(), note.began + 1, reached + 1) if reached or note.used else 0
        return self._began

    def opened(self) -> None:
        """Note which files are open now. Only while held."""
        note = self._read()
        now = replace(
            note,
            began=max(note.began, self._began),
            at=str(self._database),
            file=identity(self._database),
            log=identity(self._log),
            used=True,
        )
        if now != note:
            self._write(now)

    @property
    def _log(self) -> Path:
        return Path(f"{self._database}-wal")

    def _leave_no_log_of_another(self) -> None:
        """Remove the log of a database in whose place another file came: it is not that one's."""
        note = self._read()
        stale = note.log != NOTHING and note.log == identity(self._log)
        here = note.at == str(self._database)
        if here and stale and note.file != identity(self._database):
            for ending in ENDINGS:
                Path(f"{self._database}{ending}").unlink(missing_ok=True)
            settle(self._path.parent)

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
        note = self._read()
        self._write(replace(note, aside=aside.name, moving=identity(self._database)))
        try:
            self._finish()
        except OSError:
            self._write(note)
            raise
        return aside

    def _finish(self) -> None:
        note = self._read()
        if not note.aside:
            return
        aside = self._database.with_name(note.aside)
        if identity(self._database) == note.moving and not aside.exists():
            self._database.rename(aside)
        if identity(aside) == note.moving:
            for ending in ENDINGS:
                moved = Path(f"{aside}{ending}")
                if not moved.exists():
                    with suppress(FileNotFoundError):
                        Path(f"{self._database}{ending}").rename(moved)
        settle(self._database.parent)
        self._write(replace(note, aside="", moving=NOTHING))

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
        try:
            note = _note(self._file) if self._file >= 0 else None
        except OSError:
            note = None
        return _Note() if note is None else note

    def _write(self, note: _Note) -> None:
        """In one piece, over what was there: the lock is on this very file."""
        if self._file < 0:
            return
        os.pwrite(
            self._file,
            json.dumps({name: said for name, said in asdict(note).items() if name != "used"})
            .ljust(_WIDTH)
            .encode(),
            0,
        )
        os.fsync(self._file)


def identity(path: Path) -> Identity:
    """Device and inode of what is at a path."""
    try:
        found = path.stat()
    except OSError:
        return NOTHING
    return (found.st_dev, found.st_ino)


def _note(file: int) -> _Note | None:
    """What a marker's file says; `None` where it is something else, or damaged.

    Raises:
        OSError: It cannot be read.
    """
    data = os.pread(file, _WIDTH, 0)
    if not data.strip():
        return _Note()
    try:
        said = json.loads(data)
        note = _Note(
            began=int(said["began"]),
            aside=str(said["aside"]),
            moving=_identity(said["moving"]),
            at=str(said["at"]),
            file=_identity(said["file"]),
            log=_identity(said["log"]),
            used=True,
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    plain = not note.aside or _ASIDE.fullmatch(note.aside)
    return note if plain and 0 <= note.began < _MOST else None


def _identity(said: list[int]) -> Identity:
    device, inode = said
    return (int(device), int(inode))
