"""Writing so that it is on the disk, and a file whole: after a crash it is the old or the new."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["PART", "settle", "write_whole"]

PART = ".part"
"""How the names end of files that are being written."""


def write_whole(path: Path, parts: Iterable[bytes | bytearray | memoryview]) -> None:
    """Write a file, for its owner only; it is on the disk when this returns.

    Raises:
        OSError: It could not be written; an older one is still there.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PART}")
    try:
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        settle(path.parent)
    except OSError:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def settle(directory: Path) -> None:
    """Force a directory itself to the disk, where the system can: its names, not its files.

    Raises:
        OSError: The system could not.
    """
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
