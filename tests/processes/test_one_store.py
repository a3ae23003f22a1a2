"""Several views of one SQLite store, in one process and in two."""

from pathlib import Path

from stemma.selector import Selector
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, put, put_one, source, vector

OTHER = """
import sys
from stemma.selector import Selector
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, put_one
store = SqliteStore(sys.argv[1])
for line in sys.stdin:
    what, name = line.split()
    if what == "put":
        put_one(store, entry(name))
    elif what == "recall":
        store.recall(Selector(entry=name), now=NOW)
    print(*store.get([name]).entries, store.sequence(), flush=True)
"""


def test_two_processes_see_each_other_at_once(tmp_path: Path, start):
    """A put or a recall that one was told of is there at the other's next read."""
    path = tmp_path / "cache.db"
    store = SqliteStore(path)
    other = start(OTHER, path)

    def ask(what: str, name: str) -> list[str]:
        return other.ask(f"{what} {name}").split()

    put_one(store, entry("mine"))
    assert ask("get", "mine") == ["mine", "1"]
    assert ask("put", "theirs") == ["theirs", "2"]
    assert store.sequence() == 2
    assert list(store.get(["theirs"]).entries) == ["theirs"]
    since = store.sequence()
    assert ask("recall", "mine") == ["3"]
    assert store.get(["mine"]).entries == {}
    (late,) = store.put([put(entry("mine"), since=since)], NOW)
    assert late.refused == "recalled"
    store.recall(Selector(entry="theirs"), now=NOW)
    assert ask("get", "theirs") == ["4"]
    assert other.end() == 0
    store.close()


def test_two_stores_in_one_process_are_two_views_of_one_file(tmp_path: Path):
    """Each sees what the other has committed, and both count in one sequence."""
    one, two = SqliteStore(tmp_path / "cache.db"), SqliteStore(tmp_path / "cache.db")
    put_one(one, entry("a"), vector=vector(1, 0), sources=[source()])
    put_one(two, entry("b"), vector=vector(0, 1))
    assert set(one.get(["a", "b"]).entries) == set(two.get(["a", "b"]).entries) == {"a", "b"}
    assert list(one.changes(0).ids) == list(two.changes(0).ids) == ["a", "b"]
    one.close()
    assert list(two.get(["a"]).entries) == ["a"]
    two.close()
