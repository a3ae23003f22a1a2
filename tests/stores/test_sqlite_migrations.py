"""A file of an older schema is brought up to date: all of it or nothing, whenever it is killed."""

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from stemma.errors import SchemaTooNew
from stemma.selector import Selector
from stemma.stores import sqlite_schema
from stemma.stores.protocol import Serving
from stemma.stores.sqlite import SqliteStore
from stemma.stores.sqlite_pool import connect
from stemma.testing.builders import NOW, entry, put_one, source
from stemma.testing.store_holds import quarantine

OLDER = range(1, sqlite_schema.VERSION)
"""The versions that were ever written; of each, one file lies here as statements."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def write_older(path: Path, version: int) -> None:
    """A file as that version's code wrote it: four entries, of which one was taken back."""
    connection = sqlite3.connect(path)
    script = Path(__file__).parent / "schemas" / f"sqlite_{version}.sql"
    connection.executescript(script.read_text(encoding="utf-8"))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def version_of(path: Path) -> int:
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return version


def shape(path: Path) -> dict[str, list[tuple]]:
    """Tables with their columns, and indexes with theirs."""
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name, type FROM sqlite_schema ORDER BY name").fetchall()
    told = {
        name: connection.execute(
            f'PRAGMA {"table" if kind == "table" else "index"}_xinfo("{name}")'
        ).fetchall()
        for name, kind in names
    }
    connection.close()
    return told


def holds_everything(store: SqliteStore) -> None:
    assert [one.id for one in store.find()] == ["c", "b", "a"]
    assert set(store.ancestry("b").entries) == {"a", "b"}
    assert set(store.vectors(["a", "b", "c", "d"])) == {"a", "b", "c"}
    assert [dict(one.selector) for one in store.recalls()] == [{"tag": "gone"}]
    assert [one.verdict for one in store.judgements()] == ["supported"]
    assert store.counts()[0].lookups == 3
    assert store.servings()[0] == Serving("a", "acme", "exact", 1.0, NOW)
    assert [one.held for one in store.find()] == ["", "", ""]
    assert store.quarantines() == ()
    assert store.check() == ()


@pytest.mark.parametrize("version", OLDER)
def test_an_older_file_is_brought_up_to_date(path: Path, version: int):
    """Everything in it is there, it works as a new one, and has the same shape."""
    write_older(path, version)
    store = SqliteStore(path)
    holds_everything(store)
    put_one(store, entry("new"), parents=[entry("a")])
    store.hold(quarantine("q", "b"))
    assert store.get(["b"]).entries["b"].held == "q"
    put_one(store, entry("of another", tenant="x"), sources=[source(owner="tenant:acme")])
    assert [(one.document, one.tenant) for one in store.shared()] == [
        ("doc-1", "acme"),
        ("doc-1", "x"),
    ]
    assert len(store.recall(Selector(source="doc-1"), now=NOW)) == 4
    store.close()
    assert version_of(path) == sqlite_schema.VERSION
    fresh = path.with_name("fresh.db")
    SqliteStore(fresh).close()
    assert shape(path) == shape(fresh)


class Counted(sqlite3.Connection):
    """Kills its process before the n-th statement."""

    left = 0

    def execute(self, *arguments):
        Counted.left -= 1
        if Counted.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(*arguments)


def counted(path: str, timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(
        path, timeout=timeout, isolation_level=None, check_same_thread=False, factory=Counted
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("version", OLDER)
def test_killed_at_any_statement_it_is_old_or_new(tmp_path: Path, version: int):
    """And the next one to open it finds everything."""
    seen = set()
    for number in range(1, 100):
        path = tmp_path / f"{number}.db"
        write_older(path, version)
        child = os.fork()
        if child == 0:
            Counted.left = number
            try:
                SqliteStore(path, connect=counted)
            finally:
                os._exit(7)
        killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7
        seen.add(version_of(path))
        store = SqliteStore(path)
        holds_everything(store)
        store.close()
        if not killed:
            break
    assert seen == {version, sqlite_schema.VERSION}
    assert not killed
    assert number > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("version", OLDER)
def test_one_of_many_processes_does_it(path: Path, version: int):
    """All open it at once, and all find everything."""
    write_older(path, version)
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                holds_everything(SqliteStore(path, busy_timeout=30))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6


def test_who_has_an_older_schema_writes_no_more(path: Path):
    """A newer version has brought the file up to date while this one had it open."""
    store = SqliteStore(path)
    put_one(store, entry("a"))
    newer = connect(str(path), 5.0)
    newer.execute(f"PRAGMA user_version = {sqlite_schema.VERSION + 1}")
    newer.close()
    with pytest.raises(SchemaTooNew):
        put_one(store, entry("b"))
    store.close()
