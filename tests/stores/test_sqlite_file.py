"""The file of the SQLite store: whose it is, who may read it, when it is refused."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stemma.errors import ForeignDatabase, SchemaTooNew, StoreError, StoreUnavailable, UsageError
from stemma.stores.sqlite import SqliteStore
from stemma.stores.sqlite_pool import connect
from stemma.stores.sqlite_schema import VERSION
from stemma.testing.builders import entry, put_one


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def files(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


def other_application(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()


def other_identity(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 7")
    connection.execute("CREATE TABLE entries (id)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(b"hello"),
        lambda path: path.write_bytes(b"\x00" * 4096),
        lambda path: path.write_bytes(b"SQLite format 3\x00"),
        lambda path: path.write_text("x" * 10_000),
        other_application,
        other_identity,
    ],
)
def test_a_file_that_is_not_ours_is_left_as_it_is(path: Path, write):
    """It is refused by name, not one byte changes, and nothing is put beside it."""
    write(path)
    before = (path.read_bytes(), path.stat().st_mtime_ns, files(path))
    with pytest.raises(ForeignDatabase, match=r"cache\.db"):
        SqliteStore(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns, files(path)) == before


def test_a_newer_schema_is_left_as_it_is(path: Path):
    """It is refused, not one byte changes, and the error names both versions."""
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = (path.read_bytes(), files(path))
    with pytest.raises(SchemaTooNew, match=rf"{VERSION + 1}.*{VERSION}"):
        SqliteStore(path)
    assert (path.read_bytes(), files(path)) == before


def test_an_empty_file_becomes_a_store(path: Path):
    """As a temporary file is, or one whose making was interrupted."""
    path.touch()
    store = SqliteStore(path)
    put_one(store, entry("a"))
    store.close()
    again = SqliteStore(path)
    assert [one.id for one in again.find()] == ["a"]
    again.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_only_the_owner_may_read_it(path: Path, umask: int):
    """The file, its log and its shared memory, whatever the umask."""
    former = os.umask(umask)
    try:
        store = SqliteStore(path)
        put_one(store, entry("a"))
    finally:
        os.umask(former)
    assert files(path) == ["cache.db", "cache.db-shm", "cache.db-stemma", "cache.db-wal"]
    for one in path.parent.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600, one.name
    store.close()
    assert files(path) == ["cache.db", "cache.db-stemma"]


def test_a_missing_directory_is_named(tmp_path: Path):
    """The error says what is wrong and what to do; nothing is made."""
    with pytest.raises(StoreUnavailable, match="directory that exists"):
        SqliteStore(tmp_path / "nowhere" / "cache.db")
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path):
    """A directory, and a path through a file, are no places for a store."""
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file" / "cache.db", Path("/proc/stemma-cache.db")):
        with pytest.raises(StoreUnavailable):
            SqliteStore(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(path: Path):
    """A path to something that is not a file is refused at once."""
    os.mkfifo(path)
    with pytest.raises(StoreUnavailable, match="not a file"):
        SqliteStore(path)


@pytest.mark.parametrize("path", ["", ":memory:", "a\x00b"])
def test_a_path_must_name_a_file(path: str):
    """A store that would not be kept is not taken for one that is."""
    with pytest.raises(UsageError):
        SqliteStore(path)


@pytest.mark.parametrize(
    "options", [{"durability": "most"}, {"busy_timeout": -1.0}, {"busy_timeout": float("nan")}]
)
def test_an_option_out_of_its_range_is_named(path: Path, options):
    """And no file is made for it."""
    with pytest.raises(UsageError, match=next(iter(options))):
        SqliteStore(path, **options)
    assert not path.exists()


@pytest.mark.parametrize(("durability", "level"), [("normal", 1), ("full", 2)])
def test_durability_is_what_was_asked_for(path: Path, durability, level: int):
    """Every connection has the level of synchronisation, and the write-ahead log."""
    made = []

    def watched(path: str, timeout: float) -> sqlite3.Connection:
        made.append(connect(path, timeout))
        return made[-1]

    store = SqliteStore(path, durability=durability, connect=watched)
    put_one(store, entry("a"))
    for connection in made:
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_every_connection_is_made_by_the_factory(path: Path, monkeypatch):
    """There is no other way to the file: faults injected there reach everything."""
    made = []

    def watched(path: str, timeout: float) -> sqlite3.Connection:
        made.append((path, timeout))
        return original(path, timeout=timeout, isolation_level=None, check_same_thread=False)

    original = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: pytest.fail("another connection"))
    store = SqliteStore(path, connect=watched, busy_timeout=1.5)
    put_one(store, entry("a"))
    store.check()
    assert set(made) == {(str(path), 1.5)}
    store.close()


def test_a_thread_that_ends_holds_no_connection(path: Path):
    """A hundred threads one after the other need no more connections than one."""
    made = []

    def watched(path: str, timeout: float) -> sqlite3.Connection:
        made.append(path)
        return connect(path, timeout)

    store = SqliteStore(path, connect=watched)
    for number in range(100):
        thread = threading.Thread(target=put_one, args=(store, entry(str(number))))
        thread.start()
        thread.join()
    assert len(made) == 1
    store.close()


def test_reading_leaves_no_transaction_open(path: Path):
    """After any read the write-ahead log can be emptied: nobody pins an old state."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    store.get(["a"])
    store.get(["a", "b"])
    store.find(limit=1)
    store.ancestry("a")
    store.sequence()
    other = sqlite3.connect(path)
    put_one(store, entry("b"))
    busy, *_ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    other.close()
    assert busy == 0
    store.close()


