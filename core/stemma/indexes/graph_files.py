"""Graphs in files: what is read back is what was written, or nothing.

A damaged file would end the process or lie, because the library that reads it believes every
number. So a file ends with a SHA-256 of all before it, and is read once: the bytes that were
checked are those that the library is given. A file that is not whole, of another version, or not
its owner's alone to write, is as good as none.

The checksum finds damage. It is no defence against somebody who may write to the folder.
"""

from __future__ import annotations

import logging
import os
import stat
import struct
import time
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path

import numpy as np

from stemma.files import PART, write_whole
from stemma.indexes.hnsw import Graph, library

__all__ = ["GraphFiles"]

_log = logging.getLogger("stemma")

_MAGIC = b"StemmaG\x01"
"""What it is, and in which form."""

_HEADER = struct.Struct("<8s24sIQQ")
"""Magic, the library's version, dimensions, points, bytes of the library."""

_SUM = sha256().digest_size

_MOST = 4_096
"""Bytes of a point, at most, at one thousand dimensions: a larger file is not even read."""

_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""No link is followed, and no pipe waited for."""

_STALE = 3_600.0
"""Seconds after which a file that was never finished is taken for abandoned."""


class GraphFiles:
    """The saved graphs of one index, one a group.

    Args:
        folder: Where they lie; made, for its owner only, when the first is saved.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).absolute()

    def path(self, group: str) -> Path:
        """Where a group's graph is, if it was saved."""
        name = blake2b(group.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return self._folder / f"{name}.graph"

    def load(self, group: str, dimensions: int, rows: int) -> Graph | None:
        """The graph saved for a group of so many rows, if there is one that can be trusted."""
        path = self.path(group)
        try:
            data = _read(path, most=(rows + 1_024) * (_MOST + dimensions))
            return None if data is None else _graph(data, dimensions)
        except Exception as error:
            _log.warning("the saved graph %s is not used and made anew: %s", path, error)
            return None

    def save(self, group: str, graph: Graph) -> None:
        """Save a group's graph: whoever reads meanwhile reads the old one or this one.

        Raises:
            OSError: It cannot be written; the old one is still there.
        """
        path = self.path(group)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep()
        parts = _parts(graph)
        sum_ = sha256()
        for part in parts:
            sum_.update(part)
        write_whole(path, [*parts, sum_.digest()])

    def _sweep(self) -> None:
        """Remove what processes left that were killed while they saved."""
        for left in self._folder.glob(f".*{PART}"):
            with suppress(OSError):
                if left.stat().st_mtime < time.time() - _STALE:
                    left.unlink()


def _parts(graph: Graph) -> tuple[bytes | memoryview, ...]:
    native = graph.saved()
    header = _HEADER.pack(_MAGIC, _version(), len(graph.centre), len(graph), len(native))
    centre = graph.centre.astype("<f4").tobytes()
    return header, centre, graph.digests.astype("<u8").tobytes(), memoryview(native)


def _version() -> bytes:
    return library().encode("ascii")[:24]


def _read(path: Path, most: int) -> bytes | None:
    """A file's bytes, `None` where there is no file.

    Raises:
        ValueError: It is too large, or others than its owner may write it.
        OSError: It cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _PLAIN)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most:
            raise ValueError(f"it is no file, or one of {about.st_size} bytes")
        if hasattr(os, "geteuid") and (about.st_uid != os.geteuid() or about.st_mode & 0o022):
            raise ValueError("others may write it")
        return file.read(most + 1)


def _graph(data: bytes, dimensions: int) -> Graph:
    """The graph in a file's bytes.

    Raises:
        ValueError: They are not those that were written, or are for something else.
    """
    body = _verified(data)
    magic, version, wide, points, native = _HEADER.unpack_from(body)
    if (magic, version.rstrip(b"\0"), wide) != (_MAGIC, _version(), dimensions):
        raise ValueError("it is of another version, or of other vectors")
    digests = _HEADER.size + 4 * wide
    start = digests + 8 * points
    if len(body) != start + native:
        raise ValueError("its parts have other lengths than its header says")
    return Graph(
        np.frombuffer(body, dtype="<f4", count=wide, offset=_HEADER.size).astype(np.float32),
        np.frombuffer(body, dtype="<u8", count=points, offset=digests).astype(np.uint64),
        body[start:],
    )


def _verified(data: bytes) -> memoryview:
    """What the checksum at the end vouches for.

    Raises:
        ValueError: It does not.
    """
    body = memoryview(data)[:-_SUM]
    if len(body) < _HEADER.size or sha256(body).digest() != data[-_SUM:]:
        raise ValueError("its checksum is wrong: it is damaged or was cut")
    return body
