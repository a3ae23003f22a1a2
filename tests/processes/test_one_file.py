"""Several processes with a cache over one SQLite file."""

import json
from pathlib import Path

import stemma
from stemma.testing.fakes import Scripted

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


REPORTS = """
import json, sys
import stemma
cache = stemma.open(sys.argv[1], tenant="shared", embedder="hashing", threshold=0.6)
for line in sys.stdin:
    what, said = line.rstrip("\\n").split(" ", 1)
    if what == "report":
        cache.report(json.loads(said), "wrong_hit", by="ann")
        print("done", flush=True)
    else:
        found = cache.answers.lookup(said)
        print(found.tier if found.hit else found.reason, flush=True)
"""


def test_a_wrong_hit_reported_in_one_is_none_in_the_other(tmp_path: Path, start):
    """By the note that came with it, at the next lookup, and when the quarantine is over, too."""
    path = tmp_path / "cache.db"
    other = start(REPORTS, path)
    cache = stemma.open(path, tenant="shared", embedder="hashing", threshold=0.6)
    cache.answers.get_or_compute("How do I cancel my order?", Scripted("Press Cancel."))
    asked = "How can I cancel my order?"
    hit = cache.answers.lookup(asked)
    assert other.ask(f"look {asked}") == hit.tier == "semantic"
    assert other.ask(f"report {json.dumps(hit.note())}") == "done"
    assert cache.answers.lookup(asked).reason == "quarantined"
    cache.report(hit.entry.id, "supported", by="bob")
    assert cache.answers.lookup(asked).reason == "reported"
    assert other.ask(f"look {asked}") == "reported"
    assert other.ask("look How do I cancel my order?") == "exact"
    cache.close()
