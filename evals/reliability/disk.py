"""A disk that tells what it may hold after a loss of power.

`Recorder` is a file system that writes down every change and every sync. `Disk` follows such a
record and builds the files as they may be found when the power went after its last change:

* what was synced is there;
* of what was not synced, any part is: a write whole, not at all, or some of its sectors. Sectors
  stand for themselves, so it is also every order in which a disk may have written them;
* a file's name is there, or gone, for certain only once its directory was synced. SQLite does
  that at the first sync of a new log or journal.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw

from evals.reliability.shim import File, FileSystem

__all__ = ["Change", "Disk", "Recorder"]

SECTOR = 512

_SYNCS_DIRECTORY = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


class Change(NamedTuple):
    """Something that was done to a file.

    Args:
        what: What was done.
        file: The file's number; a name that is taken again names another file.
        name: Its name, where it was made or removed.
        at: Where it was written, or the size to which it was cut.
        data: What was written.
        directory: Whether its directory was synced with it.
    """

    what: Literal["made", "removed", "written", "cut", "synced"]
    file: int
    name: str = ""
    at: int = 0
    data: bytes = b""
    directory: bool = False


class Recorder(FileSystem):
    """A file system that writes down what is done.

    Args:
        name: Under which it is registered.
        others: Files that others than SQLite write and sync.
    """

    def __init__(self, name: str, others: Sequence[Path] = ()) -> None:
        super().__init__(name)
        self.changes: list[Change] = []
        self._others = dict.fromkeys(others, b"")
        self._numbers: dict[str, int] = {}
        self._files = 0

    def xOpen(  # noqa: N802 - SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """A file is opened, and made if it was not there."""
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None:  # a temporary file: nobody looks for it after a loss of power
            return File(name, flags)
        short = Path(path).name
        known = short in self._numbers and Path(path).exists()
        if not known:
            self.look_at_others()
            self._numbers[short] = self._make(short)
        return _Recorded(self, self._numbers[short], name, flags)

    def look_at_others(self) -> None:
        """Write down what became of the files of others."""
        for path, before in self._others.items():
            content = path.read_bytes() if path.exists() else b""
            if content != before:
                number = self._numbers.get(path.name) or self._make(path.name)
                self._numbers[path.name] = number
                self._others[path] = content
                self.changes.append(Change("written", number, data=content))
                self.changes.append(Change("synced", number))

    def _make(self, name: str) -> int:
        self._files += 1
        self.changes.append(Change("made", self._files, name))
        return self._files

    def xDelete(self, path: str, syncdir: bool) -> None:  # noqa: N802
        """A file is removed."""
        super().xDelete(path, syncdir)
        short = Path(path).name
        number = self._numbers.pop(short)
        self.changes.append(Change("removed", number, short, directory=syncdir))


class _Recorded(File):
    def __init__(
        self, recorder: Recorder, number: int, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> None:
        super().__init__(name, flags)
        self._recorder = recorder
        self._changes = recorder.changes
        self._number = number
        self._directory = bool(flags[0] & _SYNCS_DIRECTORY)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._changes.append(Change("written", self._number, at=offset, data=bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._changes.append(Change("cut", self._number, at=newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._recorder.look_at_others()  # before their names are on the disk with this one's
        self._changes.append(Change("synced", self._number, directory=self._directory))
        self._directory = False


class Disk:
    """See the module's text."""

    def __init__(self) -> None:
        self._content: dict[int, bytearray] = {}
        self._pending: dict[int, list[Change]] = {}
        self._names: dict[str, int] = {}
        self._moves: list[Change] = []

    def follow(self, change: Change) -> None:
        """Take the next change."""
        if change.what in ("made", "removed"):
            self._moves.append(change)
        elif change.what == "synced":
            content = self._content.setdefault(change.file, bytearray())
            for one in self._pending.pop(change.file, ()):
                _apply(content, one)
        else:
            self._pending.setdefault(change.file, []).append(change)
        if change.directory:
            for one in self._moves:
                _move(self._names, one)
            self._moves = []

    def without_power(self, lucky: random.Random) -> dict[str, bytes]:
        """The files as they may be found if the power went now."""
        share = lucky.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        torn = lucky.choice((0.0, 0.0, 0.2))
        names = dict(self._names)
        for one in self._moves:
            if lucky.random() < share:
                _move(names, one)
        found = {}
        for name, file in names.items():
            content = bytearray(self._content.get(file, b""))
            for one in self._pending.get(file, ()):
                if lucky.random() < torn:
                    for part in _sectors(one):
                        if lucky.random() < 0.5:
                            _apply(content, part)
                elif lucky.random() < share:
                    _apply(content, one)
            found[name] = bytes(content)
        return found


def _move(names: dict[str, int], change: Change) -> None:
    if change.what == "made":
        names[change.name] = change.file
    elif names.get(change.name) == change.file:
        del names[change.name]


def _apply(content: bytearray, change: Change) -> None:
    if change.what == "cut":
        del content[change.at :]
        return
    if change.at > len(content):
        content.extend(bytes(change.at - len(content)))
    content[change.at : change.at + len(change.data)] = change.data


def _sectors(change: Change) -> list[Change]:
    """The parts of a write that a disk writes as one; a cut is one part."""
    if change.what == "cut":
        return [change]
    parts = []
    start, end = change.at, change.at + len(change.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        data = change.data[start - change.at : stop - change.at]
        parts.append(change._replace(at=start, data=data))
        start = stop
    return parts
