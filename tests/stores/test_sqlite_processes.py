"""Several processes on one file, and processes that are killed."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stemma.selector import Selector
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import NOW, entry, put, put_one, source, vector

WRITER = """
import sys
from stemma.stores.sqlite import SqliteStore
from stemma.testing.builders import entry, put_one, source, vector
path, name = sys.argv[1:]
store = SqliteStore(path, busy_timeout=30)
for number in range(10**6):
    one = entry(f"{name}-{number}", payload=b"x" * (number * 37 % 3000))
    put_one(store, one, sources=[source()], vector=vector(1, number))
    print(one.id, flush=True)
"""

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


@pytest.mark.parametrize("loop", range(4))
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, loop: int):
    """Two writers are killed at a random moment; nothing they were told is stored is lost."""
    path = tmp_path / "cache.db"
    lucky = random.Random(loop)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE, text=True
        )
        for name in ("a", "b")
    ]
    acknowledged = []
    for writer in writers:
        acknowledged += [writer.stdout.readline().strip() for _ in range(lucky.randrange(5, 60))]
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
    for writer in writers:
        acknowledged += writer.stdout.read().split("\n")[:-1]  # the last line may be cut short
        writer.stdout.close()
        writer.wait()
    store = SqliteStore(path)
    found = store.get(acknowledged)
    assert set(acknowledged) - found.entries.keys() == set()
    assert found.damaged == ()
    assert set(store.vectors(acknowledged)) == set(acknowledged)
    assert store.check() == ()
    put_one(store, entry("after"))
    store.close()


def test_two_processes_see_each_other_at_once(tmp_path: Path):
    """A put or a recall that one was told of is there at the other's next read."""
    path = tmp_path / "cache.db"
    store = SqliteStore(path)
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(what: str, name: str) -> list[str]:
        other.stdin.write(f"{what} {name}\n")
        other.stdin.flush()
        return other.stdout.readline().split()

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
    other.stdin.close()
    assert other.wait(timeout=30) == 0
    other.stdout.close()
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
