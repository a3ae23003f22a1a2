"""Several processes over one SQLite file, of which one holds back what the others read."""

from pathlib import Path

import stemma

OTHER = """
import sys
import stemma
cache = stemma.open(sys.argv[1], tenant="shared", embedder=None)
for line in sys.stdin:
    what, named = line.split()
    if what == "quarantine":
        print(cache.quarantine(named, by="the other").id, flush=True)
    elif what == "release":
        print(len(cache.release(named)), flush=True)
    else:
        outcome = cache.answers.lookup(named)
        print("hit" if outcome.hit else outcome.reason, flush=True)
"""


def test_what_one_process_holds_no_other_serves_or_builds_on(tmp_path: Path, start):
    path = tmp_path / "cache.db"
    other = start(OTHER, path)
    with stemma.open(path, tenant="shared", embedder=None) as cache:
        for edition in range(5):
            question, child = f"q{edition}", f"child-of-q{edition}"
            held = []
            parent = cache.answers.get_or_compute(question, lambda: "a").stored.entry

            def read_and_held(question=question, parent=parent, held=held):
                assert cache.answers.lookup(question).hit
                held.append(other.ask(f"quarantine {parent.id}"))
                return "b"

            with cache.trace():
                served = cache.answers.get_or_compute(child, read_and_held)
            assert served.stored.refused == "parent_gone"
            assert cache.answers.lookup(question).reason == "quarantined"
            assert other.ask(f"get {child}") == "cold"
            assert other.ask(f"release {held[0]}") == "1"
            assert cache.answers.lookup(question).hit
            cache.quarantine(parent.id, by="me")
            assert other.ask(f"get {question}") == "quarantined"
    assert other.end() == 0
