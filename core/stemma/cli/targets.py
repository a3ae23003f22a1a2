"""The files that a command writes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from stemma.errors import MissingDependency, StemmaError, UsageError

__all__ = ["see_to", "see_to_figures", "write"]


def see_to(*paths: Path) -> None:
    """Before long work: that its results can be written.

    Raises:
        UsageError: A file would lie in no folder, is one itself, or cannot be called so.
    """
    for path in paths:
        try:
            folder, taken = path.parent.is_dir(), path.is_dir()
        except OSError as error:  # a name too long
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        if not folder:
            raise UsageError(f"cannot write {path}: there is no folder {path.parent}")
        if taken:
            raise UsageError(f"cannot write {path}: it is a folder")


def see_to_figures(option: str) -> None:
    """Before long work: that a figure can be drawn.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise MissingDependency(f"{option} needs matplotlib: pip install matplotlib")


def write(path: Path, content: str | bytes) -> None:
    """Write a file; a text as UTF-8.

    Raises:
        StemmaError: The system would not.
    """
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise StemmaError(f"cannot write {path}: {error.strerror}") from error
