"""Several processes with a cache over one SQLite file."""

import json
from pathlib import Path

import pytest

import stemma
from stemma.testing.fakes import Scripted

MIXED = """
import json, random, sys
import stemma
path, name, operations = sys.argv[1], sys.argv[2], int(sys.argv[3])
lucky = random.Random(name)
cache = stemma.open(path, tenant="shared", embedder=None)
faults, kept, wrong = [], [], 0
cache.listen(lambda event: event.kind == "fault" and faults.append(event.detail))
print("ready", flush=True)
sys.stdin.readline()
for number in range(operations):
    kind = lucky.randrange(6)
    if kind == 0:
        question = f"{name}-{number}"
        with cache.using(tags=("kept",)):
            served = cache.answers.get_or_compute(question, lambda: question)
        if served.stored and served.stored.entry is not None:
            kept.append(question)
    elif kind == 1:
        cache.recall(tag="volatile", subject=f"s{lucky.randrange(5)}")
    elif kind == 2 and kept:
        served = cache.answers.get_or_compute(lucky.choice(kept), lambda: "LOST")
        wrong += served.value == "LOST"
    elif kind == 3:
        cache.stats()
    else:
        question = f"q{lucky.randrange(20)}"
        with cache.using(tags=("volatile",), subject=f"s{lucky.randrange(5)}"), cache.trace():
            cache.hops.get_or_compute(question, lambda: question)
            wrong += cache.answers.get_or_compute(question, lambda: question).value != question
cache.close()
print(json.dumps([kept, faults, wrong]), flush=True)
"""


def test_four_processes_lose_nothing_and_meet_no_error(tmp_path: Path, start):
    """Puts, hits, recalls and statistics, 300 each; what was acknowledged is there at the end."""
    path = tmp_path / "cache.db"
    processes = [start(MIXED, path, name, 300) for name in "abcd"]
    for one in processes:
        assert one.hear() == "ready"
    for one in processes:
        one.tell("go")
    kept = []
    for one in processes:
        acknowledged, faults, wrong = json.loads(one.hear())
        assert (faults, wrong) == ([], 0)
        assert acknowledged
        kept += acknowledged
        assert one.end() == 0
    cache = stemma.open(path, tenant="shared", embedder=None)
    found = [cache.answers.lookup(question) for question in kept]
    assert [outcome.hit and outcome.value for outcome in found] == kept
    assert cache.check() == ()
    assert sum(row.lookups for row in cache.engine.parts.store.counts()) > 600
    cache.close()


OTHER = """
import sys
import stemma
cache = stemma.open(sys.argv[1], tenant="shared", embedder=None)
for line in sys.stdin:
    what, question, answer = line.split()
    if what == "recall":
        cache.recall(tag=question)
        print("done", flush=True)
    else:
        with cache.using(tags=(question,)):
            print(cache.answers.get_or_compute(question, lambda: answer).value, flush=True)
"""


def test_each_sees_the_other_s_puts_and_recalls_at_its_next_lookup(tmp_path: Path, start):
    """Back and forth: nobody computes what the other has, nobody serves what the other recalled."""
    path = tmp_path / "cache.db"
    other = start(OTHER, path)
    cache = stemma.open(path, tenant="shared", embedder=None)

    def mine(answer: str) -> str:
        with cache.using(tags=("q",)):
            return cache.answers.get_or_compute("q", lambda: answer).value

    for edition in range(20):
        assert other.ask(f"get q theirs-{edition}") == f"theirs-{edition}"
        assert mine("not asked") == f"theirs-{edition}"
        cache.recall(tag="q")
        assert mine(f"mine-{edition}") == f"mine-{edition}"
        assert other.ask("get q not-asked") == f"mine-{edition}"
        assert other.ask("recall q -") == "done"
    assert mine("new") == "new"
    assert other.end() == 0
    cache.close()


FORKING = """
import os, sys, warnings
warnings.simplefilter("ignore")  # later Pythons warn of forking with threads: that is the point
import stemma
from stemma.stores.sqlite import SqliteStore
from stemma.stores.wrappers.guarded import Guarded
from stemma.stores.wrappers.two_level import TwoLevel
path, kind = sys.argv[1:]
store = path
if kind != "plain":
    store = Guarded(SqliteStore(path), budget=20, outbox=path + "-outbox")
if kind == "both":
    store = TwoLevel(store, lease=60)
cache = stemma.open(store, tenant="shared", embedder=None)
assert cache.answers.get_or_compute("before", lambda: "parent").value == "parent"
children = []
for number in range(8):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            mine = f"child {number}"
            assert cache.answers.get_or_compute("before", lambda: "anew").value == "parent"
            assert cache.answers.get_or_compute(mine, lambda: mine).value == mine
            assert cache.answers.get_or_compute(mine, lambda: "anew").value == mine
            cache.close()
            status = 0
        finally:
            os._exit(status)
    children.append(child)
    assert cache.answers.get_or_compute("before", lambda: "anew").value == "parent"
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
found = [cache.answers.get_or_compute(f"child {n}", lambda: "lost").value for n in range(8)]
assert found == [f"child {n}" for n in range(8)], found
assert cache.check() == ()
cache.close()
print(codes, flush=True)
"""


@pytest.mark.parametrize("kind", ["plain", "guarded", "both"])
def test_a_child_forked_after_opening_works(tmp_path: Path, start, kind: str):
    """So does its parent; both see what the other puts."""
    forking = start(FORKING, tmp_path / "cache.db", kind)
    assert forking.hear() == str([0] * 8)
    assert forking.end() == 0


def test_a_process_applies_what_another_could_not_send(tmp_path: Path, start):
    """The outbox lies beside the file: a recall noted by one is done by the next to read."""
    path = tmp_path / "cache.db"
    cache = stemma.open(path, tenant="shared", embedder=None)
    with cache.using(tags=("q",)):
        cache.answers.get_or_compute("q", Scripted("old"))
    noted = start(NOTING, tmp_path / "outbox")
    assert noted.hear() == "noted"
    reading = start(READING, path, tmp_path / "outbox")
    assert reading.hear() == "new 0"
    cache.close()


NOTING = """
import os, sys
from stemma.selector import Selector
from stemma.stores.wrappers.outbox import Note, Outbox
Outbox(sys.argv[1]).keep(Note(selector=Selector(tag="q"), now=0.0))
print("noted", flush=True)
os.kill(os.getpid(), 9)
"""

READING = """
import sys
import stemma
from stemma.stores.sqlite import SqliteStore
from stemma.stores.wrappers.guarded import Guarded
store = Guarded(SqliteStore(sys.argv[1]), budget=20, outbox=sys.argv[2])
with stemma.open(store, tenant="shared", embedder=None) as cache:
    print(cache.answers.get_or_compute("q", lambda: "new").value, store.pending, flush=True)
"""
