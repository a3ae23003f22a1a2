"""Making sure that what was done to files is on the disk."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["settle"]


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
