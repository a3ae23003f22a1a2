"""A saved graph spares its making, and a file that is not what was written is as good as none."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from evals.speed.vectors import clustered, noisy

from stemma.files import PART, write_whole
from stemma.indexes import graph_files
from stemma.indexes.exact import ExactIndex
from stemma.indexes.graph import GraphIndex
from stemma.indexes.graph_files import GraphFiles
from stemma.indexes.hnsw import Graph
from stemma.testing.indexes import ChangeLog

POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and modes here")
COUNT = 1_000


@pytest.fixture
def log():
    made = ChangeLog()
    for number, row in enumerate(clustered(np.random.default_rng(1), COUNT)):
        made.put(f"{number:06}", row)
    return made


@pytest.fixture
def asked(log):
    stored = [vector for _, _, vector in log.entries.values()]
    return noisy(np.random.default_rng(2), np.stack(stored[:200:9]).astype(np.float32), 0.4)


@pytest.fixture
def grown(monkeypatch):
    """How many points were added, each time a graph grew."""
    counts = []
    grow = Graph.grow

    def counted(made, digests, pieces, step):
        counts.append(len(digests))
        grow(made, digests, pieces, step)

    monkeypatch.setattr(Graph, "grow", counted)
    return counts


def opened(folder, log, asked):
    """An index whose graph is there, and what it finds."""
    index = GraphIndex(beyond=500, large=100, folder=folder)
    index.nearest(log.store, "g", asked[0], 1)
    assert index.ready(60)
    found = [index.nearest(log.store, "g", vector, 8, 0.75) for vector in asked]
    exact = ExactIndex()
    for vector, near in zip(asked, found, strict=True):
        expected = exact.nearest(log.store, "g", vector, 8, 0.75)
        ids = [one.id for one in expected]
        assert [one.id for one in near] == ids
    return index, found


def test_what_was_saved_is_what_is_loaded(tmp_path, log, asked, grown):
    """The same answers, and nothing is made again."""
    _, first = opened(tmp_path / "graphs", log, asked)
    _, second = opened(tmp_path / "graphs", log, asked)
    assert second == first
    assert grown == [COUNT]


def test_what_came_and_went_since_is_followed(tmp_path, log, asked, grown):
    """Only what the graph lacks is added; what is gone is not found."""
    folder = tmp_path / "graphs"
    index, _ = opened(folder, log, asked)
    for number, row in enumerate(clustered(np.random.default_rng(3), 50)):
        log.put(f"new{number}", row)
    for near in {index.nearest(log.store, "g", vector, 1)[0].id for vector in asked[:5]}:
        log.remove(near)
    log.put("000900", asked[6])
    opened(folder, log, asked)
    opened(folder, log, asked)
    assert grown == [COUNT, 51]


def test_a_stale_file_of_another_store_is_made_anew(tmp_path, log, asked, grown):
    """A group of the same name with other vectors: nothing in the file is of use."""
    other = ChangeLog()
    for number, row in enumerate(clustered(np.random.default_rng(9), COUNT)):
        other.put(f"{number:06}", row)
    opened(tmp_path, other, noisy(np.random.default_rng(4), other_rows(other)[:3], 0.4))
    opened(tmp_path, log, asked)
    opened(tmp_path, log, asked)
    assert grown == [COUNT, COUNT]


def other_rows(log):
    return np.stack([vector for _, _, vector in log.entries.values()]).astype(np.float32)


@POSIX
def test_only_the_owner_may_read_it(tmp_path, log, asked):
    """The folder and the file, whatever the umask."""
    old = os.umask(0)
    try:
        opened(tmp_path / "graphs", log, asked)
    finally:
        os.umask(old)
    (file,) = (tmp_path / "graphs").iterdir()
    assert stat.S_IMODE((tmp_path / "graphs").stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def signed(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def header(data: bytes, **changed) -> bytes:
    """The file with another number in its header and a checksum that agrees."""
    names = ("magic", "version", "dimensions", "points", "native")
    fields = dict(zip(names, graph_files._HEADER.unpack_from(data), strict=True))
    packed = graph_files._HEADER.pack(*(fields | changed).values())
    return signed(packed + data[graph_files._HEADER.size : -32])


BAD = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-1],
    "half": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"\0",
    "flipped": lambda data: data[:-9_000] + bytes([data[-9_000] ^ 1]) + data[-8_999:],
    "header alone": lambda data: data[: graph_files._HEADER.size],
    "another form": lambda data: header(data, magic=b"StemmaG\x02"),
    "another library": lambda data: header(data, version=b"2.0.0"),
    "other vectors": lambda data: header(data, dimensions=256),
    "more points": lambda data: header(data, points=COUNT + 1),
    "less of the graph": lambda data: header(data, native=0),
    "signed, too short": lambda data: signed(b""),
}


@pytest.fixture
def given(monkeypatch):
    """What the library was given to read, for each graph."""
    seen = []
    made = Graph.__init__

    def watched(self, centre, digests=None, data=None):
        seen.append(data)
        made(self, centre, digests, data)

    monkeypatch.setattr(Graph, "__init__", watched)
    return seen


@pytest.mark.parametrize("damage", BAD)
def test_the_library_never_sees_a_file_that_is_not_whole(tmp_path, log, asked, given, damage):
    """The graph is made from the table, and the file is whole again."""
    opened(tmp_path, log, asked)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(BAD[damage](whole))
    given.clear()
    opened(tmp_path, log, asked)
    assert given == [None]
    assert len(file.read_bytes()) == len(whole)
    opened(tmp_path, log, asked)
    assert len(given) == 2
    assert given[1] is not None


@POSIX
def test_a_file_that_others_may_write_is_not_read(tmp_path, log, asked, grown, caplog):
    """Its checksum is no defence against them. Nor is anything that is no file."""
    opened(tmp_path, log, asked)
    (file,) = tmp_path.iterdir()
    file.chmod(0o620)
    opened(tmp_path, log, asked)
    assert "others may write it" in caplog.text
    target = file.rename(tmp_path / "elsewhere")
    file.symlink_to(target)
    opened(tmp_path, log, asked)
    assert grown == [COUNT] * 3
    assert not file.is_symlink()


def test_a_file_far_too_large_is_not_read(tmp_path, log, asked, monkeypatch, caplog):
    """Not a byte of it: it might be larger than the memory."""
    opened(tmp_path, log, asked)
    (file,) = tmp_path.iterdir()
    with file.open("r+b") as sparse:
        sparse.truncate(1 << 40)
    opened(tmp_path, log, asked)
    assert f"{1 << 40} bytes" in caplog.text
    assert file.stat().st_size < 1 << 20


def test_a_graph_that_cannot_be_saved_serves_all_the_same(tmp_path, log, asked, caplog):
    """The folder's place is taken."""
    (tmp_path / "taken").write_text("")
    index, _ = opened(tmp_path / "taken", log, asked)
    assert "could not be saved" in caplog.text
    assert index._groups["g"].placed is not None