def test_a_writer_that_does_not_end_makes_the_store_unavailable(path: Path):
    """A put gives up after `busy_timeout`; reads go on; afterwards all is well."""
    store = SqliteStore(path, busy_timeout=0.05)
    put_one(store, entry("a"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="busy_timeout"):
        put_one(store, entry("b"))
    assert list(store.get(["a"]).entries) == ["a"]
    other.execute("ROLLBACK")
    other.close()
    put_one(store, entry("b"))
    store.close()


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("disk I/O error"),
        sqlite3.DatabaseError("database disk image is malformed"),
        sqlite3.ProgrammingError("Cannot operate on a closed database."),
    ],
)
def test_no_error_of_sqlite_leaks(path: Path, error: sqlite3.Error):
    """Whatever SQLite raises is raised as one of ours, with the file's name."""
    failing = []

    class Cursor(sqlite3.Cursor):
        def execute(self, *args):
            if failing:
                raise error
            return super().execute(*args)

    class Connection(sqlite3.Connection):
        def cursor(self):
            return super().cursor(Cursor)

    def faulty(path: str, timeout: float) -> sqlite3.Connection:
        return sqlite3.connect(
            path, timeout=timeout, isolation_level=None, check_same_thread=False, factory=Connection
        )

    store = SqliteStore(path, connect=faulty)
    put_one(store, entry("a"))
    failing.append(True)
    uses = (store.sequence, store.find, store.check, lambda: store.get(["a"]))
    more = (lambda: store.put([], 0.0), lambda: store.lineage("a"), lambda: store.ancestry("a"))
    for use in uses + more:
        with pytest.raises(StoreError, match=r"cache\.db"):
            use()
    failing.clear()
    assert list(store.get(["a"]).entries) == ["a"]
    store.close()


def test_a_number_too_large_is_refused_whole(path: Path):
    """The batch it is in is not stored, and the store goes on."""
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="number"):
        put_one(store, entry("a", hop=2**70))
    assert store.find() == ()
    assert store.sequence() == 0
    put_one(store, entry("a"))
    store.close()


FORKING = """
import os, sys
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import entry, put_one
store = SqliteStore(sys.argv[1])
put_one(store, entry("before"))
child = os.fork()
if child == 0:
    put_one(store, entry("child"))
    assert len(store.get(["before", "child"]).entries) == 2
    os._exit(0)
put_one(store, entry("parent"))
_, status = os.waitpid(child, 0)
store.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_connections_of_its_own(path: Path):
    """Parent and child both go on, and neither loses what it was told is stored."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    store = SqliteStore(path)
    assert set(store.get(["before", "child", "parent"]).entries) == {"before", "child", "parent"}
    assert store.check() == ()
    store.close()
