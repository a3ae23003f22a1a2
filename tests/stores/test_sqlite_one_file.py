"""One file and who has it open: several stores of a process, other names, other times, a fork."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stemma.errors import DamagedDatabase, ForeignDatabase, StoreUnavailable
from stemma.selector import Selector
from stemma.stores import sqlite_schema
from stemma.stores.sqlite import SqliteStore
from stemma.stores.sqlite_marker import Marker
from stemma.testing.builders import NOW, entry, put, put_one

LOOKING = """
import sys
from stemma.stores.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
print(len(store.find(limit=1000)))
store.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def seen_by_another_process(path: Path) -> int:
    ran = subprocess.run(
        [sys.executable, "-c", LOOKING, str(path)], check=True, capture_output=True, timeout=60
    )
    return int(ran.stdout)


def test_a_second_store_of_a_process_frees_no_locks(path: Path):
    """A system frees a process's locks on a file with the first handle on it that is closed."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    SqliteStore(path).close()
    assert seen_by_another_process(path) == 1
    assert Path(f"{path}-wal").exists()  # else the other one took itself for the only one
    put_one(store, entry("b"))
    assert seen_by_another_process(path) == 2
    store.recall(Selector(entry="a"), now=NOW)
    assert seen_by_another_process(path) == 1
    assert store.check() == ()
    store.close()


@pytest.mark.parametrize("when", ["it waits for its turn", "it writes"])
def test_what_is_written_to_a_file_that_has_gone_is_not_acknowledged(path: Path, when: str):
    """Nobody would read it: the recall must be said again, to the file that is there now."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    connections = store._connections
    real, moved = connections._refuse_moved, []

    def move(cursor):
        if not moved and (
            when == "it waits for its turn" or cursor.connection.in_transaction is False
        ):
            moved.append(True)
            path.rename(path.with_name("gone.db"))
            put_one(SqliteStore(path), entry("a", "anew"))
        return real(cursor)

    connections._refuse_moved = move
    with pytest.raises(StoreUnavailable, match="try again"):
        store.recall(Selector(entry="a"), now=NOW)
    assert store.get(["a"]).entries["a"].value == "anew"
    assert len(store.recall(Selector(entry="a"), now=NOW)) == 1
    store.close()


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 3600.0])
def test_a_successor_s_numbers_lie_beyond_whatever_the_clock_says(path: Path, monkeypatch, ahead):
    """Nothing that was asked of the one before is stored in it."""
    store = SqliteStore(path)
    for _ in range(2):  # the first begins at 0, the second by the clock
        since = put_one(store, entry("a")).sequence
        path.unlink()
        now = sqlite_schema.time.time() + ahead
        monkeypatch.setattr(sqlite_schema.time, "time", lambda at=now: at)
        assert store.put([put(entry("late"), since=since)], NOW)[0].refused == "recalled"
        assert store.sequence() > since
    store.close()


def test_one_file_by_two_names_has_one_marker(path: Path):
    """What one of them sets aside is gone for the other."""
    link = path.with_name("link.db")
    link.symlink_to(path)
    one, other = SqliteStore(path), SqliteStore(link)
    put_one(one, entry("a"))
    noise = path.with_name("noise")
    noise.write_bytes(b"noise" * 5000)
    noise.replace(path)
    with pytest.raises(DamagedDatabase, match="set aside"):
        other.find()
    put_one(other, entry("b"))
    assert [each.id for each in one.find()] == ["b"]
    assert not Path(f"{link}-stemma").exists()
    one.close()
    other.close()


@pytest.mark.parametrize("content", [b"a note of mine", b"{}", b"\xff\xfe"])
def test_somebody_s_file_by_the_marker_s_name_is_no_marker(path: Path, content: bytes):
    """It is not written to, and nothing beside it is taken for ours."""
    theirs = Path(f"{path}-stemma")
    theirs.write_bytes(content)
    path.write_text("mine")
    with pytest.raises(ForeignDatabase):
        SqliteStore(path)
    assert (path.read_text(), theirs.read_bytes()) == ("mine", content)
    path.unlink()
    store = SqliteStore(path)
    put_one(store, entry("a"))
    store.close()
    assert theirs.read_bytes() == content


@pytest.mark.parametrize("said", ["1e400", str(10**30), "-1"])
def test_a_marker_that_says_nonsense_is_none(path: Path, said: str):
    """No number of it is believed."""
    SqliteStore(path).close()
    marker = Path(f"{path}-stemma")
    marker.write_text(marker.read_text().replace('"began": 0', f'"began": {said}'))
    store = SqliteStore(path)
    put_one(store, entry("a"))
    assert store.sequence() == 1
    store.close()


def test_a_file_that_could_not_be_set_aside_is_not_moved_later(path: Path, monkeypatch):
    """Another one may stand in its place by then."""
    SqliteStore(path).close()
    good = path.read_bytes()
    path.write_bytes(b"noise" * 5000)

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refused)
        for _ in range(2):
            with pytest.raises(DamagedDatabase, match="cannot be set aside"):
                SqliteStore(path)
    path.write_bytes(good)
    SqliteStore(path).close()
    assert not path.with_name("cache.db-damaged-1").exists()


def test_a_file_that_lost_its_tables_is_begun_anew(path: Path):
    """As one that is emptied while no connection to it is open."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    store._connections._pool.drain()
    path.write_bytes(b"")
    with pytest.raises(DamagedDatabase, match="set aside"):
        store.get(["a"])
    assert store.find() == ()
    put_one(store, entry("b"))
    store.close()


def test_what_cannot_be_opened_is_not_tried_at_every_call(path: Path, monkeypatch):
    """A process that hangs while it opens the file costs one call a moment, not every one."""
    store = SqliteStore(path, busy_timeout=0.02)
    put_one(store, entry("a"))
    other = Marker(path, 1.0)
    tried = []
    begin = store._connections._begin
    monkeypatch.setattr(
        store._connections, "_begin", lambda *said: tried.append(said) or begin(*said)
    )
    with other.held():
        path.unlink()
        for _ in range(5):
            with pytest.raises(StoreUnavailable, match="another process"):
                store.get(["a"])
    assert len(tried) == 1
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_is_forked_while_a_file_is_opened_keeps_no_lock(tmp_path: Path):
    """Else nobody could open that file as long as the child lives."""
    ended = threading.Event()
    opened = []

    def open_many() -> None:
        while not ended.is_set():
            place = tmp_path / f"{len(opened)}.db"
            SqliteStore(place).close()
            opened.append(place)

    thread = threading.Thread(target=open_many)
    thread.start()
    ready, end = os.pipe()
    children = []
    for _ in range(10):
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(ready, 1)
            os._exit(0)
        children.append(child)
    ended.set()
    thread.join()
    for place in opened:
        SqliteStore(place, busy_timeout=0).close()
    os.close(end)
    os.close(ready)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 10
    assert opened