STEPS = ("os.open", "os.fsync", "pathlib.Path.replace", "stemma.files.settle")
KILLED = """
import os, sys
from importlib import import_module
from pathlib import Path
from stemma import files

room, _, name = sys.argv[2].rpartition(".")
owner = Path if room == "pathlib.Path" else import_module(room)
real = getattr(owner, name)

def killed(*args):
    if sys.argv[3] == "after":
        real(*args)
    os.kill(os.getpid(), 9)

setattr(owner, name, killed)
files.write_whole(Path(sys.argv[1]), [b"new" * 1000, b"!"])
"""


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_process_killed_while_it_saves_leaves_the_old_file_or_the_new_one(tmp_path, step, when):
    """At every step of it."""
    path = tmp_path / "a.graph"
    path.write_bytes(b"old")
    ran = subprocess.run([sys.executable, "-c", KILLED, path, step, when], check=False)
    assert ran.returncode == -signal.SIGKILL
    late = STEPS.index(step) + (when == "after") > STEPS.index("pathlib.Path.replace")
    assert path.read_bytes() == (b"new" * 1000 + b"!" if late else b"old")


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    """Where the disk is full, the old one stays and nothing is left beside it."""
    path = tmp_path / "a.graph"
    write_whole(path, [b"old"])

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, [b"new"])
    assert [one.name for one in tmp_path.iterdir()] == ["a.graph"]
    assert path.read_bytes() == b"old"


def test_what_was_never_finished_is_swept_away(tmp_path, log, asked):
    """An hour later, when another graph is saved; what is being written now stays."""
    for name, age in (("old", 7_200), ("now", 0)):
        left = tmp_path / f".{name}{PART}"
        left.write_bytes(b"half")
        os.utime(left, (time.time() - age,) * 2)
    GraphFiles(tmp_path).save("g", Graph(np.zeros(384, dtype=np.float32)))
    assert {one.name for one in tmp_path.iterdir() if one.suffix == PART} == {f".now{PART}"}
