"""A file system that fails: at its n-th call, once or from then on, or for want of room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from evals.reliability.shim import File, FileSystem

__all__ = ["KINDS", "Failing", "Fault"]

_EIO: Mapping[str, int] = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "size": apsw.SQLITE_IOERR_FSTAT,
    "lock": apsw.SQLITE_IOERR_LOCK,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "access": apsw.SQLITE_IOERR_ACCESS,
}

KINDS: Mapping[str, Mapping[str, int]] = {
    "I/O error": _EIO,
    "cannot open": {"open": apsw.SQLITE_CANTOPEN},
    "disk full": {"write": apsw.SQLITE_FULL},
    "short write": {"write": apsw.SQLITE_FULL},  # half of it is written before
}
"""By kind of fault, the calls that it meets and what they answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What goes wrong.

    Args:
        kind: One of `KINDS`.
        at: At which of the calls that it meets, from 1 on.
        stays: Whether it goes wrong from then on, not only once.
    """

    kind: str
    at: int
    stays: bool


class Failing(FileSystem):
    """The default file system, until it is told to fail.

    Args:
        name: Under which it is registered.

    Attributes:
        fault: What goes wrong; `None` for nothing.
        met: How many calls the fault has met or let pass.
        room: Bytes that the files may have together; `None` for no bound.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.room: int | None = None
        self.fault: Fault | None = None
        self.met = 0
        self.sizes: dict[str, int] = {}

    def begin(self, fault: Fault) -> None:
        """Count calls from here on, and fail as told."""
        self.met = 0
        self.fault = fault

    def fails(self, call: str) -> int:
        """What a call must answer; 0 where it may go on."""
        fault = self.fault
        if fault is None or call not in KINDS[fault.kind]:
            return 0
        self.met += 1
        if self.met == fault.at or (fault.stays and self.met > fault.at):
            return KINDS[fault.kind][call]
        return 0

    def meet(self, call: str) -> None:
        """Raise what a call must answer, if it fails."""
        if code := self.fails(call):
            raise _error(code)

    def grow(self, name: str, size: int) -> None:
        """Note that a file becomes this long, if there is room."""
        if self.room is not None and size > self.sizes.get(name, 0):
            others = sum(length for other, length in self.sizes.items() if other != name)
            if others + size > self.room:
                raise _error(apsw.SQLITE_FULL)
        self.sizes[name] = max(size, self.sizes.get(name, 0))

    def xOpen(  # noqa: N802 - SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """A file is opened."""
        self.meet("open")
        return _FailingFile(self, name, flags)

    def xDelete(self, path: str, syncdir: bool) -> None:  # noqa: N802
        """A file is removed."""
        self.meet("delete")
        super().xDelete(path, syncdir)
        self.sizes.pop(Path(path).name, None)

    def xAccess(self, path: str, flags: int) -> bool:  # noqa: N802
        """It is asked whether there is a file."""
        self.meet("access")
        return super().xAccess(path, flags)


class _FailingFile(File):
    def __init__(
        self, system: Failing, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> None:
        super().__init__(name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = "" if path is None else Path(path).name
        self._system = system

    def xRead(self, amount: int, offset: int) -> Any:  # noqa: N802
        self._system.meet("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        if code := self._system.fails("write"):
            if self._system.fault is not None and self._system.fault.kind == "short write":
                super().xWrite(bytes(data)[: len(data) // 2], offset)
            raise _error(code)
        self._system.grow(self._name, offset + len(data))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._system.meet("truncate")
        super().xTruncate(newsize)
        self._system.sizes[self._name] = newsize

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802
        self._system.meet("sync")  # the power stays on: there is nothing to wait for

    def xFileSize(self) -> int:  # noqa: N802
        self._system.meet("size")
        return super().xFileSize()

    def xLock(self, level: int) -> None:  # noqa: N802
        self._system.meet("lock")
        super().xLock(level)


def _error(code: int) -> apsw.Error:
    error = apsw.exception_for(code)
    assert isinstance(error, apsw.Error)
    error.extendedresult = code  # type: ignore[attr-defined]  # where `apsw` looks
    return error
