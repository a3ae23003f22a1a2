"""A file that is damaged as a whole, removed or replaced: what becomes of it, and of who has it."""

import json
import os
import sqlite3
import warnings
from pathlib import Path

import pytest

import stemma
from stemma.errors import DamagedDatabase, ForeignDatabase, StoreError
from stemma.indexes.exact import ExactIndex
from stemma.selector import Selector
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, put, put_one, vector


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


@pytest.fixture
def filled(path: Path) -> bytes:
    """The bytes of a file with fifty entries, which is there and closed."""
    with_fifty(path).close()
    return path.read_bytes()


def with_fifty(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    for number in range(50):
        put_one(store, entry(f"e{number}", focus="f" * 200), vector=vector(1, number))
    return store


def files(path: Path) -> list[str]:
    return sorted(one.name.removeprefix(path.name) for one in path.parent.iterdir())


def flipped(data: bytes, *places: int) -> bytes:
    changed = bytearray(data)
    for place in places:
        changed[place] ^= 0xFF
    return bytes(changed)


DAMAGE = {
    "no database": lambda data: b"hello" * 1000,
    "zeros": lambda data: bytes(len(data)),
    "a header that is cut off": lambda data: data[:50],
    "a first page that is cut off": lambda data: data[:2000],
    "magic": lambda data: flipped(data, 3),
    "our identity": lambda data: flipped(data, 68),
    "a version that never was": lambda data: data[:60] + b"\xff\xff\xff\xf0" + data[64:],
    "no version": lambda data: data[:60] + bytes(4) + data[64:],
    "the schema": lambda data: flipped(data, 100, 101, 103, 104),
    "schema that is no text": lambda data: data.replace(b"CREATE TABLE meta", b"\xff" * 17),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_set_aside_at_opening(path: Path, filled: bytes, kind: str):
    """One warning names where it is now, not one of its bytes is lost, and the store works."""
    damaged = DAMAGE[kind](filled)
    path.write_bytes(damaged)
    with pytest.warns(UserWarning, match=r"set aside as cache\.db-damaged-1") as told:
        store = SqliteStore(path)
    assert len(told) == 1
    assert path.with_name("cache.db-damaged-1").read_bytes() == damaged
    assert store.find() == ()
    put_one(store, entry("new"))
    store.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = SqliteStore(path)
    assert [one.id for one in again.find()] == ["new"]
    again.close()


@pytest.mark.parametrize("kind", ["no database", "zeros", "a header that is cut off", "magic"])
def test_without_the_marker_it_is_left_as_it_is(path: Path, filled: bytes, kind: str):
    """Nobody knows whose it was."""
    Path(f"{path}-stemma").unlink()
    damaged = DAMAGE[kind](filled)
    path.write_bytes(damaged)
    with pytest.raises(ForeignDatabase, match="left as it"):
        SqliteStore(path)
    assert (path.read_bytes(), files(path)) == (damaged, [""])


def make_theirs(path: Path) -> None:
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE theirs (a)")
    theirs.commit()
    theirs.close()


def test_another_application_s_database_in_its_place_is_left_as_it_is(path: Path, filled: bytes):
    """A marker that was left behind does not make it ours."""
    path.unlink()
    make_theirs(path)
    before = path.read_bytes()
    with pytest.raises(ForeignDatabase, match="another application"):
        SqliteStore(path)
    assert (path.read_bytes(), files(path)) == (before, ["", "-stemma"])


def test_a_marker_that_was_lost_is_made_again(path: Path, filled: bytes):
    """A sound file of ours says itself that it is."""
    Path(f"{path}-stemma").unlink()
    store = SqliteStore(path)
    assert len(store.find()) == 50
    store.close()
    assert files(path) == ["", "-stemma"]


def damage_in_place(path: Path) -> None:
    """What a faulty disk does: the file is the same, and its pages are noise."""
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * (path.stat().st_size - 100))


def with_log_written(store: SqliteStore, path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()


USES = {
    "get": lambda store: store.get(["e1"]),
    "get many": lambda store: store.get(["e1", "e2"]),
    "put": lambda store: put_one(store, entry("x")),
    "ancestry": lambda store: store.ancestry("e1"),
    "changes": lambda store: store.changes(0),
    "recall": lambda store: store.recall(Selector(tag="t"), now=NOW),
    "sequence": lambda store: store.sequence(),
    "vectors": lambda store: store.vectors(["e1"]),
    "find": lambda store: store.find(),
}


@pytest.mark.parametrize("use", USES)
def test_a_file_that_is_damaged_while_open_is_set_aside(path: Path, use: str):
    """The call that finds it says so; the next one finds an empty store."""
    store = with_fifty(path)
    with_log_written(store, path)
    damage_in_place(path)
    with pytest.raises(DamagedDatabase, match=r"set aside as cache\.db-damaged-1"):
        USES[use](store)
    assert store.find() == ()
    put_one(store, entry("new"))
    assert [one.id for one in store.find()] == ["new"]
    assert store.check() == ()
    store.close()
    assert "-damaged-1" in files(path)
    assert "-damaged-2" not in files(path)


@pytest.mark.parametrize("size", [0, 50, 5000, 20_000])
def test_a_file_that_is_cut_short_while_open_is_set_aside(path: Path, size: int):
    """It is an error, and not the end of the process."""
    store = with_fifty(path)
    with_log_written(store, path)
    with path.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(DamagedDatabase, match="set aside"):
        store.changes(0)
    assert store.check() == ()
    assert store.find() == ()
    store.close()


def test_a_check_finds_damage_that_nothing_has_met_yet(path: Path):
    """And says what it did."""
    store = with_fifty(path)
    with_log_written(store, path)
    other = sqlite3.connect(path)
    (page,) = other.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'labels'").fetchone()
    other.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    assert list(store.get(["e1"]).entries) == ["e1"]
    (line,) = store.check()
    assert "set aside as cache.db-damaged-1" in line
    assert (store.find(), store.check()) == ((), ())
    store.close()


def test_other_stores_on_the_file_go_over_with_it(path: Path):
    """None goes on with the old one: not its reads, its puts, its index or its tickets."""
    one, other = with_fifty(path), SqliteStore(path)
    index = ExactIndex()
    assert index.nearest(other, "group of acme", vector(1, 3), 1)[0].id == "e3"
    since = other.sequence()
    with_log_written(one, path)
    damage_in_place(path)
    with pytest.raises(DamagedDatabase):
        one.get(["e1"])
    assert other.get(["e1"]).entries == {}
    put_one(one, entry("new"), vector=vector(0, 1))
    assert list(other.get(["new"]).entries) == ["new"]
    assert [near.id for near in index.nearest(other, "group of acme", vector(1, 3), 9)] == ["new"]
    (stored,) = other.put([put(entry("late"), since=since)], NOW)
    assert stored.refused == "recalled"
    assert "begun anew" in stored.detail
    (stored,) = other.put([put(entry("late"), since=other.sequence())], NOW)
    assert stored.entry is not None
    one.close()
    other.close()


def test_a_file_that_was_removed_is_begun_anew(path: Path):
    """As people do who want an empty cache; what was asked of the old one is refused."""
    one, other = with_fifty(path), SqliteStore(path)
    since = one.sequence()
    for each in path.parent.iterdir():
        each.unlink()
    assert one.get(["e1"]).entries == {}
    assert one.put([put(entry("late"), since=since)], NOW)[0].refused == "recalled"
    put_one(one, entry("new"))
    assert list(other.get(["new"]).entries) == ["new"]
    assert one.sequence() == other.sequence() > since
    one.close()
    other.close()


def test_a_copy_put_in_its_place_is_gone_over_to(path: Path, tmp_path: Path):
    """Its numbers move beyond those handed out before: a ticket of before is no good."""
    store = with_fifty(path)
    with_log_written(store, path)
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    put_one(store, entry("later"))
    since = store.sequence()
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink()
    copy.rename(path)
    assert list(store.get(["e1", "later"]).entries) == ["e1"]
    assert store.put([put(entry("late"), since=since)], NOW)[0].refused == "recalled"
    assert store.changes(since).rebuild
    assert store.check() == ()
    store.close()


def other_of(path: Path, entries: int) -> Path:
    """A sound file with so many entries of other values, closed."""
    other = path.with_name("other.db")
    store = SqliteStore(other)
    for number in range(entries):
        put_one(store, entry(f"e{number}", f"new {number}"))
    store.close()
    return other


@pytest.mark.parametrize("entries", [10, 50, 400])
@pytest.mark.parametrize("living", [True, False])
def test_the_log_of_a_file_is_not_read_into_another_one(path: Path, entries: int, living: bool):
    """Which took its place while it was open, seen by who has it open or by who comes after."""
    old = with_fifty(path)
    second = SqliteStore(path)
    assert Path(f"{path}-wal").stat().st_size
    other_of(path, entries).replace(path)
    stores = (old, second) if living else (SqliteStore(path),)
    for store in stores:
        found = store.get([f"e{number}" for number in range(400)])
        assert {one.value for one in found.entries.values()} == {f"new {n}" for n in range(entries)}
        assert (found.damaged, store.check()) == ((), ())
    put_one(stores[0], entry("later"))
    assert "later" in stores[-1].get(["later"]).entries
    for store in (*stores, old, second):
        store.close()
    assert not any("damaged" in name for name in files(path))


def test_a_copy_of_all_files_keeps_its_log(path: Path, tmp_path: Path):
    """Only what is known to be another one's is removed."""
    store = with_fifty(path)
    place = tmp_path / "elsewhere"
    place.mkdir()
    for ending in ("", "-wal", "-stemma"):
        (place / f"cache.db{ending}").write_bytes(Path(f"{path}{ending}").read_bytes())
    copy = SqliteStore(place / "cache.db")
    assert len(copy.find()) == 50
    copy.close()
    store.close()


def test_who_only_looks_sets_nothing_aside(path: Path, filled: bytes):
    """At opening or later."""
    store = SqliteStore(path, set_aside=False)
    path.write_bytes(b"noise" * 5000)
    with pytest.raises(DamagedDatabase, match="left as it is"):
        store.find()
    store.close()
    with pytest.raises(DamagedDatabase, match="left as it is"):
        SqliteStore(path, set_aside=False)
    assert files(path)[:1] == [""]
    assert not any("damaged" in name for name in files(path))
    assert path.read_bytes() == b"noise" * 5000


def test_what_came_in_its_place_and_is_no_database_is_told_of(path: Path):
    """Once, by the call that finds it."""
    store = with_fifty(path)
    noise = path.with_name("noise")
    noise.write_text("hello")
    noise.rename(path)
    with pytest.raises(DamagedDatabase, match="set aside"):
        store.get(["e1"])
    assert store.get(["e1"]).entries == {}
    store.close()


def test_a_foreign_file_in_its_place_is_not_touched(path: Path):
    """The store is out until ours is back."""
    store = with_fifty(path)
    ours = path.rename(path.with_name("ours.db"))
    make_theirs(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(ForeignDatabase):
            store.get(["e1"])
    assert path.read_bytes() == before
    ours.rename(path)
    assert list(store.get(["e1"]).entries) == ["e1"]
    store.close()


def test_what_was_left_half_done_is_done(path: Path, filled: bytes):
    """A process that was killed while it set a file aside, at whatever point."""
    Path(f"{path}-wal").write_bytes(b"log")
    marker = Path(f"{path}-stemma")
    note = json.loads(marker.read_text()) | {"aside": "cache.db-damaged-7"}
    note["moving"] = [path.stat().st_dev, path.stat().st_ino]
    marker.write_text(json.dumps(note).ljust(512))
    path.rename(path.with_name("cache.db-damaged-7"))
    path.touch()  # by one who opened the path meanwhile
    store = SqliteStore(path)
    put_one(store, entry("new"))
    store.close()
    assert files(path) == ["", "-damaged-7", "-damaged-7-wal", "-stemma"]
    assert path.with_name("cache.db-damaged-7").read_bytes() == filled
    assert Path(f"{path}-damaged-7-wal").read_bytes() == b"log"


@pytest.mark.parametrize(
    "note", ["", "x", "[]", "{}", '{"began": "x", "aside": ""}', '{"began": 0, "aside": "../y"}']
)
def test_a_marker_that_says_nothing_moves_nothing(path: Path, filled: bytes, note: str):
    """It is still a marker."""
    Path(f"{path}-stemma").write_text(note)
    store = SqliteStore(path)
    assert len(store.find()) == 50
    store.close()
    assert files(path) == ["", "-stemma"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_one_of_many_processes_sets_it_aside(path: Path):
    """All open it at once; all end up with the same store."""
    with_fifty(path).close()
    path.write_bytes(b"damaged" * 1000)
    children = []
    for number in range(6):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    store = SqliteStore(path)
                put_one(store, entry(f"of {number}"))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
    store = SqliteStore(path)
    assert {one.id for one in store.find()} == {f"of {number}" for number in range(6)}
    store.close()
    assert [name for name in files(path) if "damaged" in name] == ["-damaged-1"]


def test_an_application_goes_on(path: Path):
    """A miss, one fault and one warning; then the cache works again."""
    with stemma.open(path, tenant="me", embedder="hashing", threshold=0.6) as cache:
        events = []
        cache.listen(lambda event: events.append((event.kind, event.outcome)))
        assert cache.answers.get_or_compute("q", lambda: "a").value == "a"
        with_log_written(cache.engine.parts.store, path)
        damage_in_place(path)
        events.clear()
        assert cache.answers.get_or_compute("q", lambda: "b").value == "b"
        assert [one for one in events if one[0] in ("fault", "warning")] == [
            ("fault", "lookup"),
            ("warning", "damaged"),
        ]
        assert cache.answers.get_or_compute("q", lambda: "c").value in ("b", "c")
        assert cache.answers.get_or_compute("q", lambda: "d").outcome.hit


def test_where_it_cannot_be_set_aside_it_says_so(path: Path, filled: bytes, monkeypatch):
    """A directory in which nothing may be renamed."""
    path.write_bytes(b"damaged" * 1000)

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(StoreError, match="cannot be set aside"):
        SqliteStore(path)
