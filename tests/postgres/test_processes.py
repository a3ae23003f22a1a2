"""Several processes on one database see each other's writes, and lose nothing."""

import multiprocessing
import os
import subprocess
import sys

from stemma.selector import Selector
from stemma.testing.builders import NOW, entry, put, put_one, vector

OTHER = """
import sys
from stemma.selector import Selector
from stemma.stores.postgres import PostgresStore
from stemma.testing.builders import NOW, entry, put, put_one, vector

store = PostgresStore(sys.argv[1])
for line in sys.stdin:
    said, *names = line.split()
    if said == "put":
        put_one(store, entry(names[0], names[1], tenant=names[2]), vector=vector(1, 0))
    elif said == "recall":
        store.recall(Selector(entry=names[0]), now=NOW)
    elif said == "late":
        (stored,) = store.put([put(entry(names[0]), since=int(names[1]))], NOW)
        print(stored.refused, flush=True)
        continue
    print(*sorted(store.get(names).entries), flush=True)
store.close()
"""

MANY = """
import sys
from stemma.stores.postgres import PostgresStore
from stemma.testing.builders import entry, put_one, vector

store = PostgresStore(sys.argv[1])
for number in range(40):
    one = put_one(store, entry(f"{sys.argv[2]}-{number}"), vector=vector(number, 1))
    assert store.get([one.id]).entries[one.id] == one
store.close()
"""


def test_two_processes_see_each_other_s_puts_and_recalls(newest, database, store):
    """At the next read, by id and by what changed; and a put under way is refused."""
    command = [sys.executable, "-c", OTHER, newest.url(database, "keeper")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:

        def say(line: str) -> str:
            assert other.stdin is not None
            assert other.stdout is not None
            other.stdin.write(line + "\n")
            other.stdin.flush()
            return other.stdout.readline().strip()

        start = store.sequence()
        assert say("put theirs one acme") == "theirs"
        assert set(store.get(["theirs"]).entries) == {"theirs"}
        assert list(store.changes(start).ids) == ["theirs"]
        mine = put_one(store, entry("mine"))
        assert say("get mine theirs") == "mine theirs"
        since = store.sequence()
        say("recall theirs")
        assert store.get(["theirs"]).entries == {}
        assert tuple(store.changes(since).removed) == (("group of acme", "theirs"),)
        store.recall(Selector(entry=mine.id), now=NOW)
        assert say("get mine theirs") == ""
        assert say(f"late mine {since}") == "recalled"
        (stored,) = store.put([put(entry("theirs"), since=since)], NOW)
        assert stored.refused == "recalled"
        other.stdin.close()
        assert other.wait(30) == 0


def test_processes_that_write_at_once_lose_nothing(newest, database, store):
    """Every put is there, each with a number of its own, in an order that a follower can trust."""
    url = newest.url(database, "keeper")
    others = [subprocess.Popen([sys.executable, "-c", MANY, url, str(one)]) for one in range(3)]
    held: dict[str, int] = {}
    sequence = 0
    while any(other.poll() is None for other in others):
        changes = store.changes(sequence)
        assert not set(changes.ids) & set(held)
        held |= dict.fromkeys(changes.ids, changes.sequence)
        sequence = changes.sequence
    held |= dict.fromkeys(store.changes(sequence).ids, store.sequence())
    assert [other.wait() for other in others] == [0] * 3
    stored = store.find(limit=1000)
    assert len(stored) == len({one.sequence for one in stored}) == 120
    assert set(held) == {one.id for one in stored}  # nothing became visible behind a follower
    assert store.check() == ()


def test_a_forked_child_makes_connections_of_its_own(newest, database, store):
    """And leaves the parent's alone, when it ends too."""
    put_one(store, entry("a"), vector=vector(1, 0))
    before = newest.backends(database)
    reading, writing = os.pipe()

    def child() -> None:
        put_one(store, entry("b"))
        os.write(writing, b" ".join(one.encode() for one in sorted(store.get(["a", "b"]).entries)))
        store.close()

    forked = multiprocessing.get_context("fork").Process(target=child)
    forked.start()
    forked.join(30)
    assert forked.exitcode == 0
    assert os.read(reading, 100) == b"a b"
    os.close(reading)
    os.close(writing)
    assert set(store.get(["a", "b"]).entries) == {"a", "b"}
    assert newest.backends(database) == before
